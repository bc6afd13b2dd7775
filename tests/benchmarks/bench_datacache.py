"""Time of loading datasets: kbench's cache against the openml client's own.

    python tests/benchmarks/bench_datacache.py [--repeat 3]

Cold is from a server on loopback to arrays, with empty caches; warm is a second
load. The client's cold load ends with the pickle it writes, its warm one reads
that pickle; kbench's cold load ends with the verified entry in its cache, its
warm one is `DataCache.load` and one pass over all values. Needs the mirror of
OpenML next to the checkout (../shared/openml-mirror).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["no_proxy"] = "127.0.0.1"

MIRROR = Path(__file__).parents[3] / "shared" / "openml-mirror" / "openml_mirror.py"
DATASETS = {1502: "skin-segmentation", 40685: "shuttle", 1113: "KDDCup99"}


def timed(function, repeat=1):
    """Return the median of wall and of CPU seconds."""
    wall, cpu = [], []
    for _ in range(repeat):
        start = time.perf_counter(), time.process_time()
        function()
        wall.append(time.perf_counter() - start[0])
        cpu.append(time.process_time() - start[1])
    return statistics.median(wall), statistics.median(cpu)


def measure(data_id, url, folder, repeat):
    """Return (wall, CPU) of the client's and kbench's cold and warm loads."""
    import openml

    from kbench.storage.datacache import DataCache
    from kbench_openml._source import load

    openml.config.server = url

    def client():
        openml.config.set_root_cache_directory(folder / "client")
        found = openml.datasets.get_dataset(data_id, download_data=True)
        frame, y, *_ = found.get_data(target=found.default_target_attribute)
        return frame, y

    cache = DataCache(folder / "kbench")

    def cold():
        openml.config.set_root_cache_directory(folder / "kbench-client")
        return cache.add("openml", {"data_id": data_id}, "code", load(data_id=data_id))

    def warm():
        X = cache.load(cache.lookup("openml", {"data_id": data_id}, "code")).X
        return X.sum()

    def mapped():
        return cache.load(cache.lookup("openml", {"data_id": data_id}, "code"))

    return {
        "client cold": timed(client),
        "client warm": timed(client, repeat),
        "kbench cold": timed(cold),
        "kbench warm": timed(warm, repeat),
        "kbench mapped": timed(mapped, repeat),
    }


def main():
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=3, help="of the warm loads")
    repeat = parser.parse_args().repeat
    if not MIRROR.exists():
        print(f"needs the mirror of OpenML at {MIRROR}")
        return
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("openml_mirror", MIRROR)
    module = importlib.util.module_from_spec(spec)
    sys.modules["openml_mirror"] = module
    spec.loader.exec_module(module)
    warnings.simplefilter("ignore")
    print(f"{'dataset':18} {'step':14} {'wall s':>9} {'CPU s':>9}   client / kbench (CPU)")
    os.environ["OPENML_SKIP_PARQUET"] = "true"
    for data_id, name in DATASETS.items():
        with tempfile.TemporaryDirectory() as folder, module.Mirror() as server:
            found = measure(data_id, server.url, Path(folder), repeat)
        for step, (wall, cpu) in found.items():
            other = found.get(step.replace("kbench", "client").replace("mapped", "warm"))
            ratio = f"{other[1] / max(cpu, 1e-6):,.1f}" if step.startswith("kbench") else ""
            print(f"{name:18} {step:14} {wall:9.3f} {cpu:9.3f}   {ratio}", flush=True)


if __name__ == "__main__":
    main()
