"""Feature maps and learners with their given parameters and their search space."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kbench.errors import PluginError


@dataclass(frozen=True)
class EstimatorSpec:
    """A feature map or learner with its given parameters and its search space.

    Parameters
    ----------
    make : callable
        Returns an unfitted estimator.
    params : mapping
        Given parameters; nested components are `Nested` specs.
    space : mapping of str to sequence
        Values to search over, by parameter.
    supervised : bool
        Pass `y` to ``fit`` (a map; learners always get it).
    requires : str, optional
        Requirement of a map on its inputs.
    path : str, optional
        Parameter along which a learner has ``fit_path``.
    simpler : mapping of str to {"smaller", "larger"}
        Which values of a learner's parameters make a simpler model.
    what : str
        Kind and name for messages, such as ``"learner 'ridge'"``.
    """

    make: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    supervised: bool = False
    requires: str | None = None
    path: str | None = None
    simpler: Mapping[str, str] = field(default_factory=dict)
    what: str = "the component"

    def fit(self, chosen: Mapping[str, Any], seed: int, Z: Any, y: Any, weight: Any = None) -> Any:
        """Return a fitted learner; PluginError where it does not take given weights."""
        estimator = self.build(chosen, seed)
        if weight is None:
            return estimator.fit(Z, y)
        self.require_weights(estimator.fit)
        return estimator.fit(Z, y, sample_weight=weight)

    def require_weights(self, fit: Callable[..., Any]) -> None:
        """Raise a PluginError unless a method of fitting has the parameter `sample_weight`."""
        if "sample_weight" not in inspect.signature(fit).parameters:
            raise PluginError(
                f"{self.what} does not take the weights of the rows (sample_weight) that this "
                "dataset has"
            )

    def build(self, chosen: Mapping[str, Any], seed: int) -> Any:
        """Return an unfitted estimator; its `random_state` is `seed` unless given."""
        values = {**self.params, **chosen}
        estimator = self.make(**{name: _made(value) for name, value in values.items()})
        if "random_state" not in values and hasattr(estimator, "random_state"):
            estimator.random_state = seed
        return estimator


@dataclass(frozen=True)
class Nested:
    """A component inside a parameter, built anew for every estimator.

    `name` is that of its record. The label is for people: it rounds numbers, so that two
    components may share it. Candidates are compared by all fields.
    """

    make: Callable[..., Any]
    params: Mapping[str, Any]
    name: str
    label: str


def _made(value: Any) -> Any:
    if isinstance(value, Nested):
        return value.make(**{name: _made(given) for name, given in value.params.items()})
    if isinstance(value, tuple):
        return [_made(item) for item in value]
    return value
