"""Standings of methods over all datasets: mean ranks, means, intervals, times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kbench.records import Measure
from kbench.results.rows import Method, Row, is_share
from kbench.results.stats.arrays import Array
from kbench.results.stats.compared import Scores
from kbench.results.stats.ranking import ranks
from kbench.results.stats.resampling import mean_interval


@dataclass(frozen=True)
class Standing:
    """A method over the datasets that all methods finished.

    Parameters
    ----------
    place : int
        Its number, 1 for the best mean rank.
    method : (str, str)
        Feature map and learner.
    rank : float
        Mean rank.
    mean, low, high : float
        Mean of the measure over groups of datasets, with its 95 %
        interval; NaN for one group.
    fit_time_s, predict_time_s : float
        Geometric means over groups of datasets.
    predict_row_s : float
        Time to predict one row, the geometric mean; NaN where it is not known.
    n_components : float
        Mean width of the embedding; NaN where it is not known.
    wins : int
        Groups of datasets on which no method is better.
    """

    place: int
    method: Method
    rank: float
    mean: float
    low: float
    high: float
    fit_time_s: float
    predict_time_s: float
    predict_row_s: float
    n_components: float
    wins: int

    @property
    def name(self) -> str:
        """The method, written for people."""
        return " + ".join(self.method)


def standings(scores: Scores, rows: Sequence[Row]) -> list[Standing]:
    """Return the methods in the order of their mean ranks, of equal ranks the faster first.

    Times and sizes are taken from `rows`. There are no standings without two
    methods and a dataset, and none over datasets whose numbers have different units.
    """
    values, gains = scores.values, scores.gains
    if not values.shape[0] or values.shape[1] < 2 or not scores.has_one_unit:
        return []
    ranked = ranks(gains).mean(axis=0)
    best = np.round(gains, 12) == np.round(gains, 12).max(axis=1, keepdims=True)
    fit, predict, row_s = (
        np.exp(np.mean(np.log(np.maximum(scores.of(rows, name), 1e-12)), axis=0))
        for name in ("fit_time_s", "predict_time_s", "predict_row_s")
    )
    width = scores.of(rows, "n_components").mean(axis=0)
    order = sorted(range(values.shape[1]), key=lambda i: (ranked[i], fit[i]))
    return [
        Standing(
            place,
            scores.methods[i],
            float(ranked[i]),
            float(values[:, i].mean()),
            *_interval(values[:, i], scores.measure),
            float(fit[i]),
            float(predict[i]),
            float(row_s[i]),
            float(width[i]),
            int(best[:, i].sum()),
        )
        for place, i in enumerate(order, start=1)
    ]


def _interval(values: Array, measure: Measure) -> tuple[float, float]:
    """Return the interval of a mean; that of a share has no values that a share cannot have."""
    low, high = mean_interval(values)
    return (max(low, 0.0), min(high, 1.0)) if is_share(measure) else (low, high)
