"""Predicted memory and time of tasks beside what they then needed.

One split of each cell of a suite, after the trials that predict the cost of five::

    python tests/benchmarks/bench_cost.py [SUITE] [--dataset PATTERN] [--rows 20000 50000]

Without a suite, the cells are those of `CELLS` on synthetic rows. The suite's name or file
is as for ``kbench suite``; cells of datasets of fewer than 20,000 rows have no trials, and are
predicted from the cells before them. Trials and results are kept in FOLDER: a second call
goes on where the first ended.

Times are CPU seconds, which other programs disturb less than the wall clock. *trials* are
the seconds of a cell's trials. The last lines count the tasks above one second that are
within the bounds that kbench aims at.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
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
feature_maps = ["identity"]
learners = [
    {{ name = "liblinear", C = 1.0 }},
    {{ name = "kernel-svm", C = 1.0 }},
    "logistic",
    "sgd",
]
protocol = {{ n_candidates = 2, train_size = 10_000 }}
[[block]]
feature_maps = [{{ name = "rff", n_components = 1000, label = "rff in blocks" }}]
learners = ["ridge"]
protocol = {{ refit_maps_in_inner_folds = false, block_dtype = "float32" }}
"""

LONG_S = 1.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", nargs="?")
    parser.add_argument("--dataset", action="append", default=[])
    parser.add_argument("--feature-map", action="append", default=[])
    parser.add_argument("--learner", action="append", default=[])
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 50_000])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where trials and results are kept")
    parser.add_argument("--lines", type=Path, help="append a JSON object of each cell to this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = given.folder or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        os.environ["KBENCH_STATE_DIR"] = str(place)
        show(place, given)


def show(folder: Path, given: argparse.Namespace) -> None:
    """Run the cells and print a line of each."""
    from kbench.api.inputs import select_suite
    from kbench.execution.plugins import load_registry
    from kbench.runner import Options, Run, execute, preview
    from kbench.storage.journal import Journal

    name = given.suite
    if name is None:
        data = ", ".join(
            f'{{ name = "{kind}", n_samples = {n}, n_features = 16, label = "{kind}-{n}" }}'
            for kind in ("polytope", "hypersphere-shells")
            for n in given.rows
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
    memory, time, inside, shares = [], [], 0, []
    print(f"{'cell':50} {'MiB':>7} {'measured':>9} {'error':>6}   {'s':>7} {'measured':>9} error")
    for cell in report.cells:
        cost = cell.done[0].predicted if cell.done else None
        if cell.status != "ok" or cost is None:
            print(f"{cell.cell.name[:50]:50} {cell.status} {cell.problem and cell.problem.reason}")
            continue
        (result,) = cell.done
        true, took, made = result.metrics["peak_memory_mib"], result.cpu_s, trials.get(cell.key, [])
        line = (
            f"{cell.cell.name[:50]:50} {cost.memory_mib.value:7.0f} {true:9.0f}"
            f" {cost.memory_mib.value / true - 1:+6.0%}"
        )
        if took > LONG_S:
            memory.append(cost.memory_mib.value / true)
        if cost.seconds is not None:
            ratio = cost.seconds.value / took
            line += f"   {cost.seconds.value:7.2f} {took:9.2f} {ratio - 1:+6.0%}"
            line += f" [{cost.seconds.low:.2f}, {cost.seconds.high:.2f}]"
            if took > LONG_S:
                time.append(ratio)
                inside += cost.seconds.low <= took <= cost.seconds.high
        if made:
            seconds, rows = sum(t["seconds"] for t in made), max(t["n_rows"] for t in made)
            shares.append((seconds, took))
            n_train = result.metrics["n_train"]
            line += f"   trials {seconds:.1f} s, up to {rows:,} of {n_train:,.0f}"
        print(line)
        if given.lines:
            facts = {
                "cell": cell.cell.name,
                "learner": cell.cell.learner.name,
                "n_train": result.metrics["n_train"],
                "seconds": took,
                "memory_mib": true,
                "predicted": dataclasses.asdict(cost),
                "trials": made,
            }
            with given.lines.open("a") as out:
                out.write(json.dumps(facts) + "\n")
    print(f"of tasks above {LONG_S:.0f} s:")
    for what, ratios, bounds in (("time", time, (1.5, 2.0)), ("memory", memory, (1.2,))):
        for bound in bounds:
            n = sum(abs(math.log(ratio)) <= math.log(bound) for ratio in ratios)
            print(f"  {what}: {n} of {len(ratios)} within a factor of {bound}")
    print(f"  {inside} of {len(time)} times are in their intervals")
    if shares:
        made_s, tasks_s = map(sum, zip(*shares, strict=True))
        each = median(seconds / (5 * took) for seconds, took in shares if took > LONG_S)
        print(
            f"trials took {made_s:.0f} s, {made_s / (5 * tasks_s):.1%} of five tasks of each cell "
            f"(median of tasks above {LONG_S:.0f} s: {each:.1%})"
        )


if __name__ == "__main__":
    main()
