"""Budgets of methods: how many candidates each compared, and what its searches took."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kbench.records import ACCURACY, BASELINE, Measure
from kbench.results.rows import Method, Row
from kbench.results.search_curves import Candidates, is_whole, values_of
from kbench.results.stats import Array


@dataclass(frozen=True)
class Budget:
    """What a method was allowed, over the datasets that are compared."""

    method: Method
    """Feature map and learner."""
    family: str
    """Its family; empty where it is one of its own."""
    candidates: Mapping[str, float]
    """Candidates of a search by dataset, a mean over splits; 1 where there was nothing to choose.
    Without datasets whose results do not say it.
    """
    search_s: float | None = None
    """CPU seconds of the search of a split: means over splits, and their geometric mean over
    datasets. None where nothing was searched.
    """
    parameters: tuple[str, ...] = ()
    """Searched parameters."""
    at_edge: float | None = None
    """Share of the searches whose best value was at an edge of its grid; None where nothing was
    searched, or results do not say it.
    """
    default: float | None = None
    tuned: float | None = None
    """`default` and `tuned` are means of the measure over the datasets that have both: of the
    default candidate, and of the chosen one. None where there is no such dataset, or where a mean
    over datasets has no unit.
    """

    @property
    def least(self) -> float | None:
        """The smallest number of candidates."""
        return min(self.candidates.values(), default=None)

    @property
    def most(self) -> float | None:
        """The largest number of candidates."""
        return max(self.candidates.values(), default=None)

    @property
    def is_searched(self) -> bool:
        """Whether there was something to choose on any dataset."""
        return self.most is not None and self.most > 1

    @property
    def is_baseline(self) -> bool:
        """Whether the method has nothing to choose by its nature."""
        return self.family == BASELINE

    @property
    def group(self) -> str | Method:
        """Key of its family; a method without one stands alone."""
        return self.family or self.method


def budgets(
    rows: Iterable[Row], datasets: Collection[str], measure: Measure = ACCURACY
) -> list[Budget]:
    """Return the budgets of the methods that finished any of some datasets.

    Examples
    --------
    >>> row = Row("iris", "rff", "ridge", "ok", 5, 5, {"n_candidates": 8.0}, family="Fourier")
    >>> (found,) = budgets([row], ["iris"])
    >>> found.family, found.candidates
    ('Fourier', {'iris': 8.0})
    """
    by_method: dict[Method, list[Row]] = {}
    for row in rows:
        if row.is_complete and row.dataset in datasets:
            by_method.setdefault(row.method, []).append(row)
    return [_budget(method, found, measure) for method, found in by_method.items()]


def _budget(method: Method, rows: Sequence[Row], measure: Measure) -> Budget:
    candidates = {row.dataset: row.measures["n_candidates"] for row in rows if _counted(row)}
    searched = [row for row in rows if row.measures.get("n_candidates", 0) > 1]
    seconds = [row.measures.get("search_time_cpu_s", 0.0) for row in searched]
    edges = [row for row in searched if "search_at_edge" in row.measures]
    n_searches = sum(row.n_splits_done for row in edges)
    default = measure.of_default
    both = [row for row in rows if {default, measure.name} <= row.measures.keys()]
    if measure.in_units and len(both) > 1:
        both = []
    return Budget(
        method,
        family=next((row.family for row in rows if row.family), ""),
        candidates=candidates,
        search_s=geometric_mean(seconds),
        parameters=tuple(dict.fromkeys(name for row in rows for name in row.search_space)),
        at_edge=sum(row.measures["search_at_edge"] * row.n_splits_done for row in edges)
        / n_searches
        if n_searches
        else None,
        default=_mean(both, default),
        tuned=_mean(both, measure.name),
    )


def _counted(row: Row) -> bool:
    return "n_candidates" in row.measures


def _mean(rows: Sequence[Row], name: str) -> float | None:
    return float(np.mean([row.measures[name] for row in rows])) if rows else None


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the geometric mean; None where there is none.

    >>> geometric_mean([1.0, 4.0]), geometric_mean([]), geometric_mean([0.0, 1.0])
    (2.0, None, None)
    """
    if not values or min(values) <= 0:
        return None
    return math.exp(sum(map(math.log, values)) / len(values))


N_ORDERS = 200
"""Random orders of the candidates that are averaged."""

PER_DECADE = 4
"""Points of a curve for each power of ten of seconds."""


def budget_curve(
    splits: Sequence[tuple[Candidates, Sequence[float]]], measure: Measure | None
) -> list[list[float]]:
    """Return points of seconds and the best inner score reached by then, a mean over splits.

    A search tries its candidates in an order that says nothing of a shorter search, so that
    their orders are averaged. A curve begins where each order has finished a candidate, and
    ends with all of them. The seconds of a candidate are its own and its part of what it
    shares with others.

    `splits` has the candidates of each search, as `search_curves` takes them, and the seconds of
    each of them; without a measure there is no curve.

    >>> candidates = [{"values": [0.7]}, {"values": [0.9]}]
    >>> curve = budget_curve([(candidates, [1.0, 1.0])], Measure("accuracy"))
    >>> [(seconds, round(value, 2)) for seconds, value in curve]
    [(1.0, 0.8), (1.77828, 0.8), (2.0, 0.9)]
    """
    found = []
    for candidates, seconds in splits:
        known = [
            (float(np.mean(values_of(each))), spent)
            for each, spent in zip(candidates, seconds, strict=False)
            if is_whole(each) and values_of(each) and spent > 0
        ]
        if measure is None or len(known) < 2 or len(seconds) != len(candidates):
            return []
        found.append(np.array(known))
    if measure is None or not found:
        return []
    end = max(float(table[:, 1].sum()) for table in found)
    first = max(float(table[:, 1].max()) for table in found)
    steps = np.arange(np.ceil(PER_DECADE * np.log10(first)), PER_DECADE * np.log10(end))
    times = np.array([*(10 ** (steps / PER_DECADE)), end])
    curves = [_mean_best(measure.gain(table[:, 0]), table[:, 1], times) for table in found]
    means = measure.gain(np.mean(curves, axis=0))
    return [[float(f"{t:.6g}"), float(f"{v:.7g}")] for t, v in zip(times, means, strict=True)]


def _mean_best(gains: Array, seconds: Array, times: Array) -> Array:
    """Return the best gain of the candidates that are finished by each time, over orders."""
    rng = np.random.default_rng(0)
    order = rng.permuted(np.tile(np.arange(len(gains)), (N_ORDERS, 1)), axis=1)
    best = np.maximum.accumulate(gains[order], axis=1)
    ends = np.cumsum(seconds[order], axis=1)
    # rounding of sums must not leave the last candidate out
    done = (ends[:, :, None] <= times * (1 + 1e-9)).sum(axis=1)
    return np.asarray(np.take_along_axis(best, np.maximum(done - 1, 0), axis=1).mean(axis=0))
