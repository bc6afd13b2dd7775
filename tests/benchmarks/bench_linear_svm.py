"""Ratios of the linear learners to scikit-learn's, in one run with one thread.

    python tests/benchmarks/bench_linear_svm.py PART [--folder FOLDER] [--only NAME] [--map NAME]

Parts, each of them at most 3 minutes on a quiet core: path, search (with
``--only`` and ``--map``: one data set and map), racing, large, logistic, rows, schemes,
machine. Data are OpenML's, fetched, or read from ``FOLDER/<id>.arff.gz``; what
cannot be had is left out. Every figure is a median or a single long run of CPU
seconds, and every ratio is theirs over ours: above 1, ours is faster.
"""

from __future__ import annotations

import argparse
import gzip
import io
import re
import statistics
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import fetch_openml, load_digits
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from kbench import Protocol
from kbench.evaluation.embedding import Data, Fitting
from kbench.evaluation.method import Method
from kbench.evaluation.search import search
from kbench.evaluation.specs import EstimatorSpec
from kbench.kernels import Gaussian
from kbench_baselines import Identity, NystroemMap
from kbench_learners import CoreVectorMachine, KernelSVM, LinearSVM, LogisticClassifier
from kbench_nbcs import NestedBarycentricMap

IDS = {"segment": 36, "satimage": 182, "letter": 6, "pendigits": 32, "vowel": 307}
SEARCHED = {"segment": 700, "satimage": 700, "letter": 1000}
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
            # scipy takes the blank before a nominal value for a part of it
            table, _ = arff.loadarff(io.StringIO(re.sub(r", +", ",", text)))
            labels = "class" if "class" in table.dtype.names else table.dtype.names[-1]
            X = np.column_stack(
                [
                    table[each]
                    for each in table.dtype.names
                    if each != labels and np.issubdtype(table[each].dtype, np.number)
                ]
            )
            y = table[labels]
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


def _maps(X):
    """Maps of the papers' searches, each with its parameter and values."""
    median = float(np.median(euclidean_distances(X[:500])))
    gammas = [0.5 * (factor / median) ** 2 for factor in (1.0, 2.0, 4.0)]
    corner = NestedBarycentricMap()
    return {
        "rff": (RBFSampler(n_components=300, random_state=0), "gamma", gammas),
        "nystroem": (Nystroem(n_components=300, random_state=0), "gamma", gammas),
        "nbcs": (corner, "depth", [2, 3, 4, 5]),
    }


def bench_search(folder, only=None, which=None):
    """Search over the map's parameter and C, against GridSearchCV over a pipeline."""
    print("search: 11 values of C, 5 folds, and 3 bandwidths of 300 components or depth 2 to 5")
    for name, n_rows in SEARCHED.items():
        data = openml(name, folder) if only in (None, name) else None
        if data is None:
            continue
        X, y = data
        rows, _ = next(
            StratifiedShuffleSplit(1, train_size=n_rows, test_size=0.5, random_state=0).split(X, y)
        )
        X, y = X[rows], y[rows]
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        for title, (embedding, parameter, values) in _maps(X).items():
            if which in (None, title):
                _compare_searches(name, title, embedding, parameter, values, X, y, folds)


def _compare_searches(name, title, embedding, parameter, values, X, y, folds):
    pairs = {
        "linear-svm": (LinearSVC(dual="auto", tol=1e-4), LinearSVM(tol=1e-4), ("ovr", "ovo")),
        "logistic": (
            LogisticRegression(max_iter=2000, tol=1e-4),
            LogisticClassifier(tol=1e-4),
            ("multinomial",),
        ),
    }
    for label, (peer, learner, schemes) in pairs.items():
        pipeline = make_pipeline(clone(embedding), peer)
        step, last = (name for name, _ in pipeline.steps)
        grid = {f"{step}__{parameter}": values, f"{last}__C": CS}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            searched = GridSearchCV(pipeline, grid, cv=folds, refit=False)
            theirs, found = timed(lambda searched=searched: searched.fit(X, y))
        score = found.best_score_
        print(f"  {name:9} {title:9} {label:10} GridSearchCV {theirs:7.2f} s, score {score:.4f}")
        for scheme in schemes:
            learner.set_params(multiclass=scheme)
            seconds, (scores, converged) = timed(
                lambda learner=learner: _our_search(
                    embedding, parameter, values, X, y, folds, learner
                )
            )
            best, error = _best(scores)
            print(
                f"{'':20} ours, {scheme} {seconds:7.2f} s, score {best:.4f}, "
                f"{(best - score) / error if error else 0.0:+.1f} se  "
                f"ratio {theirs / seconds:5.1f}  converged {converged:.0%}",
                flush=True,
            )


def _our_search(embedding, parameter, values, X, y, folds, learner):
    """Embed once for each fold and value of the map, then follow the path of C."""
    scores = np.zeros((len(values), len(CS), len(folds)))
    converged = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for v, value in enumerate(values):
            for f, (train, test) in enumerate(folds):
                embed = clone(embedding).set_params(**{parameter: value}).fit(X[train])
                path = learner.fit_path(embed.transform(X[train]), y[train], CS)
                Z = embed.transform(X[test])
                scores[v, :, f] = [fitted.score(Z, y[test]) for fitted in path]
                converged += [fitted.converged_ for fitted in path]
    return scores, np.mean(converged)


def _best(scores):
    means = scores.mean(axis=2)
    place = np.unravel_index(means.argmax(), means.shape)
    return means[place], scores[place].std(ddof=1) / np.sqrt(scores.shape[2])


def bench_racing(folder, only=None):
    """A race against the whole grid, with a path and without."""
    print("racing: kernel-svm, 5 bandwidths x 6 values of C; nystroem, 4 bandwidths x 11, 3 folds")
    for name in ("segment", "satimage"):
        data = openml(name, folder) if only in (None, name) else None
        if data is None:
            continue
        X, y = data
        rows, _ = next(
            StratifiedShuffleSplit(1, train_size=1500, test_size=0.3, random_state=0).split(X, y)
        )
        part = Data(X[rows], y[rows])
        bandwidths = tuple(Gaussian(bandwidth_factor=b) for b in (0.125, 0.25, 0.5, 1, 2))
        space = {"kernel": bandwidths, "C": tuple(2.0**e for e in (-1, 1, 3, 5, 7, 11))}
        methods = {
            "kernel-svm": (EstimatorSpec(Identity), EstimatorSpec(KernelSVM, {}, space)),
            "nystroem": (
                EstimatorSpec(NystroemMap, {}, {"bandwidth_factor": (1.0, 0.25, 0.5, 2.0)}),
                EstimatorSpec(LinearSVM, {"tol": 1e-4}, {"C": tuple(CS)}, path="C"),
            ),
        }
        for title, (feature_map, learner) in methods.items():
            found = {}
            for way in ("grid", "racing"):
                protocol = Protocol(scaling=("none",), search_method=way)
                found[way] = search(Fitting(Method(feature_map, learner), part, protocol, 0))
            grid, raced = found["grid"], found["racing"]
            scores = {repr(score.candidate.params): score for score in grid.scores}
            best, chosen = (scores[repr(each.best.params)] for each in (grid, raced))
            distance = (chosen.gain - best.gain) / best.standard_error if best.gain < 1 else 0.0
            print(
                f"  {name:9} {title:11} grid {grid.cpu_seconds:6.2f} s, score {best.gain:.4f}  "
                f"racing {raced.cpu_seconds:6.2f} s, score {chosen.gain:.4f} "
                f"({distance:+.1f} se)  ratio {grid.cpu_seconds / raced.cpu_seconds:4.1f}",
                flush=True,
            )


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


def _logistic_objective(fitted, X, y, C):
    m = np.where(y == 1, 1.0, -1.0) * (X @ fitted.coef_[0])
    return 0.5 * float(fitted.coef_[0] @ fitted.coef_[0]) + C * np.logaddexp(0.0, -m).sum()


def bench_logistic(n=100_000):
    """One logistic fit of many rows, against every solver of LogisticRegression."""
    print(f"one logistic fit, {n:,} rows, no intercept; theirs at an objective within 1e-4 of ours")
    solvers = {
        "dense x 300": ("newton-cholesky", "lbfgs", "newton-cg"),
        "sparse x 5,000": ("liblinear", "lbfgs", "newton-cg"),
    }
    for name, (X, y) in (("dense x 300", _large_dense(n)), ("sparse x 5,000", _large_sparse(n))):
        ours, fitted = timed(
            lambda X=X, y=y: LinearSVM(loss="logistic", tol=1e-5, fit_intercept=False).fit(X, y)
        )
        reached = _logistic_objective(fitted, X, y, 1.0)
        found = {}
        for solver in solvers[name]:
            for tol in (1e-1, 1e-2, 1e-3, 1e-4):
                model = LogisticRegression(
                    solver=solver, tol=tol, fit_intercept=False, max_iter=500
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    seconds, model = timed(lambda X=X, y=y, model=model: model.fit(X, y))
                if _logistic_objective(model, X, y, 1.0) <= reached * (1 + 1e-4):
                    found[solver] = seconds
                    break
        told = ", ".join(f"{solver} {seconds:.2f}" for solver, seconds in found.items())
        ratio = min(found.values()) / ours
        print(f"  {name:15} ours {ours:5.2f} s (gap {fitted.gap_:.0e})  {told}  ratio {ratio:5.1f}")


def bench_rows():
    """Time and memory against the number of rows."""
    gram = 8 * 301**2
    for name, make in (("dense x 300", _large_dense), ("sparse x 5,000", _large_sparse)):
        print(f"time and memory by rows, {name}, two classes, C = 1")
        first = None
        for n in (100_000, 200_000, 400_000):
            X, y = make(n)
            seconds, _ = timed(lambda X=X, y=y: LinearSVM().fit(X, y))
            first = first or seconds / n
            tracemalloc.start()
            LinearSVM().fit(X, y)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            size = (
                X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
            )
            beyond = (
                f"{(peak - 3 * gram) / (8 * n):4.1f} vectors of n beyond 3 Gram matrices"
                if name.startswith("dense")
                else f"{peak / (8 * n):4.1f} vectors of n"
            )
            print(
                f"  {n:7,} rows {seconds:5.2f} s  time per row, relative {seconds / n / first:4.2f}"
                f"  peak beyond the input {peak / size:5.3f} of it: {beyond}",
                flush=True,
            )
            del X, y


def bench_schemes(folder, only=None):
    """Accuracy and time of the multiclass schemes, C chosen by three folds."""
    print("multiclass schemes: test accuracy, C searched over 2^-3, 1, 2^3")
    values = [0.125, 1.0, 8.0]
    for name in ("letter", "pendigits", "satimage", "vowel"):
        data = openml(name, folder) if only in (None, name) else None
        if data is None:
            continue
        X, y = data
        n_train = min(1000, len(y) * 7 // 10)
        train, test = next(
            StratifiedShuffleSplit(
                1, train_size=n_train, test_size=min(3000, len(y) - n_train), random_state=0
            ).split(X, y)
        )
        embedding = Nystroem(
            gamma=2.0 / float(np.median(euclidean_distances(X[train[:500]]))) ** 2,
            n_components=300,
            random_state=0,
        ).fit(X[train])
        for title, Z in (("inputs", X), ("nystroem", embedding.transform(X))):
            told = []
            for scheme in ("ovr", "ovo"):
                learner = LinearSVM(multiclass=scheme, tol=1e-4)
                seconds, accuracy = timed(
                    lambda learner=learner, Z=Z, y=y, parts=(train, test): _chosen(
                        learner, values, Z, y, *parts
                    )
                )
                told.append(f"{scheme} {accuracy:.4f} ({seconds:.1f} s)")
            print(f"  {name:9} {title:8} {n_train} rows  " + "  ".join(told), flush=True)


def _chosen(learner, values, Z, y, train, test):
    folds = StratifiedKFold(3, shuffle=True, random_state=0).split(Z[train], y[train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = [
            [
                fitted.score(Z[train[there]], y[train[there]])
                for fitted in learner.fit_path(Z[train[here]], y[train[here]], values)
            ]
            for here, there in folds
        ]
        C = values[int(np.mean(scores, axis=0).argmax())]
        return clone(learner).set_params(C=C).fit(Z[train], y[train]).score(Z[test], y[test])


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
    parser.add_argument("parts", nargs="*", metavar="PART", help="all of them by default")
    parser.add_argument("--folder", help="folder with <id>.arff.gz of OpenML")
    parser.add_argument("--only", choices=IDS, help="one data set of search or schemes")
    parser.add_argument("--map", choices=("rff", "nystroem", "nbcs"), help="one map of search")
    options = parser.parse_args()
    parts = {
        "path": bench_path,
        "search": lambda: bench_search(options.folder, options.only, options.map),
        "racing": lambda: bench_racing(options.folder, options.only),
        "large": bench_large,
        "logistic": bench_logistic,
        "rows": bench_rows,
        "schemes": lambda: bench_schemes(options.folder, options.only),
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
