"""How far does it go: one task of each method on more and more rows.

The table of `docs/studies/large-data.md`. Rows of 28 float32 features and a Bayes error of 0.1
(`hypersphere-shells`); the first n rows are for training, 20,000 for the test::

    python tests/benchmarks/bench_how_far.py [--rows 10000 --rows 100000] [--folder FOLDER]

Each cell is a task of a suite, in a process of its own, with limits on time and memory; one
task runs at a time, with all physical cores. A method that ended at a limit is not tried on
more rows. Results are kept in FOLDER: a second call prints them again and adds what is new.

Seconds are wall clock: of the search and the fit together, and of the prediction of the test
rows. Memory is `peak_memory_mib` of the task.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

ROWS = (10_000, 100_000, 1_000_000)
N_TEST = 20_000

PENALTIES = str([round(10 ** (0.5 + 4.5 * i / 19), 3) for i in range(20)])
"""Large enough for float32 at 10 million rows."""

METHODS = {
    "rff + ridge": (
        '{ name = "rff", label = "rff", n_components = 1000, bandwidth_factor = 1.0 }',
        f'{{ name = "ridge", label = "ridge", alpha = {{ search = {PENALTIES} }} }}',
    ),
    "nystroem + ridge": (
        '{ name = "nystroem", label = "nystroem", n_components = 1000, bandwidth_factor = 1.0 }',
        f'{{ name = "ridge", label = "ridge", alpha = {{ search = {PENALTIES} }} }}',
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
threads = "all"
[limits]
task_timeout_s = {time_s}
task_memory_mib = {memory_mib}
"""


def measured(method: str, n: int, folder: Path, time_s: float, memory_mib: float) -> dict[str, str]:
    """Run one task, unless its result is known, and return what the table shows."""
    import kbench

    map_, learner = METHODS[method]
    name = re.sub("[^a-z]+", "-", method)
    file = folder / f"{name}-{n}.toml"
    limits = {"time_s": time_s, "memory_mib": memory_mib}
    file.write_text(
        SUITE.format(total=n + N_TEST, n_test=N_TEST, map_=map_, learner=learner, **limits)
    )
    found = kbench.run_suite(
        str(file), jobs=1, store=f"sqlite:///{folder / 'mlflow.db'}", progress=False
    )
    row = found.to_frame().iloc[0]
    if row["status"] != "ok":
        return {"status": str(row["status"])}
    return {
        "status": "ok",
        "s": f"{row['fit_time_s'] + row['search_time_s']:.1f}",
        "predict": f"{row['predict_time_s']:.2f}",
        "MiB": f"{row['peak_memory_mib']:,.0f}",
        "accuracy": f"{row['accuracy']:.3f}",
    }


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, action="append", help="training rows, repeatable")
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument("--folder", type=Path, help="where results are kept")
    parser.add_argument("--time", type=float, default=600.0, help="limit of a task in seconds")
    parser.add_argument("--memory", type=float, default=4096.0, help="limit of a task in MiB")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="kbench-how-far-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["KBENCH_STATE_DIR"] = str(folder / "state")
    os.environ.setdefault("KBENCH_CACHE_DIR", str(folder / "cache"))
    print(f"results are kept in {folder}", file=sys.stderr)
    print("| method | rows | search and fit s | predict s | MiB | accuracy |")
    print("| --- | --- | --- | --- | --- | --- |")
    for method in asked.method or METHODS:
        for n in sorted(asked.rows or ROWS):
            found = measured(method, n, folder, asked.time, asked.memory)
            if found["status"] != "ok":
                print(f"| `{method}` | {n:,} | {found['status']} | | | |", flush=True)
                break
            cells = (found[key] for key in ("s", "predict", "MiB", "accuracy"))
            print(f"| `{method}` | {n:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
