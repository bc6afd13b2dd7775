"""What writing a run to a local SQLite store costs: kbench against one MLflow call per value.

    python tests/benchmarks/bench_tracking.py

Prints medians in milliseconds a run, wall clock and CPU, and their ratios; the
goal is less than 35 ms a run. Two write-ahead settings of SQLite are compared,
and a second pass that finds everything delivered.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import mlflow  # noqa: F401  (its import turns its log messages on)

from kbench_mlflow.tracking.run import CellRun, DatasetInput
from kbench_mlflow.tracking.store import Store

N_RUNS = 60


def a_run(number: int) -> CellRun:
    """Return a run of the usual size: 5 splits of 13 metrics."""
    metrics = [f"metric_{i}" for i in range(13)]
    return CellRun(
        key=f"{number:064d}",
        machine="0123456789abcdef",
        name=f"rff(n_components=64) + linear-svm on data-{number % 18}",
        status="ok",
        start_ms=1_700_000_000_000 + 1000 * number,
        end_ms=1_700_000_000_900 + 1000 * number,
        params={f"learner.p{i}": str(i) for i in range(10)},
        tags={"suite": "uci", "version": "0.1.0", "split_hash": "0123456789abcdef " * 5},
        metrics={name: number + i / 7 for i, name in enumerate(metrics)},
        n_splits_done=5,
        by_split={name: {i: number + i / 7 for i in range(5)} for name in metrics},
        dataset=DatasetInput(f"data-{number % 18}", "0" * 64, "sklearn", 150, 4),
    )


def one_call_per_value(store: Store, experiment_id: str, run: CellRun) -> None:
    """Write a run the way it is written by hand."""
    client = store._connection.client
    run_id = client.create_run(experiment_id, run_name=run.name).info.run_id
    for name, text in [*run.params.items(), *run.tags.items()]:
        (client.log_param if name in run.params else client.set_tag)(run_id, name, text)
    for name, value in run.metrics.items():
        client.log_metric(run_id, name, value, step=run.n_splits_done)
    for name, values in run.by_split.items():
        for index, value in values.items():
            client.log_metric(run_id, f"{name}_by_split", value, step=index)
    client.set_terminated(run_id)


def timed(write: Callable[[CellRun], object], runs: Sequence[CellRun]) -> tuple[float, float]:
    """Return the median of wall-clock and of CPU milliseconds per run."""
    wall, cpu = [], []
    for run in runs:
        start, start_cpu = time.perf_counter(), time.process_time()
        write(run)
        wall.append(1e3 * (time.perf_counter() - start))
        cpu.append(1e3 * (time.process_time() - start_cpu))
    return statistics.median(wall), statistics.median(cpu)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template.db"
        Store(f"sqlite:///{template}").open()
        runs = [a_run(number) for number in range(N_RUNS)]
        rows = {}
        for mode in ("delete", "wal"):
            path = Path(shutil.copy(template, Path(folder) / f"{mode}.db"))
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.execute(f"PRAGMA journal_mode = {mode}")
            store = Store(f"sqlite:///{path}")
            experiment = store.experiment("uci")
            store.log(experiment, a_run(N_RUNS))  # the first call of all pays for imports
            rows[f"Store.log, journal mode {mode}"] = timed(
                lambda run, s=store, e=experiment: s.log(e, run), runs
            )
        again = Store(store.uri)
        again.log(experiment, runs[0])
        rows["Store.log, all delivered before"] = timed(
            lambda run: again.log(experiment, run), [a_run(number) for number in range(N_RUNS)]
        )
        by_hand = store.experiment("by hand")
        rows["one MLflow call per value"] = timed(
            lambda run: one_call_per_value(store, by_hand.id, run), runs[:10]
        )
    reference = rows["one MLflow call per value"]
    print(f"{'ms a run':36s}{'wall':>8s}{'CPU':>8s}{'ratio':>8s}")
    for name, (wall, cpu) in rows.items():
        print(f"{name:36s}{wall:8.2f}{cpu:8.2f}{wall / reference[0]:8.3f}")


if __name__ == "__main__":
    main()
