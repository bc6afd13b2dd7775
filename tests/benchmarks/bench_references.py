"""CPU time of the reference learners relative to scikit-learn's own, in one run, one thread.

    python tests/benchmarks/bench_references.py PART [--folder FOLDER]

Parts, each of them at most 2 minutes on a quiet core: svm, logistic, cvm. Digits are
scikit-learn's; other data are OpenML's, fetched, or read from ``FOLDER/<id>.arff.gz``, and
what cannot be had is left out. Every figure is a median of CPU seconds over several turns,
and every ratio is ours over theirs: below 1, ours is faster.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from bench_linear_svm import IDS, openml
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from turns import medians

from kbench.kernels import Gaussian, median_distance
from kbench_learners import CoreVectorMachine, KernelSVM, LogisticClassifier

CS = [2.0**-3, 1.0, 2.0**3, 2.0**11]


def samples(folder, n_rows=2000):
    """Yield names, training rows and labels, and test rows."""
    X, y = load_digits(return_X_y=True)
    sets = {"digits": (X / 16.0, y)}
    sets |= {name: openml(name, folder) for name in IDS}
    for name, data in sets.items():
        if data is not None:
            X, y = data
            rows = np.random.default_rng(0).permutation(len(y))
            n_train = min(n_rows, len(y) // 2)
            train, test = rows[:n_train], rows[n_train : 2 * n_train]
            yield name, X[train], y[train], X[test]


def told(times, theirs):
    """Describe times and their ratios to one of them."""
    return "  ".join(
        f"{name} {seconds:6.3f} ({seconds / times[theirs]:4.2f})" for name, seconds in times.items()
    )


def bench_svm(folder):
    """One fit, a path of C and a prediction of `KernelSVM`, against `SVC` at its tolerance."""
    for name, X, y, X_new in samples(folder):
        for factor in (0.25, 1.0):
            print(f"  {name:9} {len(y)} x {X.shape[1]:2}, {factor:4g} median", end="  ")
            kernel = Gaussian(factor * median_distance(X))
            svc = SVC(C=8.0, gamma=0.5 / kernel.bandwidth**2)
            _compare_svms(KernelSVM(kernel, C=8.0), svc, X, y, X_new)


def _compare_svms(svm, svc, X, y, X_new):
    fits = {"ours": lambda: svm.fit(X, y), "SVC": lambda: svc.fit(X, y)}
    print(f"fit {told(medians(fits, 5), 'SVC')}", end="  ")
    calls = {"ours": lambda: svm.predict(X_new), "SVC": lambda: svc.predict(X_new)}
    print(f"predict {told(medians(calls, 3), 'SVC')}", end="  ")
    print(f"agreeing {np.mean(svm.predict(X_new) == svc.predict(X_new)):.4f}", end="  ")
    paths = {
        "ours": lambda: svm.fit_path(X, y, CS),
        "SVC": lambda: [svc.set_params(C=C).fit(X, y) for C in CS],
    }
    print(f"path {told(medians(paths, 3), 'SVC')}", flush=True)


def bench_logistic(folder):
    """`LogisticClassifier` against both solvers, at the same tolerance."""
    for name, X, y, _ in samples(folder):
        embedding = Nystroem(gamma=2.0 / median_distance(X) ** 2, n_components=100, random_state=0)
        for Z in (X, embedding.fit_transform(X)):
            for codes in (y, y % 2):
                n_classes = len(np.unique(codes))
                if Z.shape[1] * n_classes <= 1000:  # beyond, newton-cholesky takes seconds
                    title = f"{name:9} {Z.shape[1]:3} columns, {n_classes:2} classes"
                    _compare_solvers(title, Z, codes)


def _compare_solvers(title, Z, y):
    solvers = ("newton-cholesky", "lbfgs")
    for C in (2.0**-3, 2.0**3, 2.0**11):
        fits = {"ours": LogisticClassifier(C=C)}
        for solver in solvers:
            fits[solver] = LogisticRegression(C=C, solver=solver, tol=1e-6, max_iter=2000)
        calls = {each: (lambda fit=fit: fit.fit(Z, y)) for each, fit in fits.items()}
        times = medians(calls, 1)
        best = min(solvers, key=times.get)
        print(f"  {title}, C = {C:5g}: {told(times, best)}", flush=True)


def bench_cvm(folder):
    """`CoreVectorMachine`, another problem than the SVM's, against `SVC`."""
    for name, X, y, _ in samples(folder):
        for factor in (0.25, 1.0):
            kernel = Gaussian(factor * median_distance(X))
            for C in (2.0, 2.0**6, 2.0**10):
                machine = CoreVectorMachine(C=C, kernel=kernel)
                svc = SVC(C=C, gamma=0.5 / kernel.bandwidth**2)
                pair = {"ours": machine, "SVC": svc}
                calls = {
                    title: (lambda fit=fit, X=X, y=y: fit.fit(X, y)) for title, fit in pair.items()
                }
                print(
                    f"  {name:9} {factor:4g} median, C = {C:4g}: {told(medians(calls, 1), 'SVC')}"
                    f"  core sets of {machine.core_sizes_.mean():.0f} rows",
                    flush=True,
                )


PARTS = {"svm": bench_svm, "logistic": bench_logistic, "cvm": bench_cvm}


def main():
    """Run the parts named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="all of them by default")
    parser.add_argument("--folder", help="folder with <id>.arff.gz of OpenML")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}: one of {', '.join(PARTS)}")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in options.parts or PARTS:
            print(PARTS[part].__doc__.splitlines()[0])
            PARTS[part](options.folder)


if __name__ == "__main__":
    main()
