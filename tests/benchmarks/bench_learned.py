"""Learned maps: against the same map without learning, and against tuned gradient boosting.

    python tests/benchmarks/bench_learned.py FOLDER sets --results FILE --splits 10
    python tests/benchmarks/bench_learned.py FOLDER table --results FILE
    python tests/benchmarks/bench_learned.py FOLDER rule --sets servo,yacht,stock --splits 6
    python tests/benchmarks/bench_learned.py FOLDER planted
    python tests/benchmarks/bench_learned.py FOLDER time
    python tests/benchmarks/bench_learned.py FOLDER rfm --sets kin40k --rows 10000 --components 1000

FOLDER has the sets of the suite `gp-uci`. All times are CPU seconds.

`sets` evaluates the cells of the suite `learned-maps-regression` by kbench's own `evaluate_split`,
a map with and without learning, and gradient boosting. Boosting draws as many
candidates as take the CPU seconds of search and fit of the learned map, by the seconds of its
first two; it gets two at least. A finished line is kept in FILE and not computed again.
`table` prints ratios of errors: geometric means over the splits, and the upper ends of one-sided
95 % intervals of the corrected resampled t-test.

`rule` draws a fifth of the training rows of the first split as tests, as often as `--splits`
says, and prints what a learned map gains if a round must pass tests of different levels.

`planted`, `rule` and `rfm` choose the penalty of the ridge regression on three folds.
"""

import argparse
import csv
import gzip
import itertools
import math
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import stdtrit
from sklearn.base import clone
from sklearn.model_selection import KFold, train_test_split
from threadpoolctl import threadpool_limits

from kbench.api.inputs import select_suite
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method, learner_side, map_side
from kbench.execution.plugins import load_registry
from kbench.kernels import Laplace, Matern
from kbench.planning.cells import cells
from kbench.registry.callables import resolve
from kbench_baselines import MaternFourierFeatures, NystroemMap, RandomFourierFeatures
from kbench_learned import LearnedMetricMap, RecursiveFeatureMachineRegressor, _map, _metric
from kbench_learned._metric import Form
from kbench_learners import PathRidge

SETS = (
    *("servo", "machine", "yacht", "autompg", "housing", "stock", "energy", "concrete"),
    *("airfoil", "wine", "gas", "skillcraft", "sml", "parkinsons", "pumadyn32nm"),
    *("elevators", "bike", "kin40k", "protein", "keggdirected"),
)
ALPHAS = np.logspace(-6, 2, 17)


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


METHODS = ("plain", "learned", "boosting")


def compare_sets(options):
    registry = load_registry()
    suite = select_suite("learned-maps-regression", registry, data=str(options.folder))
    by_label = {}
    for cell in cells(suite, registry):
        by_label[cell.dataset.label, cell.feature_map.label, cell.learner.label] = cell
    done = lines(options.results)
    with options.results.open("a") as file:
        out = csv.writer(file)
        for name in options.sets.split(","):
            kept = {
                "plain": by_label[name, options.map, "ridge"],
                "learned": by_label[name, f"{options.map}-learned", "ridge"],
                "boosting": by_label[name, "identity", "gradient-boosting"],
            }
            missing = [
                (split, method)
                for split in range(options.first, options.first + options.splits)
                for method in METHODS
                if (name, split, method) not in done and (method != "boosting" or options.boosting)
            ]
            if not missing:
                continue
            source = registry.get("dataset", kept["plain"].dataset.name)
            data = resolve(source.load)(**kept["plain"].dataset.params)
            for split, method in missing:
                cell = kept[method]
                if method == "boosting":
                    seconds = done[name, split, "learned"]["seconds"]
                    line = boosted(data, split, cell, registry, seconds)
                else:
                    line = evaluated(data, split, with_components(cell, options), registry)
                done[name, split, method] = line
                out.writerow([name, split, method, *line.values()])
                file.flush()


def with_components(cell, options):
    """Return a cell with the number of features that was asked for, if one was."""
    if options.components is None:
        return cell
    params = {**cell.feature_map.params, "n_components": options.components}
    return replace(cell, feature_map=replace(cell.feature_map, params=params))


def evaluated(data, split, cell, registry):
    """Evaluate a cell on a split: the error, CPU seconds, candidates and what was learned."""
    method = Method(
        **map_side(cell.feature_map, registry), **learner_side(cell.learner, registry, data.task)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = evaluate_split(data, split, method, cell.protocol)
    metrics, details = found.metrics, found.details.map_details
    return {
        "rmse": metrics["rmse_standardized"],
        "seconds": metrics["search_time_cpu_s"] + metrics["fit_time_cpu_s"],
        "candidates": int(metrics["n_candidates"]),
        "how": f"{details['metric']} {details['round']}" if details.get("round") else "",
        "train": int(metrics["n_train"]),
        "test": int(metrics["n_test"]),
    }


def boosted(data, split, cell, registry, seconds):
    """Evaluate boosting with the number of candidates that takes so many seconds."""

    def tuned(n):
        protocol = replace(cell.protocol, n_candidates=n)
        return evaluated(data, split, replace(cell, protocol=protocol), registry)

    first = tuned(2)
    n = int(2 * seconds / first["seconds"])
    return tuned(min(n, 144)) if n > 2 else first


def lines(path):
    """Read the finished lines of a file, by set, split and method."""
    kinds = {"rmse": float, "seconds": float, "candidates": int, "how": str}
    kinds |= {"train": int, "test": int}
    found = {}
    if path.exists():
        for name, split, method, *values in csv.reader(path.open()):
            line = {k: kind(v) for (k, kind), v in zip(kinds.items(), values, strict=True)}
            found[name, int(split), method] = line
    return found


def compared(done, name, one, other):
    """Return geometric means of two methods, their ratio, its upper bound, and the splits."""
    splits = [k for k in range(10) if {(name, k, one), (name, k, other)} <= done.keys()]
    if not splits:
        return None
    errors = [np.array([done[name, k, m]["rmse"] for k in splits]) for m in (one, other)]
    logs = np.log(errors[0] / errors[1])
    line = done[name, splits[0], one]
    bound = math.nan
    if len(logs) > 1:
        spread = logs.std(ddof=1) * math.sqrt(1 / len(logs) + line["test"] / line["train"])
        bound = math.exp(logs.mean() + spread * stdtrit(len(logs) - 1, 0.95))
    means = [float(np.exp(np.log(each).mean())) for each in errors]
    return *means, math.exp(logs.mean()), bound, splits


def table_of(options):
    done, ratios = lines(options.results), []
    print(
        "| set | training rows | splits | without | learned | ratio | bound | learned on |", end=""
    )
    print(" boosting | ratio to it | splits | CPU s | CPU s of boosting |")
    for name in options.sets.split(","):
        found = compared(done, name, "learned", "plain")
        if found is None:
            continue
        learned, plain, ratio, bound, splits = found
        ratios.append(ratio)
        used = sum(bool(done[name, k, "learned"]["how"]) for k in splits)
        seconds = np.mean([done[name, k, "learned"]["seconds"] for k in splits])
        trees, rows = compared(done, name, "learned", "boosting"), done[name, splits[0], "plain"]
        print(
            f"| {name} | {rows['train']:,} | {len(splits)} | {plain:.3f} | {learned:.3f} "
            f"| {ratio:.3f} | {bound:.3f} | {used} |",
            end="",
        )
        if trees:
            spent = np.mean([done[name, k, "boosting"]["seconds"] for k in trees[4]])
            print(f" {trees[1]:.3f} | {trees[2]:.3f} | {len(trees[4])} |", end="")
        else:
            spent = math.nan
            print(" | | |", end="")
        print(f" {seconds:.1f} | {spent:.1f} |")
    print(f"geometric mean of {len(ratios)} ratios: {np.exp(np.log(ratios).mean()):.3f}")


def rules(options):
    """Errors over those without learning, if a gain must be larger than so many s.e."""
    levels = (0.0, 1.0, 1.28, 1.645, 2.0, 2.33)
    kernels = {
        "laplace": Laplace(),
        "matern 1/2": Matern(nu=0.5),
        "matern 3/2": Matern(nu=1.5),
    }
    total = {}
    for name, (label, kernel) in itertools.product(options.sets.split(","), kernels.items()):
        X, y, _, _ = parts(options.folder, name, 0, options.rows)
        ratios = {level: [] for level in levels}
        for draw in range(options.splits):
            fit, test, y_fit, y_test = train_test_split(X, y, test_size=0.2, random_state=draw)
            base = NystroemMap(options.components or 1000, kernel=kernel)
            found = by_level(base, draw, fit, y_fit, test, y_test, levels)
            for level, error in zip(levels, found, strict=True):
                ratios[level].append(error)
        for level, found in ratios.items():
            total.setdefault(level, []).append(found)
            mean, learned = np.exp(np.log(found).mean()), np.not_equal(found, 1.0).mean()
            print(
                f"{name}, {label}, {level} s.e.: mean {mean:.3f}, worst {max(found):.3f}, "
                f"learned {learned:.0%}",
                flush=True,
            )
    for level, several in total.items():
        flat = np.concatenate(several)
        print(
            f"all, {level} s.e.: mean {np.exp(np.log(flat).mean()):.3f}, worst {flat.max():.3f}, "
            f"95 % of {len(flat)} at most {np.quantile(flat, 0.95):.3f}"
        )


def by_level(base, seed, X, y, X_test, y_test, levels):
    """Return the error for each level over that without learning."""
    seen = {}

    def kept(*given):
        seen["given"] = given
        return choose(*given)

    choose = _metric.choose
    fitted = LearnedMetricMap(base, metric="diagonal", random_state=seed)
    _map.choose = kept
    fitted.fit(X, y)
    _map.choose = choose
    usual, errors, rounds = _metric._STANDARD_ERRORS, {}, []
    for level in levels:
        _metric._STANDARD_ERRORS = level
        rounds.append(choose(*seen["given"])[1])
    _metric._STANDARD_ERRORS = usual
    (found,), _ = seen["given"]
    varies = X.std(axis=0) > 0
    form = Form("diagonal", fitted.regularization, fitted.rank, varies, [])
    for number in {0, *rounds}:
        matrix = found.matrices[number]
        fitted.transform_ = form.final(matrix) if number else matrix
        fitted.base_map_ = clone(fitted.base_map_).fit((X - fitted.mean_) @ fitted.transform_)
        errors[number] = with_ridge(fitted, X, y, X_test, y_test)[1]
    return [errors[number] / errors[0] for number in rounds]


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
        base = RandomFourierFeatures(options.components or 300, bandwidth_factor=2.0)
        fitted = LearnedMetricMap(base, metric=form, rank=k, random_state=0).fit(X, y)
        vectors = np.linalg.eigh(fitted.metric_)[1][:, -k:]
        cosines = np.linalg.svd(directions.T @ vectors, compute_uv=False)
        oracle = RandomFourierFeatures(
            options.components or 300, bandwidth_factor=2.0, random_state=0
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
        base = RandomFourierFeatures(options.components or 300)
        learner = LearnedMetricMap(base, metric="full", rounds=2, random_state=0)
        start = time.process_time()
        learner.fit(X, y)
        seconds.append(time.process_time() - start)
        print(f"{n} rows: {seconds[-1]:.1f} CPU s, round {learner.round_}", flush=True)
    print(f"exponent {np.polyfit(np.log(rows), np.log(seconds), 1)[0]:.3f}")


def against_exact(options):
    """The exact machine beside explicit features of the same kernel, in a full metric."""
    features = {
        ("rff", "gaussian"): RandomFourierFeatures,
        ("rff", "matern-1/2"): partial(MaternFourierFeatures, nu=0.5),
        ("nystroem", "gaussian"): NystroemMap,
        ("nystroem", "matern-1/2"): partial(NystroemMap, kernel=Matern(nu=0.5)),
    }
    for name, kernel in itertools.product(options.sets.split(","), options.kernels.split(",")):
        part = parts(options.folder, name, options.first, options.rows)
        base = features[options.map, kernel](options.components or 300)
        approximate = LearnedMetricMap(base, metric="full", rounds=options.rounds, random_state=0)
        start = time.process_time()
        error = with_ridge(approximate.fit(*part[:2]), *part)[1]
        middle = time.process_time()
        print(
            f"{name}, {kernel}, {len(part[1])} rows: learned {error:.4f} in "
            f"{middle - start:.1f} CPU s, round {approximate.round_}",
            flush=True,
        )
        exact = RecursiveFeatureMachineRegressor(kernel, metric="full", rounds=options.rounds)
        predicted = exact.fit(*part[:2]).predict(part[2])
        end = time.process_time()
        deviation = np.std((predicted - part[3]) ** 2) / np.sqrt(len(part[3]))
        best = rmse(predicted, part[3])
        print(
            f"    exact {best:.4f} +- {deviation / (2 * best):.4f} in "
            f"{end - middle:.1f} CPU s, round {exact.round_}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("what", choices=("sets", "table", "rule", "planted", "time", "rfm"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--results", type=Path, default=Path("learned.csv"))
    parser.add_argument("--map", choices=("rff", "nystroem"), default="nystroem")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument(
        "--components", type=int, help="default: that of the suite; 300 for what is not in it"
    )
    parser.add_argument("--rounds", type=int, default=5, help="of rfm")
    parser.add_argument("--kernels", default="gaussian,matern-1/2", help="of rfm")
    parser.add_argument("--dimension", type=int, default=0, help="of planted problems, if one")
    parser.add_argument("--boosting", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    what = {
        "sets": compare_sets,
        "table": table_of,
        "rule": rules,
        "planted": planted,
        "time": times,
        "rfm": against_exact,
    }
    with threadpool_limits(1):
        what[options.what](options)


if __name__ == "__main__":
    main()
