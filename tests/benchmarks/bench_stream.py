"""A large embedding in blocks: memory, seconds, and the rate of its products.

Synthetic rows of 28 float32 features in a memory-mapped file, `rff` with 1,000 components,
`ridge` with 20 penalties and five inner folds, the embedding in blocks of float32::

    python tests/benchmarks/bench_stream.py [--rows 200000] [--small 20000]
    python tests/benchmarks/bench_stream.py --passes [--rows 1000000] [--map nbcs]

Each part runs in a process of its own, on one thread:

- *split*: one split (80 % of the rows for training) from the inputs to the predictions,
  with the peak of the anonymous memory (RssAnon, sampled);
- *products*: bare products ``Z'Z`` of float32 blocks of the same shape. The share is the
  time of as many products as the training rows need once, over the time of the split;
  *of the pass* is the same over the embedding and the products of the pass only;
- *svm*: the same split with `linear-svm` and `logistic`, one C and no search, against
  `ridge` with one penalty and no search, in CPU seconds of the fit;
- *pipeline*: scikit-learn's ``GridSearchCV`` of RBFSampler and Ridge, with the same
  penalties and folds, on a small number of rows, and kbench on the same rows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402

N_FEATURES, N_COMPONENTS, N_FOLDS = 28, 1000, 5
ALPHAS = tuple(float(alpha) for alpha in np.logspace(1, 5, 20))
BANDWIDTH = 5.0
TASKS = ("regression", "classification")
PARTS = ("split", "ridge", "linear-svm", "logistic", "pipeline")


def write(n: int, folder: Path) -> None:
    """Write inputs and targets, a part of the rows at a time."""
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n, N_FEATURES))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.float64, (n,))
    rng = np.random.default_rng(0)
    for start in range(0, n, 100_000):
        part = rng.normal(size=(min(100_000, n - start), N_FEATURES)).astype(np.float32)
        X[start : start + len(part)] = part
        signal = np.sin(part[:, 0] + part[:, 1]) + part[:, 2] * part[:, 3]
        y[start : start + len(part)] = signal + 0.3 * rng.normal(size=len(part))


class Memory:
    """The peak of this process's anonymous memory beyond that at the start, in MiB."""

    def __enter__(self) -> Memory:
        self._start = self._anonymous()
        self.peak = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(0.01):
            self.peak = max(self.peak, self._anonymous() - self._start)

    def _anonymous(self) -> float:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) / 1024
        raise OSError("the kernel does not report RssAnon")


def split_of(folder: Path, task: str) -> tuple[Any, Any]:
    """Return the inputs in the file, and one split of them, 80 % for training."""
    from kbench.evaluation.split_view import Visible
    from kbench.records import Inputs

    X, y = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "Xy")
    # a Dataset would hash the inputs
    inputs = Inputs(X, "bench", task=task)  # type: ignore[arg-type]
    rows = np.random.default_rng(1).permutation(len(y))
    test, train = np.sort(rows[: len(y) // 5]), np.sort(rows[len(y) // 5 :])
    targets = np.asarray(y if task == "regression" else y > 0).astype(
        float if task == "regression" else int
    )
    return inputs, (Visible(0, train, test, rows[:0], targets[train]), targets[test])


def learner_of(part: str, task: str) -> Any:
    """Return the learner of a part: with a search, or with one penalty."""
    from kbench.evaluation.specs import EstimatorSpec
    from kbench_learners import LinearSVM, LogisticClassifier, PathRidge, PathRidgeClassifier

    ridge = PathRidge if task == "regression" else PathRidgeClassifier
    return {
        "split": EstimatorSpec(ridge, {}, {"alpha": ALPHAS}, path="alpha"),
        "ridge": EstimatorSpec(ridge, {"alpha": ALPHAS[0]}, path="alpha"),
        "linear-svm": EstimatorSpec(LinearSVM, {"C": 1.0}, path="C"),
        "logistic": EstimatorSpec(LogisticClassifier, {"C": 1.0}, path="C"),
    }[part]


def map_of(name: str) -> Any:
    """Return a feature map."""
    from kbench.evaluation.specs import EstimatorSpec
    from kbench_baselines import NystroemMap, RandomFourierFeatures
    from kbench_nbcs import NestedBarycentricMap

    params = {"n_components": N_COMPONENTS, "bandwidth": BANDWIDTH}
    return {
        "rff": EstimatorSpec(RandomFourierFeatures, params),
        "nystroem": EstimatorSpec(NystroemMap, params),
        "nbcs": EstimatorSpec(NestedBarycentricMap, {"depth": 3}),
    }[name]


def split(folder: Path, task: str, part: str, name: str = "rff") -> dict[str, float]:
    """Measure one split."""
    from kbench import Protocol
    from kbench.evaluation.evaluate import run_split
    from kbench.evaluation.method import Method

    inputs, (visible, y_test) = split_of(folder, task)
    given: list[Any] = []

    def reveal(committed: Any) -> np.ndarray:
        given.append(committed.chosen[0].predicted)
        return np.asarray(y_test)

    method = Method(map_of(name), learner_of(part, task))
    protocol = Protocol(
        scaling=("standard",),
        inner_folds=N_FOLDS,
        refit_maps_in_inner_folds=False,
        block_dtype="float32",
    )
    few = slice(0, 1000)
    rows = {name: getattr(visible, name)[few] for name in ("train", "test", "y_train")}
    y_few = y_test[few]
    # loads what a task's process has loaded already
    run_split(inputs, replace(visible, **rows), method, protocol, lambda *given: y_few)
    with Memory() as memory:
        start, cpu = time.perf_counter(), time.process_time()
        metrics, details = run_split(inputs, visible, method, protocol, reveal)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    error = (
        np.sqrt(np.mean((given[0] - y_test) ** 2))
        if task == "regression"
        else np.mean(given[0] != y_test)
    )
    return {
        "MiB": memory.peak,
        "seconds": seconds,
        "cpu": cpu,
        "pass cpu": metrics["map_transform_time_cpu_s"] + metrics["learner_fit_time_cpu_s"],
        "passes": metrics.get("embedding_passes", 0.0),
        "error": float(error),
        "alpha": details.chosen.get("learner.alpha", 0.0),
        "fit cpu": metrics["fit_time_cpu_s"],
        "converged": metrics["converged"],
        "products cpu": products(len(visible.train)),
    }


def products(n: int) -> float:
    """Return the CPU seconds of the bare products of n rows, from the median of some."""
    from kbench.evaluation.lazy_rows import BLOCK_ROWS

    Z = np.random.default_rng(0).normal(size=(BLOCK_ROWS, N_COMPONENTS)).astype(np.float32)
    times = []
    for _ in range(15):
        start = time.process_time()
        Z.T @ Z
        times.append(time.process_time() - start)
    return float(np.median(times)) * n / len(Z)


def pipeline(folder: Path, task: str) -> dict[str, float]:
    """Measure scikit-learn's search on the training rows of one split."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import Ridge, RidgeClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    inputs, (visible, y_test) = split_of(folder, task)
    X, y = inputs.X[visible.train], visible.y_train
    learner = Ridge() if task == "regression" else RidgeClassifier()
    sampler = RBFSampler(gamma=0.5 / BANDWIDTH**2, n_components=N_COMPONENTS, random_state=0)
    grid = {f"{type(learner).__name__.lower()}__alpha": ALPHAS}
    scoring = "neg_root_mean_squared_error" if task == "regression" else "accuracy"
    searched = GridSearchCV(
        make_pipeline(StandardScaler(), sampler, learner), grid, cv=N_FOLDS, scoring=scoring
    )
    start, cpu = time.perf_counter(), time.process_time()
    predicted = searched.fit(X, y).predict(inputs.X[visible.test])
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    error = (
        np.sqrt(np.mean((predicted - y_test) ** 2))
        if task == "regression"
        else np.mean(predicted != y_test)
    )
    return {"seconds": seconds, "cpu": cpu, "error": float(error)}


def measured(part: str, folder: Path, task: str, name: str = "rff") -> dict[str, float]:
    """Run one part in a process of its own."""
    command = [sys.executable, __file__, "--part", part, "--folder", str(folder), "--task", task]
    command += ["--map", name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def passes(n: int, feature_map: str) -> None:
    """Print fits in passes over blocks beside the one pass of ridge."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(n, folder)
        found = {part: measured(part, folder, "classification", feature_map) for part in PARTS[1:4]}
    print(f"{feature_map}, two classes, {n:,} rows, one penalty, no search")
    for part, each in found.items():
        print(
            f"  {part:11}{each['fit cpu']:7.1f} s of CPU, "
            f"{each['fit cpu'] / found['ridge']['fit cpu']:.2f} of ridge, {each['MiB']:.0f} MiB, "
            f"{each['passes']:.2f} passes, error {each['error']:.4f}"
            + ("" if each["converged"] else ", not converged")
        )


def main() -> None:
    """Measure both tasks and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--small", type=int, default=20_000)
    parser.add_argument("--passes", action="store_true")
    parser.add_argument("--map", choices=("rff", "nystroem", "nbcs"), default="rff")
    parser.add_argument("--task", choices=TASKS, action="append")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        given = asked.folder, asked.task[0]
        found = (
            pipeline(*given) if asked.part == "pipeline" else split(*given, asked.part, asked.map)
        )
        print(json.dumps(found))
        return
    if asked.passes:
        passes(asked.rows, asked.map)
        return
    for task in asked.task or TASKS:
        print(
            f"{task}, {N_FEATURES} features, {N_COMPONENTS:,} components, {len(ALPHAS)} penalties"
        )
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(asked.rows, folder)
            found = measured("split", folder, task)
            write(asked.small, folder)
            own, peer = measured("split", folder, task), measured("pipeline", folder, task)
        share, of_pass = (found["products cpu"] / found[key] for key in ("cpu", "pass cpu"))
        print(
            f"  {asked.rows:,} rows: {found['seconds']:.1f} s ({found['cpu']:.1f} s of CPU), "
            f"{found['MiB']:.0f} MiB, {found['passes']:.0f} passes, error {found['error']:.4f}\n"
            f"  rate of bare products: {share:.0%} of the split, {of_pass:.0%} of the pass\n"
            f"  GridSearchCV, {asked.small:,} rows: {peer['cpu'] / own['cpu']:.1f} times the CPU, "
            f"{peer['cpu']:.1f} s to {own['cpu']:.1f} s (errors {peer['error']:.4f} and "
            f"{own['error']:.4f})"
        )


if __name__ == "__main__":
    main()
