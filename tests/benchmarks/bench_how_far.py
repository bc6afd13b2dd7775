"""How far does it go: one task of each method on more and more rows, predicted and measured.

The table of `docs/large.md`. Rows of 28 float32 features and a Bayes error of 0.1
(`hypersphere-shells`); the first n rows are for training, 20,000 for the test::

    python tests/benchmarks/bench_how_far.py --folder FOLDER [--rows 10000 --rows 100000]

Each cell is a task of a suite, in a separate process, with limits on time and memory; one
task runs at a time, with all physical cores or ``--threads``. Trials predict it first. If it
should take longer than ``--time``, or if the method hit a limit on fewer rows, it does not run,
and the table has its prediction only. Finished rows are kept in FOLDER, even if the code
changes: a second call prints them again and adds those that are new.

Seconds are CPU time of the task, of all threads, and wall clock of search and fit. Memory is
`peak_memory_mib` of the task.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
N_TEST = 20_000

PENALTIES = str([round(10 ** (0.5 + 4.5 * i / 19), 3) for i in range(20)])
"""Large enough for float32 at 10 million rows."""

METHODS = {
    "rff + ridge": (
        '{ name = "rff", label = "rff", n_components = 1000, bandwidth_factor = 1.0 }',
        f'{{ name = "ridge", label = "ridge", alpha = {{ tune = {PENALTIES} }} }}',
    ),
    "nystroem + ridge": (
        '{ name = "nystroem", label = "nystroem", n_components = 1000, bandwidth_factor = 1.0 }',
        f'{{ name = "ridge", label = "ridge", alpha = {{ tune = {PENALTIES} }} }}',
    ),
    "rff + linear-svm": (
        '{ name = "rff", label = "rff", n_components = 1000, bandwidth_factor = 1.0 }',
        '{ name = "linear-svm", label = "linear-svm", C = 1.0 }',
    ),
    "sgd": ('"identity"', '{ name = "sgd", label = "sgd", alpha = 1e-4 }'),
    "rff + sgd": (
        '{ name = "rff", label = "rff", n_components = 1000, bandwidth_factor = 1.0 }',
        '{ name = "sgd", label = "sgd", alpha = 1e-4 }',
    ),
    "liblinear": ('"identity"', '{ name = "liblinear", label = "liblinear", C = 1.0 }'),
    "gradient-boosting": (
        '"identity"',
        '{ name = "gradient-boosting", label = "gradient-boosting", learning_rate = 0.1, '
        "max_leaf_nodes = 31, min_samples_leaf = 20, l2_regularization = 0.0 }",
    ),
    "knn": (
        '"identity"',
        '{ name = "knn", label = "knn", n_neighbors = 15, weights = "uniform", p = 2 }',
    ),
    "kernel-svm": (
        '"identity"',
        '{ name = "kernel-svm", label = "kernel-svm", C = 1.0, '
        'kernel = { name = "gaussian", bandwidth_factor = 1.0 } }',
    ),
}

SUITE = """
datasets = [
    {{ name = "hypersphere-shells", label = "shells", n_samples = {total}, n_features = 28 }},
]
feature_maps = [{map_}]
learners = [{learner}]
[protocol]
cv = "ordered"
test_size = {n_test}
scaling = "standard"
inner_folds = 5
refit_maps_in_inner_folds = false
block_dtype = "float32"
threads = {threads}
[limits]
task_timeout_s = {time_s}
task_memory_mib = {memory_mib}
"""


def row(method: str, n: int, folder: Path, given: argparse.Namespace, runs: bool) -> dict:
    """Predict one task, run it if that is asked for, and return what the table shows."""
    from kbench.api.inputs import select_suite
    from kbench.execution.plugins import load_registry
    from kbench.runner import Options, Run, execute, preview

    map_, learner = METHODS[method]
    file = folder / f"{re.sub('[^a-z]+', '-', method)}-{n}.toml"
    limits = {"time_s": given.time, "memory_mib": given.memory, "threads": given.threads}
    file.write_text(
        SUITE.format(total=n + N_TEST, n_test=N_TEST, map_=map_, learner=learner, **limits)
    )
    fetch = [sys.executable, "-m", "kbench.cli", "data", "fetch", str(file)]
    subprocess.run(fetch, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    registry = load_registry()
    options = Options(jobs=1, given={"store": f"sqlite:///{folder / 'mlflow.db'}"})
    plan = Run(select_suite(str(file), registry, (), (), ()), registry, options)
    (cell,) = preview(plan).cells
    found: dict = {"method": method, "rows": n, "status": "predicted"}
    seconds, n_threads = cell.cost and cell.cost.seconds, cell.cell.protocol.threads
    cost = cell.cost
    if cell.problem is not None:
        found["status"] = cell.problem.status
    elif runs and not (seconds and seconds.value > given.time * n_threads):
        run = Run(select_suite(str(file), registry, (), (), ()), registry, options)
        (cell,) = execute(run).cells
        (result,) = cell.results.values()
        # a task that has ended is not tried again
        found["status"], cost = result.status, result.predicted
        if result.is_ok:
            metrics = result.metrics
            found["s"] = metrics["fit_time_s"] + metrics["search_time_s"]
            found |= {"cpu_s": result.cpu_s, "mib": round(metrics["peak_memory_mib"])}
            found |= {"accuracy": metrics["accuracy"], "threads": n_threads}
    if cost is not None:
        found["predicted_mib"] = round(cost.memory_mib.value)
        if cost.seconds is not None:
            found["predicted_cpu_s"] = float(f"{cost.seconds.value:.3g}")
    return found


def text(found: dict) -> str:
    """Return a cell of the table: CPU seconds, MiB, accuracy; predictions in brackets."""
    shown = [f"{found['cpu_s']:,.3g}" if "cpu_s" in found else found["status"]]
    shown.append(f"[{found['predicted_cpu_s']:,.3g}] s," if "predicted_cpu_s" in found else "")
    shown.append(f"{found['mib']:,}" if "mib" in found else "")
    shown.append(f"[{found['predicted_mib']:,}] MiB" if "predicted_mib" in found else "")
    shown.append(f", {found['accuracy']:.3f}" if "accuracy" in found else "")
    return " ".join(filter(None, shown)).replace(" ,", ",")


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, action="append", help="training rows, repeatable")
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument("--folder", type=Path, help="where results are kept")
    parser.add_argument("--time", type=float, default=600.0, help="limit of a task in seconds")
    parser.add_argument("--memory", type=float, default=4096.0, help="limit of a task in MiB")
    parser.add_argument(
        "--threads", default='"all"', help="threads of a task; 1 on a loaded machine"
    )
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="kbench-how-far-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["KBENCH_STATE_DIR"] = str(folder / "state")
    os.environ.setdefault("KBENCH_CACHE_DIR", str(folder / "cache"))
    print(f"results are kept in {folder}", file=sys.stderr)
    kept = folder / "rows.jsonl"
    lines = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    known = {(line["method"], line["rows"]): line for line in lines}
    # the small ones of all methods first: they are what an interrupted call leaves
    for n in sorted(asked.rows or ROWS):
        for method in asked.method or METHODS:
            if (method, n) not in known:
                ended = (line for (other, m), line in known.items() if other == method and m < n)
                runs = all(line["status"] == "ok" for line in ended)
                known[method, n] = row(method, n, folder, asked, runs)
                with kept.open("a") as out:
                    out.write(json.dumps(known[method, n]) + "\n")
            print(f"{n:,} rows, {method}: {text(known[method, n])}", file=sys.stderr, flush=True)
    columns = sorted({n for _, n in known})
    print("| method |", " | ".join(f"{n:,} rows" for n in columns), "|")
    print("| --- |", " | ".join("---" for _ in columns), "|")
    for method in dict.fromkeys(method for method, _ in known):
        cells = [text(known[method, n]) if (method, n) in known else "" for n in columns]
        print(f"| `{method}` |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
