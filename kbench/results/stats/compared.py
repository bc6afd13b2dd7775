"""Scores that may be compared: one number per group of datasets and method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kbench.records import ACCURACY, Measure
from kbench.results.rows import Labels, Method, Row
from kbench.results.stats.arrays import Array


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
        Means of the measure over the datasets of the group.
    datasets : tuple of str
        The datasets behind the rows: those that all methods finished.
    left_out : tuple of str
        Datasets that some method did not finish.
    measure : Measure
        What was measured.
    same : tuple of (method, method)
        Methods that were left out, each with the one of which it is a
        rotation.
    tried_datasets : tuple of str
        The datasets that some method finished.
    tried : ndarray, shape (n_tried_groups, n_methods)
        Means over their groups; NaN where a method lacks a dataset of the group.
    missing : mapping of method to tuple of str
        Of each method that lacks some of `tried_datasets`, those.
    """

    methods: tuple[Method, ...]
    groups: tuple[str, ...]
    values: Array
    datasets: tuple[str, ...]
    left_out: tuple[str, ...]
    measure: Measure = ACCURACY
    same: tuple[tuple[Method, Method], ...] = ()
    tried_datasets: tuple[str, ...] = ()
    tried: Array = field(default_factory=lambda: np.empty((0, 0)))
    missing: Mapping[Method, tuple[str, ...]] = field(default_factory=dict)

    @property
    def gains(self) -> Array:
        """The values so that higher is better, as ranks and tests need them."""
        return np.asarray(self.measure.gain(self.values), dtype=float)

    @property
    def has_one_unit(self) -> bool:
        """Whether the numbers of different datasets can be averaged and compared."""
        return not self.measure.in_units or len(self.datasets) < 2

    @property
    def tried_gains(self) -> Array:
        """The values of `tried` so that higher is better."""
        return np.asarray(self.measure.gain(self.tried), dtype=float)

    def of(self, rows: Sequence[Row], column: str) -> Array:
        """Average another column over the same datasets, groups and methods; NaN for None."""
        return _table({row.labels: row for row in rows}, column, self.datasets, self.methods)

    def of_tried(self, rows: Sequence[Row], column: str) -> Array:
        """Average another column where `tried` has values; NaN elsewhere."""
        by_labels = {row.labels: row for row in rows}
        found = _table(by_labels, column, self.tried_datasets, self.methods)
        return np.where(np.isnan(self.tried), np.nan, found)


def scores(
    rows: Sequence[Row], measure: Measure = ACCURACY, without: Iterable[Method] = ()
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
        if row.is_complete and row.value(measure.name) is not None and row.method not in excluded
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
        tuple(dict.fromkeys(complete[name, *methods[0]].group for name in datasets)),
        _table(complete, measure.name, datasets, methods),
        datasets,
        left_out,
        measure,
        same,
        tried_datasets,
        _table(complete, measure.name, tried_datasets, methods),
        missing,
    )


def unmeasured(rows: Iterable[Row], measure: Measure) -> list[Method]:
    """Return the methods that finished datasets and have the measure on none of them."""
    has_it: dict[Method, bool] = {}
    for row in rows:
        if row.is_complete:
            measured = row.value(measure.name) is not None
            has_it[row.method] = has_it.get(row.method, False) or measured
    return [method for method, measured in has_it.items() if not measured]


def _rotations(rows: Iterable[Row]) -> tuple[tuple[Method, Method], ...]:
    """Return the methods that are rotations of one that is kept, with that one."""
    keys_of: dict[Method, set[str]] = {}
    n_finished: Counter[Method] = Counter()
    for row in rows:
        keys_of.setdefault(row.method, set()).add(row.equivalence)
        n_finished[row.method] += 1
    equivalent: dict[frozenset[str], list[Method]] = {}
    for method, keys in keys_of.items():
        if "" not in keys:
            equivalent.setdefault(frozenset(keys), []).append(method)
    same = []
    for methods in equivalent.values():
        # the gaps of another one would take datasets from the comparison of all
        kept = max(methods, key=lambda method: n_finished[method])
        same += [(method, kept) for method in methods if method != kept]
    return tuple(same)


def _table(
    rows: Mapping[Labels, Row], column: str, datasets: Sequence[str], methods: Sequence[Method]
) -> Array:
    """Average a column over the datasets of each group, shape (n_groups, n_methods).

    NaN where a row of the group is missing, or has no value.
    """
    found = [[rows.get((name, *method)) for method in methods] for name in datasets]
    cells = [[row.value(column) if row else None for row in line] for line in found]
    table = np.array(cells, dtype=float).reshape(len(datasets), len(methods))
    groups = [next(row.group for row in line if row) for line in found]
    means = [
        table[[each == group for each in groups]].mean(axis=0) for group in dict.fromkeys(groups)
    ]
    return np.array(means, dtype=float).reshape(len(means), len(methods))
