"""Kernel ridge classification against the linear system and scikit-learn."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from kbench.kernels import Gaussian
from kbench_learners import KernelRidgeClassifier


@parametrize_with_checks(
    [KernelRidgeClassifier(multiclass="ovo"), KernelRidgeClassifier(fit_intercept=False)]
)
def test_scikit_learn_interface(estimator, check):
    check(estimator)


@pytest.fixture
def iris():
    return load_iris(return_X_y=True)


def test_without_bias_it_is_kernel_ridge(iris):
    X, y = iris
    targets = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    exact = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5).fit(X, targets).predict(X)
    ours = KernelRidgeClassifier(Gaussian(1.0), alpha=0.3, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), exact, atol=1e-8)


def test_linear_with_bias_is_ridge_with_intercept(iris):
    X, y = iris
    for classes in (2, 3):
        rows = y < classes
        ours = KernelRidgeClassifier("linear", alpha=2.0).fit(X[rows], y[rows])
        theirs = RidgeClassifier(alpha=2.0).fit(X[rows], y[rows])
        np.testing.assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), atol=1e-8
        )
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_pairs_are_separate_fits_that_vote(kernel, iris):
    X, y = iris
    ours = KernelRidgeClassifier(kernel, alpha=2.0, multiclass="ovo")
    ours.fit(X @ X.T if kernel == "precomputed" else X, y)
    theirs = OneVsOneClassifier(RidgeClassifier(alpha=2.0)).fit(X, y)
    assert ours.dual_coef_.shape == (3, len(X))
    decisions = ours.decision_function(X @ X.T if kernel == "precomputed" else X)
    np.testing.assert_allclose(decisions, theirs.decision_function(X), atol=1e-8)


def test_precomputed(iris):
    X, y = iris
    kernel = Gaussian(0.8)
    direct = KernelRidgeClassifier(kernel).fit(X[::2], y[::2])
    K = kernel(X[::2])
    before = K.copy()
    gram = KernelRidgeClassifier("precomputed").fit(K, y[::2])
    np.testing.assert_allclose(
        gram.decision_function(kernel(X, X[::2])), direct.decision_function(X), atol=1e-8
    )
    np.testing.assert_array_equal(K, before)


def test_similarities_that_are_no_kernels(iris):
    X, y = iris
    ridge = KernelRidgeClassifier(lambda X, Y: -(X @ Y.T), alpha=0.5)
    with pytest.warns(ConvergenceWarning, match="not positive definite"):
        ridge.fit(X, y)
    assert np.isfinite(ridge.decision_function(X)).all()


@pytest.mark.parametrize("alpha", [0, -1.0, np.inf, "1"])
def test_bad_alpha(alpha, iris):
    with pytest.raises(ValueError, match="alpha must be a finite number > 0, got"):
        KernelRidgeClassifier(alpha=alpha).fit(*iris)
