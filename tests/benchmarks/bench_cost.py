"""Predicted memory and time of tasks beside what they then needed.

One split of each cell of a suite, after the trials that predict the cost of five::

    python tests/benchmarks/bench_cost.py [SUITE] [--dataset PATTERN] [--rows 50000 100000]

Without a suite, the cells are those of `CELLS` on synthetic rows. The suite's name or file
is as for ``kbench suite``; datasets of fewer than 20,000 rows have no predictions. Journal
and MLflow store are in a temporary folder, so that every trial is made.

Times are CPU seconds, which other programs disturb less than the wall clock. *trials* are
the seconds of a cell's trials.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

CELLS = """
datasets = [{datasets}]
learners = ["ridge", "linear-svm"]
feature_maps = [
    "identity",
    {{ name = "rff", n_components = 256 }},
    {{ name = "rff", n_components = 1024 }},
    {{ name = "nystroem", n_components = 300 }},
    {{ name = "polynomial", degree = 2 }},
]
[protocol]
search_method = "random"
n_candidates = 8
[limits]
n_splits = 1
task_timeout_s = 3600
[[block]]
[[block]]
feature_maps = ["identity"]
learners = ["gradient-boosting", "random-forest", "knn"]
protocol = {{ n_candidates = 2 }}
[[block]]
feature_maps = [{{ name = "rff", n_components = 1000, label = "rff in blocks" }}]
learners = ["ridge"]
protocol = {{ refit_maps_in_inner_folds = false, block_dtype = "float32" }}
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", nargs="?")
    parser.add_argument("--dataset", action="append", default=[])
    parser.add_argument("--feature-map", action="append", default=[])
    parser.add_argument("--learner", action="append", default=[])
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 100_000])
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KBENCH_STATE_DIR"] = folder
        show(Path(folder), given)


def show(folder: Path, given: argparse.Namespace) -> None:
    """Run the cells and print a line of each."""
    from kbench.api.inputs import select_suite
    from kbench.execution.plugins import load_registry
    from kbench.runner import Options, Run, execute, preview
    from kbench.storage.journal import Journal

    name = given.suite
    if name is None:
        data = ", ".join(
            f'{{ name = "polytope", n_samples = {n}, label = "polytope-{n}" }}' for n in given.rows
        )
        file = folder / "cells.toml"
        file.write_text(CELLS.format(datasets=data))
        name = str(file)
    registry = load_registry()
    chosen = (given.dataset, given.feature_map, given.learner)
    options = Options(given.jobs, given={"store": f"sqlite:///{folder / 'mlflow.db'}"})
    fetch = [sys.executable, "-m", "kbench.cli", "data", "fetch", name]
    subprocess.run(fetch, check=True, stdout=subprocess.DEVNULL)
    # the number of splits is not in the key of a cell: the run has the trials of the plan
    preview(Run(select_suite(name, registry, *chosen, n_splits=5), registry, options))
    report = execute(Run(select_suite(name, registry, *chosen, n_splits=1), registry, options))
    trials = {line["key"]: line["trials"] for line in Journal().read("trials")}
    memory, time, inside = [], [], 0
    print(f"{'cell':50} {'MiB':>7} {'measured':>9} {'error':>6}   {'s':>7} {'measured':>9} error")
    for cell in report.cells:
        if cell.status != "ok" or cell.cost is None:
            print(f"{cell.cell.name[:50]:50} {cell.status} {cell.problem and cell.problem.reason}")
            continue
        (result,) = cell.done
        cost, true = cell.cost, result.metrics["peak_memory_mib"]
        memory.append(cost.memory_mib.value / true - 1)
        line = (
            f"{cell.cell.name[:50]:50} {cost.memory_mib.value:7.0f} {true:9.0f} {memory[-1]:+6.0%}"
        )
        if cost.seconds is not None:
            took = result.cpu_s
            time.append(cost.seconds.value / took - 1)
            inside += cost.seconds.low <= took <= cost.seconds.high
            line += f"   {cost.seconds.value:7.2f} {took:9.2f} {time[-1]:+6.0%}"
            line += f" [{cost.seconds.low:.2f}, {cost.seconds.high:.2f}]"
        made = trials[cell.key]
        seconds, rows = sum(t["seconds"] for t in made), max(t["n_rows"] for t in made)
        print(
            f"{line}   trials {seconds:.1f} s, up to {rows:,} of {result.metrics['n_train']:,.0f}"
        )
    for what, errors in (("memory", memory), ("time", time)):
        if errors:
            sizes = sorted(map(abs, errors))
            print(
                f"{what}: {len(sizes)} cells, median {median(sizes):.0%}, largest {sizes[-1]:.0%}"
            )
    print(f"{inside} of {len(time)} times are in their intervals")


if __name__ == "__main__":
    main()
