"""What a process of its own costs: time of `Sandbox.run` beyond the task's.

Beside it stands what the system takes to fork a process with the same modules and
to end the child, which is the limit.

Run as a script, on a quiet machine::

    python tests/benchmarks/bench_sandbox.py
"""

import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from threadpoolctl import threadpool_limits  # noqa: E402

from kbench.execution.sandbox import Sandbox  # noqa: E402

ME = Path(__file__).stem
N_CALLS = 100


def nothing(_):
    return None


def fit(_):
    """Return the median CPU seconds of a small fit, after one untimed pass."""
    import numpy as np
    from sklearn.linear_model import RidgeClassifier

    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 50))
    y = rng.integers(0, 2, 500)
    times = []
    for _ in range(6):
        start = time.process_time()  # not disturbed by other processes
        RidgeClassifier().fit(X, y)
        times.append(time.process_time() - start)
    return statistics.median(times[1:])


def overhead(sandbox, megabytes=0):
    """Smallest and median milliseconds of a call that does nothing."""
    payload = "x" * (megabytes * 2**20)
    times = []
    for _ in range(N_CALLS if not megabytes else 20):
        start = time.perf_counter()
        outcome = sandbox.run(f"{ME}:nothing", payload, time_s=60, memory_mib=1024)
        times.append(1000 * (time.perf_counter() - start))
        assert outcome.status == "ok", outcome
    return f"{min(times):6.2f} {statistics.median(times):6.2f} ms"


def bare_fork(modules):
    """Median milliseconds from a fork of a process with these modules to the end of its child."""
    program = (
        "import gc, os, statistics, sys, time\n"
        "for name in sys.argv[1:]: __import__(name)\n"
        "gc.collect(); gc.freeze()\n"
        "times = []\n"
        f"for _ in range({N_CALLS}):\n"
        "    start = time.perf_counter()\n"
        "    if (pid := os.fork()) == 0: os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "    times.append(1000 * (time.perf_counter() - start))\n"
        "print(statistics.median(times))\n"
    )
    command = [sys.executable, "-c", program, *modules]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    sys.path.insert(0, str(Path(__file__).parent))
    for preload in ([], ["sklearn.linear_model", "sklearn.svm", "sklearn.model_selection"]):
        start = time.perf_counter()
        with Sandbox(preload=[*preload, ME]) as sandbox:
            sandbox.run(f"{ME}:nothing", None)
            first = time.perf_counter() - start
            print(f"preloaded {len(preload)} modules: first answer after {first:.2f} s")
            print(f"  a call, smallest and median   {overhead(sandbox)}")
            print(f"  of which fork and end alone   {bare_fork(preload):13.2f} ms")
            print(f"  with a payload of 1 MiB        {overhead(sandbox, 1)}")
            for n_slots in (1, 2, 4):
                with ThreadPoolExecutor(n_slots) as pool:
                    start = time.perf_counter()
                    calls = range(N_CALLS)
                    list(pool.map(lambda _: sandbox.run(f"{ME}:nothing", None), calls))
                    each = 1000 * (time.perf_counter() - start) / N_CALLS
                print(f"  {n_slots} at a time, mean per call   {each:8.2f} ms")
    with Sandbox(preload=["sklearn.linear_model", ME]) as sandbox:
        inside = statistics.median(sandbox.run(f"{ME}:fit", None).value for _ in range(20))
    with threadpool_limits(1):
        here = statistics.median(fit(None) for _ in range(20))
    print(f"CPU time of a small fit: sandbox / warm process = {inside / here:.3f}")


if __name__ == "__main__":
    main()
