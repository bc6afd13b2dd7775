"""What shorter lists of bandwidths, C and alpha lose, on the development sets of `bench_budgets`.

Each method is searched over long lists once; a shorter list then has a subset of the scores::

    python tests/benchmarks/bench_lists.py [--splits 1] [--scaling standard] [--jobs 2]

A loss is the best score of the inner cross-validation in the long lists minus the best one in
the shorter lists, in points of accuracy: mean and maximum over methods and development sets.
It is small and never negative, because the same scores choose and judge.
"""

from __future__ import annotations

import argparse
import itertools
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from bench_budgets import development_cells, evaluated, with_lists

from kbench.planning.suite_file import find, read
from kbench.records import BANDWIDTH_FACTORS, Cell
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build

MAPS = ("rff", "nystroem", "balcan-f1", "balcan-f2")
LEARNERS = ("linear-svm (ovo)", "ridge (ovr)")
METHODS = (
    *(f"{map_} + {learner}" for map_ in MAPS for learner in LEARNERS),
    "identity + kernel-svm (ovo)",
)

LONG = {
    "bandwidth_factor": (1.0, 0.125, 0.25, 0.5, 2.0, 4.0, 8.0, 16.0, 32.0),
    "C": (1.0, 0.125, 8.0, 2048.0, *(2.0**k for k in range(-12, 21, 2) if k)),
    "alpha": (1.0, *(10.0**k for k in range(-9, 6) if k)),
}

DEFAULTS = {"C": (0.125, 1.0, 8.0, 2048.0), "alpha": (1e-3, 0.1, 1.0, 10.0)}


def scores(cell: Cell, split: int) -> np.ndarray | None:
    """Return mean scores of all candidates, by bandwidth and by C or alpha, in order."""
    found = evaluated(cell, split, build(list_plugins()))
    if found is None:
        return None
    rows = found.details.search
    names = [name for name in rows[0] if name.endswith(("bandwidth_factor", ".C", ".alpha"))]
    axes = [sorted({row[name] for row in rows}) for name in names]
    table = np.full([len(axis) for axis in axes], -np.inf)
    for row in rows:
        if row["values"] and "error" not in row:
            place = tuple(axis.index(row[name]) for axis, name in zip(axes, names, strict=True))
            table[place] = np.mean(row["values"])
    return table


def positions(name: str, values: tuple[float, ...]) -> list[int]:
    """Return where values are in a sorted long list."""
    order = sorted(LONG[name])
    return sorted(order.index(value) for value in values)


def loss(tables: list[np.ndarray], rows: list[int], columns: list[int]) -> tuple[float, float]:
    """Return the mean and the largest loss of shorter lists, in points."""
    lost = [100 * (table.max() - table[np.ix_(rows, columns)].max()) for table in tables]
    return float(np.mean(lost)), float(max(lost))


def compare(tables: list[np.ndarray], name: str) -> None:
    """Print the default lists, and the best of the same length, one list at a time."""
    bandwidths = positions("bandwidth_factor", tuple(BANDWIDTH_FACTORS))
    all_bandwidths, all_values = range(len(LONG["bandwidth_factor"])), range(len(LONG[name]))
    given = positions(name, DEFAULTS[name])
    one = sorted(LONG[name]).index(1.0)
    mid = sorted(LONG["bandwidth_factor"]).index(1.0)
    print(f"\n{len(tables)} searches of bandwidth and {name}: mean and largest loss in points")
    print("  both default lists: {:.2f} {:.2f}".format(*loss(tables, bandwidths, given)))
    told: list[Any] = []
    for columns in itertools.combinations(all_values, len(given)):
        if one in columns:
            told.append((*loss(tables, bandwidths, list(columns)), columns))
    print(f"  default bandwidths, {name}:")
    for mean, worst, columns in [*[t for t in told if list(t[2]) == given], *sorted(told)[:3]]:
        print(f"    {mean:.2f} {worst:.2f} {[sorted(LONG[name])[i] for i in columns]}")
    told = [
        (*loss(tables, list(rows), list(all_values)), rows)
        for rows in itertools.combinations(all_bandwidths, len(bandwidths))
        if mid in rows
    ]
    print(f"  all values of {name}, bandwidths:")
    for mean, worst, rows in [*[t for t in told if list(t[2]) == bandwidths], *sorted(told)[:3]]:
        print(f"    {mean:.2f} {worst:.2f} {[sorted(LONG['bandwidth_factor'])[i] for i in rows]}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--scaling", choices=("minmax", "standard"), default="minmax")
    options = parser.parse_args()
    registry = build(list_plugins())
    changes = {"search_method": "grid", "scaling": (options.scaling,)}
    todo = [
        with_lists(cell, LONG)
        for cell in development_cells(read(*find("uci", registry), registry), registry, changes)
        if f"{cell.feature_map.label} + {cell.learner.label}" in METHODS
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = [(c, pool.submit(scores, c, i)) for c in todo for i in range(options.splits)]
        done = [(cell, table) for cell, task in tasks if (table := task.result()) is not None]
    for name in ("C", "alpha"):
        ridge = name == "alpha"
        compare([t for cell, t in done if (cell.learner.name == "ridge") == ridge], name)


if __name__ == "__main__":
    main()
