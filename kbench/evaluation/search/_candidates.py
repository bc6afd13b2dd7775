"""Candidate parameter settings of a search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from kbench.evaluation.search._spec import EstimatorSpec, Nested
from kbench.records import Protocol


@dataclass(frozen=True)
class Candidate:
    """One choice of everything that is searched."""

    preprocess: str
    feature_map: Mapping[str, Any]
    learner: Mapping[str, Any]

    @property
    def map_key(self) -> str:
        """A text that candidates share which have the same preprocessing and map."""
        return repr((self.preprocess, sorted(self.feature_map.items())))

    @property
    def params(self) -> dict[str, Any]:
        """All parameters of the candidate, under the names of MLflow's parameters.

        A nested component is its name; its parameters follow, as in
        ``learner.kernel.bandwidth_factor``.
        """
        flat = {"preprocess": self.preprocess}
        for side, params in (("feature_map", self.feature_map), ("learner", self.learner)):
            for name, value in params.items():
                flat.update(_flat(f"{side}.{name}", value))
        return flat


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Nested):
        yield name, value
        return
    yield name, value.name
    for inner, given in value.params.items():
        yield from _flat(f"{name}.{inner}", given)


def candidates(
    feature_map: EstimatorSpec, learner: EstimatorSpec, protocol: Protocol, seed: int
) -> list[Candidate]:
    """Return the candidates that a search compares, the default first.

    They are all combinations ("halving" begins with all of them too), or the first
    `n_candidates` of a random order. The default has the first value of each list. In
    the random order, the settings of all parameters but that of the learner's path are
    shuffled with `seed` after the default's, and each setting comes with the whole path:
    it shares its embeddings and its fits. So a larger search has all candidates of a
    smaller one, and spaces of the same size are searched in the same order.
    """
    settings = [
        [
            Candidate(step, map_params, {**learner_params, **along})
            for along in _product(_of_path(learner, True))
        ]
        for step in protocol.preprocess
        for map_params in _product(feature_map.space)
        for learner_params in _product(_of_path(learner, False))
    ]
    n = sum(map(len, settings))
    if protocol.search == "random" and n > protocol.n_candidates:
        n = protocol.n_candidates
        others = np.random.default_rng(seed).permutation(len(settings) - 1) + 1
        settings = [settings[0], *(settings[i] for i in others)]
    return list(itertools.chain.from_iterable(settings))[:n]


def ends(feature_map: EstimatorSpec, learner: EstimatorSpec) -> dict[str, tuple[float, float]]:
    """Return the smallest and the largest number in the list of each searched parameter."""
    lists: dict[str, list[float]] = {}
    alone = [
        *(Candidate("", {name: v}, {}) for name, vs in feature_map.space.items() for v in vs),
        *(Candidate("", {}, {name: v}) for name, vs in learner.space.items() for v in vs),
    ]
    for candidate in alone:
        for name, value in candidate.params.items():
            if is_number(value):
                lists.setdefault(name, []).append(value)
    return {name: (min(values), max(values)) for name, values in lists.items()}


def is_number(value: Any) -> TypeGuard[float]:
    """Whether the value of a parameter is a number; a bool is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_path(learner: EstimatorSpec, on_path: bool) -> dict[str, Sequence[Any]]:
    """Return the part of a learner's space that is its path, or the other part."""
    return {k: values for k, values in learner.space.items() if (k == learner.path) == on_path}


def _product(space: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*space.values()):
        yield dict(zip(space, values, strict=True))
