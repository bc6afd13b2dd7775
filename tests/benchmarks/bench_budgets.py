"""Search budgets of a suite, on development sets that no suite draws conclusions from.

Prints what the numbers of candidates, the grids and the preprocessing of a suite rest on::

    python tests/benchmarks/bench_budgets.py [--suite uci] [--splits 3] [--scaling standard]
        [--method rff kernel-svm] [--list C=1.0,16.0,256.0 depth=2,3] [--candidates 0]

For each family of methods it prints the CPU seconds that a candidate takes in the search
(geometric mean over the development sets), the number of candidates that takes as long as
those of the reference family, the share of searches whose best value is at an edge of its
grid, and what the search gained over the default parameters. A value at an edge is better
than its neighbour by a standard error over the inner folds; the last lines count also those
that are better by however little, and name the parameters.

The development sets are classification tasks of OpenML that are in no suite that is used
for comparisons of methods: 1,000 training and up to 500 test rows of each.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402

from kbench.evaluation.evaluate import Evaluation, evaluate_split  # noqa: E402
from kbench.evaluation.method import Method, learner_side, map_side  # noqa: E402
from kbench.evaluation.search._result import EQUAL  # noqa: E402
from kbench.evaluation.specs import is_number  # noqa: E402
from kbench.planning.cells import cells  # noqa: E402
from kbench.planning.suite_file import find, read  # noqa: E402
from kbench.records import Cell, Dataset, Details, Ref, Suite, Tune, get_family  # noqa: E402
from kbench.registry.callables import resolve  # noqa: E402
from kbench.registry.installed import list_plugins  # noqa: E402
from kbench.registry.registry import Registry, build  # noqa: E402

DEVELOPMENT = {
    "tic-tac-toe": 50,
    "kr-vs-kp": 3,
    "splice": 46,
    "semeion": 1501,
    "sick": 38,
    "magic": 1120,
    "adult": 1590,
}
"""OpenML ids."""

N_TRAIN, N_TEST = 1000, 500


@dataclass(frozen=True)
class Split:
    """What one split of one cell has measured."""

    family: str
    method: str
    dataset: str
    search_s: float
    n_candidates: float
    tuned: float
    default: float
    at_boundary: tuple[str, ...]
    at_end: tuple[str, ...]


def development_cells(suite: Suite, registry: Registry, changes: dict[str, Any]) -> list[Cell]:
    """Return the cells of a suite on the development sets, each method once a set."""
    size = {"cv": "holdout", "train_size": N_TRAIN, "test_size": N_TEST, "missing": "impute"}
    refs = tuple(Ref("openml", {"data_id": i}, name) for name, i in DEVELOPMENT.items())
    blocks = tuple(
        replace(block, datasets=refs, protocol=replace(block.protocol, **{**size, **changes}))
        for block in suite.blocks
    )
    return cells(replace(suite, blocks=blocks), registry)


def a_list(text: str) -> tuple[str, tuple[float, ...]]:
    """Parse ``NAME=VALUE,...``; without a point a value is an integer."""
    name, _, values = text.partition("=")
    return name, tuple(
        int(value) if value.isdigit() else float(value) for value in values.split(",")
    )


def with_lists(cell: Cell, lists: Mapping[str, tuple[float, ...]], registry: Registry) -> Cell:
    """Return a cell whose searches have other lists, also in nested components."""

    def listed(ref: Ref, grid: Mapping[str, Any]) -> Ref:
        own = {name: Tune(lists[name]) for name in grid if name in lists}
        return changed(replace(ref, params={**own, **ref.params}))

    def changed(ref: Ref) -> Ref:
        params = {
            name: Tune(lists[name])
            if isinstance(value, Tune) and name in lists
            else changed(value)
            if isinstance(value, Ref)
            else value
            for name, value in ref.params.items()
        }
        return replace(ref, params=params)

    map_ = registry.get("feature map", cell.feature_map.name)
    learner = registry.get("learner", cell.learner.name)
    return replace(
        cell,
        feature_map=listed(cell.feature_map, map_.grid),
        learner=listed(cell.learner, learner.grid),
    )


def values_at_ends(details: Details) -> tuple[str, ...]:
    """Return the chosen numbers at an end of their lists, better than the next by however little.

    Neither 0 nor 1 of a number of things is such an end. Candidates that left a race are
    compared on the folds until then.
    """
    found = []
    for name, chosen in details.chosen.items():
        scored = [each for each in details.search if each["values"] and not each.get("error")]
        tried = sorted({each[name] for each in scored if is_number(each.get(name))})
        if len(tried) < 2 or chosen not in (tried[0], tried[-1]):
            continue
        is_low = chosen == tried[0]
        if is_low and (chosen == 0 or (chosen == 1 and isinstance(chosen, int))):
            continue
        neighbour = tried[1] if is_low else tried[-2]
        folds = [each["values"] for each in scored if each.get(name) == neighbour]
        rival = max(folds, key=lambda values: (len(values), np.mean(values)))
        best = next(
            each["values"]
            for each in scored
            if all(each.get(k) == v for k, v in details.chosen.items())
        )
        if np.mean(best[: len(rival)]) - np.mean(rival) > EQUAL:
            found.append(name)
    return tuple(found)


_data: dict[int, Dataset] = {}


def dataset(data_id: int, registry: Registry) -> Dataset:
    """Load a development set, once a process."""
    if data_id not in _data:
        _data[data_id] = resolve(registry.get("dataset", "openml").load)(data_id=data_id)
    return _data[data_id]


def evaluated(cell: Cell, split: int, registry: Registry) -> Evaluation | None:
    """Evaluate one split of a cell; None if the method cannot be fitted there."""
    data = dataset(cell.dataset.params["data_id"], registry)
    n_test = min(N_TEST, len(data.y) - N_TRAIN)
    protocol = cell.protocol
    if n_test < 100:
        protocol = replace(protocol, train_size=None, test_size=0.3)
    elif n_test < N_TEST:
        protocol = replace(protocol, test_size=n_test)
    method = Method(
        **map_side(cell.feature_map, registry), **learner_side(cell.learner, registry, data.task)
    )
    try:
        return evaluate_split(data, split, method, protocol)
    except Exception as error:
        print(f"{cell.name}: {type(error).__name__}: {error}"[:200])
        return None


def measured(cell: Cell, split: int) -> Split | None:
    """Return what one split of a cell has measured; None if the method cannot be fitted there."""
    registry = build(list_plugins())
    found = evaluated(cell, split, registry)
    return found and Split(
        get_family(
            registry.get("feature map", cell.feature_map.name),
            registry.get("learner", cell.learner.name),
        ),
        f"{cell.feature_map.label} + {cell.learner.label}",
        cell.dataset.label,
        found.metrics["search_time_cpu_s"],
        found.metrics["n_candidates"],
        found.metrics["accuracy"],
        found.metrics.get("default_accuracy", found.metrics["accuracy"]),
        tuple(f"{name} = {found.details.chosen[name]}" for name in found.details.at_boundary),
        values_at_ends(found.details),
    )


def geometric(values: list[float]) -> float:
    """Return a geometric mean."""
    return float(np.exp(np.mean(np.log(values)))) if values else float("nan")


def by_set(splits: list[Split]) -> Iterator[list[Split]]:
    """Group splits by dataset."""
    groups = defaultdict(list)
    for each in splits:
        groups[each.dataset].append(each)
    yield from groups.values()


def seconds_per_candidate(splits: list[Split]) -> float:
    """Return CPU seconds of the search per candidate, geometric mean over datasets."""
    searched = [each for each in splits if each.n_candidates > 1]
    return geometric(
        [sum(s.search_s for s in g) / sum(s.n_candidates for s in g) for g in by_set(searched)]
    )


def table(splits: list[Split], reference: str, key: str) -> None:
    """Print one line for each family or method."""
    groups = defaultdict(list)
    for each in splits:
        groups[getattr(each, key)].append(each)
    budget = seconds_per_candidate(groups[reference]) if reference in groups else float("nan")
    budget *= np.mean([each.n_candidates for each in groups.get(reference, splits)])
    print(f"\n| {key} | candidates | s a candidate | equal s | at an edge | default | tuned |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, group in sorted(groups.items()):
        each_s = seconds_per_candidate(group)
        n = sorted({each.n_candidates for each in group})
        counts = f"{n[0]:g}" if len(n) == 1 else f"{n[0]:g}-{n[-1]:g}"
        edges = np.mean([bool(each.at_boundary) for each in group])
        default, tuned = (
            np.mean([np.mean([getattr(s, field) for s in g]) for g in by_set(group)])
            for field in ("default", "tuned")
        )
        print(
            f"| {name} | {counts} | {each_s:.3f} | {budget / each_s:.1f} | {edges:.1%} | "
            f"{default:.4f} | {tuned:.4f} |"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", default="uci")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--reference", default="fourier", help="family whose seconds count")
    parser.add_argument("--scaling", choices=("minmax", "standard"))
    parser.add_argument("--candidates", type=int, help="instead of those of the suite; 0 for all")
    parser.add_argument("--method", nargs="*", default=("",), help="texts in names of methods")
    parser.add_argument(
        "--list", nargs="*", default=(), type=a_list, metavar="NAME=VALUE,...", help="other values"
    )
    options = parser.parse_args()
    registry = build(list_plugins())
    suite = read(*find(options.suite, registry), registry)
    changes: dict[str, Any] = {}
    if options.scaling:
        changes["scaling"] = (options.scaling,)
    if options.candidates is not None:
        all_or_some = {"search_method": "random", "n_candidates": options.candidates}
        changes |= all_or_some if options.candidates else {"search_method": "grid"}
    todo = [
        with_lists(cell, dict(options.list), registry)
        for cell in development_cells(suite, registry, changes)
        if any(text in cell.name for text in options.method)
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = [pool.submit(measured, cell, i) for cell in todo for i in range(options.splits)]
        splits = [found for task in tasks if (found := task.result()) is not None]
    table(splits, options.reference, "family")
    table(splits, "", "method")
    searched = [each for each in splits if each.n_candidates > 1]
    edges = Counter((each.method, name) for each in searched for name in each.at_boundary)
    n_edges = sum(bool(each.at_boundary) for each in searched)
    n_ends = sum(bool(each.at_end) for each in searched)
    print(f"\n{n_edges} of {len(searched)} searches at an edge ({n_edges / len(searched):.1%}),")
    print(f"{n_ends} better than the neighbour by however little ({n_ends / len(searched):.1%})")
    for (method, name), n in edges.most_common():
        print(f"{n:4d}  {method}: {name}")


if __name__ == "__main__":
    main()
