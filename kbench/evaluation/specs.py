"""Feature maps and learners: their parameters, their search space, and choices from it."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from kbench.errors import PluginError
from kbench.evaluation.checked_predictions import FittedLearner
from kbench.evaluation.lazy_rows import Matrix
from kbench.evaluation.splits import derive_seed

Params: TypeAlias = Mapping[str, Any]
"""Values of parameters, by name."""

Fit = tuple[FittedLearner, bool]
"""A fitted learner, and whether its fit converged."""


@dataclass(frozen=True)
class EstimatorSpec:
    """A feature map or learner with its given parameters and its search space.

    Nested components among the parameters are `Nested` specs. A map that is `supervised` gets
    `y` in ``fit``, and `requires` something of its inputs; a learner has ``fit_path`` along its
    `path`, and `simpler` says which values of its parameters make a simpler model. `what` is
    its kind and name for messages, and `draw` the number of the seed, of several on the same
    data: 0 is the seed that is given. A trial has `row_share` of the training rows.
    """

    make: Callable[..., Any]
    params: Params = field(default_factory=dict)
    space: Mapping[str, Sequence[object]] = field(default_factory=dict)
    supervised: bool = False
    requires: str | None = None
    path: str | None = None
    simpler: Mapping[str, str] = field(default_factory=dict)
    label: str = "the component"
    draw: int = 0
    row_share: float = 1.0

    def fit(
        self, chosen: Params, seed: int, Z: Matrix, y: np.ndarray, weight: np.ndarray | None = None
    ) -> FittedLearner:
        """Return a fitted learner; raises PluginError if it does not take given weights."""
        estimator = self.build(chosen, seed)
        fitted: FittedLearner = estimator.fit(Z, y, **self.weights(estimator.fit, weight))
        return fitted

    def all_have(self, name: str, candidates: "Sequence[Candidate]") -> bool:
        """Whether the learner has a path, and its estimators an attribute that is not false."""
        return self.path is not None and all(
            getattr(self.build(candidate.learner, 0), name, False) for candidate in candidates
        )

    def weights(self, fit: Callable[..., Any], weight: np.ndarray | None) -> dict[str, np.ndarray]:
        """Return weights, if there are any, as the argument `sample_weight` of a method of fitting.

        Raises PluginError if the method does not take it.
        """
        if weight is None:
            return {}
        if "sample_weight" not in inspect.signature(fit).parameters:
            raise PluginError(
                f"{self.label} does not take the weights of the rows (sample_weight) that this "
                "dataset has"
            )
        return {"sample_weight": weight}

    def build(self, chosen: Params, seed: int) -> Any:
        """Return an unfitted estimator; its `random_state` is `seed` unless given.

        Of another `draw` than 0 it is derived from `seed`. ``scale_sizes`` gets `row_share`.
        """
        estimator = self._make_unseeded(chosen)
        if self.row_share < 1 and hasattr(estimator, "scale_sizes"):
            estimator.scale_sizes(self.row_share)
        if self._is_seeded(estimator, chosen):
            estimator.random_state = derive_seed(seed, "draw", self.draw) if self.draw else seed
        return estimator

    def takes_seed(self, chosen: Params) -> bool:
        """Whether the seed of `build` has an effect."""
        return self._is_seeded(self._make_unseeded(chosen), chosen)

    def _make_unseeded(self, chosen: Params) -> Any:
        values = {**self.params, **chosen}
        return self.make(**{name: _make(value) for name, value in values.items()})

    def _is_seeded(self, estimator: FittedLearner, chosen: Params) -> bool:
        is_given = "random_state" in self.params or "random_state" in chosen
        return not is_given and hasattr(estimator, "random_state")


@dataclass(frozen=True)
class Nested:
    """A component inside a parameter, built again for every estimator, with the name of its record.

    Candidates are compared by all fields: the label rounds numbers.
    """

    make: Callable[..., Any]
    params: Params
    name: str
    label: str


def _make(value: object) -> object:
    if isinstance(value, Nested):
        return value.make(**{name: _make(param) for name, param in value.params.items()})
    return [_make(item) for item in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Candidate:
    """One choice of everything that is searched."""

    scaling: str
    feature_map: Params
    learner: Params

    @property
    def map_key(self) -> str:
        """A key shared by candidates that have the same preprocessing and map."""
        return repr((self.scaling, sorted(self.feature_map.items())))

    @property
    def params(self) -> dict[str, object]:
        """All parameters of the candidate, under the names of MLflow's parameters.

        A nested component is its name; its parameters follow, as in
        ``learner.kernel.bandwidth_factor``.
        """
        flat: dict[str, object] = {"scaling": self.scaling}
        for side, params in (("feature_map", self.feature_map), ("learner", self.learner)):
            for name, value in params.items():
                flat.update(_flat(f"{side}.{name}", value))
        return flat


def _flat(name: str, value: object) -> Iterator[tuple[str, object]]:
    if not isinstance(value, Nested):
        yield name, value
        return
    yield name, value.name
    for inner, param in value.params.items():
        yield from _flat(f"{name}.{inner}", param)


def is_number(value: object) -> TypeGuard[float]:
    """Whether the value of a parameter is a number; a bool is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
