"""What may be compared: one number per group of datasets and method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kbench.records import ACCURACY, Measure
from kbench.results.rows import Row
from kbench.results.stats.arrays import Array

Method = tuple[str, str]


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
    group_of : tuple of str, shape (n_datasets,)
        The group of each dataset.
    """

    methods: tuple[Method, ...]
    groups: tuple[str, ...]
    values: Array
    datasets: tuple[str, ...]
    left_out: tuple[str, ...]
    measure: Measure = ACCURACY
    same: tuple[tuple[Method, Method], ...] = ()
    group_of: tuple[str, ...] = ()

    @property
    def gains(self) -> Array:
        """The values so that higher is better: what ranks and tests take."""
        return np.asarray(self.measure.gain(self.values), dtype=float)

    def of(self, rows: Sequence[Row], column: str) -> Array:
        """Average another column over the same datasets, groups and methods; NaN where none."""
        found = {row.labels: row for row in rows}
        table = np.array(
            [
                [_number(found[(name, *method)].value(column)) for method in self.methods]
                for name in self.datasets
            ]
        ).reshape(len(self.datasets), len(self.methods))
        return _by_group(table, self.group_of, self.groups)


def scores(
    rows: Sequence[Row], measure: Measure = ACCURACY, without: Iterable[Method] = ()
) -> Scores:
    """Collect what may be compared: datasets that all methods finished, once per group.

    Of methods that are the same up to a rotation of their features (the rows
    of both say the same ``equivalence``) only the one that finished most
    datasets is compared, of several the first.

    Parameters
    ----------
    rows : sequence of Row
    measure : Measure, default accuracy
        Which column to take.
    without : iterable of (feature map, learner)
        Methods to leave out.

    Returns
    -------
    Scores
        Methods that finished nothing at all are not compared.
    """
    barred = set(without)
    found = {
        row.labels: row
        for row in rows
        if row.is_complete and row.value(measure.name) is not None and row.method not in barred
    }
    same = _rotations(found.values())
    found = {key: row for key, row in found.items() if key[1:] not in dict(same)}
    methods = tuple(dict.fromkeys(key[1:] for key in found))
    names = tuple(dict.fromkeys(row.dataset for row in rows))
    datasets = tuple(
        name for name in names if methods and all((name, *m) in found for m in methods)
    )
    every_group = {row.dataset: row.group for row in rows}
    group_of = tuple(every_group[name] for name in datasets)
    groups = tuple(dict.fromkeys(group_of))
    table = np.array(
        [[found[(name, *m)].value(measure.name) for m in methods] for name in datasets], dtype=float
    ).reshape(len(datasets), len(methods))
    tried = {key[0] for key in found}
    left_out = tuple(name for name in names if name in tried and name not in datasets)
    return Scores(
        methods,
        groups,
        _by_group(table, group_of, groups),
        datasets,
        left_out,
        measure,
        same,
        group_of,
    )


def _rotations(rows: Iterable[Row]) -> tuple[tuple[Method, Method], ...]:
    """Return the methods that are rotations of one that is kept, with that one."""
    told: dict[Method, set[str]] = {}
    finished: Counter[Method] = Counter()
    for row in rows:
        method = row.method
        told.setdefault(method, set()).add(row.equivalence)
        finished[method] += 1
    alike: dict[frozenset[str], list[Method]] = {}
    for method, keys in told.items():
        if "" not in keys:
            alike.setdefault(frozenset(keys), []).append(method)
    found = []
    for methods in alike.values():
        # its gaps would take datasets from the comparison of all
        kept = max(methods, key=lambda method: finished[method])
        found += [(method, kept) for method in methods if method != kept]
    return tuple(found)


def _by_group(table: Array, group_of: Sequence[str], groups: Sequence[str]) -> Array:
    """Average the rows of each group."""
    rows = np.array([groups.index(group) for group in group_of], dtype=int)
    means = [table[rows == i].mean(axis=0) for i in range(len(groups))]
    return np.array(means, dtype=float).reshape(len(groups), table.shape[1])


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else np.nan
