"""Ridge, kernel ridge, linear SVR, the exact Gaussian process and the mean, as regressors."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from kbench.kernels import Gaussian
from kbench_learners import (
    GaussianProcess,
    KernelRidgeRegressor,
    LinearSVR,
    MeanRegressor,
    PathRidge,
    PathRidgeClassifier,
)


@pytest.mark.slow
@parametrize_with_checks(
    [
        PathRidge(),
        KernelRidgeRegressor(),
        LinearSVR(),
        GaussianProcess(),
        GaussianProcess("matern-3/2", ard=True),
        MeanRegressor(),
    ]
)
def test_scikit_learn_interface(estimator, check):
    check(estimator)


def problem(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 1.0
    return X, X @ rng.standard_normal(p) + rng.standard_normal(n), rng.integers(0, 4, n)


@pytest.mark.parametrize("shape", [(100, 8), (30, 60)])
@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_equals_scikit_learn(shape, weighted):
    X, y, weight = problem(*shape)
    weight = weight if weighted else None
    path = PathRidge().fit_path(X, y, [10.0, 0.1], sample_weight=weight)
    for fitted, alpha in zip(path, [10.0, 0.1], strict=True):
        theirs = Ridge(alpha=alpha).fit(X, y, weight)
        for ours in (fitted, PathRidge(alpha).fit(sp.csr_array(X), y, sample_weight=weight)):
            np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
            assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-8)


@pytest.mark.parametrize("shape", [(100, 8), (30, 60)])
def test_iterated_ridge_takes_weights(shape, monkeypatch):
    X, y, weight = problem(*shape)
    monkeypatch.setattr("kbench_learners._ridge.MAX_FACTOR_COLUMNS", 5)
    monkeypatch.setattr("kbench_learners._ridge.MAX_FACTOR_ROWS", 5)
    ours = PathRidge(tol=1e-12).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, Ridge().fit(X, y, weight).coef_, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_ridge_classifier_takes_weights(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    weight = np.random.default_rng(0).random(len(y))
    (ours,) = PathRidgeClassifier().fit_path(X, y, [0.5], sample_weight=weight)
    theirs = RidgeClassifier(alpha=0.5).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, np.atleast_2d(theirs.coef_), atol=1e-8)


@pytest.mark.parametrize("shape", [(100, 8), (30, 60)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_linear_svr_equals_scikit_learn(shape, weighted, fit_intercept):
    X, y, weight = problem(*shape)
    weight = weight if weighted else None
    ours = LinearSVR(epsilon=0.3, tol=1e-12, fit_intercept=fit_intercept)
    for fitted in ours.fit_path(X, y, [10.0, 0.1], sample_weight=weight):
        theirs = sklearn.svm.LinearSVR(
            C=fitted.C,
            epsilon=0.3,
            loss="squared_epsilon_insensitive",
            dual=False,
            fit_intercept=fit_intercept,
            tol=1e-10,
            max_iter=10_000,
        ).fit(X, y, weight)
        np.testing.assert_allclose(fitted.coef_, theirs.coef_, atol=1e-6)
        assert fitted.intercept_ == pytest.approx(np.ravel(theirs.intercept_)[0], abs=1e-6)
        assert fitted.converged_
        sparse = LinearSVR(fitted.C, 0.3, 1e-12, fit_intercept=fit_intercept)
        sparse.fit(sp.csr_array(X), y, sample_weight=weight)
        np.testing.assert_allclose(sparse.coef_, fitted.coef_, atol=1e-6)


def test_linear_svr_reports_that_it_did_not_converge():
    X, y, _ = problem(100, 8)
    with pytest.warns(ConvergenceWarning, match=r"at C=10, epsilon=0\.3 in 1 steps"):
        assert not LinearSVR(10.0, 0.3, tol=1e-12, max_iter=1).fit(X, y).converged_


def test_errors_below_epsilon_cost_nothing():
    X, y, _ = problem(50, 3)
    model = LinearSVR(epsilon=1e3).fit(X, y)
    assert model.converged_ and not model.coef_.any() and model.intercept_ == 0.0


def test_kernel_ridge_equals_scikit_learn():
    X, y, _ = problem(60, 4)
    ours = KernelRidgeRegressor(Gaussian(2.0), alpha=0.3, fit_intercept=False).fit(X, y)
    theirs = KernelRidge(alpha=0.3, kernel="rbf", gamma=1 / 8).fit(X, y)
    np.testing.assert_allclose(ours.predict(X + 0.1), theirs.predict(X + 0.1), atol=1e-8)
    linear = KernelRidgeRegressor("linear", alpha=2.0).fit(X, y)
    np.testing.assert_allclose(linear.predict(X), Ridge(alpha=2.0).fit(X, y).predict(X), atol=1e-8)


def test_the_gaussian_process_includes_the_noise_once():
    X, y, _ = problem(40, 2)
    ours = GaussianProcess().fit(X, y)
    scale = y.std()
    kernel = ours.kernel_
    theirs = GaussianProcessRegressor(kernel.k1, alpha=kernel.k2.noise_level, optimizer=None).fit(
        X, (y - y.mean()) / scale
    )
    mean, sd = ours.predict(X + 0.5, return_std=True)
    their_mean, their_sd = theirs.predict(X + 0.5, return_std=True)
    np.testing.assert_allclose(mean, y.mean() + scale * their_mean, atol=1e-6)
    expected = scale * np.sqrt(their_sd**2 + kernel.k2.noise_level)
    np.testing.assert_allclose(sd, expected, rtol=1e-6)
    np.testing.assert_allclose(ours.predict(X + 0.5), mean)


def test_the_gaussian_process_reports_its_optimiser():
    X, y, _ = problem(40, 2)
    assert GaussianProcess().fit(X, y).converged_
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 steps"):
        model = GaussianProcess(max_iter=1).fit(X, y)
    assert not model.converged_
    restarted = GaussianProcess(n_restarts=2, random_state=0).fit(X, y)
    assert restarted.log_marginal_likelihood_ >= model.log_marginal_likelihood_


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"max_rows": 39}, "takes time cubic in the rows, and there are 40; .* max_rows allows 39"),
        ({"kernel": "cubic"}, "kernel must be one of 'gaussian', .*got 'cubic'"),
        ({"n_restarts": -1}, "n_restarts must be an integer >= 0, got -1"),
    ],
)
def test_what_the_gaussian_process_refuses(params, words):
    X, y, _ = problem(40, 2)
    with pytest.raises(ValueError, match=words):
        GaussianProcess(**params).fit(X, y)


def test_the_mean_of_weighted_rows():
    X, y, weight = problem(40, 2)
    repeated = np.repeat(np.arange(40), weight)
    ours = MeanRegressor().fit(X, y, sample_weight=weight).predict(X[:1], return_std=True)
    other = MeanRegressor().fit(X[repeated], y[repeated]).predict(X[:1], return_std=True)
    np.testing.assert_allclose(ours, other)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (PathRidge(alpha=0), "alpha must be a finite number > 0, got 0"),
        (LinearSVR(C=0), "C must be a finite number > 0, got 0"),
        (LinearSVR(epsilon=-1), "epsilon must be a finite number >= 0, got -1"),
        (KernelRidgeRegressor(alpha=-1), "alpha must be a finite number > 0, got -1"),
    ],
)
def test_a_bad_parameter_is_named(estimator, words):
    with pytest.raises(ValueError, match=words):
        estimator.fit([[0.0], [1.0]], [0.0, 1.0])
