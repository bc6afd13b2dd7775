"""Scores that may be compared, one number per group of datasets and method; standings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kbench.records import ACCURACY, Metric
from kbench.results.rows import Labels, Method, Row, group_values, is_share
from kbench.results.stats.pairs import Array
from kbench.results.stats.ranking import ranks
from kbench.results.stats.resampling import mean_interval


@dataclass(frozen=True)
class Scores:
    """One number per group of datasets and method.

    Parameters
    ----------
    methods : tuple of (str, str)
        Feature map and learner of each column.
    groups : tuple of str
        Name of each row: datasets of one group count once.
    values : ndarray, shape (n_groups, n_methods)
        Means of the metric over the datasets of the group.
    datasets : tuple of str
        The datasets behind the rows: those that all methods finished.
    left_out : tuple of str
        Datasets that some method did not finish.
    metric : Metric
        What was measured.
    same : tuple of (method, method)
        Methods that were left out, each with the one of which it is a
        rotation.
    tried_datasets : tuple of str
        The datasets that some method finished.
    tried : ndarray, shape (n_tried_groups, n_methods)
        Means over their groups; NaN if a method lacks a dataset of the group.
    missing : mapping of method to tuple of str
        Of each method that lacks some of `tried_datasets`, those.
    """

    methods: tuple[Method, ...]
    groups: tuple[str, ...]
    values: Array
    datasets: tuple[str, ...]
    left_out: tuple[str, ...]
    metric: Metric = ACCURACY
    same: tuple[tuple[Method, Method], ...] = ()
    tried_datasets: tuple[str, ...] = ()
    tried: Array = field(default_factory=lambda: np.empty((0, 0)))
    missing: Mapping[Method, tuple[str, ...]] = field(default_factory=dict)

    @property
    def gains(self) -> Array:
        """The values so that higher is better, as ranks and tests need them."""
        return np.asarray(self.metric.gain(self.values), dtype=float)

    @property
    def has_one_unit(self) -> bool:
        """Whether the numbers of different datasets can be averaged and compared."""
        return not self.metric.in_units or len(self.datasets) < 2

    @property
    def tried_gains(self) -> Array:
        """The values of `tried` so that higher is better."""
        return np.asarray(self.metric.gain(self.tried), dtype=float)

    def average(self, rows: Sequence[Row], column: str) -> Array:
        """Average another column over the same datasets, groups and methods; NaN for None."""
        return _table({row.labels: row for row in rows}, column, self.datasets, self.methods)

    def average_tried(self, rows: Sequence[Row], column: str) -> Array:
        """Average another column where `tried` has values; NaN elsewhere."""
        by_labels = {row.labels: row for row in rows}
        averages = _table(by_labels, column, self.tried_datasets, self.methods)
        return np.where(np.isnan(self.tried), np.nan, averages)


def scores(
    rows: Sequence[Row], metric: Metric = ACCURACY, without: Iterable[Method] = ()
) -> Scores:
    """Collect what may be compared: datasets that all methods finished, once per group.

    Of methods that are the same up to a rotation of their features (the rows
    of both have the same ``equivalence``) only the one that finished most
    datasets is compared, of several the first. Methods in `without`, and those
    that finished no dataset, are not compared.
    """
    excluded = set(without)
    complete = {
        row.labels: row
        for row in rows
        if row.is_complete and row.value(metric.name) is not None and row.method not in excluded
    }
    same = _rotations(complete.values())
    rotations = {method for method, _ in same}
    complete = {labels: row for labels, row in complete.items() if row.method not in rotations}
    methods = tuple(dict.fromkeys(row.method for row in complete.values()))
    names = tuple(dict.fromkeys(row.dataset for row in rows))
    datasets = tuple(
        name for name in names if methods and all((name, *m) in complete for m in methods)
    )
    tried = {row.dataset for row in complete.values()}
    tried_datasets = tuple(name for name in names if name in tried)
    left_out = tuple(name for name in tried_datasets if name not in datasets)
    missing = {
        method: lacking
        for method in methods
        if (lacking := tuple(name for name in left_out if (name, *method) not in complete))
    }
    return Scores(
        methods,
        tuple(dict.fromkeys(complete[name, *methods[0]].dataset_family for name in datasets)),
        _table(complete, metric.name, datasets, methods),
        datasets,
        left_out,
        metric,
        same,
        tried_datasets,
        _table(complete, metric.name, tried_datasets, methods),
        missing,
    )


def list_unmeasured(rows: Iterable[Row], metric: Metric) -> list[Method]:
    """Return the methods that finished datasets and have the metric on none of them."""
    values = group_values((r.method, r.value(metric.name)) for r in rows if r.is_complete)
    return [method for method, found in values.items() if set(found) == {None}]


def _rotations(rows: Iterable[Row]) -> tuple[tuple[Method, Method], ...]:
    """Return the methods that are rotations of one that is kept, with that one."""
    keys_of = group_values((row.method, row.equivalence) for row in rows)
    named = ((frozenset(keys), method) for method, keys in keys_of.items() if "" not in keys)
    equivalent = group_values(named)
    same = []
    for methods in equivalent.values():
        # the gaps of another one would take datasets from the comparison of all
        largest = max(methods, key=lambda method: len(keys_of[method]))
        same += [(method, largest) for method in methods if method != largest]
    return tuple(same)


def _table(
    rows: Mapping[Labels, Row], column: str, datasets: Sequence[str], methods: Sequence[Method]
) -> Array:
    """Average a column over the datasets of each group, shape (n_groups, n_methods).

    NaN if a row of the group is missing, or has no value.
    """
    values = [[rows.get((name, *method)) for method in methods] for name in datasets]
    cells = [[row.value(column) if row else None for row in line] for line in values]
    table = np.array(cells, dtype=float).reshape(len(datasets), len(methods))
    groups = [next(row.dataset_family for row in line if row) for line in values]
    means = [
        table[[each == group for each in groups]].mean(axis=0) for group in dict.fromkeys(groups)
    ]
    return np.array(means, dtype=float).reshape(len(means), len(methods))


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
        Mean of the metric over groups of datasets, with its 95 %
        interval; NaN for one group.
    fit_time_s, predict_time_s : float
        Geometric means over groups of datasets.
    predict_time_per_row_s : float
        Time to predict one row, the geometric mean; NaN if it is unknown.
    n_components : float
        Mean width of the embedding; NaN if it is unknown.
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
    predict_time_per_row_s: float
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
        np.exp(np.mean(np.log(np.maximum(scores.average(rows, name), 1e-12)), axis=0))
        for name in ("fit_time_s", "predict_time_s", "predict_time_per_row_s")
    )
    width = scores.average(rows, "n_components").mean(axis=0)
    order = sorted(range(values.shape[1]), key=lambda i: (ranked[i], fit[i]))
    return [
        Standing(
            place,
            scores.methods[i],
            float(ranked[i]),
            float(values[:, i].mean()),
            *_interval(values[:, i], scores.metric),
            float(fit[i]),
            float(predict[i]),
            float(row_s[i]),
            float(width[i]),
            int(best[:, i].sum()),
        )
        for place, i in enumerate(order, start=1)
    ]


def _interval(values: Array, metric: Metric) -> tuple[float, float]:
    """Return the interval of a mean; that of a share has no values that a share cannot have."""
    low, high = mean_interval(values)
    return (max(low, 0.0), min(high, 1.0)) if is_share(metric) else (low, high)
