"""Logistic regression with a solver chosen by size, against scikit-learn's own."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from kbench_learners import LogisticClassifier
from kbench_learners._logistic import quicker_solver


@parametrize_with_checks([LogisticClassifier(), LogisticClassifier(multiclass="ovr")])
def test_scikit_learn_interface(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("n_columns", "n_classes", "C", "solver"),
    [
        (36, 6, 8.0, "newton-cholesky"),
        (36, 6, 2.0**-3, "lbfgs"),
        (16, 26, 2.0**11, "newton-cholesky"),
        (300, 2, 1.0, "lbfgs"),
        (150, 2, 1.0, "newton-cholesky"),
        (600, 2, 1e9, "lbfgs"),
    ],
)
def test_solver_by_number_of_coefficients(n_columns, n_classes, C, solver):
    assert quicker_solver(n_columns, n_classes, C) == solver


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("C", [1e-2, 1e2])
def test_it_is_scikit_learn_s(n_classes, C):
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    X, names = X[:300] / 16, np.array(["a", "b", "c", "d", "e"])[y[:300]]
    ours = LogisticClassifier(C=C, tol=1e-8).fit(X, names)
    theirs = LogisticRegression(C=C, tol=1e-8, max_iter=10_000).fit(X, names)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    sparse = LogisticClassifier(C=C, tol=1e-8).fit(sp.csr_matrix(X), names)
    assert sparse.solver_ == ours.solver_
    np.testing.assert_allclose(sparse.coef_, ours.coef_, atol=1e-4)


@pytest.mark.parametrize("C", [1e-2, 1e2])
def test_each_class_against_the_rest_is_scikit_learn_s(C):
    X, y = load_digits(n_class=5, return_X_y=True)
    X, y = X[:300] / 16, y[:300]
    ours = LogisticClassifier(C=C, multiclass="ovr", tol=1e-8).fit(X, y)
    theirs = OneVsRestClassifier(LogisticRegression(C=C, tol=1e-8, max_iter=10_000)).fit(X, y)
    assert ours.coef_.shape == (5, 64)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize(
    ("multiclass", "n_columns", "chosen"),
    [("multinomial", 20, {"lbfgs", "newton-cholesky"}), ("ovr", 20, {"newton-cholesky"})],
)
def test_a_path_is_separate_fits(multiclass, n_columns, chosen):
    X, y = load_digits(return_X_y=True)
    X, y = X[:400, :n_columns] / 16, y[:400]
    values = [2.0**11, 2.0**-3, 8.0]
    path = LogisticClassifier(multiclass=multiclass).fit_path(X, y, values)
    assert {fitted.solver_ for fitted in path} == chosen
    for C, fitted in zip(values, path, strict=True):
        alone = LogisticClassifier(C=C, multiclass=multiclass).fit(X, y)
        assert fitted.C == C and fitted.converged_
        np.testing.assert_allclose(fitted.predict_proba(X), alone.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("C", [1e-3, 1e3])  # both solvers
def test_no_convergence_is_reported(C):
    X, y = load_digits(n_class=3, return_X_y=True)
    logistic = LogisticClassifier(C=C, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="raise max_iter=1"):
        logistic.fit(X, y)
    assert not logistic.converged_


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0}, "C must be a finite number > 0, got 0"),
        ({"tol": "small"}, "tol must be a finite number > 0, got 'small'"),
        ({"multiclass": "ovo"}, "multiclass must be one of 'multinomial', 'ovr', got 'ovo'"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
    ],
)
def test_mistakes_name_the_parameter(params, message):
    with pytest.raises(ValueError, match=message):
        LogisticClassifier(**params).fit([[0.0], [1.0]], [0, 1])
