"""Sums over many rows on one and two local Dask workers, and a plan for many hosts.

    python tests/benchmarks/bench_dask_sums.py [--rows 10000000] [--components 300]

Each worker has one thread and makes its rows, 16 features of random numbers, itself. The speed-up
is the ratio of wall-clock times; run it on a quiet machine with at least two cores. CPU seconds of
the workers and equality of all digits are printed too. The plan for 10^9 rows on 50 hosts is on
paper: it multiplies the measured rates.
"""

from __future__ import annotations

import argparse
import os
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from kbench.evaluation.gram_sums import Sums  # noqa: E402
from kbench_baselines import RandomFourierFeatures  # noqa: E402
from kbench_dask.worker import sum_rows  # noqa: E402

N_FEATURES, BLOCK = 16, 4096


def parts_of(n_components):
    """Return a function that makes rows, embeds them and adds them up, block by block."""
    draw = np.random.default_rng(0)
    sample = draw.normal(size=(1000, N_FEATURES))
    fitted = RandomFourierFeatures(n_components=n_components, bandwidth=4.0, random_state=0).fit(
        sample
    )
    shift = fitted.transform(sample).mean(axis=0)

    def sums_of(first, last):
        sums = Sums.zero(shift, 2)
        for start in range(first, last, BLOCK):
            rows = np.random.default_rng(start).normal(size=(min(BLOCK, last - start), N_FEATURES))
            y = (rows[:, 0] * rows[:, 1] > 0).astype(float)
            sums.add(fitted.transform(rows), np.column_stack([1.0 - y, y]))
        return sums

    return sums_of


def cpu_seconds(client):
    """Return the CPU seconds of all workers so far."""
    return sum(client.run(time.process_time).values())


def plan(n_rows, n_hosts, n_components, rows_per_s, combine_s, n_parts, bytes_per_s):
    """Return seconds, bytes moved and memory of each part of a run over many hosts.

    `rows_per_s` is the rate of one core, `combine_s` the seconds of adding one part, and
    `bytes_per_s` that of the network of the client.
    """
    part = 8 * n_components * (n_components + 8)
    moved = n_parts * part
    return {
        "seconds of the workers, one core each": n_rows / n_hosts / rows_per_s,
        "bytes to the client": moved,
        "seconds of the network": moved / bytes_per_s,
        "seconds of adding": n_parts * combine_s,
        "bytes of a worker": part * (1 + n_parts // n_hosts) + 3 * 8 * BLOCK * n_components,
        "bytes of the client": 3 * part,
    }


def main():
    """Measure the sums, and print the plan."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--components", type=int, default=300)
    parser.add_argument("--gigabits", type=float, default=10.0, help="network of the plan")
    given = parser.parse_args()
    sums_of = parts_of(given.components)
    walls, found, rates = {}, [], []
    for n_workers in (1, 2):
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            executor = client.get_executor(pure=False)
            sum_rows(executor, sums_of, 2 * BLOCK * n_workers, 2 * n_workers)  # imports
            wall, cpu = time.perf_counter(), cpu_seconds(client)
            found.append(sum_rows(executor, sums_of, given.rows))
            walls[n_workers] = time.perf_counter() - wall
            cpu = cpu_seconds(client) - cpu
            rates.append(given.rows / cpu)
            print(
                f"{n_workers} workers: {walls[n_workers]:.1f} s, {cpu:.1f} s of CPU, "
                f"{rates[-1]:,.0f} rows per second of CPU",
                flush=True,
            )
    equal = all(
        np.array_equal(getattr(found[0], name), getattr(found[1], name))
        for name in ("z", "zz", "y", "zy", "yy")
    )
    print(f"speed-up of two workers {walls[1] / walls[2]:.2f}; equal in all digits: {equal}")
    begun = time.process_time()
    for _ in range(20):
        Sums.combine(found)
    combine_s = (time.process_time() - begun) / 20
    for n_parts in (64, 1000):
        print(f"10^9 rows on 50 hosts, {given.components} components, {n_parts} parts:")
        rate = given.gigabits * 1e9 / 8
        told = plan(10**9, 50, given.components, min(rates), combine_s, n_parts, rate)
        for name, value in told.items():
            print(f"  {name}: {value:,.1f}")


if __name__ == "__main__":
    main()
