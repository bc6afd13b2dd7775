"""What kbench itself costs: a suite of tiny cells against the same work in a plain loop.

Prints medians of several rounds, one BLAS thread::

    python tests/benchmarks/bench_overhead.py [--rounds 3] [--cells 60] [--known 300]

- *isolated*: 60 cells of two splits each, every task in a process of its own,
  journalled, one MLflow run per cell in a new local store;
- *loop*: the same evaluations in this process, and the same numbers logged by
  hand with ``mlflow.log_params`` and ``log_metrics``, in a new local store too;
  goal of the ratio: at most 1.2, better below 1;
- *fit with MLflow on / off*: medians of the tasks' fit times while finished
  cells are written to MLflow beside them, and while nothing is written
  (exclusive timing); goal: within 5 % or 1 ms;
- *known*: the command ``kbench suite`` for 300 cells that are all in the
  journal and in the store, with start of Python and table; goal: at most 2 s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from kbench.canonical import to_json  # noqa: E402
from kbench.datacache import DataCache  # noqa: E402
from kbench.registry import build, installed  # noqa: E402
from kbench.runner import Options, Report, Run  # noqa: E402
from kbench.suite import cells, read  # noqa: E402


def suite_text(n_cells: int, n_splits: int, datasets: Sequence[str] = ("iris",)) -> str:
    """Return a suite of cells that take a few milliseconds each."""
    values = ", ".join(str(0.01 * (i + 1)) for i in range(n_cells // len(datasets)))
    data = ", ".join(f'"{each}"' for each in datasets)
    return f"""
datasets = [{data}]
feature_maps = ["identity"]
learners = [{{ name = "ridge", alpha = {{ each = [{values}] }} }}]
[protocol]
n_folds = 5
[limits]
n_splits = {n_splits}
"""


class Times(NamedTuple):
    """Seconds of one round."""

    new: float
    inside: float
    loop: float
    logging: float
    fit_on: float
    fit_off: float


def run(folder: Path, text: str, name: str, jobs: int, timing: str) -> tuple[float, Report]:
    """Run a suite in a fresh state folder; return its wall clock."""
    os.environ["KBENCH_STATE_DIR"] = str(folder / f"state {name}")
    registry = build(installed())
    suite = read(text, "tiny", registry)
    options = Options(f"sqlite:///{folder}/{name}.db", jobs=jobs, timing=timing)
    start = time.perf_counter()
    report = Run(suite, registry, options).run()
    seconds = time.perf_counter() - start
    assert not report.failed
    assert report.delivered is not None
    assert report.delivered.stored == len(report.cells)
    return seconds, report


def median_fit(report: Report) -> float:
    """Return the median over the tasks of the time to fit."""
    lines = [line for cell in report.cells for line in cell.lines.values()]
    return statistics.median(line["measures"]["fit_time_s"] for line in lines)


def loop(folder: Path, text: str) -> tuple[float, float]:
    """Return the time of the same work by hand, and the part of it that logs."""
    import mlflow

    from kbench import task

    registry = build(installed())
    start = time.perf_counter()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/by_hand.db")
    mlflow.set_experiment("tiny")
    logging = time.perf_counter() - start
    data_cache = DataCache()
    checksum = data_cache.entries()[0]["checksum"]
    for cell in cells(read(text, "tiny", registry), registry):
        payload = {
            "checksum": checksum,
            "cache": str(data_cache.root),
            "feature_map": to_json(cell.feature_map),
            "learner": to_json(cell.learner),
            "protocol": to_json(cell.protocol),
        }
        found = [task.evaluate({**payload, "split": index}) for index in range(2)]
        before = time.perf_counter()
        with mlflow.start_run(run_name=cell.name):
            labels = {"dataset": "iris", "feature_map": "identity", "learner": cell.learner.label}
            mlflow.log_params({**labels, **cell.learner.params})
            mlflow.log_metrics(
                {
                    name: statistics.fmean(each["measures"][name] for each in found)
                    for name in found[0]["measures"]
                }
            )
        logging += time.perf_counter() - before
    return time.perf_counter() - start, logging


def one_round(n_cells: int, jobs: int) -> Times:
    """Measure everything once, in a folder of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        os.environ["KBENCH_CACHE_DIR"] = str(folder / "cache")
        text = suite_text(n_cells, 2)
        new, report = run(folder, text, "on", jobs, "shared")
        _, quiet = run(folder, text, "off", 1, "exclusive")
        inside = sum(line["seconds"] for cell in report.cells for line in cell.lines.values())
        return Times(new, inside, *loop(folder, text), median_fit(report), median_fit(quiet))


def known(n_cells: int, rounds: int) -> float:
    """Return the time of the command when everything is known."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "tiny.toml").write_text(suite_text(n_cells, 1, ("iris", "wine", "wdbc")))
        private = {"KBENCH_STATE_DIR": f"{folder}/state", "KBENCH_CACHE_DIR": f"{folder}/cache"}
        store = {"MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"}
        command = [sys.executable, "-m", "kbench.cli", "suite", "tiny.toml", "--quiet"]
        times = []
        for _ in range(rounds + 1):
            start = time.perf_counter()
            subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, **private, **store},
                check=True,
                stdout=subprocess.DEVNULL,
            )
            times.append(time.perf_counter() - start)
        return statistics.median(times[1:])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--known", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    rows = [one_round(asked.cells, asked.jobs) for _ in range(asked.rounds)]
    found = Times(*(statistics.median(each) for each in zip(*rows, strict=True)))
    n_tasks, own = 2 * asked.cells, found.new - found.inside / asked.jobs
    print(f"{asked.cells} cells, {n_tasks} tasks, {asked.jobs} jobs, median of {asked.rounds}")
    print(f"isolated, journalled, logged  {found.new:6.2f} s")
    print(f"  inside the tasks            {found.inside:6.2f} s")
    print(f"  kbench's own                {1e3 * own / n_tasks:6.1f} ms a task")
    print(
        f"loop with MLflow by hand      {found.loop:6.2f} s, of which logging {found.logging:.2f} s"
    )
    print(f"ratio                         {found.new / found.loop:6.2f}   (goal 1.2, better 1.0)")
    on, off = 1e3 * found.fit_on, 1e3 * found.fit_off
    print(f"fit with MLflow on / off      {on:6.3f} / {off:.3f} ms = {on / off:.3f}")
    if asked.known:
        seconds = known(asked.known, asked.rounds)
        print(f"{asked.known} cells known already       {seconds:6.2f} s   (goal 2.0)")


if __name__ == "__main__":
    main()
