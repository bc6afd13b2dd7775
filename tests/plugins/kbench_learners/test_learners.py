import importlib
import inspect
import subprocess
import sys
from functools import partial
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

import kbench_learners
from kbench import Ref
from kbench.evaluation.method import learner_side
from kbench.evaluation.specs import EstimatorSpec
from kbench.registry.installed import HOST, list_plugins
from kbench.registry.registry import build
from kbench_learners import PathRidgeClassifier, _ridge
from kbench_learners._estimator import class_numbers
from kbench_learners._linear_svm import margin_error
from kbench_learners._ridge import ridge_path

RECORDS = {record.name: record for record in kbench_learners.kbench_learners()}
REGISTRY = build(plugin for plugin in list_plugins() if plugin.distribution == HOST)
BUILT_IN = REGISTRY.all("learner")


def resolved(make):
    module, name = make.split(":")
    if module == "kbench_learners._lightgbm":
        pytest.importorskip("lightgbm", reason="needs the extra 'reference'")
    return getattr(importlib.import_module(module), name)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return MinMaxScaler().fit_transform(X), y


def test_names_of_the_design_are_there():
    wanted = {"linear-svm", "logistic", "ridge", "cvm", "knn", "gradient-boosting"}
    assert wanted | {"dummy-majority", "dummy-mean"} <= RECORDS.keys()


def test_tasks_know_which_models_of_a_learner_are_simpler():
    registry = build(list_plugins())
    for name in ("linear-svm", "ridge"):
        component = learner_side(Ref(name), registry)["learner"]
        assert component.simpler == RECORDS[name].simpler != {}


@pytest.mark.parametrize(
    ("name", "task"), [(name, task) for name, record in RECORDS.items() for task in record.tasks]
)
def test_records_resolve_and_learn(name, task, wine):
    record = RECORDS[name]
    make = resolved(record.estimator(task))
    parameters = inspect.signature(make).parameters
    assert set(record.grid) <= set(parameters)
    assert set(record.simpler) <= set(parameters)
    assert set(record.simpler.values()) <= {"smaller", "larger"}
    assert all(p.default is not p.empty for p in parameters.values())
    learner = clone(make())
    if hasattr(learner, "random_state"):
        learner.set_params(random_state=0)
    if name == "random-forest":
        learner.set_params(n_estimators=20)
    X, y = wine
    if task == "regression":
        X, y = X[:, 1:], X[:, 0]
    with threadpool_limits(1):
        fitted = learner.fit(X, y)
    floors = {"classification": 0.9, "regression": 0.5}
    floor = {"dummy-majority": 0.35, "dummy-mean": -0.01}.get(name, floors[task])
    assert fitted.score(X, y) > floor
    with threadpool_limits(1):
        again = clone(learner).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), again.predict(X))
    if record.metrics is not None:
        metrics = resolved(record.metrics)(fitted, X, y)
        assert all(0.0 <= value <= 1.0 for value in metrics.values())


@pytest.mark.parametrize(
    ("name", "task"),
    [(name, task) for name, record in RECORDS.items() if record.path for task in record.tasks],
)
def test_paths_follow_the_grid(name, task, wine):
    record = RECORDS[name]
    X, y = wine
    y = X[:, 0] if task == "regression" else y
    values = list(record.grid[record.path])
    path = resolved(record.estimator(task))().fit_path(X, y, values)
    assert [getattr(fitted, record.path) for fitted in path] == values
    assert all(fitted.converged_ for fitted in path)


def default_of(parameter):
    """Return a parameter's default as a grid writes it: a kernel by its name and parameters."""
    kernels = REGISTRY.all("kernel")
    if parameter.name == "kernel" and parameter.default in kernels:
        given = inspect.signature(resolved(kernels[parameter.default].make)).parameters
        return Ref(parameter.default, {name: each.default for name, each in given.items()})
    return parameter.default


@pytest.mark.parametrize(
    ("name", "task"), [(name, task) for name in BUILT_IN for task in BUILT_IN[name].tasks]
)
def test_grids_begin_with_the_default_and_rise(name, task):
    record = BUILT_IN[name]
    parameters = inspect.signature(resolved(record.estimator(task))).parameters
    for key, values in record.grid.items():
        if len(values) > 1:  # else it is a setting and no search
            assert values[0] == default_of(parameters[key]), key
            numbers = [value for value in values[1:] if type(value) in (int, float)]
            assert numbers == sorted(numbers)
            assert all(value not in values[:i] for i, value in enumerate(values))


@pytest.mark.parametrize("name", [name for name in BUILT_IN if BUILT_IN[name].classifier])
def test_records_declare_the_scheme_of_their_classifier(name):
    record = BUILT_IN[name]
    parameter = inspect.signature(resolved(record.classifier)).parameters.get("multiclass")
    assert parameter is None or parameter.default == record.multiclass


def test_import_is_light():
    code = (
        "import sys, kbench_learners as k; k.kbench_learners(); "
        "sys.exit(bool({'sklearn', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_exports_are_lazy_and_complete():
    for name in kbench_learners.__all__:
        assert inspect.isclass(getattr(kbench_learners, name))
        assert name in dir(kbench_learners)
    with pytest.raises(AttributeError, match="nothing"):
        _ = kbench_learners.nothing


@pytest.mark.parametrize("shape", [(300, 30), (60, 64), (40, 200)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_ridge_equals_scikit_learn(shape, n_classes):
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape) + 3.0
    y = np.arange(shape[0]) % n_classes
    for alpha, fitted in zip(
        [0.1, 10.0], PathRidgeClassifier().fit_path(X, y, [0.1, 10.0]), strict=True
    ):
        reference = RidgeClassifier(alpha=alpha).fit(X, y)
        np.testing.assert_allclose(fitted.coef_, np.atleast_2d(reference.coef_), atol=1e-8)
        np.testing.assert_allclose(fitted.intercept_, reference.intercept_, atol=1e-7)
        sparse = PathRidgeClassifier(alpha=alpha).fit(sp.csr_array(X), y)
        np.testing.assert_allclose(sparse.coef_, fitted.coef_, atol=1e-6)


@pytest.mark.parametrize("scatters", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(300, 30), (120, 50), (40, 200)])
def test_ridge_of_pairs_equals_scikit_learn(shape, weighted, scatters, monkeypatch):
    if not scatters:
        monkeypatch.setattr("kbench_learners._ridge._MAX_SCATTER_ENTRIES", 0)
    rng = np.random.default_rng(2)
    X = rng.normal(size=shape) + 30.0
    y = np.minimum(np.arange(shape[0]) % 6, 3)  # of one class three times as many
    X[:, 0] += y
    weight = rng.uniform(0.1, 2.0, len(y)) if weighted else None
    ours = PathRidgeClassifier(multiclass="ovo").fit_path(X, y, [10.0, 0.1], weight)
    for alpha, fitted in zip([10.0, 0.1], ours, strict=True):
        for number, (i, j) in enumerate(combinations(range(4), 2)):
            rows = np.flatnonzero((y == i) | (y == j))
            pair = RidgeClassifier(alpha=alpha).fit(
                X[rows], y[rows] == i, None if weight is None else weight[rows]
            )
            np.testing.assert_allclose(fitted.coef_[number], np.ravel(pair.coef_), atol=1e-8)
            np.testing.assert_allclose(
                fitted.intercept_[number], float(pair.intercept_[0]), atol=1e-6
            )
        sparse = PathRidgeClassifier(alpha, "ovo").fit(sp.csr_array(X), y, weight)
        np.testing.assert_allclose(sparse.coef_, fitted.coef_, atol=1e-6)


@pytest.mark.parametrize("load", [load_wine, load_digits])
def test_pairs_vote_as_scikit_learn_does(load):
    X, y = load(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    reference = OneVsOneClassifier(RidgeClassifier(alpha=0.5)).fit(X[::2], y[::2])
    fitted = PathRidgeClassifier(alpha=0.5, multiclass="ovo").fit(X[::2], y[::2])
    np.testing.assert_allclose(
        fitted.decision_function(X), reference.decision_function(X), atol=1e-6
    )
    np.testing.assert_array_equal(fitted.predict(X), reference.predict(X))
    assert 0.0 <= margin_error(fitted, X, y)["margin_error"] <= 1.0


def test_ridge_of_pairs_without_weight_is_finite():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    fitted = PathRidgeClassifier(multiclass="ovo").fit(X, y, (y == 2).astype(float))
    assert np.isfinite(fitted.coef_).all() and (fitted.predict(X) == 2).all()


def test_iterated_ridge_agrees_and_reports(monkeypatch):
    X, y = load_digits(return_X_y=True)
    X, y = X[:500] / 16.0, y[:500]
    direct = PathRidgeClassifier(alpha=0.5).fit(X, y)
    monkeypatch.setattr("kbench_learners._ridge.MAX_FACTOR_COLUMNS", 5)
    monkeypatch.setattr("kbench_learners._ridge.MAX_FACTOR_ROWS", 5)
    iterated = PathRidgeClassifier(alpha=0.5, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(iterated.coef_, direct.coef_, atol=1e-5)
    with pytest.warns(ConvergenceWarning, match="alpha=0.5"):
        assert not PathRidgeClassifier(alpha=0.5, max_iter=2).fit(X, y).converged_


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize(
    ("share", "columns", "way"),
    [(1.0, 100, "row_gram"), (0.1, 100, "column_gram"), (0.1, 5, "_iterate"), (1.0, 5, "row_gram")],
)
def test_a_trial_of_ridge_is_solved_as_all_rows_are(monkeypatch, multiclass, share, columns, way):
    """The number of all rows decides: 48 rows with 64 columns are a sample of 480 rows."""
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:48] / 16.0, y[:48]
    ridge = partial(PathRidgeClassifier, alpha=0.5, multiclass=multiclass, tol=1e-10)
    expected = ridge().fit(X, y).coef_
    monkeypatch.setattr(_ridge, "MAX_FACTOR_COLUMNS", columns)
    monkeypatch.setattr(_ridge, "MAX_FACTOR_ROWS", 100)
    used = set()
    for name in ("row_gram", "column_gram", "_iterate"):
        solve = getattr(_ridge, name)
        monkeypatch.setattr(
            _ridge, name, lambda *a, n=name, f=solve, **k: used.add(n) or f(*a, **k)
        )
    fitted = EstimatorSpec(ridge, row_share=share).fit({}, 0, X, y)
    np.testing.assert_allclose(fitted.coef_, expected, atol=1e-8)
    assert used == {way}


def test_ridge_of_dependent_columns_is_finite():
    X = np.outer(np.arange(20.0), np.ones(5)) * 1e8
    Y = np.where(np.arange(20)[:, None] < 10, 1.0, -1.0)
    ((W, b, converged),) = ridge_path(X, Y, [1e-6])
    assert converged and np.isfinite(W).all()
    assert np.mean(np.sign(X @ W + b) == Y) > 0.9


def test_ridge_names_what_is_wrong():
    with pytest.raises(ValueError, match="alpha must be a finite number > 0, got 0"):
        PathRidgeClassifier(alpha=0).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="multiclass must be one of 'ovr', 'ovo', got 'auto'"):
        PathRidgeClassifier(multiclass="auto").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="1 class"):
        PathRidgeClassifier().fit([[0.0], [1.0]], [1, 1])


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_ridge_sklearn_contract(multiclass):
    check_estimator(PathRidgeClassifier(multiclass=multiclass))


@pytest.mark.parametrize(
    ("labels", "codes"),
    [
        (np.array([7, 3, 7, 3], dtype=np.uint8), [1, 0, 1, 0]),
        (np.array(["b", "a", "b", "a"]), [1, 0, 1, 0]),
        (np.array([True, False, True, False]), [1, 0, 1, 0]),
        (np.array(["b", "a", "b", "a"], dtype=object), [1, 0, 1, 0]),
        (np.array([2.0, -1.0, 2.0, -1.0]), [1, 0, 1, 0]),
    ],
)
def test_labels_of_all_kinds_become_class_numbers(labels, codes):
    estimator = PathRidgeClassifier()
    assert class_numbers(estimator, labels).tolist() == codes
    assert estimator.classes_.tolist() == np.unique(labels).tolist()


@pytest.mark.parametrize("labels", [np.array([0.5, 1.5, 2.5]), np.array([0.5, 1.5, 2.5], "O")])
def test_labels_that_are_no_classes_are_refused(labels):
    with pytest.raises(ValueError, match=r"[Uu]nknown"):
        class_numbers(PathRidgeClassifier(), labels)
