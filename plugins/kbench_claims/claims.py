"""What the rows of a suite show of its methods: variance, searches, warnings."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from kbench import features
from kbench.records import BASELINE, INPUTS, KERNEL, Metric
from kbench_claims.components import Components, components, splits_needed

_SIMPLER = (BASELINE, INPUTS, KERNEL)

NOT_REACHED = "too small for any number of splits"
"""Why there is no number of splits: the standard error does not fall that far."""


@dataclass(frozen=True)
class Contest:
    """The two best methods of a dataset."""

    dataset: str
    first: features.Method
    second: features.Method
    difference: float
    """Mean of the first less that of the second, over their common splits."""
    sd: float
    """Standard deviation of the difference on one split."""
    n_splits: int
    """Common splits."""
    needed: int | None
    """Splits on which a difference of this size would be significant."""
    reason: str = ""
    """Why there is no such number; empty if there is one."""

    @property
    def is_shown(self) -> bool:
        """Whether the difference is significant on the existing splits."""
        return self.needed is not None and self.needed <= self.n_splits


@dataclass(frozen=True)
class Choice:
    """Validation scores of the searches of a method, means over datasets."""

    method: features.Method
    metric: Metric
    """The metric that the searches optimised."""
    n_datasets: int
    inner: float
    default: float
    """Validation scores of the best candidate and of the default candidate."""
    optimism: float
    """The optimistic bias of the former; see `kbench.results.stats.resampling`."""

    @property
    def gain(self) -> float:
        """The gain of the best candidate over the default in the validation score."""
        return float(self.metric.gain(self.inner) - self.metric.gain(self.default))

    @property
    def is_overfitted(self) -> bool:
        """Whether the gain is not larger than the optimism."""
        return self.optimism > 0 and self.gain <= self.optimism


@dataclass(frozen=True)
class Spent:
    """The score of a method against the time of its search, means over datasets."""

    method: features.Method
    metric: Metric
    """The metric that the search optimised."""
    curve: list[tuple[float, float]]
    """Seconds of the search of a split, and the best validation score; see `budget_curve`."""
    total_s: float
    """Seconds of the whole search and of the fit."""
    outer: float | None
    """The score on the test sets; None if there is none."""


@dataclass(frozen=True)
class Warned:
    """A warning about a method on a dataset.

    `kind` is "baseline", "identity", "kernel", "boundary", "converged", "loaded", "splits" or
    "note", `other` the method that it is compared with, and `detail` what the warning adds.
    """

    kind: str
    method: features.Method
    dataset: str
    other: features.Method | None = None
    detail: str = ""


@dataclass(frozen=True)
class Claims:
    """Statements about the methods of a report."""

    data: features.ReportData

    @property
    def n_map_seeds(self) -> int:
        """The maximum number of seeds of the map over which the score of a split is a mean."""
        return int(max([1.0, *(row.metrics.get("n_map_seeds", 1.0) for row in self.data.rows)]))

    @cached_property
    def components(self) -> Components | None:
        """Where the variance comes from, over the compared datasets with several splits."""
        scores = self.data.scores
        if not scores.has_one_unit or len(scores.methods) < 2:
            return None
        tables, by_labels = [], {row.labels: row for row in self.data.rows}
        for dataset in scores.datasets:
            rows = [by_labels[dataset, *method] for method in scores.methods]
            splits = features.find_shared_splits(rows, scores.metric.name)
            if len(splits) > 1:
                tables.append(_by_seed(rows, splits, scores.metric.name))
        return components(tables) if tables else None

    @cached_property
    def contests(self) -> list[Contest]:
        """The two best methods of each dataset, and on how many splits they would differ."""
        metric = self.data.scores.metric
        by_dataset = features.group_values(
            (row.dataset, row)
            for row in self.data.rows
            if row.is_complete and row.value(metric.name) is not None and row.family != BASELINE
        )
        contests = []
        for dataset in dict.fromkeys(row.dataset for row in self.data.rows):
            rows = by_dataset.get(dataset, [])
            rows.sort(key=lambda row: -metric.gain(row.metrics[metric.name]))
            contests += [self.contest(*rows[:2])] if len(rows) > 1 else []
        return contests

    def contest(self, first: features.Row, second: features.Row) -> Contest:
        """Say on how many splits of a dataset two rows would differ significantly."""
        metric = self.data.scores.metric
        common = features.stats.common_splits(first, second, metric.name)
        a, b = first.by_split(metric.name), second.by_split(metric.name)
        d = np.array([a[i] - b[i] for i in common])
        unit = features.stats.find_unit([*a.values(), *b.values()], metric)
        place = first.dataset, first.method, second.method
        if len(d) < 2:
            difference = first.metrics[metric.name] - second.metrics[metric.name]
            return Contest(*place, difference, float("nan"), len(d), None, "one common split")
        mean, sd = float(d.mean()), float(d.std(ddof=1))
        if np.ptp(d) / unit < features.stats.EQUAL:
            return Contest(*place, mean, 0.0, len(d), None, features.stats.NO_TEST)
        needed = splits_needed(mean, sd, features.stats.holdout_ratio(first), features.ALPHA)
        return Contest(*place, mean, sd, len(d), needed, "" if needed else NOT_REACHED)

    @cached_property
    def choices(self) -> list[Choice]:
        """What the searches of each method found, of those with several candidates."""
        names = ("search_inner", "search_inner_default", "search_optimism")
        by_method = features.group_values(
            (row.method, row)
            for row in self.data.rows
            if row.is_complete and row.searched and all(name in row.metrics for name in names)
        )
        choices = []
        for method, rows in by_method.items():
            metric = rows[0].searched
            if metric is not None and not _differ(rows):
                means = [float(np.mean([row.metrics[name] for row in rows])) for name in names]
                choices.append(Choice(method, metric, len(rows), *means))
        return choices

    @cached_property
    def spent(self) -> list[Spent]:
        """What each method reaches in seconds of search, on the datasets that are compared.

        Of those that searched all of them, and whose searches kept their times.
        """
        entries = []
        by_labels = {row.labels: row for row in self.data.rows}
        for method in self.data.scores.methods:
            rows = [by_labels[dataset, *method] for dataset in self.data.scores.datasets]
            metric = rows[0].searched if rows else None
            if metric is None or not all(row.budget_curve for row in rows) or _differ(rows):
                continue
            curve = mean_curve([row.budget_curve for row in rows])
            outer = [row.value(metric.name) for row in rows]
            seconds = [row.budget_curve[-1][0] + row.metrics.get("fit_time_s", 0.0) for row in rows]
            mean = None if None in outer else float(np.mean(outer))
            entries.append(Spent(method, metric, curve, max(seconds), mean))
        return entries

    @cached_property
    def list_warnings(self) -> list[Warned]:
        """The warnings about single cells, dataset by dataset."""
        by_dataset = features.group_values((row.dataset, row) for row in self.data.rows)
        entries = []
        for every in by_dataset.values():
            simpler = [row for row in every if row.is_complete and row.family in _SIMPLER]
            for row in every:
                entries += self._against_simpler(row, simpler) if row.is_complete else []
                is_partial = row.status == "ok" and row.n_splits_done < row.n_splits
                for kind, detail in (
                    ("boundary", row.at_boundary),
                    ("converged", "" if row.converged is not False else " "),
                    ("loaded", row.contention),
                    ("splits", features.few_splits(row) if is_partial else ""),
                    ("note", row.notes),
                ):
                    if detail:
                        entries.append(Warned(kind, row.method, row.dataset, detail=detail.strip()))
        return entries

    def _against_simpler(self, row: features.Row, rows: Sequence[features.Row]) -> list[Warned]:
        """Compare a row with the baselines, the inputs and the kernel machines of its dataset."""
        if row.family in (BASELINE, KERNEL) or row.value(self.data.scores.metric.name) is None:
            return []
        entries = []
        inputs = {each.feature_map for each in rows if each.family in (INPUTS, BASELINE)}
        is_map = row.family != INPUTS and row.feature_map not in inputs
        for other in rows:
            if other.value(self.data.scores.metric.name) is None:
                continue
            same_learner = other.family == INPUTS and other.learner == row.learner
            for kind, applies, is_bad in (
                ("baseline", other.family == BASELINE, self._is_worse),
                ("identity", is_map and same_learner, self._is_worse),
                ("kernel", is_map and other.family == KERNEL, self._is_pointless),
            ):
                if applies and is_bad(row, other):
                    entries.append(Warned(kind, row.method, row.dataset, other.method))
        return entries

    def _is_worse(self, row: features.Row, other: features.Row) -> bool:
        """Whether a row is significantly worse, or worse if there is no test."""
        metric = self.data.scores.metric
        ours, theirs = row.metrics[metric.name], other.metrics[metric.name]
        if metric.gain(ours) >= metric.gain(theirs):
            return False
        test = features.stats.on_dataset(row, other, metric, features.ALPHA)
        return test is None or test.p is None or test.p <= features.ALPHA

    def _is_pointless(self, row: features.Row, other: features.Row) -> bool:
        """Whether a row is slower than another and not better."""
        metric = self.data.scores.metric
        ours, theirs = row.metrics.get("fit_time_s"), other.metrics.get("fit_time_s")
        if ours is None or theirs is None or ours <= theirs:
            return False
        ours, theirs = (metric.gain(each.metrics[metric.name]) for each in (row, other))
        return bool(ours <= theirs)


def _differ(rows: Sequence[features.Row]) -> bool:
    """Whether the searches of some datasets have no common metric or unit."""
    metrics = {row.searched for row in rows}
    return len(metrics) > 1 or (len(rows) > 1 and any(each and each.in_units for each in metrics))


def _by_seed(rows: Sequence[features.Row], splits: Sequence[str], name: str) -> features.Array:
    """Return scores by split, method and seed of the map.

    Without the last axis where they are not known for the same number of seeds. A map
    without a seed has the same score with each.
    """
    lines = [[row.by_seed(name, i) for row in rows] for i in splits]
    n_seeds = max(len(values) for line in lines for values in line)
    if n_seeds < 2 or any(len(v) not in (1, n_seeds) for line in lines for v in line):
        return features.collect_split_values(rows, splits, name)
    return np.array([[np.resize(v, n_seeds) for v in line] for line in lines], dtype=float)


# Returns the statements about the methods of a report; they are computed once.
get_claims = lru_cache(maxsize=2)(Claims)


def mean_curve(curves: Sequence[Sequence[Sequence[float]]]) -> list[tuple[float, float]]:
    """Average curves of datasets at common times; each keeps its last value after its end.

    It begins where the last one begins.

    >>> mean_curve([[[1.0, 0.8], [10.0, 0.9]], [[1.0, 0.6], [3.0, 0.7]]])
    [(1.0, 0.7), (3.0, 0.75), (10.0, 0.8)]
    """
    begin = max(curve[0][0] for curve in curves)
    times = sorted({t for curve in curves for t, _ in curve if t >= begin})
    values = []
    for curve in curves:
        at, reached = np.array(curve).T
        values.append(reached[np.searchsorted(at, times, side="right") - 1])
    return [(t, float(f"{v:.7g}")) for t, v in zip(times, np.mean(values, axis=0), strict=True)]
