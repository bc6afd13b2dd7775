"""Decision values of rows by learners that were fitted on the other inner folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kbench.evaluation.outputs import checked_decision
from kbench.evaluation.search._candidates import Candidate
from kbench.evaluation.search._data import Data
from kbench.evaluation.search._folds import Embedded, embedded, fit_learners, selected
from kbench.evaluation.search._in_blocks import BlockFits
from kbench.evaluation.search._passes import (
    Pass,
    embedding_of,
    fit_from_sums,
    pass_over,
    takes_sums,
)
from kbench.evaluation.search._shared import SharedMap
from kbench.evaluation.search._spec import EstimatorSpec
from kbench.evaluation.splits import Fold, HeldOut, derive_seed
from kbench.evaluation.timing import Stopwatch
from kbench.records import Protocol


def out_of_fold_decisions(
    feature_map: EstimatorSpec,
    learner: EstimatorSpec,
    data: Data,
    folds: Sequence[Fold],
    candidate: Candidate,
    seed: int,
    protocol: Protocol,
) -> Iterator[tuple[np.ndarray, bool]]:
    """Fit a candidate on each inner fold, with the seeds of the search.

    Yield the checked decision values of the fold's test rows, and whether all fits
    converged.
    """
    embed: Callable[[Fold], Embedded]
    if protocol.inner_fit == "outer" and not data.pairwise:
        method = feature_map, learner, data, [candidate], seed
        shared, is_large = embedding_of(*method, protocol)
        if is_large:
            parts = HeldOut(folds)
            if takes_sums(learner, [candidate]):
                passed = pass_over(shared, *method, parts)
                yield from _from_sums(passed, learner, data, folds, seed)
            else:
                yield from _in_blocks(shared, *method, parts)
            return
        embed = selected(shared.embedded(data.X), shared.converged)
    else:

        def embed(fold: Fold) -> Embedded:
            return embedded(feature_map, data, fold, candidate, seed)

    for fold in folds:
        Z, Z_test, map_converged = embed(fold)
        train, test = fold
        y, weight = data.scale(train).standardise(data.y[train]), data.weights(train)
        learner_seed = derive_seed(seed, "learner")
        ((fitted, converged),) = fit_learners(learner, Z, y, weight, [candidate], learner_seed)
        decision = checked_decision(fitted.decision_function(Z_test), len(test), learner.what)
        yield decision, converged and map_converged


def _from_sums(
    passed: Pass, learner: EstimatorSpec, data: Data, folds: Sequence[Fold], seed: int
) -> Iterator[tuple[np.ndarray, bool]]:
    for number, (train, test) in enumerate(folds):
        ((fitted, converged),) = fit_from_sums(
            learner, passed.others(number, train), [passed.candidate], derive_seed(seed, "learner")
        )
        decision = _decision_in_blocks(passed.shared, learner, fitted, data, test)
        yield decision, converged and passed.shared.converged


def _in_blocks(
    shared: SharedMap,
    feature_map: EstimatorSpec,
    learner: EstimatorSpec,
    data: Data,
    candidates: Sequence[Candidate],
    seed: int,
    parts: Sequence[np.ndarray],
) -> Iterator[tuple[np.ndarray, bool]]:
    fits = BlockFits(shared)
    training = [[k for k in range(len(parts)) if k != number] for number in range(len(parts))]
    found = fits.of(feature_map, learner, data, candidates, seed, parts, training)
    for ((fitted, converged),), test in zip(found, parts, strict=True):
        decision = _decision_in_blocks(fits.shared, learner, fitted, data, test)
        yield decision, converged and fits.shared.converged


def _decision_in_blocks(
    shared: SharedMap, learner: EstimatorSpec, fitted: Any, data: Data, test: np.ndarray
) -> np.ndarray:
    blocks = [
        checked_decision(fitted.decision_function(Z), Z.shape[0], learner.what)
        for _, Z in shared.embedded_blocks(data.X, test, Stopwatch())
    ]
    return np.concatenate(blocks)
