"""Kernel machines with and without bias, against scikit-learn and the optimality conditions."""

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kbench.evaluation.specs import EstimatorSpec
from kbench.kernels import Gaussian, LaplaceBalcan, Linear, Polynomial
from kbench_learners import KernelSVM, _kernel_machine, _kernel_svm
from kbench_learners._kernel_svm import solve_box_qp


@parametrize_with_checks([KernelSVM(), KernelSVM("linear", fit_intercept=False)])
def test_scikit_learn_interface(estimator, check):
    check(estimator)


@pytest.fixture
def ring():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = (np.sum(X**2, axis=1) > 1.2) ^ (rng.random(150) < 0.05)
    return X, y


def test_with_bias_it_is_svc(ring):
    X, y = ring
    ours = KernelSVM(Gaussian(0.8), C=3.0, tol=1e-8).fit(X, y)
    theirs = SVC(C=3.0, gamma=1 / (2 * 0.8**2), tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(ours.support_, np.sort(theirs.support_))
    assert ours.converged_


def test_without_bias_it_is_liblinear_without_intercept(ring):
    X, y = ring
    X = X + 0.5
    ours = KernelSVM("linear", C=0.7, fit_intercept=False, tol=1e-10).fit(X, y)
    theirs = LinearSVC(C=0.7, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=1_000_000).fit(
        X, y
    )
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    assert ours.intercept_ == [0.0]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 40),
    rank=st.integers(1, 5),
    C=st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e4]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_box_qp_is_optimal(seed, n, rank, C, scale):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) * np.sqrt(scale)
    signs = rng.choice([-1.0, 1.0], n)
    Q = (X * signs[:, None]) @ (X * signs[:, None]).T
    solution = solve_box_qp(Q, C, 1e-5, 200)
    assert solution.gap <= 1e-5
    a = solution.a
    assert (a >= 0).all() and (a <= C).all()
    # the gap is measured, not assumed: weak duality with the primal at w = sum a y x, beside what
    # float64 can lose in the margins of n rows
    lost = n * np.finfo(float).eps * C * (1 + abs(Q) @ a).sum()
    rows, a = (X * signs[:, None]).astype(np.longdouble), a.astype(np.longdouble)
    w = rows.T @ a
    primal = w @ w / 2 + C * np.maximum(0, 1 - rows @ w).sum()
    dual = a.sum() - w @ w / 2
    assert primal - dual <= 1e-5 * primal + lost
    # no other point of the box is better
    for other in (np.zeros(n), np.full(n, C), rng.uniform(0, C, n)):
        assert other.sum() - other @ Q @ other / 2 <= primal * (1 + 1e-6)


def test_scale_does_not_matter():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150], y[:150]
    for kernel in (Linear(), Gaussian(100.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            svm = KernelSVM(kernel, C=10, fit_intercept=False).fit(X, y)
        assert svm.converged_
        # the same problem in other units
        scaled = KernelSVM(1e-4 * kernel, C=10 * 1e4, fit_intercept=False).fit(X, y)
        np.testing.assert_allclose(
            svm.decision_function(X), scaled.decision_function(X), rtol=1e-2, atol=1e-2
        )


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_convergence_is_reported(ring, fit_intercept):
    svm = KernelSVM("gaussian", C=100.0, fit_intercept=fit_intercept, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="scale the inputs"):
        svm.fit(*ring)
    assert not svm.converged_


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_three_classes(multiclass, fit_intercept):
    X, y = load_iris(return_X_y=True)
    svm = KernelSVM(
        "gaussian", C=10.0, multiclass=multiclass, fit_intercept=fit_intercept, tol=1e-6
    ).fit(X, y)
    assert svm.score(X, y) > 0.95
    assert svm.decision_function(X).shape == (150, 3)
    if fit_intercept and multiclass == "ovo":
        gamma = 0.5 / svm.kernel_.bandwidth**2
        theirs = SVC(C=10.0, gamma=gamma, tol=1e-6).fit(X, y)
        np.testing.assert_array_equal(svm.predict(X), theirs.predict(X))


def test_precomputed_and_sparse(ring):
    import scipy.sparse as sp

    X, y = ring
    kernel = LaplaceBalcan(0.9)
    for fit_intercept in (True, False):
        params = {"C": 2.0, "fit_intercept": fit_intercept, "tol": 1e-8}
        direct = KernelSVM(kernel, **params).fit(X[:100], y[:100]).decision_function(X)
        gram = KernelSVM("precomputed", **params).fit(kernel(X[:100]), y[:100])
        np.testing.assert_allclose(gram.decision_function(kernel(X, X[:100])), direct, atol=1e-5)
        sparse = KernelSVM(kernel, **params).fit(sp.csr_matrix(X[:100]), y[:100])
        np.testing.assert_allclose(sparse.decision_function(X), direct, atol=1e-5)


@pytest.mark.parametrize("kernel", [Gaussian(1), Linear(), Polynomial(3, 0.5), LaplaceBalcan(0.9)])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_a_gram_matrix_and_libsvm_s_own_kernel_agree(kernel, multiclass, monkeypatch):
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    fits = []
    for largest_gram in (0, 2**27):
        monkeypatch.setattr(_kernel_svm, "_MAX_GRAM_ENTRIES", largest_gram)
        monkeypatch.setattr(_kernel_svm, "_MAX_DENSE_COLUMNS", 0)
        gram = largest_gram > 0 or isinstance(kernel, LaplaceBalcan)
        assert _kernel_svm.needs_no_gram(kernel, X, 1) != gram
        svm = KernelSVM(kernel, C=3.0, tol=1e-9, multiclass=multiclass).fit(X, y)
        fits.append(svm.decision_function(X))
        np.testing.assert_array_equal(svm.support_, np.sort(svm.support_))
    np.testing.assert_allclose(*fits, atol=1e-5)


def test_a_trial_on_some_rows_is_computed_as_all_rows_are(monkeypatch):
    kernel, X, y = Gaussian(1.0), np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    margins = KernelSVM(kernel, C=0.5).fit(X, y).decision_function(X)
    sizes, svc = [], _kernel_svm.SVC
    monkeypatch.setattr(_kernel_svm, "SVC", lambda **p: sizes.append(p["cache_size"]) or svc(**p))
    assert not _kernel_svm.needs_no_gram(kernel, X, 2)
    assert _kernel_svm.needs_no_gram(kernel, X, 2, row_share=0.01)  # of 20,000 rows
    sample = EstimatorSpec(partial(KernelSVM, kernel, C=0.5), row_share=0.01)
    np.testing.assert_allclose(sample.fit({}, 0, X, y).decision_function(X), margins)
    assert sizes == pytest.approx([200 / 100**2])


def test_a_sample_predicts_in_blocks_of_its_pairs_of_rows(ring, monkeypatch):
    """Their memory grows as that of kernel values: it is predicted from samples."""
    X, y = ring
    fitted = KernelSVM(Gaussian(0.8)).fit(X, y)
    whole, n_support = fitted.decision_function(X), len(fitted.support_)
    blocks = []
    monkeypatch.setattr(Gaussian, "__call__", counted(Gaussian.__call__, blocks))
    monkeypatch.setattr(_kernel_machine, "_BLOCK_ENTRIES", 100 * 50 * n_support)
    monkeypatch.setattr(_kernel_machine, "_LEAST_ENTRIES", 1)
    fitted.scale_sizes(0.1)
    np.testing.assert_allclose(fitted.decision_function(X), whole, atol=1e-12)
    assert blocks == [50, 50, 50]
    # small blocks would take longer than the values
    monkeypatch.setattr(_kernel_machine, "_LEAST_ENTRIES", 75 * n_support)
    np.testing.assert_allclose(fitted.decision_function(X), whole, atol=1e-12)
    assert blocks[3:] == [75, 75]


def counted(kernel, blocks):
    def call(self, X, Y=None):
        blocks.append(len(X))
        return kernel(self, X, Y)

    return call


@pytest.mark.parametrize("n_classes", [2, 4])
def test_pairs_have_the_decisions_of_svc(n_classes):
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    X, y = X[:200] / 16, y[:200]
    ours = KernelSVM(Gaussian(1.0), C=0.5, tol=1e-8).fit(X, y)
    theirs = SVC(C=0.5, gamma=0.5, tol=1e-8, decision_function_shape="ovo").fit(X, y)
    margins = ours._checked_margins(X)
    expected = theirs.decision_function(X).reshape(margins.shape)
    np.testing.assert_allclose(margins, expected, atol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_a_path_is_separate_fits(multiclass, fit_intercept):
    X, y = load_iris(return_X_y=True)
    svm = KernelSVM(Gaussian(1.0), multiclass=multiclass, fit_intercept=fit_intercept, tol=1e-8)
    values = [100.0, 0.5, 1e5]
    for C, fitted in zip(values, svm.fit_path(X, y, values), strict=True):
        alone = clone(svm).set_params(C=C).fit(X, y)
        assert fitted.C == C and fitted.converged_
        np.testing.assert_allclose(
            fitted.decision_function(X), alone.decision_function(X), atol=1e-4
        )


def test_a_path_solves_no_further_than_the_largest_coefficient(ring, monkeypatch):
    X, y = ring
    solved = []

    def counted(svc, *args):
        solved.append(svc.C)
        return fitted(svc, *args)

    fitted = _kernel_svm._fit_pair
    monkeypatch.setattr(_kernel_svm, "_fit_pair", counted)
    path = KernelSVM(Gaussian(0.1), tol=1e-8).fit_path(X, y, [1e3, 1e5, 0.1, 1e7])
    # with so small a bandwidth every row has a margin of 1 at a coefficient of about 1
    assert solved == [0.1, 1e3]
    assert np.abs(path[0].dual_coef_).max() < 1e3
    np.testing.assert_array_equal(path[0].dual_coef_, path[3].dual_coef_)
    np.testing.assert_allclose(path[2].dual_coef_.max(), 0.1)


def test_a_path_forms_one_gram_matrix(ring):
    X, y = ring
    calls = []

    def kernel(X, Y):
        calls.append(len(X))
        return X @ Y.T

    KernelSVM(kernel).fit_path(X, y, [0.1, 1.0, 10.0])
    assert calls.count(len(X)) == 1


def test_a_kernel_that_is_zero():
    svm = KernelSVM("linear", fit_intercept=False).fit(np.zeros((6, 2)), [0, 1] * 3)
    np.testing.assert_array_equal(svm.decision_function(np.zeros((2, 2))), 0.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0}, "C must be a finite number > 0, got 0"),
        ({"C": "big"}, "C must be a finite number > 0, got 'big'"),
        ({"tol": -1}, "tol must be a finite number > 0, got -1"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
        ({"kernel": "rbf"}, "kernel must be one of .*, got 'rbf'"),
        ({"multiclass": "auto"}, "multiclass must be one of 'ovr', 'ovo', got 'auto'"),
    ],
)
def test_mistakes_name_the_parameter(params, message):
    with pytest.raises(ValueError, match=message):
        KernelSVM(**params).fit([[0.0], [1.0]], [0, 1])
