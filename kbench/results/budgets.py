"""Budgets of methods: how many candidates each compared, and what its searches took."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kbench.records import ACCURACY, BASELINE, Metric
from kbench.results.rows import Method, Row, group_values
from kbench.results.search_curves import Candidates, get_values, is_whole
from kbench.results.stats import Array


@dataclass(frozen=True)
class Budget:
    """What a method was allowed, over the datasets that are compared.

    `family` is empty if the method belongs to none. `candidates` of a search by dataset are a mean
    over splits, 1 if there was nothing to choose, without datasets whose results do not say it.
    `search_s` is the CPU seconds of the search of a split: means over splits, and their geometric
    mean over datasets; None if nothing was searched. `parameters` are those that were searched.
    `at_boundary` is the share of the searches whose best value was at the boundary of its grid;
    None if nothing was searched, or the results do not record it. `default` and `tuned` are means
    of the metric over the datasets that have both: of the default candidate, and of the chosen one;
    None if there is no such dataset, or where a mean over datasets has no unit. `note` is the
    `search_note` of its searches, if it is the same for all.
    """

    method: Method
    family: str
    candidates: Mapping[str, float]
    search_s: float | None = None
    parameters: tuple[str, ...] = ()
    at_boundary: float | None = None
    default: float | None = None
    tuned: float | None = None
    note: str = ""

    @property
    def least(self) -> float | None:
        """The smallest number of candidates."""
        return min(self.candidates.values(), default=None)

    @property
    def most(self) -> float | None:
        """The maximum number of candidates."""
        return max(self.candidates.values(), default=None)

    @property
    def is_searched(self) -> bool:
        """Whether there was something to choose on any dataset."""
        return self.most is not None and self.most > 1

    @property
    def is_baseline(self) -> bool:
        """Whether the method is a baseline without hyperparameters."""
        return self.family == BASELINE

    @property
    def group(self) -> str | Method:
        """Key of its family; a method without one stands alone."""
        return self.family or self.method


def budgets(
    rows: Iterable[Row], datasets: Collection[str], metric: Metric = ACCURACY
) -> list[Budget]:
    """Return the budgets of the methods that finished any of some datasets.

    Examples
    --------
    >>> row = Row("iris", "rff", "ridge", "ok", 5, 5, {"n_candidates": 8.0}, family="fourier")
    >>> (found,) = budgets([row], ["iris"])
    >>> found.family, found.candidates
    ('fourier', {'iris': 8.0})
    """
    compared = (row for row in rows if row.is_complete and row.dataset in datasets)
    by_method = group_values((row.method, row) for row in compared)
    return [_budget(method, values, metric) for method, values in by_method.items()]


def _budget(method: Method, rows: Sequence[Row], metric: Metric) -> Budget:
    counts = ((row.dataset, row.metrics.get("n_candidates")) for row in rows)
    candidates = {dataset: n for dataset, n in counts if n is not None}
    searched = [row for row in rows if row.metrics.get("n_candidates", 0) > 1]
    seconds = [row.metrics.get("search_time_cpu_s", 0.0) for row in searched]
    notes = set(map(search_note, searched))
    edges = [row for row in searched if "search_at_boundary" in row.metrics]
    n_searches = sum(row.n_splits_done for row in edges)
    default = metric.default_name
    both = [row for row in rows if {default, metric.name} <= row.metrics.keys()]
    if metric.in_units and len(both) > 1:
        both = []
    return Budget(
        method,
        family=next((row.family for row in rows if row.family), ""),
        candidates=candidates,
        search_s=geometric_mean(seconds),
        parameters=tuple(dict.fromkeys(name for row in rows for name in row.search_space)),
        at_boundary=sum(row.metrics["search_at_boundary"] * row.n_splits_done for row in edges)
        / n_searches
        if n_searches
        else None,
        default=_mean(both, default),
        tuned=_mean(both, metric.name),
        note=notes.pop() if len(notes) == 1 else "",
    )


def search_note(row: Row) -> str:
    """Return "whole grid" for a search that had no more to try: it ended before its budget."""
    n = row.metrics.get("n_candidates", 0)
    return "whole grid" if n > 1 and n >= row.metrics.get("grid_size", math.inf) else ""


def _mean(rows: Sequence[Row], name: str) -> float | None:
    return float(np.mean([row.metrics[name] for row in rows])) if rows else None


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the geometric mean; None if there is none.

    >>> geometric_mean([1.0, 4.0]), geometric_mean([]), geometric_mean([0.0, 1.0])
    (2.0, None, None)
    """
    if not values or min(values) <= 0:
        return None
    return math.exp(sum(map(math.log, values)) / len(values))


# Random orders of the candidates that are averaged.
N_ORDERS = 200

# Points of a curve for each power of ten of seconds.
PER_DECADE = 4


def budget_curve(
    splits: Sequence[tuple[Candidates, Sequence[float]]], metric: Metric | None
) -> list[list[float]]:
    """Return points of seconds and the best validation score reached by then, a mean over splits.

    A search tries its candidates in an order that says nothing of a shorter search, so that
    their orders are averaged. A curve begins where each order has finished a candidate, and
    ends with all of them. The seconds of a candidate include its
    part of what several candidates share.

    `splits` has the candidates of each search, as `search_curves` takes them, and the seconds of
    each of them; without a metric there is no curve.

    >>> candidates = [{"values": [0.7]}, {"values": [0.9]}]
    >>> curve = budget_curve([(candidates, [1.0, 1.0])], Metric("accuracy"))
    >>> [(seconds, round(value, 2)) for seconds, value in curve]
    [(1.0, 0.8), (1.77828, 0.8), (2.0, 0.9)]
    """
    points = []
    for candidates, seconds in splits:
        values = [
            (float(np.mean(get_values(each))), spent)
            for each, spent in zip(candidates, seconds, strict=False)
            if is_whole(each) and get_values(each) and spent > 0
        ]
        if metric is None or len(values) < 2 or len(seconds) != len(candidates):
            return []
        points.append(np.array(values))
    if metric is None or not points:
        return []
    end = max(float(table[:, 1].sum()) for table in points)
    first = max(float(table[:, 1].max()) for table in points)
    steps = np.arange(np.ceil(PER_DECADE * np.log10(first)), PER_DECADE * np.log10(end))
    times = np.array([*(10 ** (steps / PER_DECADE)), end])
    curves = [_mean_best(metric.gain(table[:, 0]), table[:, 1], times) for table in points]
    means = metric.gain(np.mean(curves, axis=0))
    return [[float(f"{t:.6g}"), float(f"{v:.7g}")] for t, v in zip(times, means, strict=True)]


def _mean_best(gains: Array, seconds: Array, times: Array) -> Array:
    """Return the best gain of the candidates that are finished by each time, over orders."""
    order = np.random.default_rng(0).permuted(np.tile(np.arange(len(gains)), (N_ORDERS, 1)), axis=1)
    best = np.maximum.accumulate(gains[order], axis=1)
    # rounding of sums must not leave the last candidate out
    done = (np.cumsum(seconds[order], axis=1)[:, :, None] <= times * (1 + 1e-9)).sum(axis=1)
    return np.asarray(np.take_along_axis(best, np.maximum(done - 1, 0), axis=1).mean(axis=0))
