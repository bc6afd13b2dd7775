"""Ratios of the linear learners to scikit-learn's, in one run with one thread.

    python tests/benchmarks/bench_linear_svm.py [--folder FOLDER] [--only NAME] [PART ...]

Parts: path, search, large, linear, machine (all by default). `search` and
`machine` use segment, satimage and letter from OpenML, fetched, or read from
``FOLDER/<id>.arff.gz``; data that cannot be had are left out. Every figure is a
median or a single long run, and every ratio is theirs over ours: above 1, ours
is faster.
"""

from __future__ import annotations

import argparse
import gzip
import io
import statistics
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import fetch_openml, load_digits
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from kbench.kernels import Gaussian
from kbench_learners import CoreVectorMachine, LinearSVM

IDS = {"segment": 36, "satimage": 182, "letter": 6}
CS = [2.0**e for e in range(-5, 16, 2)]


def timed(function, repeats=1):
    """Return the median CPU time and the last result."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return statistics.median(times), result


def openml(name, folder):
    """Return inputs in [0, 1] and labels, or None where they cannot be had."""
    try:
        if folder is None:
            X, y = fetch_openml(data_id=IDS[name], return_X_y=True, as_frame=False)
        else:
            from scipy.io import arff

            text = gzip.decompress((Path(folder) / f"{IDS[name]}.arff.gz").read_bytes()).decode()
            table, _ = arff.loadarff(io.StringIO(text))
            X = np.column_stack([table[each] for each in table.dtype.names[:-1]])
            y = table[table.dtype.names[-1]]
            if name == "letter" and not np.issubdtype(X.dtype, np.number):
                X, y = np.column_stack([table[n] for n in table.dtype.names[1:]]), table["class"]
    except OSError as error:
        print(f"  {name}: left out ({error})")
        return None
    codes = np.unique(y, return_inverse=True)[1]
    return MinMaxScaler().fit_transform(np.asarray(X, dtype=float)), codes


def objective(fitted, X, y, C):
    """Sum of the one-vs-rest objectives of the squared hinge."""
    classes = fitted.classes_[-len(fitted.coef_) :]
    total = 0.0
    for w, b, k in zip(fitted.coef_, fitted.intercept_, classes, strict=True):
        m = np.where(y == k, 1.0, -1.0) * (X @ w + b)
        total += 0.5 * (w @ w + b * b) + C * np.sum(np.maximum(0.0, 1.0 - m) ** 2)
    return total


def bench_path():
    """Four values of C on digits: features of small problems."""
    print("path of 4 values of C, digits (1,200 rows, 10 classes)")
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:1200]
    X, y = X[rows] / 16.0, y[rows]
    rff = RBFSampler(gamma=0.2, n_components=300, random_state=0)
    values = [2.0**-5, 2.0**-1, 2.0**3, 2.0**8]
    for name, Z in (
        ("identity, 64 columns", X),
        ("rff, 300 columns", rff.fit_transform(X)),
        ("polynomial, 2,145 columns", PolynomialFeatures(2).fit_transform(X)),
    ):
        ovr = LinearSVM(multiclass="ovr")
        ours, path = timed(lambda Z=Z, ovr=ovr: ovr.fit_path(Z, y, values), 3)
        pairs, _ = timed(lambda Z=Z: LinearSVM(multiclass="ovo").fit_path(Z, y, values), 3)

        def liblinear(Z=Z):
            return [LinearSVC(C=C, dual=False, tol=1e-4).fit(Z, y) for C in values]

        theirs, fits = timed(liblinear)
        excess = max(
            objective(a, Z, y, C) / objective(b, Z, y, C) - 1.0
            for a, b, C in zip(path, fits, values, strict=True)
        )
        print(
            f"  {name:26} ours {ours:6.3f} s (ovo {pairs:6.3f} s)  "
            f"LinearSVC(dual=False) {theirs:6.2f} s  ratio {theirs / ours:5.1f}  "
            f"objective at most {excess:+.0e} above theirs"
        )


def bench_search(folder, only=None):
    """Search over bandwidth and C, against GridSearchCV over a pipeline."""
    print("search: 3 bandwidths x 11 values of C, 5 folds, 300 components")
    for name, n_rows in (("segment", 700), ("satimage", 700), ("letter", 1000)):
        data = openml(name, folder) if only in (None, name) else None
        if data is None:
            continue
        X, y = data
        rows, _ = next(
            StratifiedShuffleSplit(1, train_size=n_rows, test_size=0.5, random_state=0).split(X, y)
        )
        X, y = X[rows], y[rows]
        median = float(np.median(euclidean_distances(X[:500])))
        gammas = [0.5 * (factor / median) ** 2 for factor in (1.0, 2.0, 4.0)]
        for make in (RBFSampler, Nystroem):
            folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
            lines = {}
            for scheme in ("ovr", "ovo"):
                seconds, (scores, converged) = timed(
                    lambda make=make, scheme=scheme, f=folds, g=gammas, X=X, y=y: _our_search(
                        make, g, X, y, f, LinearSVM(multiclass=scheme, tol=1e-4)
                    )
                )
                lines[scheme] = seconds, *_best(scores), converged
            pipeline = make_pipeline(
                make(n_components=300, random_state=0), LinearSVC(dual="auto", tol=1e-4)
            )
            step = pipeline.steps[0][0]
            grid = {f"{step}__gamma": gammas, "linearsvc__C": CS}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs, search = timed(
                    lambda p=pipeline, grid=grid, f=folds, X=X, y=y: GridSearchCV(
                        p, grid, cv=f, refit=False
                    ).fit(X, y)
                )
            score = search.best_score_
            print(
                f"  {name:9} {make.__name__:11} GridSearchCV {theirs:7.2f} s, score {score:.4f}",
                flush=True,
            )
            for scheme, (seconds, best, error, converged) in lines.items():
                print(
                    f"{'':22} ours, {scheme}  {seconds:7.2f} s, score {best:.4f} "
                    f"(se {error:.4f})  ratio {theirs / seconds:5.1f}  converged {converged:.0%}"
                )


def _our_search(make, gammas, X, y, folds, learner):
    """Embed once for each fold and bandwidth, then follow the path of C."""
    scores = np.zeros((len(gammas), len(CS), len(folds)))
    converged = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for g, gamma in enumerate(gammas):
            for f, (train, test) in enumerate(folds):
                embed = make(gamma=gamma, n_components=300, random_state=0).fit(X[train])
                path = learner.fit_path(embed.transform(X[train]), y[train], CS)
                Z = embed.transform(X[test])
                scores[g, :, f] = [fitted.score(Z, y[test]) for fitted in path]
                converged += [fitted.converged_ for fitted in path]
    return scores, np.mean(converged)


def _best(scores):
    means = scores.mean(axis=2)
    place = np.unravel_index(means.argmax(), means.shape)
    return means[place], scores[place].std(ddof=1) / np.sqrt(scores.shape[2])


def _large_dense(n, p=300, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 10))
    y = np.sin(2.0 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + 0.3 * rng.normal(size=n) > 0
    X = np.cos(Z @ (0.5 * rng.normal(size=(10, p))) + rng.uniform(0, 2 * np.pi, p))
    X *= np.sqrt(2.0 / p)
    return X, y.astype(int)


def _large_sparse(n, p=5000, per_row=17, seed=0):
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, p, size=(n, per_row), dtype=np.int32)
    weights = rng.dirichlet(np.ones(per_row), size=n)
    pointers = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    X = sp.csr_matrix((weights.ravel(), columns.ravel(), pointers), shape=(n, p))
    X.sum_duplicates()
    y = X @ rng.normal(size=p) + 0.05 * rng.normal(size=n) > 0
    return X, y.astype(int)


def bench_large(n=100_000):
    """One fit of many rows, against liblinear at an equal objective."""
    print(f"one fit, {n:,} rows, two classes; theirs at an objective within 1e-4 of ours")
    for name, (X, y) in (("dense x 300", _large_dense(n)), ("sparse x 5,000", _large_sparse(n))):
        for C in (1.0, 64.0):
            ours, fitted = timed(lambda X=X, y=y, C=C: LinearSVM(C=C, tol=1e-5).fit(X, y))
            reached = objective(fitted, X, y, C)
            found = {}
            for solver, dual, tolerances in (
                ("primal", False, (1e-2, 1e-3, 1e-4, 1e-5)),
                ("dual", True, (1e-1, 1e-2)),
            ):
                for tol in tolerances:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        seconds, svc = timed(
                            lambda X=X, y=y, C=C, dual=dual, tol=tol: LinearSVC(
                                C=C, dual=dual, tol=tol, max_iter=300
                            ).fit(X, y)
                        )
                    if objective(svc, X, y, C) <= reached * (1 + 1e-4):
                        found[solver] = seconds
                        break
            best = min(found, key=found.get)
            print(
                f"  {name:15} C={C:<4g} ours {ours:5.2f} s (gap {fitted.gap_:.0e})  fastest "
                f"LinearSVC ({best}) {found[best]:6.2f} s  ratio {found[best] / ours:5.1f}"
            )


def bench_linear():
    """Time and memory against the number of rows."""
    print("time and memory by rows, dense x 300, C = 1")
    first = None
    for n in (25_000, 50_000, 100_000, 200_000):
        X, y = _large_dense(n)
        seconds, _ = timed(lambda X=X, y=y: LinearSVM().fit(X, y))
        first = first or seconds / n
        tracemalloc.start()
        LinearSVM().fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(
            f"  {n:7,} rows {seconds:5.2f} s  time per row, relative {seconds / n / first:4.2f}  "
            f"peak beyond the input {peak / X.nbytes:5.3f} of the input, "
            f"{peak / (8 * 301**2):4.1f} Gram matrices"
        )


def bench_machine(folder):
    """The core vector machine beside an exact one and Nystroem, letter odd/even."""
    data = openml("letter", folder)
    if data is None:
        return
    X, y = data
    y = y % 2
    rows = np.random.default_rng(0).permutation(len(y))
    train, test = rows[:6000], rows[-6000:]
    print("letter, odd against even letters, 6,000 rows, Gaussian kernel, bandwidth 0.25, C = 10")
    for tol in (1e-3, 1e-4, 1e-6):
        machine = CoreVectorMachine(C=10.0, kernel=Gaussian(0.25), tol=tol)
        seconds, machine = timed(lambda machine=machine: machine.fit(X[train], y[train]))
        print(
            f"  core vector machine, tol {tol:g}: {seconds:5.1f} s, accuracy "
            f"{machine.score(X[test], y[test]):.4f}, {machine.core_sizes_[0]} core vectors, "
            f"gap {machine.gap_:.0e}"
        )
    seconds, svc = timed(lambda: SVC(C=10.0, gamma=8.0).fit(X[train], y[train]))
    print(
        f"  SVC: {seconds:5.1f} s, accuracy {svc.score(X[test], y[test]):.4f}, "
        f"{svc.n_support_.sum()} support vectors"
    )
    linear = make_pipeline(Nystroem(gamma=8.0, n_components=300, random_state=0), LinearSVM(C=10.0))
    seconds, linear = timed(lambda: linear.fit(X[train], y[train]))
    print(f"  Nystroem(300): {seconds:5.1f} s, accuracy {linear.score(X[test], y[test]):.4f}")


def main():
    """Run the parts named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--folder", help="folder with <id>.arff.gz of OpenML")
    parser.add_argument("--only", choices=IDS, help="the one data set of the search")
    options = parser.parse_args()
    parts = {
        "path": bench_path,
        "search": lambda: bench_search(options.folder, options.only),
        "large": bench_large,
        "linear": bench_linear,
        "machine": lambda: bench_machine(options.folder),
    }
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}: one of {', '.join(parts)}")
    with threadpool_limits(1):
        for part in options.parts or parts:
            parts[part]()


if __name__ == "__main__":
    main()
