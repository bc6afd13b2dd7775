"""Time and memory of a large parquet file on its way into the data cache.

    python tests/benchmarks/bench_large_data.py [--rows 1000000] [--compression snappy]

The file has 28 columns of float32 and labels. Its data enter a new cache as `kbench suite`
fetches them, in a process of their own; that is compared with a bare read, column by column
into one array (pyarrow), and a bare write of that array (`numpy.save`). Times are medians of
three, wall clock and CPU; `RssAnon` is the anonymous memory of the process at its peak,
sampled every 5 ms, without that after the imports. Pages of mapped files are not in it. Needs
about three times the size of the data as free space in the folder of temporary files.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

COLUMNS, BLOCK = 28, 131_072


def write_table(path: Path, n_rows: int, compression: str) -> None:
    """Write seeded normal numbers, row group by row group."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(COLUMNS)]
    types = [(name, pa.float32()) for name in names]
    schema = pa.schema([*types, ("label", pa.int8())])
    with pq.ParquetWriter(path, schema, compression=compression, use_dictionary=False) as file:
        for start in range(0, n_rows, BLOCK):
            n = min(BLOCK, n_rows - start)
            table = {name: rng.standard_normal(n, dtype=np.float32) for name in names}
            table["label"] = (table["x0"] * table["x1"] > 0).astype(np.int8)
            file.write_table(pa.table(table, schema=schema), row_group_size=BLOCK)


def bare(path: Path, folder: Path) -> None:
    """Read column by column into one array, and write that."""
    import numpy as np
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    X = np.empty((file.metadata.num_rows, COLUMNS), np.float32)
    for j in range(COLUMNS):
        X[:, j] = file.read(columns=[f"x{j}"], use_threads=False).column(0).to_numpy()
    np.save(folder / "X.npy", X)


def cached(path: Path, folder: Path) -> None:
    """Load the file into a new cache."""
    from kbench.execution.task_functions import load

    line = {"name": "parquet", "params": {"path": str(path), "target": "label"}}
    payload = {"dataset": line, "code": "", "cache": str(folder / "cache"), "offline": True}
    if problem := load(payload):
        raise SystemExit(str(problem))


def measured(work: Callable[[Path, Path], None], path: Path) -> dict[str, float]:
    """Return seconds and megabytes of one call."""
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import kbench.execution.task_functions

    kbench.execution.task_functions._registry()
    peaks = [_anonymous_mib()]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            peaks.append(_anonymous_mib())

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        watcher = threading.Thread(target=watch)
        watcher.start()
        start = time.perf_counter(), time.process_time()
        work(path, Path(folder))
        found = {"wall s": time.perf_counter() - start[0], "CPU s": time.process_time() - start[1]}
        done.set()
        watcher.join()
    return {**found, "RssAnon MiB": max(peaks) - peaks[0]}


def _anonymous_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return float("nan")


def main() -> None:
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--compression", default="snappy", choices=["snappy", "none", "zstd"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        name, path = asked.one
        print(json.dumps(measured({"bare": bare, "cached": cached}[name], Path(path))))
        return
    needed = 3.2 * asked.rows * COLUMNS * 4
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < needed:
        raise SystemExit(f"needs {needed / 2**20:,.0f} MiB in {tempfile.gettempdir()}")
    with tempfile.TemporaryDirectory(prefix="kbench-large-") as folder:
        path = Path(folder) / "large.parquet"
        write_table(path, asked.rows, asked.compression)
        size = path.stat().st_size / 2**20
        print(f"{asked.rows:,} rows with {COLUMNS} columns of float32: {size:,.0f} MiB of parquet")
        runs: dict[str, list[dict[str, float]]] = {"bare": [], "cached": []}
        for _ in range(asked.repeat):
            for name, found in runs.items():
                command = [sys.executable, __file__, "--one", name, str(path)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                found.append(json.loads(done.stdout))
    medians = {
        name: {key: statistics.median(run[key] for run in found) for key in found[0]}
        for name, found in runs.items()
    }
    for key in medians["bare"]:
        one, other = medians["bare"][key], medians["cached"][key]
        print(f"{key:11} bare {one:8.2f}   into the cache {other:8.2f}   ratio {other / one:.2f}")


if __name__ == "__main__":
    main()
