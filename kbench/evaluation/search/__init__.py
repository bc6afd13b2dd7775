"""Choice of parameters by inner cross-validation, on the training part only."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kbench.errors import DatasetError
from kbench.evaluation.embedding import Data
from kbench.evaluation.measures import Criterion
from kbench.evaluation.search._folds import FoldScorer, inner_folds
from kbench.evaluation.search._outer import OuterScorer
from kbench.evaluation.search._result import Score, SearchResult, chosen
from kbench.evaluation.specs import Candidate, EstimatorSpec, is_number
from kbench.evaluation.splits import derive_seed, strata, stratified_order
from kbench.records import Protocol

FACTOR = 3
"""Part of the candidates that a round of successive halving keeps.

Jamieson and Talwalkar, Non-stochastic best arm identification and
hyperparameter optimization (AISTATS 2016), with rows as the resource and a
third of the candidates kept, as scikit-learn's ``HalvingGridSearchCV`` does.
Rows and not folds: every fold's whole test part scores a candidate from the first
round on, and a fit on fewer rows is cheaper, most of all where its time grows
faster than the rows. The last round is the plain search, on all rows, among the
remaining candidates.
"""

ROWS_PER_CLASS = 10
"""Smallest mean number of rows of a class in the first round."""


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
    if protocol.inner_fit == "outer" and not data.pairwise:
        scorer = OuterScorer(*given, protocol=protocol)
    else:
        scorer = FoldScorer(*given)
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
    return scorer.with_passes(result) if isinstance(scorer, OuterScorer) else result


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
        n_rows = min(len(train) for train, _ in scorer.folds)
        shares = halving_shares(len(compared), n_rows, len(np.unique(y)))
    kept = {id(candidate): Score(candidate, scorer.criterion.measure) for candidate in compared}
    remaining = list(kept.values())
    for number, share in enumerate(shares):
        for score in remaining:
            score.share = share
        folds = scorer.folds
        if share < 1.0:
            folds = [(subset(train, y, share, scorer.seed), test) for train, test in folds]
        complete = scorer.score(remaining, folds)
        if complete or number == 0:
            kept |= {id(score.candidate): score for score in remaining}
        if not complete:
            return list(kept.values()), False
        remaining = survivors(remaining)
    return list(kept.values()), True


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


def _of_path(learner: EstimatorSpec, on_path: bool) -> dict[str, Sequence[object]]:
    """Return the part of a learner's space that is its path, or the other part."""
    return {k: values for k, values in learner.space.items() if (k == learner.path) == on_path}


def _product(space: Mapping[str, Sequence[object]]) -> Iterator[dict[str, object]]:
    for values in itertools.product(*space.values()):
        yield dict(zip(space, values, strict=True))


def halving_shares(n_candidates: int, n_rows: int, n_classes: int) -> list[float]:
    """Return the share of the rows in each round of successive halving, ending with 1.

    There are as many rounds as leave at least two candidates for the last one,
    and ten rows a class in the first.

    >>> halving_shares(12, 3000, 2) == [1 / 9, 1 / 3, 1.0]
    True
    >>> halving_shares(12, 2000, 26), halving_shares(3, 3000, 2)
    ([0.3333333333333333, 1.0], [1.0])
    """
    rounds = 0
    while (
        FACTOR ** (rounds + 1) < n_candidates
        and n_rows / FACTOR ** (rounds + 1) >= ROWS_PER_CLASS * n_classes
    ):
        rounds += 1
    return [1.0 / FACTOR**k for k in range(rounds, -1, -1)]


def subset(rows: np.ndarray, y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return a stratified share of the rows of a fold, at least one of each class.

    The part of a larger share contains that of a smaller one. `y` has the labels of all
    rows of the data.
    """
    if share == 1.0:
        return rows
    order = stratified_order(y[rows], np.random.default_rng(derive_seed(seed, "halving")))
    first = np.unique(y[rows][order], return_index=True)[1]
    places = np.union1d(order[: round(share * len(rows))], order[first])
    part: np.ndarray = rows[places]
    return part


def survivors(scores: Sequence[Score]) -> list[Score]:
    """Return new scores of the candidates of the next round, in the same order.

    These are the best third of the candidates with a value (the first of equals),
    and those whose fit failed: the share of the rows may have been too small for them.
    """
    judged = [score for score in scores if score.judged]
    best = sorted(judged, key=lambda score: -score.gain)[: -(-len(judged) // FACTOR)]
    kept = {id(score) for score in best}
    return [
        Score(score.candidate, score.measure)
        for score in scores
        if id(score) in kept or not score.judged
    ]
