"""How certain it is which methods are first, and which are worth their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kbench.results import stats
from kbench.results.rows import Row
from kbench.results.stats import Array, Scores, Standing


@dataclass(frozen=True)
class Certainty:
    """Fronts of methods, and the stability of their order."""

    rows: Sequence[Row]
    scores: Scores
    """What is compared over datasets."""
    standings: Sequence[Standing]
    """Its methods in the order of their mean ranks."""
    alpha: float = 0.05

    @cached_property
    def _fronts(self) -> dict[str, stats.Front]:
        return {}

    def front(self, cost: str) -> stats.Front:
        """Return the front against a column of the rows, places in the order of `scores.methods`.

        It is over groups of datasets; over the splits of a single dataset.
        """
        if cost not in self._fronts:
            self._fronts[cost] = self._front(cost)
        return self._fronts[cost]

    def _front(self, cost: str) -> stats.Front:
        scores, k = self.scores, len(self.scores.methods)
        if not scores.has_one_unit:
            return _no_front(k, "values of different datasets have different units")
        if not scores.datasets or k < 2:
            return _no_front(k, "no dataset was finished by at least two methods")
        if len(scores.groups) > 1:
            costs = scores.of_tried(self.rows, cost)
            return stats.front(scores.tried_gains, costs, alpha=self.alpha)
        if len(scores.datasets) > 1:
            return _no_front(k, "all datasets belong to one group")
        rows, name = compared_rows(scores, self.rows, scores.datasets[0]), scores.measure.name
        splits = shared_splits(rows, name)
        if len(splits) < 2:
            return _no_front(k, "all methods share one split of one dataset")
        gains = scores.measure.gain(split_values(rows, splits, name))
        costs = np.array([[_of_split(row, cost, i) for row in rows] for i in splits], dtype=float)
        return stats.front(np.asarray(gains), costs, stats.holdout_ratio(rows[0]), self.alpha)

    @cached_property
    def stability(self) -> stats.Stability | None:
        """How certain the order by mean ranks is; None for fewer than two groups or methods."""
        gains = self.scores.gains
        if not self.standings or min(gains.shape) < 2:
            return None
        leader = self.scores.methods.index(self.standings[0].method)
        # of equal ranks, the faster method is first
        found = stats.stability(gains, self.alpha, self.scores.tried_gains)
        return replace(found, leader=leader)


def compared_rows(scores: Scores, rows: Sequence[Row], dataset: str) -> list[Row]:
    """Return the rows of a compared dataset, in the order of `scores.methods`."""
    by_method = {row.method: row for row in rows if row.dataset == dataset}
    return [by_method[method] for method in scores.methods]


def shared_splits(rows: Sequence[Row], name: str) -> list[str]:
    """Return the splits of a dataset on which all rows have a measure, of the same test rows."""
    found = list(rows[0].by_split(name))
    for row in rows[1:]:
        common = set(stats.common_splits(rows[0], row, name))
        found = [i for i in found if i in common]
    return found


def split_values(rows: Sequence[Row], splits: Sequence[str], name: str) -> Array:
    """Return a measure by split and row."""
    return np.array([[row.by_split(name)[i] for row in rows] for i in splits], dtype=float)


def _of_split(row: Row, column: str, split: str) -> float:
    """Return a cost on a split; one that is not kept by split is its mean."""
    if column == "predict_row_s":
        seconds, n_test = row.by_split("predict_time_s").get(split), row.measures.get("n_test")
        return seconds / n_test if seconds is not None and n_test else float("nan")
    value = row.by_split(column).get(split, row.value(column))
    return float("nan") if value is None else float(value)


def _no_front(n_methods: int, reason: str) -> stats.Front:
    return stats.Front((stats.FrontPlace("undecided", None),) * n_methods, reason=reason)
