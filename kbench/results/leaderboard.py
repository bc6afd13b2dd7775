"""One line per method: its place and verdict, the metric, times, size and budget."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Self

import numpy as np

from kbench.records import ACCURACY, Metric
from kbench.results import stats
from kbench.results.budgets import budgets
from kbench.results.rows import NOT_MEASURED, Method, Row, group_values
from kbench.results.stats import ALPHA, Array, Scores, Standing


@dataclass(frozen=True)
class Certainty:
    """Fronts of the methods in `scores`, the best group, and the stability of their order.

    `standings` are these methods in the order of their mean ranks.
    """

    rows: Sequence[Row]
    scores: Scores
    standings: Sequence[Standing]
    alpha: float = ALPHA

    @cached_property
    def front(self) -> Callable[[str], stats.Front]:
        """Returns the front against a column of the rows, places in the order of `scores.methods`.

        It is over groups of datasets; over the splits of a single dataset.
        """
        return cache(self._front)

    def _front(self, cost: str) -> stats.Front:
        scores, k = self.scores, len(self.scores.methods)
        if not scores.has_one_unit:
            return _no_front(k, "values of different datasets have different units")
        if not scores.datasets or k < 2:
            return _no_front(k, "no dataset was finished by at least two methods")
        if len(scores.groups) > 1:
            costs = scores.average_tried(self.rows, cost)
            return stats.front(scores.tried_gains, costs, 0.0, self.alpha, self._better)
        if len(scores.datasets) > 1:
            return _no_front(k, "all datasets belong to one family")
        by_labels, name = {row.labels: row for row in self.rows}, scores.metric.name
        rows = [by_labels[scores.datasets[0], *method] for method in scores.methods]
        splits = find_shared_splits(rows, name)
        if len(splits) < 2:
            return _no_front(k, "all methods share one split of one dataset")
        gains = scores.metric.gain(collect_split_values(rows, splits, name))
        costs = np.array([[_get_cost(row, cost, i) for row in rows] for i in splits], dtype=float)
        return stats.front(np.asarray(gains), costs, stats.holdout_ratio(rows[0]), self.alpha)

    @cached_property
    def stability(self) -> stats.Stability | None:
        """The best group, and how certain the order by mean ranks is.

        None for fewer than two groups or methods.
        """
        gains = self.scores.gains
        if not self.standings or min(gains.shape) < 2:
            return None
        leader = self.scores.methods.index(self.standings[0].method)
        # of equal ranks, the faster method is first
        found = stats.stability(gains, self.alpha, self.scores.tried_gains, self._better[1].T)
        return replace(found, leader=leader)

    @cached_property
    def _better(self) -> tuple[Array, Array]:
        """The p of each claim that one method is better than another, alone and adjusted."""
        return stats.better_p(self.scores.tried_gains)


def find_shared_splits(rows: Sequence[Row], name: str) -> list[str]:
    """Return the splits of a dataset on which all rows have a metric, of the same test rows."""
    common = [set(stats.common_splits(rows[0], row, name)) for row in rows[1:]]
    return [i for i in rows[0].by_split(name) if all(i in each for each in common)]


def collect_split_values(rows: Sequence[Row], splits: Sequence[str], name: str) -> Array:
    """Return a metric by split and row."""
    return np.array([[row.by_split(name)[i] for row in rows] for i in splits], dtype=float)


def _get_cost(row: Row, column: str, split: str) -> float:
    """Return a cost on a split; one that is not kept by split is its mean."""
    if column == "predict_time_per_row_s":
        seconds, n_test = row.by_split("predict_time_s").get(split), row.metrics.get("n_test")
        return seconds / n_test if seconds is not None and n_test else float("nan")
    value = row.by_split(column).get(split, row.value(column))
    return float("nan") if value is None else float(value)


def _no_front(n_methods: int, reason: str) -> stats.Front:
    return stats.Front((stats.FrontPlace("undecided", None),) * n_methods, reason=reason)


# Name of the family of the methods that belong to none.
NO_FAMILY = "its own"


@dataclass(frozen=True)
class Leader:
    """A method of a leaderboard; a number is None if it is unknown.

    Parameters
    ----------
    method : (feature map, learner)
    family : str
        Its family, `NO_FAMILY` where it belongs to none.
    place : int
        Its number in the order of the mean ranks, 1 for the best.
    verdict : {"best group", "worse"}, optional
        "best group" if no method is significantly better; None if it is not tested.
    worse_than : (feature map, learner), optional
        Of the methods that are significantly better, the one with the best mean rank.
    rank : float
        Mean rank.
    mean, low, high : float
        Mean of the metric over the groups of datasets that all methods finished, and the ends of
        its 95 % interval.
    wins : int
        Groups of datasets on which no method is better.
    fit_time_s, predict_time_per_row_s : float
        Times to fit, and to predict one row: geometric means over the same datasets.
    n_components : float
        Mean width of the embedding.
    search_s : float
        CPU seconds of the search of a split, a geometric mean over datasets; None if nothing was
        searched.
    candidates : float
        The maximum number of candidates of a search.
    search_note : str
        `Budget.note`: "whole grid" or empty.
    front : {"frontier", "dominated", "undecided"}, optional
        Where it is on the front of the metric against the fit time.
    dominated_by : (feature map, learner), optional
        Of the methods that are significantly better and cheaper, the clearest.
    n_datasets : int
        Datasets on which it was planned.
    n_finished, n_failed, n_skipped : int
        Datasets that it finished, on which it failed, and that were not measured, or on fewer
        splits than planned; datasets without data count as none of these.
    """

    method: Method
    family: str = NO_FAMILY
    place: int | None = None
    verdict: str | None = None
    worse_than: Method | None = None
    rank: float | None = None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    wins: int | None = None
    fit_time_s: float | None = None
    predict_time_per_row_s: float | None = None
    n_components: float | None = None
    search_s: float | None = None
    candidates: float | None = None
    search_note: str = ""
    front: str | None = None
    dominated_by: Method | None = None
    n_datasets: int = 0
    n_finished: int = 0
    n_failed: int = 0
    n_skipped: int = 0

    @property
    def name(self) -> str:
        """The method, written for people."""
        return " + ".join(self.method)


@dataclass(frozen=True)
class Leaderboard:
    """The methods of a suite, the best mean rank first, those without a rank last.

    Means and ranks of the compared `metric` are over `datasets`: those that all compared methods
    finished; some did not finish those that are `left_out`. Related datasets are a group, and count
    once in `n_groups`; `n_tested` is the same of the datasets that some method finished: missing
    cells count against claims. `same` has the methods without a rank that equal another one up to a
    rotation.

    Examples
    --------
    >>> rows = [Row("iris", "rff", "ridge", "ok", 5, 5, {"accuracy": 0.9, "fit_time_s": 0.1}),
    ...         Row("iris", "nbcs", "ridge", "ok", 5, 5, {"accuracy": 0.8, "fit_time_s": 0.2})]
    >>> [(line.place, line.name, line.mean, line.wins) for line in leaderboard(rows).lines]
    [(1, 'rff + ridge', 0.9, 1), (2, 'nbcs + ridge', 0.8, 0)]
    """

    lines: tuple[Leader, ...]
    metric: Metric
    datasets: tuple[str, ...]
    left_out: tuple[str, ...]
    n_groups: int
    n_tested: int
    same: tuple[tuple[Method, Method], ...] = ()

    @property
    def families(self) -> tuple[str, ...]:
        """The families of the methods, each once."""
        return tuple(dict.fromkeys(line.family for line in self.lines))

    def select_families(self, families: Collection[str]) -> Self:
        """Return the methods of some families; their places are still those among all."""
        return replace(self, lines=tuple(line for line in self.lines if line.family in families))


def leaderboard(rows: Sequence[Row], metric: Metric = ACCURACY) -> Leaderboard:
    """Return the leaderboard of some rows.

    Means and ranks are over the datasets that every method finished, so that a failed, a
    skipped or a missing cell never changes the mean of one method only.
    """
    compared = stats.scores(rows, metric)
    return make_leaderboard(Certainty(rows, compared, stats.standings(compared, rows)))


def make_leaderboard(certainty: Certainty) -> Leaderboard:
    """Return the leaderboard of what is already compared."""
    rows, scores = certainty.rows, certainty.scores
    means = _means(scores)
    budget_of = {
        budget.method: budget
        for budget in budgets(rows, scores.datasets or {row.dataset for row in rows}, scores.metric)
    }
    standing_of = {standing.method: standing for standing in certainty.standings}
    by_method: dict[Method, list[Row]] = {method: [] for method in standing_of}
    by_method |= group_values((row.method, row) for row in rows)
    lines = []
    for method, cells in by_method.items():
        kinds, budget = Counter(map(_kind, cells)), budget_of.get(method)
        line = Leader(
            method,
            next((row.family for row in cells if row.family), NO_FAMILY),
            search_s=budget.search_s if budget else None,
            candidates=budget.most if budget else None,
            search_note=budget.note if budget else "",
            n_datasets=len(cells),
            n_finished=kinds["finished"],
            n_failed=kinds["failed"],
            n_skipped=kinds["skipped"],
        )
        if standing := standing_of.get(method):
            line = _place(line, standing, certainty)
        elif method in means:
            line = replace(line, mean=means[method])
        lines.append(line)
    return Leaderboard(
        tuple(lines),
        scores.metric,
        scores.datasets,
        scores.left_out,
        len(scores.groups),
        len(scores.tried),
        scores.same,
    )


def _means(scores: Scores) -> Mapping[Method, float]:
    """Return the mean of a method that has no other to be compared with."""
    if not scores.datasets or not scores.has_one_unit:
        return {}
    means = scores.values.mean(axis=0)
    return {method: float(mean) for method, mean in zip(scores.methods, means, strict=True)}


def _kind(row: Row) -> str:
    if row.is_complete:
        return "finished"
    if row.status in (*NOT_MEASURED, "ok"):
        return "skipped"
    return "unavailable" if row.status == "unavailable" else "failed"


def _place(line: Leader, standing: Standing, certainty: Certainty) -> Leader:
    """Return a line with its place among all methods."""
    i = certainty.scores.methods.index(standing.method)
    stability, front = certainty.stability, certainty.front("fit_time_s")
    verdict = worse_than = None
    if stability is not None and stability.is_tested:
        verdict = "best group" if i in stability.best_group else "worse"
        p = dict(zip(certainty.scores.methods, stability.p[i], strict=True))
        better = (each.method for each in certainty.standings if p[each.method] <= certainty.alpha)
        worse_than = next(better, None)
    by = front.places[i].by
    numbers = {
        name: value if math.isfinite(value) else None
        for name, value in vars(standing).items()
        if name not in ("method", "predict_time_s")
    }
    return replace(
        line,
        **numbers,  # type: ignore[arg-type]
        verdict=verdict,
        worse_than=worse_than,
        front=None if front.reason else front.places[i].status,
        dominated_by=None if by is None else certainty.scores.methods[by],
    )
