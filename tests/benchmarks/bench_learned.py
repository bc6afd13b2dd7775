"""Learned maps: against the same map without learning, and against tuned gradient boosting.

    python tests/benchmarks/bench_learned.py FOLDER sets --sets yacht,airfoil --splits 2
    python tests/benchmarks/bench_learned.py FOLDER planted
    python tests/benchmarks/bench_learned.py FOLDER time
    python tests/benchmarks/bench_learned.py FOLDER rfm --sets kin40k

FOLDER has the sets of the suite `gp-uci`. Inputs and targets are standardised on the training
part. The maps have D components and ridge regression, whose penalty is chosen on three folds.
Without learning the bandwidth factor is chosen on the folds too, and with learning by held-out
errors in the map's fit. Boosting draws random candidates of kbench's space, the default first,
until they have taken as many CPU seconds as the learned map. Times are CPU seconds.
"""

import argparse
import csv
import gzip
import itertools
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold

from kbench_baselines import RandomFourierFeatures
from kbench_learned import LearnedMetricMap, RecursiveFeatureMachineRegressor
from kbench_learners import PathRidge

SETS = (
    *("servo", "machine", "yacht", "autompg", "housing", "stock", "energy", "concrete"),
    *("airfoil", "wine", "gas", "skillcraft", "sml", "parkinsons", "pumadyn32nm"),
    *("elevators", "bike", "kin40k", "protein", "keggdirected"),
)
FACTORS = (0.25, 0.5, 1.0, 2.0)
ALPHAS = np.logspace(-6, 2, 17)
SPACE = {
    "learning_rate": [0.1, 0.03, 0.3],
    "max_leaf_nodes": [31, 7, 15, 63],
    "min_samples_leaf": [20, 5, 50],
    "l2_regularization": [0.0, 0.1, 1.0, 10.0],
}


def table(path):
    with gzip.open(path, "rt") as file:
        rows = csv.reader(file)
        next(rows)
        return np.array(list(rows), dtype=np.float64)


def parts(folder, name, split, most):
    """Standardised training and test part of a split, of at most so many training rows."""
    data, splits = (table(folder / name / f"{kind}.csv.gz") for kind in ("data", "splits"))
    test = splits[:, split] > 0
    train = np.random.default_rng(0).permutation(np.flatnonzero(~test))[:most]
    X, y = data[:, :-1], data[:, -1]
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    y = (y - y[train].mean()) / y[train].std()
    return X[train], y[train], X[test], y[test]


def inner_errors(Z, y):
    """Mean squared errors of each penalty over three folds."""
    errors = np.zeros(len(ALPHAS))
    for train, test in KFold(3, shuffle=True, random_state=0).split(Z):
        for i, model in enumerate(PathRidge().fit_path(Z[train], y[train], ALPHAS)):
            errors[i] += np.sum((model.predict(Z[test]) - y[test]) ** 2)
    return errors / len(y)


def with_ridge(fitted, X, y, X_test, y_test):
    """Inner error and test rmse of a fitted map with ridge regression."""
    Z = fitted.transform(X)
    errors = inner_errors(Z, y)
    model = PathRidge(alpha=ALPHAS[errors.argmin()]).fit(Z, y)
    return errors.min(), rmse(model.predict(fitted.transform(X_test)), y_test)


def rmse(predicted, y):
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def plain(D, part):
    maps = (RandomFourierFeatures(D, bandwidth_factor=f, random_state=0) for f in FACTORS)
    return min(with_ridge(each.fit(part[0]), *part) for each in maps)[1]


def learned(D, part):
    base = RandomFourierFeatures(D)
    fitted = LearnedMetricMap(base, bandwidth_factor=FACTORS, random_state=0).fit(*part[:2])
    how = f"{fitted.form_} x{fitted.factor_} round {fitted.round_}"
    return with_ridge(fitted, *part)[1], how


def boosting(part, seconds):
    """Return the test rmse of the best candidate on three folds, and how many there were."""
    X, y, X_test, y_test = part
    every = list(itertools.product(*SPACE.values()))
    order = [0, *(1 + np.random.default_rng(0).permutation(len(every) - 1))]
    start, best, count = time.process_time(), (np.inf, None), 0
    for number in order:
        options = dict(zip(SPACE, every[number], strict=True))
        stops = len(y) >= 500
        model = HistGradientBoostingRegressor(
            max_iter=500, early_stopping=stops, random_state=0, **options
        )
        error = 0.0
        for train, test in KFold(3, shuffle=True, random_state=0).split(X):
            error += np.sum((model.fit(X[train], y[train]).predict(X[test]) - y[test]) ** 2)
        best = min(best, (error, number))
        count += 1
        if time.process_time() - start > seconds:
            break
    options = dict(zip(SPACE, every[best[1]], strict=True))
    model = HistGradientBoostingRegressor(
        max_iter=500, early_stopping=stops, random_state=0, **options
    )
    return rmse(model.fit(X, y).predict(X_test), y_test), count


def compare_sets(options):
    for name in options.sets.split(","):
        for split in range(options.first, options.first + options.splits):
            part = parts(options.folder, name, split, options.rows)
            start = time.process_time()
            without = plain(options.components, part)
            middle = time.process_time()
            with_learning, how = learned(options.components, part)
            seconds = time.process_time() - middle
            trees, count = boosting(part, seconds) if options.boosting else (np.nan, 0)
            print(
                f"{name},{split},{len(part[1])},{without:.4f},{with_learning:.4f},{trees:.4f},"
                f"{middle - start:.1f},{seconds:.1f},{count},{how}",
                flush=True,
            )


def planted(options):
    """A function of degree 2 of k directions of d, with noise: angles, and the oracle's error."""
    dimensions = (options.dimension,) if options.dimension else (20, 100)
    for d, k, form in itertools.product(dimensions, (1, 3), ("full", "low_rank")):
        rng = np.random.default_rng(0)
        n = 100 * d
        directions = np.linalg.qr(rng.standard_normal((d, k)))[0]
        X, X_test = rng.standard_normal((n, d)), rng.standard_normal((2000, d))

        def signal(X, directions=directions):
            U = X @ directions
            return (U + 0.5 * U**2).sum(axis=1)

        deviation = signal(X).std()
        y, y_test = signal(X) / deviation, signal(X_test) / deviation
        y = y + 0.1 * rng.standard_normal(n)
        base = RandomFourierFeatures(options.components, bandwidth_factor=2.0)
        fitted = LearnedMetricMap(base, metric=form, rank=k, random_state=0).fit(X, y)
        vectors = np.linalg.eigh(fitted.metric_)[1][:, -k:]
        cosines = np.linalg.svd(directions.T @ vectors, compute_uv=False)
        oracle = RandomFourierFeatures(
            options.components, bandwidth_factor=2.0, random_state=0
        ).fit(X @ directions)
        best = with_ridge(oracle, X @ directions, y, X_test @ directions, y_test)[1]
        own = with_ridge(fitted, X, y, X_test, y_test)[1]
        angle = np.degrees(np.arccos(min(1.0, cosines.min())))
        print(
            f"d {d}, k {k}, n {n}, {form}: angle {angle:.2f} degrees, rmse {own:.4f}, "
            f"oracle {best:.4f}, round {fitted.round_}, errors {fitted.errors_.round(3)}",
            flush=True,
        )


def times(options):
    rng, seconds = np.random.default_rng(0), []
    rows = [10_000, 31_623, 100_000, 316_228, 1_000_000]
    rows = [n for n in rows if n <= options.rows]
    for n in rows:
        X = rng.standard_normal((n, 10))
        y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
        base = RandomFourierFeatures(options.components)
        learner = LearnedMetricMap(base, metric="full", rounds=2, random_state=0)
        start = time.process_time()
        learner.fit(X, y)
        seconds.append(time.process_time() - start)
        print(f"{n} rows: {seconds[-1]:.1f} CPU s, round {learner.round_}", flush=True)
    print(f"exponent {np.polyfit(np.log(rows), np.log(seconds), 1)[0]:.3f}")


def against_exact(options):
    """The exact machine with the Gaussian kernel, whose form and bandwidth are given."""
    for name in options.sets.split(","):
        part = parts(options.folder, name, options.first, options.rows)
        base = RandomFourierFeatures(options.components)
        approximate = LearnedMetricMap(base, metric="full", rounds=5, random_state=0)
        start = time.process_time()
        error = with_ridge(approximate.fit(*part[:2]), *part)[1]
        middle = time.process_time()
        exact = RecursiveFeatureMachineRegressor("gaussian", metric="full", rounds=5)
        predicted = exact.fit(*part[:2]).predict(part[2])
        end = time.process_time()
        deviation = np.std((predicted - part[3]) ** 2) / np.sqrt(len(part[3]))
        best = rmse(predicted, part[3])
        print(
            f"{name}, {len(part[1])} rows: learned {error:.4f} in {middle - start:.1f} CPU s; "
            f"exact {best:.4f} +- {deviation / (2 * best):.4f} in {end - middle:.1f} CPU s",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("what", choices=("sets", "planted", "time", "rfm"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--components", type=int, default=500)
    parser.add_argument("--dimension", type=int, default=0, help="of planted problems, if one")
    parser.add_argument("--boosting", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    what = {"sets": compare_sets, "planted": planted, "time": times, "rfm": against_exact}
    what[options.what](options)


if __name__ == "__main__":
    main()
