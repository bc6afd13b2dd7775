"""Successive halving: few rows for many candidates, all rows for the best.

Jamieson and Talwalkar, Non-stochastic best arm identification and
hyperparameter optimization (AISTATS 2016), with rows as the resource and a
third of the candidates kept, as scikit-learn's ``HalvingGridSearchCV`` does.
Rows and not folds: every fold's whole test set scores a candidate from the first
round on, and a fit on fewer rows is cheaper, most of all where its time grows
faster than the rows. The last round is the plain search, on all rows, among the
remaining candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kbench.evaluation.search._result import Score
from kbench.evaluation.splits import derive_seed, shuffle_stratified

FACTOR = 3
ROWS_PER_CLASS = 10
"""Smallest mean number of rows of a class in the first round."""


def shares(n_candidates: int, n_rows: int, n_classes: int) -> list[float]:
    """Return the share of the rows in each round, ending with 1.

    There are as many rounds as leave at least two candidates for the last one,
    and ten rows a class in the first.

    >>> shares(12, 3000, 2) == [1 / 9, 1 / 3, 1.0]
    True
    >>> shares(12, 2000, 26), shares(3, 3000, 2)
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
    order = shuffle_stratified(y[rows], np.random.default_rng(derive_seed(seed, "halving")))
    first = np.unique(y[rows][order], return_index=True)[1]
    places = np.union1d(order[: round(share * len(rows))], order[first])
    part: np.ndarray = rows[places]
    return part


def survivors(scores: Sequence[Score]) -> list[Score]:
    """Return new scores of the candidates of the next round, in the same order.

    These are the best third of the candidates with a value (the first of equals),
    and those whose fit failed: the share of the rows may have been too small for them.
    """
    judged = [score for score in scores if score.has_value]
    best = sorted(judged, key=lambda score: -score.gain)[: -(-len(judged) // FACTOR)]
    ids = {id(score) for score in best}
    return [
        Score(score.candidate, score.metric)
        for score in scores
        if id(score) in ids or not score.has_value
    ]
