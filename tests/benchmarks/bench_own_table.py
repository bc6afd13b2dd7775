"""`kbench recommend` on 32 tables as people have them, against what a person would choose.

Twenty tables are OpenML sets of which columns became dates, ids, categories, values with holes
or decimal commas, and some classes rare, by the seed; twelve are made (see `dirty_tables`)::

    taskset -c 1 python tests/benchmarks/bench_own_table.py --results results.csv
        [--limit 30 120 600] [--table letter patients ...] [--seed 0]
    python tests/benchmarks/bench_own_table.py --summary --results results.csv
    python tests/benchmarks/bench_own_table.py --rows 1000000 --limit 600

Rows are held out; the exported model of the recommended method predicts them. The rival has as many
CPU seconds as the command had: it is the best, by one holdout of the training rows, of
scikit-learn's gradient boosting with its defaults, with class weights, with parameters of a random
search, and of a linear model with a searched penalty. It gets typed columns, as a person would make
them. Both sides have the cores of this process: give them one.

The difference of the scores is paired: its standard error is that of 200 bootstrap samples of the
held-out rows, or of their groups. "not inferior" means at most one standard error worse than the
rival, "win" more than one better. A line of `--results` is one table and limit. What the file has
is not measured again, so that an interrupted benchmark goes on, and `--summary` only reads it.
OpenML sets that the server does not have are replaced by sets that come with kbench. Modules
are compiled once, whatever the environment says: else each command would compile them again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from dirty_tables import MAKERS, Table, make, write_comma, write_plain
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from kbench.registry.callables import resolve
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_tables.export.load_model import open_model

SETS = {
    "letter": 6,
    "pendigits": 32,
    "satimage": 182,
    "sick": 38,
    "magic": 1120,
    "adult": 1590,
    "segment": 36,
    "spambase": 44,
    "kr-vs-kp": 3,
    "splice": 46,
    "diabetes-37": 37,
    "german": 31,
    "shuttle": 40685,
    "skin": 1502,
    "optdigits": 28,
    "vowel": 307,
}
"""OpenML ids; sets that the server does not have are left out, with a line."""

SPARE = {"breast-w": 15, "ionosphere": 59, "sonar": 40}
"""OpenML ids of sets that come with kbench, for those that are left out."""

REGRESSION: dict[str, dict[str, int]] = {
    "diabetes": {},
    "friedman1": {"n_samples": 5000},
    "friedman2": {"n_samples": 3000},
    "friedman3": {"n_samples": 20_000},
}
"""Sets with a target of numbers, which come with kbench, and their parameters."""

SPARE_MADE: dict[str, dict[str, Any]] = {
    "digits": {},
    "wdbc": {},
    "hypersphere-shells": {"n_samples": 20_000},
    "two-moons": {"n_samples": 5000},
    "checkerboard": {"n_samples": 5000},
}
"""Further sets that come with kbench, and their parameters."""

N_SETS = 20

COLUMNS = (
    *("table", "seed", "limit", "metric", "cores", "rows"),
    *("score", "rival", "default", "error", "default_error"),
    *("wall_s", "cpu_s", "method", "rival_method"),
)
"""Columns of the results: `error` is that of the difference of `score` and `rival`."""

HELD_OUT, MAX_HELD_OUT = 1 / 3, 20_000
N_BOOTSTRAP = 200
MAX_CATEGORIES = 250
"""Categories of a column for boosting, which takes 255 at most; the rarest ones are one."""

SPACE: dict[str, list[Any]] = {
    "learning_rate": [0.03, 0.05, 0.1, 0.2],
    "max_leaf_nodes": [15, 31, 63, 127],
    "min_samples_leaf": [5, 20, 50],
    "l2_regularization": [0.0, 0.1, 1.0, 10.0],
    "max_iter": [100, 200, 500],
}


def soiled(name: str, data: Any, rng: np.random.Generator) -> Table:
    """Return a set of numbers as a table with dates, ids, categories and holes."""
    X = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
    y = np.asarray(data.y)
    if data.task == "classification":
        y = np.array([f"class {k}" for k in range(int(y.max()) + 1)])[y]
    metric = "rmse" if data.task == "regression" else "accuracy"
    rows = np.arange(len(y))
    kinds = rng.permutation(["dates", "ids", "holes", "comma", "rare"])[:3]
    if "rare" in kinds and data.task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        rare = labels[counts.argmin()]
        is_rare = np.flatnonzero(y == rare)
        n = max(40, int(0.05 * (len(y) - len(is_rare)) / 0.95))
        gone = rng.permutation(is_rare)[n:]
        rows = np.delete(rows, gone)
        metric = "roc_auc" if len(labels) == 2 else "balanced_accuracy"
    rows = rng.permutation(rows)
    X, y = X[rows], y[rows]
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    wide = [c for c in frame if frame[c].nunique() > 20 and frame[c].notna().all()]
    if "dates" in kinds and wide:
        column = str(rng.choice(wide))
        place = frame[column].rank(method="dense").to_numpy()
        days = np.floor(1500 * place / place.max()).astype(int)
        dates = pd.Timestamp("2019-01-01") + pd.to_timedelta(days, unit="D")
        frame[column] = pd.Series(dates).dt.strftime("%Y-%m-%d")
    if "holes" in kinds:
        for column in rng.choice(list(frame), size=min(3, frame.shape[1]), replace=False):
            frame.loc[rng.random(len(frame)) < 0.1, column] = np.nan
    if "ids" in kinds:
        frame.insert(0, "customer_id", rng.permutation(len(frame)) + 10_000)
    frame["target"] = y
    n_test = min(MAX_HELD_OUT, int(HELD_OUT * len(frame)))
    write = write_comma if "comma" in kinds else write_plain
    label = f"{name} ({', '.join(sorted(kinds))})"
    return Table(label, frame.iloc[n_test:], frame.iloc[:n_test], metric, write)


def tables(names: list[str], seed: int) -> Iterator[Table]:
    """Yield tables by name; without names `N_SETS` sets that can be read, and all that are made."""
    registry = build(list_plugins())
    n = 0
    for name in names or [*SETS, *REGRESSION, *SPARE, *SPARE_MADE]:
        if name in MAKERS or (n == N_SETS and not names):
            continue
        source, params = name, (REGRESSION | SPARE_MADE).get(name, {})
        if name in SETS | SPARE:
            source, params = "openml", {"data_id": (SETS | SPARE)[name]}
        try:
            data = resolve(registry.get("dataset", source).load)(**params)
        except Exception as error:
            print(f"{name}: left out: {' '.join(str(error).split())[:100]}", flush=True)
            continue
        n += 1
        yield soiled(name, data, np.random.default_rng([seed, *name.encode()]))
    for name in MAKERS if not names else [name for name in names if name in MAKERS]:
        yield make(name, seed)


def typed(table: Table) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training and held-out rows as numbers and categories, as a person would make them."""
    n_train = len(table.train)
    both = pd.concat([table.train, table.test]).drop(columns=["target"])
    made: dict[str, Any] = {}
    for name, column in both.items():
        if str(name) in ("customer_id", table.group):
            continue
        numbers = pd.to_numeric(column, errors="coerce").replace([np.inf, -np.inf], np.nan)
        with warnings.catch_warnings(action="ignore"):
            dates = pd.to_datetime(column, errors="coerce", dayfirst="." in str(column.iloc[0]))
        if numbers.notna().mean() > 0.8 or pd.api.types.is_numeric_dtype(column):
            made[str(name)] = numbers
        elif dates.notna().mean() > 0.8:
            made[str(name)] = (dates - pd.Timestamp("1970-01-01")).dt.days.astype(float)
        else:
            frequent = column.iloc[:n_train].value_counts().index[:MAX_CATEGORIES]
            made[str(name)] = column.where(column.isin(frequent), "other").astype("category")
    frame = pd.DataFrame(made).dropna(axis="columns", how="all")
    return frame.iloc[:n_train], frame.iloc[n_train:]


def predictions(table: Table, model: Any, X: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return predictions, and scores of the second class where they are compared by ranks."""
    ranks = None
    if table.metric == "roc_auc":
        has = hasattr(model, "predict_proba")
        ranks = model.predict_proba(X)[:, 1] if has else model.decision_function(X)
    return np.asarray(model.predict(X)), ranks


def score(table: Table, y: Any, predicted: Any, ranks: Any = None) -> float:
    """Return a score that is better if it is higher."""
    if table.metric == "rmse":
        return -float(np.sqrt(np.mean((y - predicted) ** 2)))
    if table.metric == "roc_auc":
        return float(roc_auc_score(y, ranks)) if len(np.unique(y)) == 2 else np.nan
    if table.metric == "balanced_accuracy":
        return float(np.mean([np.mean(predicted[y == k] == k) for k in np.unique(y)]))
    return float(np.mean(y == predicted))


def paired_error(table: Table, y: Any, ours: Any, theirs: Any) -> float:
    """Return the standard error of the difference of two scores on the same rows."""
    rng = np.random.default_rng(0)
    groups = table.test[table.group].to_numpy() if table.group else np.arange(len(y))
    places = pd.Series(np.arange(len(y))).groupby(groups).apply(np.array)
    differences = []
    for _ in range(N_BOOTSTRAP):
        drawn = places.to_numpy()[rng.integers(len(places), size=len(places))]
        rows = np.concatenate(drawn)

        def on_rows(side: Any, rows: Any = rows) -> float:
            predicted, ranks = side
            return score(table, y[rows], predicted[rows], None if ranks is None else ranks[rows])

        differences.append(on_rows(ours) - on_rows(theirs))
    return float(np.nanstd(differences))


def candidates(table: Table, n_rows: int) -> Iterator[tuple[str, Any]]:
    """Yield the rival's models: defaults, class weights, linear ones, a random search."""
    is_numbers = table.metric == "rmse"
    boosting = HistGradientBoostingRegressor if is_numbers else HistGradientBoostingClassifier
    same = {"random_state": 0, "categorical_features": "from_dtype"}
    weights = [None] if is_numbers else [None, "balanced"]
    for weight in weights:
        more = {"class_weight": weight} if weight else {}
        yield "weighted boosting" if weight else "default boosting", boosting(**same, **more)
    numbers = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True), StandardScaler(with_mean=True)
    )
    words = OneHotEncoder(handle_unknown="ignore", min_frequency=5)
    of_words = make_column_selector(dtype_include="category")
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_exclude="category")), (words, of_words)
    )
    for C in (1.0, 0.1, 10.0, 0.01, 100.0):
        for weight in weights:
            linear = Ridge(1 / C) if is_numbers else LogisticRegression(C=C, class_weight=weight)
            yield (
                f"linear, C = {C:g}{', weighted' if weight else ''}",
                make_pipeline(columns, linear),
            )
    rng = np.random.default_rng(0)
    while True:
        params = {name: values[rng.integers(len(values))] for name, values in SPACE.items()}
        weight = weights[rng.integers(len(weights))]
        more = {"class_weight": weight} if weight else {}
        model = boosting(early_stopping=n_rows > 10_000, **same, **params, **more)
        yield f"tuned boosting{', weighted' if weight else ''}", model


def holdout(table: Table, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the training set that the rival fits, and those it chooses by."""
    rows = np.arange(len(y))
    if table.order:
        n = int(0.75 * len(y))
        return rows[:n], rows[n:]
    if table.group:
        splits = GroupShuffleSplit(1, test_size=0.25, random_state=0)
        return next(splits.split(rows, groups=table.train[table.group]))
    is_numbers = table.metric == "rmse"
    strata = None if is_numbers or pd.Series(y).value_counts().min() < 2 else y
    fitted, chosen = train_test_split(rows, test_size=0.25, random_state=0, stratify=strata)
    return fitted, chosen


def rival(table: Table, cpu_s: float) -> tuple[str, Any, Any]:
    """Return the name and the predictions of the best model in some CPU seconds, and of defaults.

    A candidate begins if one as long as the longest so far, and the last fit, should still end.
    """
    X, X_test = typed(table)
    y = table.train["target"].to_numpy()
    fitted, chosen = holdout(table, y)
    best, name, model, longest, n = -np.inf, "", None, 0.0, 0
    start, default = time.process_time(), None
    with warnings.catch_warnings(action="ignore"):
        for label, candidate in candidates(table, len(y)):
            began = time.process_time()
            if n and began - start + 2.3 * longest > cpu_s:
                break
            if n == 0:
                default = predictions(table, candidate.fit(X, y), X_test)
            candidate.fit(X.iloc[fitted], y[fitted])
            inner = predictions(table, candidate, X.iloc[chosen])
            value = score(table, y[chosen], *inner)
            if value > best:
                best, name, model = value, label, candidate
            longest = max(longest, time.process_time() - began)
            n += 1
        assert model is not None
        predicted = predictions(table, model.fit(X, y), X_test)
    return f"{name} ({n} tried)", predicted, default


def recommended(table: Table, limit: float, folder: Path) -> tuple[dict[str, Any], Any]:
    """Return the times of kbench and its method, and the predictions of the exported model."""
    file = table.write(table.train, folder)
    command = ["kbench", "recommend", str(file), "--target", "target", "--time-limit", str(limit)]
    n_jobs = len(os.sched_getaffinity(0))
    command += ["--metric", table.metric, "--json", "--recompute", "--jobs", str(n_jobs)]
    command += [*table.options, "--store", f"sqlite:///{folder}/mlflow.db"]
    began, cpu_before = time.monotonic(), sum(os.times()[2:4])
    environment = {n: value for n, value in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    result = {"wall_s": time.monotonic() - began, "cpu_s": sum(os.times()[2:4]) - cpu_before}
    if not ran.stdout:
        raise RuntimeError(ran.stderr[-500:])
    end = json.loads(ran.stdout.splitlines()[-1])
    if not end["export"]:
        raise RuntimeError("nothing is recommended")
    words = shlex.split(end["export"])
    words[words.index("-o") + 1 :] = [str(folder / "model")]
    subprocess.run(words, capture_output=True, text=True, check=True)
    model = open_model(folder / "model").pipeline
    # as a file is read: the exported model rejects infinite values in a data frame
    rows = table.test.drop(columns="target").replace([np.inf, -np.inf], np.nan)
    predicted = predictions(table, model, rows)
    method = end["recommended"]
    return result | {"method": f"{method['feature_map']} + {method['learner']}"}, predicted


def read_results(path: Path | None) -> list[dict[str, Any]]:
    """Return the lines of a file of results; none if it does not exist."""
    if path is None or not path.exists():
        return []
    texts = {"table", "metric", "method", "rival_method"}
    with path.open(newline="") as file:
        return [
            {name: each if name in texts else float(each) for name, each in line.items()}
            for line in csv.DictReader(file)
        ]


def append(path: Path | None, line: dict[str, Any]) -> None:
    """Write a result at once."""
    if path is None:
        return
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        writer.writerow(line)


def verdict(line: dict[str, Any]) -> str:
    """Say how a score compares with the rival's.

    >>> verdict({"score": 0.8, "rival": 0.82, "error": 0.01})
    'INFERIOR'
    """
    behind = line["rival"] - line["score"]
    if behind > line["error"]:
        return "INFERIOR"
    return "win" if -behind > line["error"] else "not inferior"


def is_below_default(line: dict[str, Any]) -> bool:
    """Whether a score is more than two standard errors below that of default boosting."""
    return bool(line["default"] - line["score"] > 2 * line["default_error"])


def sentence(line: dict[str, Any]) -> str:
    """Return a line of the printed table."""
    below = "BELOW DEFAULT " if is_below_default(line) else ""
    return (
        f"{line['limit']:g} s {line['table']:36} {line['rows']:6,.0f} {line['metric']:17} "
        f"{line['score']:10.4f} rival {line['rival']:10.4f} default {line['default']:10.4f} "
        f"s.e. {line['error']:8.4f} {verdict(line):12} {below}"
        f"{line['wall_s'] / line['limit']:.2f} of the limit, {line['cpu_s']:.0f} CPU s: "
        f"{line['method']}; rival: {line['rival_method']}"
    )


def summary(lines: list[dict[str, Any]], limit: float) -> str:
    """Say on how many tables kbench was as good as its rival, and how long it took."""
    at_limit = [line for line in lines if line["limit"] == limit]
    if not at_limit:
        return f"limit {limit:g} s: nothing was measured"
    verdicts = [verdict(line) for line in at_limit]
    below = [line["table"] for line in at_limit if is_below_default(line)]
    late = max(line["wall_s"] for line in at_limit) / limit
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in ("win", "not inferior", "INFERIOR"))
    return (
        f"limit {limit:g} s, {len(at_limit)} tables: {counts}; {len(below)} more than two s.e. "
        f"below default boosting{': ' if below else ''}{', '.join(below)}; at most {late:.2f} of "
        "the limit"
    )


def measure(table: Table, seed: int, limit: float) -> dict[str, Any]:
    """Measure both sides of a table."""
    y = table.test["target"].to_numpy()
    n_cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        line, ours = recommended(table, limit, Path(folder))
    with threadpool_limits(n_cores):
        rival_method, theirs, default = rival(table, line["cpu_s"])
    return line | {
        "table": table.name,
        "seed": seed,
        "limit": limit,
        "metric": table.metric,
        "cores": n_cores,
        "rows": len(table.train) + len(table.test),
        "score": score(table, y, *ours),
        "rival": score(table, y, *theirs),
        "default": score(table, y, *default),
        "error": paired_error(table, y, ours, theirs),
        "default_error": paired_error(table, y, ours, default),
        "rival_method": rival_method,
    }


def large(n_rows: int, limit: float, folder: Path) -> None:
    """Run kbench on a table of many rows and print its time and its peak memory."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 30)).round(3)
    z = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * X[:, 3] + rng.normal(0, 0.7, n_rows)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(30)])
    frame["target"] = np.where(z > 0.3, "yes", "no")
    file = folder / "large.csv"
    frame.to_csv(file, index=False)
    del frame, X
    command = ["kbench", "recommend", str(file), "--target", "target", "--time-limit", str(limit)]
    command += ["--recompute", "--store", f"sqlite:///{folder}/mlflow.db"]
    began = time.monotonic()
    subprocess.run(command, check=False)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{time.monotonic() - began:.0f} s; the largest process had {peak:,.0f} MiB")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [*SETS, *REGRESSION, *SPARE, *SPARE_MADE, *MAKERS]
    parser.add_argument("--limit", type=float, nargs="+", default=[30.0])
    parser.add_argument("--table", nargs="+", choices=names, default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    if options.rows:
        for limit in options.limit:
            with tempfile.TemporaryDirectory() as folder:
                large(options.rows, limit, Path(folder))
        return
    lines = read_results(options.results)
    known = {(line["table"], line["seed"], line["limit"]) for line in lines}
    for line in lines:
        print(sentence(line))
    for table in [] if options.summary else tables(options.table, options.seed):
        for limit in sorted(options.limit):
            if (table.name, options.seed, limit) in known:
                continue
            try:
                line = measure(table, options.seed, limit)
            except Exception as error:
                print(f"{table.name}: {type(error).__name__}: {error}", flush=True)
                continue
            append(options.results, line)
            lines.append(line)
            print(sentence(line), flush=True)
    for limit in sorted({line["limit"] for line in lines}):
        print(summary(lines, limit))


if __name__ == "__main__":
    sys.exit(main())
