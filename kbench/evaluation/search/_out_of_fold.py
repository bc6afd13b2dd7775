"""Decision values of rows by learners that were fitted on the other inner folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from kbench.evaluation.outputs import checked_decision
from kbench.evaluation.search._candidates import Candidate
from kbench.evaluation.search._data import Data
from kbench.evaluation.search._folds import Embedded, Fold, embedded, fit_learners, selected
from kbench.evaluation.search._passes import Pass, embedding_of, fit_from_sums, pass_over
from kbench.evaluation.search._spec import EstimatorSpec
from kbench.evaluation.splits import derive_seed
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
            passed = pass_over(shared, *method, [test for _, test in folds])
            yield from _from_sums(passed, learner, data, folds, seed)
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
        blocks = [
            checked_decision(fitted.decision_function(Z), len(Z), learner.what)
            for _, Z in passed.shared.embedded_blocks(data.X, test, Stopwatch())
        ]
        yield np.concatenate(blocks), converged and passed.shared.converged
