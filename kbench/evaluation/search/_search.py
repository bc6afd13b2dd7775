"""Choice of parameters by inner cross-validation."""

from __future__ import annotations

import time

import numpy as np

from kbench.errors import DatasetError
from kbench.evaluation.measures import Criterion
from kbench.evaluation.search._candidates import Candidate, candidates, ends
from kbench.evaluation.search._data import Data
from kbench.evaluation.search._folds import FoldScorer, inner_folds
from kbench.evaluation.search._result import Score, SearchResult, chosen
from kbench.evaluation.search._spec import EstimatorSpec
from kbench.evaluation.splits import derive_seed, strata
from kbench.records import Protocol


def search(
    feature_map: EstimatorSpec,
    learner: EstimatorSpec,
    data: Data,
    protocol: Protocol,
    seed: int,
    criterion: Criterion | None = None,
) -> SearchResult:
    """Choose parameters by inner cross-validation, stratified for classification.

    In each fold the preprocessing and each map are fitted once, on the fold's
    training rows, or on all rows for all folds (`inner_fit`); learners with a path are
    fitted along it. A candidate whose
    fit fails is not chosen, and its error is kept; if all fail, the first error is
    raised.

    `data` is the training part. Of the protocol `preprocess`, `inner_folds`, `inner_fit`,
    `dtype`, `search`, `n_candidates`, `one_standard_error`, `search_measure` and
    `search_time_s` matter.
    `seed` is the root of the seeds of the folds, the draw, the map and the learner.
    `criterion` is the measure of a plugin that the search optimises.
    """
    compared = candidates(feature_map, learner, protocol, derive_seed(seed, "candidates"))
    if len(compared) == 1:
        return SearchResult(compared[0], [])
    start, cpu_start = time.perf_counter(), time.process_time()
    budget = protocol.search_time_s
    deadline = None if budget is None else time.monotonic() + budget
    folds = inner_folds(data, protocol, seed)
    if criterion is None:
        criterion = Criterion.built_in(protocol.search_measure, data.task)
    scorer: FoldScorer
    given = feature_map, learner, data, folds, seed, criterion, deadline
    scorer, with_passes = FoldScorer(*given), None
    if protocol.inner_fit == "outer" and not data.pairwise:
        # imported here, it counts for results of this protocol only
        from kbench.evaluation.search._outer import OuterScorer

        scorer = outer = OuterScorer(*given, protocol=protocol)
        with_passes = outer.with_passes
    scores, complete = _scored(scorer, compared, protocol)
    best = chosen(scores, learner.simpler, protocol.one_standard_error)
    if not best.judged:
        undefined = (
            f"the search_measure {criterion.measure.name!r} is not defined on any inner fold"
        )
        raise next(iter(scorer.failures), DatasetError(undefined))
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    limits = ends(feature_map, learner)
    result = SearchResult(best.candidate, scores, seconds, cpu_seconds, complete, limits)
    return result if with_passes is None else with_passes(result)


def _scored(
    scorer: FoldScorer, compared: list[Candidate], protocol: Protocol
) -> tuple[list[Score], bool]:
    """Score the candidates, and return whether there was time for all.

    A round of halving counts only if there was time for all of it, so that all compared
    candidates were scored on the same rows.
    """
    y = strata(scorer.data.y, scorer.data.task)
    shares = [1.0]
    if protocol.search == "halving":
        from kbench.evaluation.search import _halving

        n_rows = min(len(train) for train, _ in scorer.folds)
        shares = _halving.shares(len(compared), n_rows, len(np.unique(y)))
    kept = {id(candidate): Score(candidate, scorer.criterion.measure) for candidate in compared}
    remaining = list(kept.values())
    for number, share in enumerate(shares):
        for score in remaining:
            score.share = share
        folds = scorer.folds
        if share < 1.0:
            folds = [(_halving.subset(train, y, share, scorer.seed), test) for train, test in folds]
        complete = scorer.score(remaining, folds)
        if complete or number == 0:
            kept |= {id(score.candidate): score for score in remaining}
        if not complete:
            return list(kept.values()), False
        if share < 1.0:
            remaining = _halving.survivors(remaining)
    return list(kept.values()), True
