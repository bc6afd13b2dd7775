"""Combinations of kernels, against their definitions and a convex solver."""

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from kbench.kernels import Gaussian, Linear, Polynomial
from kbench_learners import KernelSVM, MultipleKernelSVM
from kbench_learners._mkl import alignment_weights, centre


@parametrize_with_checks([MultipleKernelSVM(), MultipleKernelSVM(method="margin")])
def test_scikit_learn_interface(estimator, check):
    check(estimator)


def alignment(K, T):
    K = centre(K)
    return np.vdot(K, T) / np.linalg.norm(K) / np.linalg.norm(centre(T))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_alignf_has_the_largest_alignment(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] * X[:, 1] > 0
    grams = [Linear()(X), Polynomial(2)(X), Gaussian(0.3)(X), Gaussian(3.0)(X)]
    targets = (y[:, None] == y).astype(float)
    weights = alignment_weights(grams, targets, "alignf")
    assert (weights >= 0).all() and weights.sum() == pytest.approx(1.0)
    best = alignment(np.tensordot(weights, grams, 1), targets)
    for other in rng.dirichlet(np.ones(4), 50):
        assert alignment(np.tensordot(other, grams, 1), targets) <= best + 1e-6
    for method in ("align", "uniform"):
        others = alignment_weights(grams, targets, method)
        assert (others >= 0).all() and others.sum() == pytest.approx(1.0)
        assert alignment(np.tensordot(others, grams, 1), targets) <= best + 1e-6


def test_align_weighs_each_kernel_by_its_own_alignment():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] > 0
    grams = [Linear()(X), 7.0 * Polynomial(2)(X), Gaussian(1.0)(X), -Linear()(X)]
    targets = (y[:, None] == y).astype(float)
    alone = np.maximum([alignment(K, targets) for K in grams], 0.0)
    weights = alignment_weights(grams, targets, "align")
    np.testing.assert_allclose(weights, alone / alone.sum())
    assert (weights[:3] > 0).all() and weights[3] == 0


def test_the_kernel_that_matters_gets_the_weight():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] * X[:, 1] > 0
    mkl = MultipleKernelSVM(["linear", Polynomial(2), Gaussian(50.0)], C=10.0).fit(X, y)
    assert mkl.weights_.argmax() == 1
    assert mkl.score(X, y) > 0.9
    # equal kernels share
    twice = MultipleKernelSVM(["polynomial", "polynomial"]).fit(X, y)
    assert twice.weights_.sum() == pytest.approx(1.0)
    # the combination is what the weights say
    scales = [np.mean(k.diag(X)) for k in (Linear(), Polynomial(2), Gaussian(50.0))]
    K = sum(
        w * k(X) / s
        for w, k, s in zip(
            mkl.weights_, (Linear(), Polynomial(2), Gaussian(50.0)), scales, strict=True
        )
    )
    np.testing.assert_allclose(mkl.kernel_(X), K)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"method": "simple"},
            "method must be one of 'alignf', .*, 'margin', got 'simple'",
        ),
        ({"kernels": []}, r"kernels must have at least one kernel, .*, got \[\]"),
        ({"kernels": ["precomputed"]}, "none precomputed"),
        ({"C": 0}, "C must be a finite number > 0, got 0"),
        ({"tol": 0}, "tol must be a finite number > 0, got 0"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
    ],
)
def test_mistakes_of_several_kernels(params, message):
    with pytest.raises(ValueError, match=message):
        MultipleKernelSVM(**params).fit([[0.0], [1.0]], [0, 1])


# ---------------------------------------------------------------------------
# The largest margin
# ---------------------------------------------------------------------------


def smallest_objective(grams, y, C, fit_intercept):
    """Solve Lanckriet's quadratically constrained programme; return its value and weights."""
    alpha, t = cvxpy.Variable(len(y)), cvxpy.Variable()
    bounds = []
    for K in grams:
        values, vectors = np.linalg.eigh(K)
        root = vectors * np.sqrt(np.maximum(values, 0))
        bounds.append(0.5 * cvxpy.sum_squares(root.T @ cvxpy.multiply(y, alpha)) <= t)
    box = [alpha >= 0, alpha <= C] + ([y @ alpha == 0] if fit_intercept else [])
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(alpha) - t), bounds + box)
    problem.solve(solver=cvxpy.CLARABEL)
    return problem.value, np.array([np.asarray(bound.dual_value).item() for bound in bounds])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_margin_weights_solve_the_programme_of_lanckriet(seed, C, fit_intercept):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.2 * rng.normal(size=40) > 0
    signs = np.where(y, 1.0, -1.0)
    kernels = [Linear(), Polynomial(2), Gaussian(1.0), Gaussian(3.0)]
    mkl = MultipleKernelSVM(
        kernels, "margin", C=C, fit_intercept=fit_intercept, tol=1e-6, max_iter=500
    ).fit(X, y)
    grams = [kernel(X) / np.mean(kernel.diag(X)) for kernel in kernels]
    best, weights = smallest_objective(grams, signs, C, fit_intercept)
    c = np.zeros(40)
    c[mkl.svm_.support_] = mkl.svm_.dual_coef_[0]
    reached = np.abs(c).sum() - 0.5 * c @ np.tensordot(mkl.weights_, grams, 1) @ c
    assert reached == pytest.approx(best, rel=1e-5)
    np.testing.assert_allclose(mkl.weights_, weights, atol=5e-3)
    assert mkl.converged_ and mkl.gap_ <= 1e-6 and mkl.n_iter_ > 1


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_problems_of_several_classes_share_the_weights(multiclass):
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kernels = [Linear(), Gaussian(0.5), Gaussian(1.0)]
    grams = [kernel(X) / np.mean(kernel.diag(X)) for kernel in kernels]

    def objective(weights):
        K = np.tensordot(weights, grams, 1)
        svm = KernelSVM("precomputed", C=20.0, multiclass=multiclass, tol=1e-8).fit(K, y)
        part = svm.dual_coef_ @ K[np.ix_(svm.support_, svm.support_)]
        return np.abs(svm.dual_coef_).sum() - 0.5 * np.vdot(part, svm.dual_coef_)

    mkl = MultipleKernelSVM(kernels, "margin", C=20.0, multiclass=multiclass, tol=1e-5).fit(X, y)
    assert np.count_nonzero(mkl.weights_ > 0.01) > 1
    best = objective(mkl.weights_)
    for other in [*np.eye(3), *np.random.default_rng(0).dirichlet(np.ones(3), 30)]:
        assert best <= objective(other) * (1 + 2e-5)


@pytest.mark.parametrize("method", ["alignf", "margin"])
def test_a_path_is_separate_fits(method):
    X, y = load_iris(return_X_y=True)
    mkl = MultipleKernelSVM([Linear(), Gaussian(1.0)], method, tol=1e-6)
    values = [10.0, 0.01, 1.0]
    for C, fitted in zip(values, mkl.fit_path(X, y, values), strict=True):
        alone = clone(mkl).set_params(C=C).fit(X, y)
        assert fitted.C == C and fitted.converged_
        np.testing.assert_allclose(fitted.weights_, alone.weights_, atol=1e-6)
        np.testing.assert_allclose(
            fitted.decision_function(X), alone.decision_function(X), atol=1e-3
        )


def test_too_few_machines_are_reported():
    X, y = load_iris(return_X_y=True)
    mkl = MultipleKernelSVM([Linear(), Gaussian(0.3)], "margin", max_iter=1)
    with pytest.warns(ConvergenceWarning, match="raise max_iter=1"):
        mkl.fit(X, y)
    assert not mkl.converged_ and mkl.gap_ > mkl.tol
