"""What a search with one map for all inner folds chooses, on the development sets.

``refit_maps_in_inner_folds = false`` fits preprocessing and maps once on the training set; ``true``
fits them in each inner fold. Both are run on the same splits, with the same candidates and seeds::

    python tests/benchmarks/bench_inner_fit.py [--splits 5] [--jobs 2]

The methods are those of the suite `uci` whose maps use no targets, with its linear learners,
on the development sets of `bench_budgets.py`. Both ways differ in the search only: where the
chosen parameters are equal, so are the models. One table is by family of maps, one by
dataset: the share of searches that choose other parameters, the mean difference of the test
accuracies (outer minus fold) with its standard error, the mean difference of the best inner
scores from the test accuracies, and the ratio of the CPU seconds of the search.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
from bench_budgets import DEVELOPMENT, N_TEST, N_TRAIN, dataset, development_cells  # noqa: E402

from kbench.evaluation.evaluate import Evaluation, evaluate_split  # noqa: E402
from kbench.evaluation.method import Method, learner_side, map_side  # noqa: E402
from kbench.planning.suite_file import find, read  # noqa: E402
from kbench.records import Cell, Protocol  # noqa: E402
from kbench.registry.installed import list_plugins  # noqa: E402
from kbench.registry.registry import build  # noqa: E402

LEARNERS = ("ridge", "linear-svm")


@dataclass(frozen=True)
class Pair:
    """Both searches of one method on one split."""

    family: str
    dataset: str
    changed: tuple[str, ...]
    difference: float
    optimism: tuple[float, float]
    seconds: tuple[float, float]


def sized(protocol: Protocol, n: int) -> Protocol:
    """Return the protocol with as many test rows as a set of n rows allows."""
    n_test = min(N_TEST, n - N_TRAIN)
    if n_test < 100:
        return replace(protocol, train_size=None, test_size=0.3)
    return replace(protocol, test_size=n_test)


def best_inner(found: Evaluation) -> float:
    """Return the mean inner score of the candidate that was chosen."""
    return max(float(np.mean(row["values"])) for row in found.details.search if row["values"])


def measured(cell: Cell, split: int) -> Pair | None:
    """Run both searches on one split; None if the method cannot be fitted there."""
    registry = build(list_plugins())
    data = dataset(cell.dataset.params["data_id"], registry)
    method = Method(
        **map_side(cell.feature_map, registry), **learner_side(cell.learner, registry, data.task)
    )
    protocol = sized(cell.protocol, len(data.y))
    try:
        fold, outer = (
            evaluate_split(data, split, method, replace(protocol, refit_maps_in_inner_folds=refits))
            for refits in (True, False)
        )
    except Exception as error:
        print(f"{cell.name}: {type(error).__name__}: {error}"[:200])
        return None
    chosen, other = fold.details.chosen, outer.details.chosen
    return Pair(
        registry.get("feature map", cell.feature_map.name).family,
        cell.dataset.label,
        tuple(name for name in chosen if chosen[name] != other[name]),
        outer.metrics["accuracy"] - fold.metrics["accuracy"],
        tuple(best_inner(each) - each.metrics["accuracy"] for each in (fold, outer)),  # type: ignore[arg-type]
        tuple(each.metrics["search_time_cpu_s"] for each in (fold, outer)),  # type: ignore[arg-type]
    )


def table(pairs: Sequence[Pair], key: str, unit: str) -> None:
    """Print one line for each value of a field; standard errors are those over `unit`."""
    groups = defaultdict(list)
    for pair in pairs:
        groups[getattr(pair, key)].append(pair)
    print(f"\n| {key} | searches | changed | difference | s.e. | fold | outer | CPU ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, group in [*sorted(groups.items()), ("all", list(pairs))]:
        means = defaultdict(list)
        for pair in group:
            means[getattr(pair, unit)].append(pair.difference)
        each = np.array([np.mean(values) for values in means.values()])
        error = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else float("nan")
        changed = np.mean([bool(pair.changed) for pair in group])
        fold, outer = np.mean([pair.optimism for pair in group], axis=0)
        seconds = np.sum([pair.seconds for pair in group], axis=0)
        print(
            f"| {name} | {len(group)} | {changed:.0%} | {each.mean():+.4f} | {error:.4f} | "
            f"{fold:+.4f} | {outer:+.4f} | {seconds[1] / seconds[0]:.2f} |"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=60.0, help="then print what there is")
    options = parser.parse_args()
    registry = build(list_plugins())
    suite = read(*find("uci", registry), registry)
    todo = [
        cell
        for cell in development_cells(suite, registry, {})
        if cell.learner.name in LEARNERS
        and not registry.get("feature map", cell.feature_map.name).supervised
    ]
    start = time.monotonic()
    pairs: list[Pair] = []
    tasks = [(cell, split) for split in range(options.splits) for cell in todo]
    with ProcessPoolExecutor(options.jobs) as pool:
        for number, found in enumerate(pool.map(measured, *zip(*tasks, strict=True)), 1):
            pairs += [found] if found is not None else []
            if time.monotonic() - start > 60 * options.minutes:
                pool.shutdown(cancel_futures=True)
                print(f"stopped after {number} of {len(tasks)} searches")
                break
    print(f"{len(pairs)} searches on {len(DEVELOPMENT)} development sets")
    table(pairs, "family", "dataset")
    table(pairs, "dataset", "family")
    names = Counter(name for pair in pairs for name in pair.changed)
    print("\nparameters that change:", ", ".join(f"{name} {n}" for name, n in names.most_common()))


if __name__ == "__main__":
    main()
