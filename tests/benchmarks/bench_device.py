"""Ridge regression over blocks on a device, against the host and its own matrix product.

    python tests/benchmarks/bench_device.py [--rows 1000000] [--features 4096] [--device cuda]

The data are `--rows` x `--columns` normal numbers, a regression; the map has random Fourier
features of float32, and a search over 20 penalties on 5 inner folds that share the map. The same
split is evaluated on the device, and on the host with `--threads`, each once after a small one
that loads everything.
With `--host-rows A B`, the host is timed with A and B rows only, and its time for all rows is that
of the line through both. The device is "cuda" where there is
one, else "torch-cpu". Also timed is the product that the Gram matrix needs, of all blocks with
themselves, on the device in float32 (TF32 is off). The split, the checksum and the search for
duplicates are timed apart: a suite computes them once for a dataset.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from kbench import Dataset, Protocol
from kbench.evaluation.device import Device
from kbench.evaluation.evaluate import compute_scores, run_split
from kbench.evaluation.lazy_rows import BLOCK_ROWS
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench.evaluation.split_view import assign
from kbench.records import Inputs
from kbench_baselines import RandomFourierFeatures
from kbench_learners import PathRidge

PENALTIES = np.logspace(-4, 0, 20)
"""For each row; smaller ones are too small for float32."""

SMALL_ROWS = 5000
"""Of the evaluation that loads everything."""


def make_data(n_rows: int, n_columns: int) -> Dataset:
    """Return normal numbers in float32 with a smooth target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
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


def describe(name: str, wall: float, cpu: float, result) -> None:
    """Print the times of an evaluated split, and what was chosen."""
    times = {
        step: result.metrics.get(f"{step}_time_s", 0.0)
        for step in ("map_fit", "map_transform", "learner_fit", "search", "transfer", "predict")
    }
    print(
        f"{name:>9}: {wall:8.2f} s, {cpu:8.2f} CPU s; "
        + ", ".join(f"{step} {seconds:.2f}" for step, seconds in times.items())
        + f"; rmse {result.metrics['rmse_standardized']:.6f}, {result.details.chosen}, peak "
        f"{result.metrics.get('device_memory_mib', 0.0):.0f} MiB"
    )
    print("           ", *result.details.notes, sep="\n           ")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--features", type=int, default=4096)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "torch-cpu")
    parser.add_argument("--host-rows", type=int, nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    threadpool_limits(args.threads)
    data = make_data(args.rows, args.columns)
    params = {"n_components": args.features, "bandwidth": 5.0}
    spec = EstimatorSpec(RandomFourierFeatures, params, {})
    shared = {"refit_maps_in_inner_folds": False, "block_dtype": args.dtype, "scaling": ("none",)}

    def evaluate(name: str, n_rows: int):
        alphas = tuple(float(alpha) for alpha in n_rows * PENALTIES)
        method = Method(spec, EstimatorSpec(PathRidge, {}, {"alpha": alphas}, path="alpha"))
        here = Protocol(cv="holdout", test_size=0.05, inner_folds=5, device=name, **shared)
        some = Dataset("made", data.X[:n_rows], data.y[:n_rows])
        apart, _, rows = timed(lambda: assign(some, here, 0))
        predictions = []

        def reveal(committed):
            predictions.append(committed)
            return rows.y_test

        inputs = Inputs.make(some)
        wall, cpu, of_split = timed(lambda: run_split(inputs, rows.visible, method, here, reveal))
        if n_rows > SMALL_ROWS:
            result = compute_scores(rows, predictions[0], *of_split, "ridge")
            describe(name, wall, cpu, result)
            print(f"            split, checksum and duplicates {apart:.2f} s")
        return wall

    evaluate(args.device, SMALL_ROWS)
    wall = evaluate(args.device, args.rows)
    product = time_product(Device.of(args.device), int(0.95 * args.rows), args.features)
    print(f"product alone: {product:.2f} s, {product / wall:.2f} of all that is timed above")
    host_rows = [args.rows] if args.host_rows is None else args.host_rows
    if not host_rows:
        return
    evaluate("cpu", SMALL_ROWS)
    host = [evaluate("cpu", n_rows) for n_rows in host_rows]
    if len(host) == 2:
        host = [np.polyval(np.polyfit(host_rows, host, 1), args.rows)]
        print(f"host, all rows: {host[0]:.1f} s, by the line through both")
    print(f"{args.device} is {host[0] / wall:.1f} times as fast")


if __name__ == "__main__":
    main()
