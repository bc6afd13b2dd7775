"""Speed and memory of the Balcan maps and of Balanced Winnow, as ratios.

Run as ``python tests/benchmarks/bench_balcan.py [--quick]``; one BLAS thread. Prints the
median processor times of both sides, interleaved, and their ratio; and how much memory a
transform takes beyond its output.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import threading
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Perceptron
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from kbench.kernels import Gaussian, Polynomial
from kbench_balcan import BalcanF2
from kbench_learners import BalancedWinnow, KernelSVM

BANDWIDTH = 4.0


def compare(name, ours, theirs, repeats=5):
    """Time two functions in turn; print medians and the ratio."""
    ours(), theirs()
    times = ([], [])
    for _ in range(repeats):
        for side, function in zip(times, (ours, theirs), strict=True):
            start = time.process_time()
            function()
            side.append(time.process_time() - start)
    left, right = map(statistics.median, times)
    ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
    print(f"{name:58s} {left * 1e3:9.1f} ms {right * 1e3:9.1f} ms   ratio {ratio:5.2f}", flush=True)


def maps(n):
    """Compare F2 with scikit-learn's Nystroem: same kernel, same landmarks."""
    X = np.random.default_rng(0).normal(size=(n, 20))
    kernels = [
        (Gaussian(BANDWIDTH), {"kernel": "rbf", "gamma": 0.5 / BANDWIDTH**2}),
        (Polynomial(3), {"kernel": "poly", "degree": 3, "coef0": 1, "gamma": 1.0}),
    ]
    for kernel, params in kernels:
        f2 = BalcanF2(kernel, n_landmarks=300, random_state=0)
        nystroem = Nystroem(n_components=300, random_state=0, **params)
        name = type(kernel).__name__
        compare(
            f"F2 / Nystroem, {name}: fit, n = {n:,}", partial(f2.fit, X), partial(nystroem.fit, X)
        )
        assert (f2.landmark_rows_ == nystroem.component_indices_).all()
        compare(
            f"F2 / Nystroem, {name}: transform",
            partial(f2.transform, X),
            partial(nystroem.transform, X),
        )


def winnow(n):
    """Compare passes of Balanced Winnow with passes of scikit-learn's Perceptron."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 100))
    w = rng.normal(size=100)
    for noise in (0.0, 0.05, 0.2):
        y = (X @ w > 0) ^ (rng.random(n) < noise)
        ours = BalancedWinnow(n_epochs=5, random_state=0)
        theirs = Perceptron(max_iter=5, tol=None, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compare(
                f"Winnow / Perceptron, 5 passes of {n:,} x 100, {noise:.0%} noise",
                partial(ours.fit, X, y),
                partial(theirs.fit, X, y),
                repeats=3,
            )
        print(f"{'':4s}mistakes per pass: {ours.n_mistakes_[0] / ours.n_epochs_:,.0f}")


def machines(n):
    """Compare the kernel SVM without bias with libsvm, which has one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    y = (np.sum(X[:, :3] ** 2, axis=1) > 2.4) ^ (rng.random(n) < 0.05)
    kernel = Gaussian(3.0)
    for C in (1.0, 100.0):
        compare(
            f"kernel SVM without bias / SVC, n = {n:,}, C = {C:g}",
            partial(KernelSVM(kernel, C=C, fit_intercept=False).fit, X, y),
            partial(SVC(C=C, gamma=1 / 18).fit, X, y),
            repeats=3,
        )


def resident_mib():
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _transform_in_a_process(n, n_components, queue):
    X = np.random.default_rng(0).normal(size=(n, 20))
    f2 = BalcanF2(Gaussian(BANDWIDTH), n_landmarks=n_components, random_state=0).fit(X[:10_000])
    f2.transform(X[:10_000])
    before, peak, done = resident_mib(), [0.0], threading.Event()

    def watch():
        while not done.wait(0.005):
            peak[0] = max(peak[0], resident_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    Z = f2.transform(X)
    done.set()
    watcher.join()
    queue.put((peak[0] - before, Z.nbytes / 2**20))


def memory(n):
    """Measure what a transform takes beyond its output."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_transform_in_a_process, args=(n, 300, queue))
    process.start()
    grown, output = queue.get()
    process.join()
    print(
        f"transform of {n:,} rows to 300 features: {grown:,.0f} MiB more at the peak, "
        f"{output:,.0f} MiB of them the output: {grown - output:,.0f} MiB beyond"
    )


def main():
    """Run all benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    scale = 10 if parser.parse_args().quick else 1
    with threadpool_limits(1):
        maps(100_000 // scale)
        winnow(100_000 // scale)
        machines(2_000 // scale)
    if sys.platform == "linux":
        memory(1_000_000 // scale)


if __name__ == "__main__":
    main()
