"""Searches of kbench beside ``GridSearchCV`` over a pipeline of the same map.

    python tests/benchmarks/bench_search.py [--dataset NAME ...] [--learner NAME ...]
        [--tol TOL] [--repeat N]

Both have the same inputs in [0, 1], the same folds, the same values of the map's parameter and
of the learner's, the same tolerance and one thread, and take turns. The counterparts are
``LinearSVC`` for `nbcs` + `linear-svm`, the fastest solver of ``LogisticRegression`` for `rff` +
`logistic`, and ``Ridge`` on indicators of the classes for `rff` + `ridge`. Figures are medians of
CPU seconds; a ratio above 1 says that kbench is faster. Neither refits its choice.
"""

from __future__ import annotations

import argparse
import os
import warnings

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
from sklearn.linear_model import LogisticRegression, RidgeClassifier  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import MinMaxScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402
from turns import medians  # noqa: E402

from kbench import Protocol  # noqa: E402
from kbench.evaluation.embedding import Data, Fitting  # noqa: E402
from kbench.evaluation.method import Method  # noqa: E402
from kbench.evaluation.search import search  # noqa: E402
from kbench.evaluation.search._folds import inner_folds  # noqa: E402
from kbench.evaluation.specs import EstimatorSpec  # noqa: E402
from kbench.registry.callables import resolve  # noqa: E402
from kbench.registry.installed import list_plugins  # noqa: E402
from kbench.registry.registry import build  # noqa: E402
from kbench_baselines import RandomFourierFeatures  # noqa: E402
from kbench_learners import LinearSVM, LogisticClassifier, PathRidgeClassifier  # noqa: E402
from kbench_nbcs import NestedBarycentricMap  # noqa: E402

DATASETS = {
    "wdbc": ("wdbc", {}),
    "shells": ("hypersphere-shells", {"n_samples": 2000, "n_features": 10}),
    "segment": ("openml", {"data_id": 36}),
    "digits": ("digits", {}),
}
NBCS = NestedBarycentricMap, {}, {"depth": (2, 3, 4, 5)}
RFF = RandomFourierFeatures, {"n_components": 256}, {"bandwidth_factor": (1.0, 0.5, 2.0, 4.0)}
C = {"C": (1.0, 2.0**-3, 2.0**3, 2.0**11)}
SOLVERS = ["lbfgs", "newton-cg", "newton-cholesky", "liblinear"]
ALPHA = {"alpha": (1.0, 1e-3, 1e-1, 10.0)}


def counterparts(learner, n_classes, tol):
    """Return our learner with its map and values, and scikit-learn's by their names."""
    if learner == "linear-svm":
        ours = LinearSVM, {"multiclass": "ovr", "tol": tol}, C, "C"
        return NBCS, ours, {"LinearSVC": LinearSVC(dual="auto", tol=tol)}
    if learner == "logistic":
        # the Hessian of several classes together has (256 n_classes)^2 entries
        solvers = ["lbfgs", "newton-cg"] if n_classes > 2 else SOLVERS
        peers = {
            solver: LogisticRegression(solver=solver, tol=tol, max_iter=2000) for solver in solvers
        }
        return RFF, (LogisticClassifier, {"tol": tol}, C, "C"), peers
    return RFF, (PathRidgeClassifier, {}, ALPHA, "alpha"), {"RidgeClassifier": RidgeClassifier()}


def searched(fitting):
    """Return the best score of a search of ours, and the share of its fits that converged."""
    found = search(fitting)
    return max(score.gain for score in found.scores), found.converged


def compare(name, learner, tol, repeat, registry):
    """Print the ratio of one search on one dataset."""
    source, params = DATASETS[name]
    data = resolve(registry.get("dataset", source).load)(**params)
    X = MinMaxScaler().fit_transform(np.asarray(data.X, dtype=float))
    y = np.unique(data.y, return_inverse=True)[1]
    n_classes = int(y.max()) + 1
    (make, fixed, space), (ours, options, values, path), peers = counterparts(
        learner, n_classes, tol
    )
    method = Method(
        EstimatorSpec(make, fixed, space), EstimatorSpec(ours, options, values, path=path)
    )
    fitting = Fitting(method, Data(X, y), Protocol(scaling=("none",)), 0)
    folds = inner_folds(fitting)
    functions = {"kbench": lambda: searched(fitting)}
    for title, peer in peers.items():
        pipeline = make_pipeline(make(**fixed, random_state=0), peer)
        (parameter, of_map), (other, of_learner) = *space.items(), *values.items()
        steps = [step for step, _ in pipeline.steps]
        grid = {f"{steps[0]}__{parameter}": of_map, f"{steps[1]}__{other}": of_learner}
        peer_search = GridSearchCV(pipeline, grid, cv=list(folds), refit=False)
        functions[title] = lambda peer_search=peer_search: peer_search.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of liblinear, that it stopped at max_iter
        score, converged = functions["kbench"]()
        seconds = medians(functions, repeat)
        best = min(peers, key=seconds.get)
        theirs = functions[best]().best_score_
    print(
        f"{name:13} {learner:10} {n_classes:2} classes  kbench {seconds['kbench']:7.3f} s, "
        f"{best} {seconds[best]:7.3f} s, ratio {seconds[best] / seconds['kbench']:5.2f}  "
        f"scores {score:.4f} {theirs:.4f}, converged {converged:.0%}",
        flush=True,
    )


def main():
    """Print a line for each dataset and learner."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", nargs="*", choices=DATASETS, default=list(DATASETS))
    parser.add_argument(
        "--learner",
        nargs="*",
        choices=("linear-svm", "logistic", "ridge"),
        default=["linear-svm", "logistic", "ridge"],
    )
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    registry = build(list_plugins())
    for learner in options.learner:
        for name in options.dataset:
            compare(name, learner, options.tol, options.repeat, registry)


if __name__ == "__main__":
    main()
