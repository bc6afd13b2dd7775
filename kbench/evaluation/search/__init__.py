"""Choice of parameters by inner cross-validation, on the training set only."""

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kbench.errors import DatasetError
from kbench.evaluation.embedding import Fitting
from kbench.evaluation.metrics import Criterion
from kbench.evaluation.search._folds import FoldScorer, inner_folds
from kbench.evaluation.search._result import Score, SearchResult, choose_score
from kbench.evaluation.specs import Candidate, EstimatorSpec, is_number
from kbench.evaluation.splits import derive_seed
from kbench.records import Protocol


def search(fitting: Fitting) -> SearchResult:
    """Choose parameters by inner cross-validation, stratified for classification.

    In each fold the preprocessing and each map are fitted once, on the fold's
    training rows, or on all rows for all folds (`refit_maps_in_inner_folds`); learners with a
    path are fitted along it. A candidate whose fit fails is not chosen, and its error is kept;
    if all fail, the first error is raised.

    The data are the training set. Of the protocol `scaling`, `inner_folds`,
    `refit_maps_in_inner_folds`, `block_dtype`, `search_method`, `n_candidates`,
    `one_standard_error`, `search_metric` and `search_timeout_s` matter.
    """
    feature_map, learner = fitting.feature_map, fitting.learner
    data, protocol = fitting.data, fitting.protocol
    compared = candidates(feature_map, learner, protocol, derive_seed(fitting.seed, "candidates"))
    if len(compared) == 1:
        return SearchResult(compared[0], [])
    start, cpu_start = time.perf_counter(), time.process_time()
    budget = protocol.search_timeout_s
    deadline = None if budget is None else time.monotonic() + budget
    criterion = fitting.method.criterion or Criterion.built_in(protocol.search_metric, data.task)
    args = fitting, inner_folds(fitting), criterion, deadline
    scorer, with_passes = FoldScorer(*args), None
    if fitting.shares_map:
        # imported here, it counts for results of this protocol only
        from kbench.evaluation.search._outer import OuterScorer

        scorer = outer = OuterScorer(*args)
        with_passes = outer.add_passes
    scores, complete = _score_all(scorer, compared)
    best = choose_score(scores, learner.simpler, protocol.one_standard_error)
    if not best.has_value:
        undefined = f"the search_metric {criterion.metric.name!r} is not defined on any inner fold"
        raise next(iter(scorer.failures), DatasetError(undefined))
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    timed = seconds, cpu_seconds, complete, ends(feature_map, learner)
    result = SearchResult(best.candidate, scores, *timed, n_embedded=scorer.n_embedded)
    return result if with_passes is None else with_passes(result)


def _score_all(scorer: FoldScorer, compared: list[Candidate]) -> tuple[list[Score], bool]:
    """Score the candidates, and return whether there was time for all.

    A round of a race counts only if there was time for all of it, so that all compared
    candidates were scored on the same folds.
    """
    rounds = [scorer.folds]
    if scorer.fitting.protocol.search_method == "racing":
        # imported here, it counts for results of this protocol only
        from kbench.evaluation.search._racing import survivors

        rounds = [[fold] for fold in scorer.folds]
    scores = {id(candidate): Score(candidate, scorer.criterion.metric) for candidate in compared}
    remaining = list(scores.values())
    for number, folds in enumerate(rounds):
        if number:
            remaining = survivors(remaining, compared[0])
        for score in remaining:
            score.share = (number + 1) / len(rounds)
        complete = scorer.score(remaining, folds)
        if complete or number == 0:
            scores |= {id(score.candidate): score for score in remaining}
        if not complete:
            return list(scores.values()), False
    return list(scores.values()), True


def candidates(
    feature_map: EstimatorSpec, learner: EstimatorSpec, protocol: Protocol, seed: int
) -> list[Candidate]:
    """Return the candidates that a search compares, the default first.

    They are all combinations, or the first `n_candidates` of a random order ("random" and
    "racing"). The default has the first value of each list. In the random order, the settings of
    all parameters but that of the learner's path are shuffled with `seed` after the default's,
    and each setting comes with the whole path: it shares its embeddings and its fits. So a larger
    search has all candidates of a smaller one, and spaces of the same size are searched in the
    same order.
    """
    settings = [
        [
            Candidate(step, map_params, {**learner_params, **along})
            for along in _product(_split_space(learner, True))
        ]
        for step in protocol.scaling
        for map_params in _product(feature_map.space)
        for learner_params in _product(_split_space(learner, False))
    ]
    n = grid_size(feature_map, learner, protocol)
    if protocol.draws_candidates and n > protocol.n_candidates:
        n = protocol.n_candidates
        order = np.random.default_rng(seed).permutation(len(settings) - 1) + 1
        settings = [settings[0], *(settings[i] for i in order)]
    return list(itertools.chain.from_iterable(settings))[:n]


def grid_size(feature_map: EstimatorSpec, learner: EstimatorSpec, protocol: Protocol) -> int:
    """Return the number of all combinations of the searched parameters."""
    lists = (protocol.scaling, *feature_map.space.values(), *learner.space.values())
    return math.prod(map(len, lists))


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


def _split_space(learner: EstimatorSpec, on_path: bool) -> dict[str, Sequence[object]]:
    """Return the part of a learner's space that is its path, or the other part."""
    return {k: values for k, values in learner.space.items() if (k == learner.path) == on_path}


def _product(space: Mapping[str, Sequence[object]]) -> Iterator[dict[str, object]]:
    for values in itertools.product(*space.values()):
        yield dict(zip(space, values, strict=True))
