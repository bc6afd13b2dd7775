"""Candidate parameter settings of a search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbench.evaluation.search._spec import EstimatorSpec
from kbench.records import Protocol


@dataclass(frozen=True)
class Candidate:
    """One choice of everything that is searched."""

    preprocess: str
    feature_map: Mapping[str, Any]
    learner: Mapping[str, Any]

    @property
    def params(self) -> dict[str, Any]:
        """All parameters of the candidate, under the names of MLflow's parameters."""
        return {
            "preprocess": self.preprocess,
            **{f"feature_map.{name}": value for name, value in self.feature_map.items()},
            **{f"learner.{name}": value for name, value in self.learner.items()},
        }


def candidates(
    feature_map: EstimatorSpec, learner: EstimatorSpec, protocol: Protocol, seed: int
) -> list[Candidate]:
    """Return the candidates that a search compares.

    They are all combinations ("halving" begins with all of them too), or
    `n_candidates` of them drawn with `seed`.
    """
    combinations = [
        Candidate(step, map_params, learner_params)
        for step in protocol.preprocess
        for map_params in _product(feature_map.space)
        for learner_params in _product(learner.space)
    ]
    if protocol.search != "random" or len(combinations) <= protocol.n_candidates:
        return combinations
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(combinations), size=protocol.n_candidates, replace=False)
    return [combinations[i] for i in sorted(drawn)]


def _product(space: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*space.values()):
        yield dict(zip(space, values, strict=True))
