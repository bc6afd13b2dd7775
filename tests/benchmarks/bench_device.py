"""Ridge regression over blocks on a device, against the host and its own matrix product.

    python tests/benchmarks/bench_device.py [--rows 1000000] [--features 4096] [--device cuda]

The data are `--rows` x 100 normal numbers, a regression; the map has random waves of float32, and
a search over 20 penalties on 5 inner folds that share the map. The same split is evaluated on
the device, and on the host with `--threads`, each once after a small one that loads everything.
The device is "cuda" where there is one, else "torch-cpu". Also timed is the product that the
Gram matrix needs, of all blocks with themselves, on the device in float32 (TF32 is off).
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from threadpoolctl import threadpool_limits

from kbench import Dataset, Protocol
from kbench.arrays import like, namespace
from kbench.evaluation.device import Device
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.lazy_rows import BLOCK_ROWS
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench_learners import PathRidge

N_COLUMNS = 100
PENALTIES = np.logspace(-4, 0, 20)
"""For each row; smaller ones are too small for float32."""


class Waves(TransformerMixin, BaseEstimator):
    """Cosine features in the namespace of their inputs."""

    def __init__(self, n_components: int = 1024) -> None:
        self.n_components = n_components

    def fit(self, X, y=None):
        rng = np.random.default_rng(0)
        self.frequencies_ = like(rng.normal(size=(X.shape[1], self.n_components)) / 5.0, X)
        self.phases_ = like(rng.uniform(0.0, 2.0 * np.pi, self.n_components), X)
        return self

    def transform(self, X):
        return namespace(X).cos(X @ like(self.frequencies_, X) + like(self.phases_, X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags


def make_data(n_rows: int) -> Dataset:
    """Return normal numbers in float32 with a smooth target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, N_COLUMNS), dtype=np.float32)
    noise = 0.1 * rng.standard_normal(n_rows)
    return Dataset("made", X, np.sin(X[:, :10].sum(axis=1, dtype=float) / 3.0) + noise)


def timed(step):
    """Return wall-clock and CPU seconds, and the value of a step."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = step()
    return time.perf_counter() - wall, time.process_time() - cpu, value


def time_product(device: Device, n_rows: int, n_features: int) -> float:
    """Return seconds of the products of blocks with themselves; the first one is not counted."""
    Z = device.put(np.random.default_rng(0).random((BLOCK_ROWS, n_features)), np.dtype("float32"))
    device.wait(Z.T @ Z)
    n_blocks = max(1, n_rows // BLOCK_ROWS)

    def products():
        for _ in range(n_blocks):
            Z.T @ Z
        device.synchronise()

    return timed(products)[0]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=4096)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "torch-cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    threadpool_limits(args.threads)
    data = make_data(args.rows)
    alphas = tuple(float(alpha) for alpha in args.rows * PENALTIES)
    spec = EstimatorSpec(Waves, {"n_components": args.features}, {})
    method = Method(spec, EstimatorSpec(PathRidge, {}, {"alpha": alphas}, path="alpha"))
    shared = {"refit_maps_in_inner_folds": False, "block_dtype": args.dtype, "scaling": ("none",)}
    protocol = Protocol(cv="holdout", test_size=0.05, inner_folds=5, **shared)
    results = {}
    for name in (args.device, "cpu"):
        here = Protocol(**{**vars(protocol), "device": name})
        small = Dataset("small", data.X[:5000], data.y[:5000])
        evaluate_split(small, 0, method, here)
        wall, cpu, result = timed(lambda here=here: evaluate_split(data, 0, method, here))
        results[name] = wall, cpu, result
        transfer = result.metrics.get("transfer_time_s", 0.0)
        print(
            f"{name:>9}: {wall:8.2f} s, {cpu:8.2f} CPU s, transform "
            f"{result.metrics['map_transform_time_s']:.2f} s, learner "
            f"{result.metrics['learner_fit_time_s']:.2f} s, transfer {transfer:.3f} s, rmse "
            f"{result.metrics['rmse_standardized']:.6f}, {result.details.chosen}"
        )
        print("           ", *result.details.notes, sep="\n           ")
    (wall, cpu, _), (host_wall, host_cpu, _) = results.values()
    print(f"{args.device} is {host_wall / wall:.2f} times as fast ({host_cpu / cpu:.2f} by CPU s)")
    n_train = int(0.95 * args.rows)
    product = time_product(Device.of(args.device), n_train, args.features)
    print(f"product alone: {product:.2f} s, {product / wall:.2f} of all that is timed above")


if __name__ == "__main__":
    main()
