"""Methods of `strong-baselines` beside scikit-learn tuned by hand, on the same rows.

Both get the same training and test part, the same number of inner folds and the same number of
candidates::

    python tests/benchmarks/bench_by_hand.py [--dataset NAME ...] [--method TEXT] [--folder FOLDER]

A method's counterpart is a pipeline that scikit-learn's documentation would suggest: inputs
standardised, a grid around the library's own defaults, the library's scheme for several
classes. The second figure of a line is the difference of accuracies, the third its standard
error over the test rows, which both methods share. Seconds are CPU seconds of the searches.

A finished line is kept as a file in FOLDER, and not computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier  # noqa: E402
from sklearn.kernel_approximation import Nystroem  # noqa: E402
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC, LinearSVC  # noqa: E402

from kbench.evaluation.evaluate import evaluate_split  # noqa: E402
from kbench.evaluation.method import Method, learner_side, map_side  # noqa: E402
from kbench.evaluation.split_view import Assignment, assign  # noqa: E402
from kbench.planning.cells import cells  # noqa: E402
from kbench.planning.suite_file import find, read  # noqa: E402
from kbench.records import Cell, Dataset  # noqa: E402
from kbench.registry.callables import resolve  # noqa: E402
from kbench.registry.installed import list_plugins  # noqa: E402
from kbench.registry.registry import Registry, build  # noqa: E402


@dataclass(frozen=True)
class Side:
    """What one of the two has on the test part; `right` is 1 for each correct row."""

    right: list[int]
    n_candidates: int
    search_s: float
    chosen: dict[str, Any]

    @property
    def accuracy(self) -> float:
        """Share of the test rows that are right."""
        return float(np.mean(self.right))


def decades(lowest: int, n: int) -> list[float]:
    """Return n powers of ten."""
    return [10.0**exponent for exponent in range(lowest, lowest + n)]


def factors(n: int) -> list[float]:
    """Return n powers of two around 1, more of them below it where n is even."""
    return [2.0**exponent for exponent in range(-(n // 2), n - n // 2)]


def divided(n: int, most: int) -> tuple[int, int]:
    """Split a number of candidates into values of C and of gamma, at most `most` of C."""
    n_c = max(k for k in range(1, most + 1) if n % k == 0)
    return n_c, n // n_c


def by_hand(label: str, n: int, n_folds: int, scale: float) -> Any:
    """Return the tuned pipeline that stands against a method, of n candidates.

    `scale` is the value that ``gamma="scale"`` has on the standardised inputs.
    """

    def search(estimator: Any, grid: dict[str, Any]) -> Any:
        name = type(estimator).__name__.lower()
        spread = {k if "__" in k else f"{name}__{k}": v for k, v in grid.items()}
        return GridSearchCV(make_pipeline(StandardScaler(), estimator), spread, cv=n_folds)

    map_name, learner = label.split(" + ")
    if learner.startswith("kernel-svm"):
        n_c, n_gamma = divided(n, 4)
        gamma = [scale * factor for factor in factors(n_gamma)]
        return search(SVC(cache_size=500), {"C": decades(0 if n_c > 2 else 1, n_c), "gamma": gamma})
    if learner.startswith("linear-svm"):
        svm = LinearSVC(dual=False)
        if map_name == "identity":
            return search(svm, {"C": decades(-3, n)})
        if map_name.startswith("polynomial"):  # scikit-learn's own map is slow with LinearSVC
            svc = SVC(kernel="poly", degree=int(map_name[-1]), coef0=1.0, cache_size=500)
            n_c, n_gamma = divided(n, 4)
            gamma = [scale * factor for factor in factors(n_gamma)]
            return search(svc, {"C": decades(-1, n_c), "gamma": gamma})
        n_c, n_gamma = divided(n, 4)
        map_ = Nystroem(n_components=int(map_name.rpartition("-")[2]), random_state=0)
        gamma = [scale * factor for factor in factors(n_gamma)]
        grid = {"nystroem__gamma": gamma, "linearsvc__C": decades(-1, n_c)}
        return GridSearchCV(make_pipeline(StandardScaler(), map_, svm), grid, cv=n_folds)
    if learner.endswith("-NN"):
        return make_pipeline(StandardScaler(), KNeighborsClassifier(int(learner[0])))
    if learner in ("gradient-boosting", "lightgbm"):
        space = {
            "learning_rate": [0.05, 0.1, 0.2],
            "max_leaf_nodes": [15, 31, 63],
            "l2_regularization": [0.0, 1.0],
            "max_iter": [100, 200],
        }
        boosting = HistGradientBoostingClassifier(random_state=0)
        return RandomizedSearchCV(boosting, space, n_iter=n, cv=n_folds, random_state=0)
    if learner == "random-forest":
        forest = RandomForestClassifier(300, random_state=0)
        grid = {"max_features": ["sqrt", 0.3, 0.6], "min_samples_leaf": [1, 3]}
        return GridSearchCV(forest, grid, cv=n_folds)
    if learner == "mlp":
        sizes = [(100,), (200,), (100, 100)]
        mlp = MLPClassifier(max_iter=300, random_state=0)
        return search(mlp, {"hidden_layer_sizes": sizes, "alpha": [1e-4, 1e-2]})
    return None


def ours(data: Dataset, cell: Cell, registry: Registry, truth: np.ndarray) -> Side:
    """Evaluate the first split of a cell."""
    method = Method(
        **map_side(cell.feature_map, registry), **learner_side(cell.learner, registry, data.task)
    )
    found = evaluate_split(data, 0, method, cell.protocol)
    right = np.asarray(found.predictions.predicted) == truth
    return Side(
        right.astype(int).tolist(),
        int(found.metrics["n_candidates"]),
        found.metrics["search_time_cpu_s"],
        {**found.details.chosen, "at edge": list(found.details.at_boundary)},
    )


def theirs(
    data: Dataset, parts: Assignment, label: str, n: int, n_folds: int, truth: np.ndarray
) -> Side | None:
    """Tune, fit and score the counterpart of a method."""
    X, visible = np.asarray(data.X, dtype=float), parts.visible
    X_train, X_test = X[visible.train], X[visible.test]
    scale = 1.0 / (X.shape[1] * StandardScaler().fit_transform(X_train).var())
    model = by_hand(label, n, n_folds, scale)
    if model is None:
        return None
    searched = hasattr(model, "param_grid") or hasattr(model, "param_distributions")
    tried, seconds, chosen = 1, 0.0, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of liblinear, that it stopped at max_iter
        if searched:
            model.refit = False  # its time is not a part of the search
            started = time.process_time()
            model.fit(X_train, visible.y_train)
            seconds = time.process_time() - started
            tried, chosen = len(model.cv_results_["params"]), model.best_params_
            model = clone(model.estimator).set_params(**chosen)
        model.fit(X_train, visible.y_train)
    right = model.predict(X_test) == truth
    return Side(right.astype(int).tolist(), tried, seconds, {k: str(v) for k, v in chosen.items()})


def line(dataset: str, label: str, mine: Side, hand: Side | None) -> str:
    """Return one line of the table."""
    if hand is None:
        return f"| {dataset} | {label} | {mine.accuracy:.4f} | | | | {mine.n_candidates} | |"
    difference = np.subtract(mine.right, hand.right)
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return (
        f"| {dataset} | {label} | {mine.accuracy:.4f} | {hand.accuracy:.4f} | "
        f"{difference.mean():+.4f} | {error:.4f} | {mine.n_candidates} / {hand.n_candidates} | "
        f"{mine.search_s:.0f} / {hand.search_s:.0f} |"
    )


def main() -> None:
    """Compute what is missing, and print the lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", default="strong-baselines")
    parser.add_argument("--dataset", nargs="*", default=())
    parser.add_argument("--method", nargs="*", default=("",), help="texts in 'MAP + LEARNER'")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only-ours", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    registry = build(list_plugins())
    suite = read(*find(options.suite, registry), registry)
    print("| dataset | method | ours | by hand | difference | s.e. | candidates | search CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    loaded: dict[str, Dataset] = {}
    for cell in cells(suite, registry):
        name, label = cell.dataset.label, f"{cell.feature_map.label} + {cell.learner.label}"
        if options.dataset and name not in options.dataset:
            continue
        if not any(text in label for text in options.method):
            continue
        if name not in loaded:
            load = resolve(registry.get("dataset", cell.dataset.name).load)
            loaded[name] = load(**cell.dataset.params)
        data, protocol = loaded[name], replace(cell.protocol)
        parts = assign(data, protocol, 0)
        sides: list[Side | None] = []
        for which in ("ours",) if options.only_ours else ("ours", "by hand"):
            kept = options.folder / f"{name} {label} {which}.json"
            if not kept.exists():
                side = (
                    ours(data, cell, registry, parts.y_test)
                    if which == "ours"
                    else theirs(
                        data,
                        parts,
                        label,
                        sides[0].n_candidates if sides[0] else 1,
                        protocol.inner_folds,
                        parts.y_test,
                    )
                )
                kept.write_text(json.dumps(vars(side) if side else None))
            told = json.loads(kept.read_text())
            sides.append(Side(**told) if told else None)
        assert sides[0] is not None
        print(line(name, label, sides[0], sides[1] if len(sides) > 1 else None), flush=True)


if __name__ == "__main__":
    main()
