"""What kbench itself costs: a suite of tiny cells against the same work in a plain loop.

Prints medians of several rounds, one BLAS thread::

    python tests/benchmarks/bench_overhead.py [--rounds 3] [--cells 60]

- *isolated*: 60 cells of two splits each, every task in a process of its own,
  journalled, one MLflow run per cell in a new local store;
- *loop*: the same evaluations in this process, and the same numbers logged
  with one call of ``mlflow.log_param`` or ``log_metric`` each, as by hand;
- *known*: the suite again, when everything is in the journal and the store.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from kbench.canonical import to_json  # noqa: E402
from kbench.datacache import DataCache  # noqa: E402
from kbench.journal import Journal  # noqa: E402
from kbench.registry import build, installed  # noqa: E402
from kbench.runner import Options, Run  # noqa: E402
from kbench.suite import cells, read  # noqa: E402


def suite_text(n_cells: int) -> str:
    """Return a suite of cells that take a few milliseconds each."""
    values = ", ".join(str(0.01 * (i + 1)) for i in range(n_cells))
    return f"""
datasets = ["iris"]
feature_maps = ["identity"]
learners = [{{ name = "ridge", alpha = {{ each = [{values}] }} }}]
[protocol]
n_folds = 5
[limits]
n_splits = 2
"""


def isolated(folder: Path, text: str, jobs: int) -> tuple[float, float, float]:
    """Return the time of a new run, of the tasks in it, and of the run again."""
    registry = build(installed())
    suite = read(text, "tiny", registry)
    options = Options(store=f"sqlite:///{folder}/mlflow.db", jobs=jobs)
    times = []
    for _ in range(2):
        start = time.perf_counter()
        report = Run(
            suite,
            registry,
            options,
            journal=Journal(folder / "journal.jsonl"),
            data_cache=DataCache(folder / "cache"),
        ).run()
        times.append(time.perf_counter() - start)
    assert not report.failed
    assert report.delivered is not None
    assert report.delivered.stored == len(report.cells)
    inside = sum(line["seconds"] for cell in report.cells for line in cell.lines.values())
    return times[0], inside, times[1]


def loop(folder: Path, text: str) -> tuple[float, float]:
    """Return the time of the same work by hand, and the part of it that logs."""
    import mlflow

    from kbench import task

    mlflow.set_tracking_uri(f"sqlite:///{folder}/by_hand.db")
    mlflow.set_experiment("tiny")
    registry = build(installed())
    start, logging = time.perf_counter(), 0.0
    data_cache = DataCache(folder / "cache")
    checksum = data_cache.entries()[0]["checksum"]
    for cell in cells(read(text, "tiny", registry), registry):
        payload = {
            "checksum": checksum,
            "cache": str(folder / "cache"),
            "feature_map": to_json(cell.feature_map),
            "learner": to_json(cell.learner),
            "protocol": to_json(cell.protocol),
        }
        found = [task.evaluate({**payload, "split": index}) for index in range(2)]
        before = time.perf_counter()
        with mlflow.start_run(run_name=cell.name):
            mlflow.log_param("learner", cell.learner.label)
            for name in found[0]["measures"]:
                mean = statistics.fmean(each["measures"][name] for each in found)
                mlflow.log_metric(name, mean)
        logging += time.perf_counter() - before
    return time.perf_counter() - start, logging


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    rows = []
    for _ in range(asked.rounds):
        folder = Path(tempfile.mkdtemp())
        try:
            text = suite_text(asked.cells)
            rows.append((*isolated(folder, text, asked.jobs), *loop(folder, text)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    new, inside, known, by_hand, logging = (
        statistics.median(each) for each in zip(*rows, strict=True)
    )
    n_tasks, own = 2 * asked.cells, new - inside / asked.jobs
    print(f"{asked.cells} cells, {n_tasks} tasks, {asked.jobs} jobs, median of {asked.rounds}")
    print(f"isolated, journalled, logged  {new:6.2f} s")
    print(f"  inside the tasks            {inside:6.2f} s")
    print(f"  kbench's own                {1e3 * own / n_tasks:6.1f} ms a task")
    print(f"loop with MLflow by hand      {by_hand:6.2f} s, of which logging {logging:.2f} s")
    print(f"ratio                         {new / by_hand:6.2f}")
    print(f"everything known already      {known:6.2f} s")


if __name__ == "__main__":
    main()
