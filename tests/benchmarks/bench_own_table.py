"""`kbench recommend` on tables as people have them, against gradient boosting in the same seconds.

Each table is an OpenML set of which columns became dates, ids, categories, values with holes
or decimal commas, and some classes rare, all by the seed::

    taskset -c 1 python tests/benchmarks/bench_own_table.py [--limit 30 120 600]
        [--table letter ...] [--tables 20] [--seed 0] [--results results.csv]
    python tests/benchmarks/bench_own_table.py --summary --results results.csv
    python tests/benchmarks/bench_own_table.py --rows 1000000 --limit 600

A third of the rows, 20,000 at most, are held out. The exported model of the recommended
method predicts them, as do scikit-learn's gradient boosting with its defaults, and the best of
a random search that takes as many seconds as the limit, by one holdout. One search of the longest
limit is the search of the shorter ones too: the best that it had at that time. Both sides have
the cores of this process, kbench as jobs and boosting as threads: give them one. The
standard error is that of the score on the held-out rows.

A line of `--results` is one side of one table and limit. What the file has is not measured
again, so that an interrupted benchmark goes on, and `--summary` only reads it. Printed are the
scores, whether the recommended one is at least that of tuned boosting less one standard error,
and the wall clock over the limit. `--rows` makes a table of that size, with 30 columns, and
prints the time and the peak memory of the largest process.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from kbench.registry.callables import resolve
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build

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

REGRESSION: dict[str, dict[str, int]] = {
    "diabetes": {},
    "friedman1": {"n_samples": 5000},
    "friedman2": {"n_samples": 3000},
    "friedman3": {"n_samples": 20_000},
}
"""Sets with a target of numbers, which come with kbench, and their parameters."""

COLUMNS = (
    "table",
    "seed",
    "limit",
    "side",
    "rows",
    "metric",
    "cores",
    "score",
    "default",
    "error",
    "seconds",
    "what",
)
"""Columns of the results: `error` and `default` are of the side "boosting"."""

HELD_OUT, MAX_HELD_OUT = 1 / 3, 20_000

SPACE: dict[str, list[Any]] = {
    "learning_rate": [0.03, 0.05, 0.1, 0.2],
    "max_leaf_nodes": [15, 31, 63, 127],
    "min_samples_leaf": [5, 20, 50],
    "l2_regularization": [0.0, 0.1, 1.0, 10.0],
    "max_iter": [100, 200, 500],
}


@dataclass
class Table:
    """A table, its metric, and how its file is written."""

    name: str
    frame: pd.DataFrame
    metric: str
    comma: bool = False

    def write(self, frame: pd.DataFrame, path: Path) -> None:
        """Write rows as a person's program would."""
        if self.comma:
            frame.to_csv(path, index=False, sep=";", decimal=",", encoding="utf-8-sig")
        else:
            frame.to_csv(path, index=False)


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
    return Table(f"{name} ({', '.join(sorted(kinds))})", frame, metric, "comma" in kinds)


def tables(names: list[str], seed: int) -> Any:
    """Yield the tables of some sets."""
    registry = build(list_plugins())
    for name in names:
        source, given = name, REGRESSION.get(name, {})
        if name in SETS:
            source, given = "openml", {"data_id": SETS[name]}
        try:
            data = resolve(registry.get("dataset", source).load)(**given)
        except Exception as error:
            print(f"{name}: left out: {' '.join(str(error).split())[:100]}", flush=True)
            continue
        yield soiled(name, data, np.random.default_rng([seed, *name.encode()]))


def numbers_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns as numbers, as a person would make them for boosting."""
    made = {}
    for name, column in frame.drop(columns="target").items():
        if str(name) == "customer_id":
            continue
        if pd.api.types.is_numeric_dtype(column):
            made[name] = column
        else:
            made[name] = (pd.to_datetime(column) - pd.Timestamp("1970-01-01")).dt.days
    found = pd.DataFrame(made).astype(float)
    return found.dropna(axis="columns", how="all")


def score(table: Table, y: Any, predicted: Any, ranks: Any = None) -> float:
    """Return a score that is better if it is higher."""
    if table.metric == "rmse":
        return -float(np.sqrt(np.mean((y - predicted) ** 2)))
    if table.metric == "roc_auc":
        return float(roc_auc_score(y, ranks))
    if table.metric == "balanced_accuracy":
        return float(np.mean([np.mean(predicted[y == k] == k) for k in np.unique(y)]))
    return float(np.mean(y == predicted))


def scored(table: Table, model: Any, X: Any, y: Any) -> float:
    ranks = None
    if table.metric == "roc_auc":
        has = hasattr(model, "predict_proba")
        ranks = model.predict_proba(X)[:, 1] if has else model.decision_function(X)
    return score(table, y, np.asarray(model.predict(X)), ranks)


def standard_error(table: Table, y: Any, value: float) -> float:
    """Return the standard error of a score on the held-out rows."""
    if table.metric == "rmse":
        return abs(value) / np.sqrt(2 * len(y))
    counts = np.unique(y, return_counts=True)[1]
    n = len(y) if table.metric == "accuracy" else counts.min()
    if table.metric == "balanced_accuracy":  # a mean over classes
        n = len(counts) ** 2 / (1 / counts).sum()
    return float(np.sqrt(max(value * (1 - value), 1 / n) / n))


def boosting(
    table: Table, train: Any, test: Any, limits: list[float], n_threads: int
) -> list[dict[str, Any]]:
    """Return the results of boosting for each limit, from one search of the longest.

    The best candidate of a limit is the best one that ended in time to fit another one of
    the longest so far: it is fitted once more, on all rows.
    """
    is_numbers = table.metric == "rmse"
    make = HistGradientBoostingRegressor if is_numbers else HistGradientBoostingClassifier
    X, y = numbers_of(train), train["target"].to_numpy()
    X_test, y_test = numbers_of(test), test["target"].to_numpy()
    strata = None if is_numbers else y
    if strata is not None and np.unique(y, return_counts=True)[1].min() < 2:
        strata = None
    parts = train_test_split(X, y, test_size=0.25, random_state=0, stratify=strata)
    with threadpool_limits(n_threads):
        default = scored(table, make(random_state=0).fit(X, y), X_test, y_test)
        rng, start, longest = np.random.default_rng(0), time.monotonic(), 0.0
        best, chosen, n = -np.inf, dict[str, Any](), 0
        at_limit: dict[float, tuple[dict[str, Any], int]] = {}
        for limit in sorted(limits):
            while time.monotonic() - start + 2 * longest < limit:
                params = {name: values[rng.integers(len(values))] for name, values in SPACE.items()}
                began = time.monotonic()
                model = make(random_state=0, early_stopping=len(y) > 10_000, **params)
                value = scored(table, model.fit(parts[0], parts[2]), parts[1], parts[3])
                ended = time.monotonic()
                longest = max(longest, ended - began)
                if value > best and (ended - start + longest <= limit or not n):
                    best, chosen = value, params
                n += 1
            at_limit[limit] = dict(chosen), n
        results = []
        for limit, (params, n_tried) in at_limit.items():
            model = make(random_state=0, early_stopping=len(y) > 10_000, **params)
            value = scored(table, model.fit(X, y), X_test, y_test)
            results.append(
                {
                    "limit": limit,
                    "side": "boosting",
                    "score": value,
                    "default": default,
                    "error": standard_error(table, y_test, value),
                    "seconds": limit,
                    "what": f"{n_tried} candidates",
                }
            )
    return results


def recommended(
    table: Table, train: Any, test: Any, limit: float, n_jobs: int, folder: Path
) -> dict[str, Any]:
    """Return the result of kbench: the score of the exported model that it recommends."""
    file = folder / "table.csv"
    table.write(train, file)
    command = ["kbench", "recommend", str(file), "--target", "target", "--time-limit", str(limit)]
    command += ["--metric", table.metric, "--json", "--recompute", "--jobs", str(n_jobs)]
    command += ["--store", f"sqlite:///{folder}/mlflow.db"]
    began = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.monotonic() - began
    if not ran.stdout:
        raise RuntimeError(ran.stderr[-500:])
    end = json.loads(ran.stdout.splitlines()[-1])
    result = {"limit": limit, "side": "kbench", "seconds": wall}
    if not end["export"]:
        return result | {"score": float("nan"), "what": "nothing recommended"}
    words = shlex.split(end["export"])
    words[words.index("-o") + 1 :] = [str(folder / "model"), "--format", "joblib"]
    subprocess.run(words, capture_output=True, text=True, check=True)
    model = joblib.load(folder / "model" / "model.joblib")
    value = scored(table, model, test.drop(columns="target"), test["target"].to_numpy())
    method = end["recommended"]
    return result | {"score": value, "what": f"{method['feature_map']} + {method['learner']}"}


class Results:
    """Results by table, seed, limit and side, in a file if one is named."""

    def __init__(self, path: Path | None) -> None:
        self._path, self.lines = path, list[dict[str, Any]]()
        if path is not None and path.exists():
            with path.open(newline="") as file:
                for line in csv.DictReader(file):
                    numbers = {
                        name: float(line[name] or "nan")
                        for name in ("limit", "score", "default", "error", "seconds")
                    }
                    counts = {name: int(line[name]) for name in ("seed", "rows", "cores")}
                    self.lines.append({**line, **numbers, **counts})

    def of(self, table: str, seed: int, limit: float, side: str) -> dict[str, Any] | None:
        """Return the result of a side of a table; None if it was not measured."""
        asked = (table, seed, limit, side)
        for line in self.lines:
            if (line["table"], line["seed"], line["limit"], line["side"]) == asked:
                return line
        return None

    def add(self, line: dict[str, Any]) -> None:
        """Add a result, and write it at once."""
        self.lines.append(line)
        if self._path is None:
            return
        is_new = not self._path.exists()
        with self._path.open("a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            if is_new:
                writer.writeheader()
            writer.writerow(line)

    def pairs(self, limit: float) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return kbench's and boosting's results of the tables that have both."""
        found = []
        for line in self.lines:
            if line["side"] == "kbench" and line["limit"] == limit:
                other = self.of(line["table"], line["seed"], limit, "boosting")
                if other is not None:
                    found.append((line, other))
        return found

    def summary(self, limit: float) -> str:
        """Say on how many tables kbench was as good as boosting, and how long it took."""
        pairs = self.pairs(limit)
        if not pairs:
            return f"limit {limit:g} s: nothing was measured"
        n = len(pairs)
        good = sum(is_good(*pair) for pair in pairs)
        above = sum(is_above_default(*pair) for pair in pairs)
        worst = max(ours["seconds"] for ours, _ in pairs) / limit
        return (
            f"limit {limit:g} s: {good} of {n} tables ({good / n:.0%}) at least tuned boosting "
            f"less one s.e., {above} ({above / n:.0%}) at least default boosting less one s.e., "
            f"at most {worst:.2f} of the limit"
        )


def is_good(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether a score is at least that of tuned boosting less one standard error."""
    return bool(ours["score"] >= theirs["score"] - theirs["error"])


def is_above_default(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether a score is at least that of default boosting less one standard error."""
    return bool(ours["score"] >= theirs["default"] - theirs["error"])


def line_of(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Return a line of the printed table."""
    return (
        f"{ours['table']:42} {ours['rows']:7,} {ours['metric']:18} {ours['score']:9.4f} "
        f"tuned {theirs['score']:9.4f} ({theirs['what']}) default {theirs['default']:9.4f} s.e. "
        f"{theirs['error']:.4f} {'ok ' if is_good(ours, theirs) else 'LOW'} "
        f"{'' if is_above_default(ours, theirs) else 'BELOW DEFAULT '}"
        f"{ours['seconds'] / ours['limit']:.2f} of the limit: {ours['what']}"
    )


def measure(table: Table, seed: int, limits: list[float], results: Results) -> None:
    """Measure both sides of a table, as far as the results lack them, and print them."""
    n_test = min(MAX_HELD_OUT, int(HELD_OUT * len(table.frame)))
    test, train = table.frame.iloc[:n_test], table.frame.iloc[n_test:]
    n_cores = len(os.sched_getaffinity(0))
    same = {"table": table.name, "seed": seed, "rows": len(table.frame), "cores": n_cores}
    same["metric"] = table.metric
    missing = [x for x in limits if results.of(table.name, seed, x, "boosting") is None]
    if missing:
        for result in boosting(table, train, test, missing, n_cores):
            results.add(same | result)
    for limit in limits:
        if results.of(table.name, seed, limit, "kbench") is None:
            with tempfile.TemporaryDirectory() as folder:
                result = recommended(table, train, test, limit, n_cores, Path(folder))
            results.add(same | result)
        pair = [results.of(table.name, seed, limit, side) for side in ("kbench", "boosting")]
        assert pair[0] is not None and pair[1] is not None
        print(f"{limit:g} s {line_of(pair[0], pair[1])}", flush=True)


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
    parser.add_argument("--limit", type=float, nargs="+", default=[30.0])
    parser.add_argument("--table", nargs="+", choices=[*SETS, *REGRESSION], default=None)
    parser.add_argument("--tables", type=int, default=20)
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
    results = Results(options.results)
    limits = sorted(options.limit)
    if options.summary:
        limits = sorted({line["limit"] for line in results.lines})
        for limit in limits:
            for pair in results.pairs(limit):
                print(f"{limit:g} s {line_of(*pair)}")
    else:
        print("scores on held-out rows, higher is better", flush=True)
        names = options.table or [*SETS, *REGRESSION][: options.tables]
        for table in tables(names, options.seed):
            try:
                measure(table, options.seed, limits, results)
            except Exception as error:
                print(f"{table.name}: {type(error).__name__}: {error}", flush=True)
    for limit in limits:
        print(results.summary(limit))


if __name__ == "__main__":
    sys.exit(main())
