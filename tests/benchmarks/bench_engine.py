"""What slots bring: two jobs against one, and a Dask cluster of two workers against two jobs.

Run as a script, on a quiet machine with two cores; prints ratios of medians::

    python tests/benchmarks/bench_engine.py [--rounds 3] [--tasks 20]

A task burns 0.3 s of CPU in a sandbox, in two fits; one BLAS thread. Starting
the warm parents, and of the cluster its workers, is not counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
sys.path.insert(0, str(Path(__file__).parents[2]))

import pytest  # noqa: E402

from kbench.execution.engine import Engine, LocalEngine, Terms, ThisMachine  # noqa: E402
from kbench.execution.warm_parents import WARM, WarmParents  # noqa: E402
from kbench.planning.methods import method_code  # noqa: E402
from kbench.records import Cell, Limits, Protocol, Ref, Task  # noqa: E402
from kbench.records.canonical import digest  # noqa: E402
from kbench.registry.installed import list_plugins  # noqa: E402
from kbench.registry.registry import build  # noqa: E402
from kbench.storage.datacache import DataCache  # noqa: E402
from kbench_dask.dispatch import DaskEngine  # noqa: E402
from tests.support.planted import plant  # noqa: E402

PLUGINS = ("planted",)
PRELOAD = {PLUGINS: (*WARM, "planted_plugin", "kbench.execution.task_functions:thread_pools")}


def a_task(cache: DataCache) -> Task:
    """Return the task, its data in the cache."""
    registry = build(list_plugins())
    dataset = registry.get("dataset", "blobs").load()
    cell = Cell(Ref("blobs"), Ref("planted", {"do": "burn"}), Ref("centroids"), Protocol())
    records = digest(method_code(cell, registry, "classification"))
    checksum = cache.store(dataset)
    return Task(cell, 0, "the cell's key", checksum, records=records, plugins=PLUGINS)


def ignored(*told: object) -> None:
    """Hear what an engine tells."""


def check(engine: Engine, tasks: Sequence[Task]) -> None:
    """Take all answers; each must be ok."""
    found = [answer.outcome for _, answer in engine.run(tasks)]
    assert len(found) == len(tasks)
    assert {each.status for each in found} == {"ok"}, found[0]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=20)
    asked = parser.parse_args()

    from distributed import LocalCluster

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBENCH_STATE_DIR", f"{folder}/state")
        patch.setenv("KBENCH_CACHE_DIR", f"{folder}/cache")
        plant(Path(folder) / "site", patch)
        cache = DataCache()
        tasks = [a_task(cache)] * asked.tasks
        nothing = {"dataset": [], "feature map": [], "learner": []}
        limits = Limits(task_timeout_s=60.0, task_memory_mib=1024.0)
        terms = Terms(PRELOAD, nothing, limits)
        machine = ThisMachine(False, ignored)

        with (
            closing(WarmParents(PRELOAD)) as parents,
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers,
        ):
            engines: dict[str, Engine] = {
                "1 job": LocalEngine(parents, cache.root, 1, machine, ignored),
                "2 jobs": LocalEngine(parents, cache.root, 2, machine, ignored),
                "Dask": DaskEngine(workers.scheduler_address, None, ignored, ignored),
            }
            for engine in engines.values():
                engine.prepare(terms)
            times: dict[str, list[float]] = {name: [] for name in engines}
            check(engines["1 job"], tasks)  # the warm parent starts
            for _ in range(asked.rounds):
                for name, engine in engines.items():
                    start = time.perf_counter()
                    check(engine, tasks)
                    times[name].append(time.perf_counter() - start)
            engines["Dask"].close()
        machine.release()

    median = {name: statistics.median(taken) for name, taken in times.items()}
    print(f"{asked.tasks} tasks of 0.3 s, median of {asked.rounds} rounds")
    for name, seconds in median.items():
        print(f"  {name:<7}{seconds:6.2f} s, {1e3 * seconds / asked.tasks:6.1f} ms a task")
    print(
        f"speed of 2 jobs against 1             {median['1 job'] / median['2 jobs']:5.2f}  (>= 1.8)"
    )
    print(
        f"speed of 2 Dask workers, of 2 jobs    {median['2 jobs'] / median['Dask']:5.2f}  (>= 0.9)"
    )


if __name__ == "__main__":
    main()
