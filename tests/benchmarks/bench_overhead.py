"""What kbench itself costs: a suite of tiny cells against the same work in a plain loop.

Prints medians of several rounds, one BLAS thread::

    python tests/benchmarks/bench_overhead.py [--rounds 3] [--cells 60] [--known 300]
    python tests/benchmarks/bench_overhead.py --suite uci --jobs 2

- *isolated*: the command ``kbench suite`` for 60 cells of two splits each, every
  task in a process of its own, journalled, one MLflow run per cell in a new
  local store;
- *loop*: a program that makes the same evaluations one after the other, and logs
  the same numbers by hand with ``mlflow.log_params`` and ``log_metrics`` in a new
  local store; goal of the ratio: at most 0.8. Both are timed from the start of Python
  to its end. Their CPU time, with all processes, shows what a busy machine hides;
- *own of a task*: wall clock of a task, from its request to its answer, without its
  search, fit and prediction; median over all tasks. Untimed passes and repeats of short
  steps are part of it. Goal: at most 25 ms;
- *fit with MLflow on / off*: medians of the tasks' fit times while finished
  cells are written to MLflow beside them, and while nothing is written
  (exclusive timing); goal: within 5 % or 1 ms;
- *measured work*: the share of jobs x wall clock in which tasks compute numbers that they
  report: search, refit with the repeats of its short steps, default candidate, metrics of
  the model, calibration (``work_s`` of the journal). With ``--suite NAME``, of one run of
  that suite in a new store, and nothing else is measured; goal for ``uci``: at least 0.9;
- *known*: the command for 300 cells that are all in the journal and in the
  store; goal: at most 2 s.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from kbench.planning.cells import cells  # noqa: E402
from kbench.planning.suite_file import read  # noqa: E402
from kbench.registry.installed import list_plugins  # noqa: E402
from kbench.registry.registry import build  # noqa: E402
from kbench.storage.datacache import DataCache  # noqa: E402
from kbench.storage.journal import Journal  # noqa: E402


def suite_text(n_cells: int, n_splits: int, datasets: Sequence[str] = ("iris",)) -> str:
    """Return a suite of cells that take a few milliseconds each."""
    values = ", ".join(str(0.01 * (i + 1)) for i in range(n_cells // len(datasets)))
    data = ", ".join(f'"{each}"' for each in datasets)
    return f"""
datasets = [{data}]
feature_maps = ["identity"]
learners = [{{ name = "ridge", alpha = {{ expand = [{values}] }} }}]
[protocol]
n_folds = 5
[limits]
n_splits = {n_splits}
"""


class Times(NamedTuple):
    """Seconds of one round."""

    isolated: float
    isolated_cpu: float
    inside: float
    own: float
    loop: float
    loop_cpu: float
    logging: float
    fit_on: float
    fit_off: float


def cpu() -> float:
    """Return the CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command(
    folder: Path, name: str, *arguments: str, suite: str = "tiny.toml"
) -> tuple[float, float]:
    """Run the command in a state folder of that name; return its wall clock and CPU time."""
    private = {"KBENCH_STATE_DIR": f"{folder}/{name}", "KBENCH_CACHE_DIR": f"{folder}/cache"}
    start, used = time.perf_counter(), cpu()
    subprocess.run(
        [sys.executable, "-m", "kbench.cli", "suite", suite, "--quiet", *arguments],
        cwd=folder,
        env={**os.environ, **private, "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/{name}.db"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start, cpu() - used


def tasks(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return what a run in that state folder has journalled of its tasks."""
    (journal,) = (folder / name).glob("*/journal.jsonl")
    found = list(Journal(journal).read("result"))
    assert all(line["status"] == "ok" for line in found)
    return found


def median_fit(lines: Sequence[dict[str, Any]]) -> float:
    """Return the median over the tasks of the time to fit."""
    return statistics.median(line["metrics"]["fit_time_s"] for line in lines)


def median_own(lines: Sequence[dict[str, Any]]) -> float:
    """Return the median over the tasks of the time beside search, fit and prediction."""
    steps = ("search_time_s", "fit_time_s", "predict_time_s")
    return statistics.median(
        (line["ended_ms"] - line["started_ms"]) / 1e3 - sum(line["metrics"][step] for step in steps)
        for line in lines
    )


def work(lines: Sequence[dict[str, Any]]) -> float:
    """Return the seconds in which the tasks computed numbers that they report."""
    return float(sum(line["details"]["work_s"] for line in lines))


def of_suite(suite: str, jobs: int) -> None:
    """Run a suite in a new store; print the share of measured work."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        wall, used = command(folder, "suite", "--jobs", str(jobs), suite=suite)
        lines = tasks(folder, "suite")
    measured, inside = work(lines), sum(line["seconds"] for line in lines)
    print(f"{suite}: {len(lines)} tasks, {jobs} jobs, {wall:.1f} s, CPU {used:.1f} s")
    print(f"measured work {measured:.1f} s of {jobs * wall:.1f} s: {measured / jobs / wall:.2f}")
    print(
        f"in the processes of tasks beside it {1e3 * (inside - measured) / len(lines):.1f} ms each"
    )
    print(f"own of a task {1e3 * median_own(lines):.1f} ms, median")


def by_hand(folder: Path) -> None:
    """Do the work of the suite in a loop, as a program of one's own would; print seconds."""
    import mlflow

    from kbench.evaluation.evaluate import evaluate_split
    from kbench.evaluation.method import Method, learner_side, map_side, search_side

    start = time.perf_counter()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/by_hand.db")
    mlflow.set_experiment("tiny")
    logging = time.perf_counter() - start
    registry = build(list_plugins())
    suite = read((folder / "tiny.toml").read_text(), "tiny", registry)
    cache = DataCache(folder / "cache")
    facts = cache.entries()[0]
    dataset = cache.load(facts.checksum)
    for cell in cells(suite, registry):
        method = Method(
            **map_side(cell.feature_map, registry),
            **learner_side(cell.learner, registry, facts.task),
            **search_side(cell.protocol.search_metric, registry, facts.n_classes),
        )
        found = [evaluate_split(dataset, index, method, cell.protocol) for index in range(2)]
        before = time.perf_counter()
        with mlflow.start_run(run_name=cell.name):
            labels = {"dataset": "iris", "feature_map": "identity", "learner": cell.learner.label}
            mlflow.log_params({**labels, **cell.learner.params})
            mlflow.log_metrics(
                {
                    name: statistics.fmean(each.metrics[name] for each in found)
                    for name in found[0].metrics
                }
            )
        logging += time.perf_counter() - before
    print(logging)


def loop(folder: Path) -> tuple[float, float, float]:
    """Return wall clock and CPU time of the program by hand, and time of its calls of MLflow."""
    start, used = time.perf_counter(), cpu()
    done = subprocess.run(
        [sys.executable, __file__, "--by-hand", str(folder)],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return time.perf_counter() - start, cpu() - used, float(done.stdout)


def one_round(n_cells: int, jobs: int) -> Times:
    """Measure everything once, in a folder of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "tiny.toml").write_text(suite_text(n_cells, 2))
        isolated, isolated_cpu = command(folder, "on", "--jobs", str(jobs))
        command(folder, "off", "--timing", "exclusive")
        lines = tasks(folder, "on")
        assert len(lines) == 2 * n_cells
        inside = sum(line["seconds"] for line in lines)
        quiet = median_fit(tasks(folder, "off"))
        own = median_own(lines)
        return Times(isolated, isolated_cpu, inside, own, *loop(folder), median_fit(lines), quiet)


def known(n_cells: int, rounds: int) -> float:
    """Return the time of the command when everything is known."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "tiny.toml").write_text(suite_text(n_cells, 1, ("iris", "wine", "wdbc")))
        times = [command(folder, "known")[0] for _ in range(rounds + 1)]
        return statistics.median(times[1:])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--known", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--suite", help="measure the share of work of this suite only")
    parser.add_argument("--by-hand", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.by_hand:
        by_hand(asked.by_hand)
        return
    if asked.suite:
        of_suite(asked.suite, asked.jobs)
        return
    rows = [one_round(asked.cells, asked.jobs) for _ in range(asked.rounds)]
    found = Times(*(statistics.median(each) for each in zip(*rows, strict=True)))
    n_tasks, own = 2 * asked.cells, found.isolated - found.inside / asked.jobs
    print(f"{asked.cells} cells, {n_tasks} tasks, {asked.jobs} jobs, median of {asked.rounds}")
    print(f"isolated, journalled, logged  {found.isolated:6.2f} s, CPU {found.isolated_cpu:.2f} s")
    print(f"  inside the tasks            {found.inside:6.2f} s")
    print(f"  kbench's own                {1e3 * own / n_tasks:6.1f} ms a task, with start and end")
    print(f"  own of a task               {1e3 * found.own:6.1f} ms   (goal 25)")
    print(
        f"loop with MLflow by hand      {found.loop:6.2f} s, CPU {found.loop_cpu:.2f} s, "
        f"of which logging {found.logging:.2f} s"
    )
    ratios = sorted(each.isolated / each.loop for each in rows)
    print(
        f"ratio                         {statistics.median(ratios):6.2f}   "
        f"(goal 0.8; {ratios[0]:.2f} to {ratios[-1]:.2f}); "
        f"of CPU {found.isolated_cpu / found.loop_cpu:.2f}"
    )
    on, off = 1e3 * found.fit_on, 1e3 * found.fit_off
    print(f"fit with MLflow on / off      {on:6.3f} / {off:.3f} ms = {on / off:.3f}")
    if asked.known:
        seconds = known(asked.known, asked.rounds)
        print(f"{asked.known} cells known already       {seconds:6.2f} s   (goal 2.0)")


if __name__ == "__main__":
    main()
