"""A feature map or learner with what is given and what is searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class EstimatorSpec:
    """A feature map or learner with what is given and what is searched.

    Parameters
    ----------
    make : callable
        Returns an unfitted estimator.
    params : mapping
        Given parameters, nested components already made into callables that
        return a fresh one.
    space : mapping of str to sequence
        Values to search over, by parameter.
    supervised : bool
        Pass `y` to ``fit`` (a map; learners always get it).
    requires : str, optional
        What a map needs of its inputs.
    path : str, optional
        Parameter along which a learner has ``fit_path``.
    simpler : mapping of str to {"smaller", "larger"}
        Which values of a learner's parameters make a simpler model.
    """

    make: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    supervised: bool = False
    requires: str | None = None
    path: str | None = None
    simpler: Mapping[str, str] = field(default_factory=dict)

    def build(self, chosen: Mapping[str, Any], seed: int) -> Any:
        """Return an unfitted estimator; its `random_state` is `seed` unless given."""
        values = {**self.params, **chosen}
        estimator = self.make(**{name: _made(value) for name, value in values.items()})
        if "random_state" not in values and hasattr(estimator, "random_state"):
            estimator.random_state = seed
        return estimator


@dataclass(frozen=True)
class Nested:
    """A component inside a parameter: made anew for every estimator.

    Its label is for people; numbers in it are rounded, so that two components
    may share it. What tells candidates apart is all of it.
    """

    make: Callable[..., Any]
    params: Mapping[str, Any]
    label: str


def _made(value: Any) -> Any:
    if isinstance(value, Nested):
        return value.make(**{name: _made(each) for name, each in value.params.items()})
    if isinstance(value, tuple):
        return [_made(each) for each in value]
    return value
