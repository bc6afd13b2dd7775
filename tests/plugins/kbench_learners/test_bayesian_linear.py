"""Bayesian linear regression against scikit-learn, a dense grid, and what must not change it."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from kbench_learners import BayesianLinearRegression

SHAPES = [(60, 8), (30, 80), (12, 12)]


def problem(n, p, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X @ rng.standard_normal(p) + noise * rng.standard_normal(n)


def nlpd(y, mean, sd):
    return np.mean(0.5 * np.log(2 * np.pi * sd**2) + (y - mean) ** 2 / (2 * sd**2))


@parametrize_with_checks(
    [BayesianLinearRegression(), BayesianLinearRegression(0.1, 2.0, fit_intercept=False)]
)
def test_scikit_learn_interface(estimator, check):
    check(estimator)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_gaussian_process_of_scikit_learn(shape):
    X, y = problem(*shape)
    X_new, y_new = problem(40, shape[1], seed=1)
    noise, weight = 0.3, 0.7
    ours = BayesianLinearRegression(noise, weight, fit_intercept=False).fit(X, y)
    process = GaussianProcessRegressor(
        ConstantKernel(weight) * DotProduct(sigma_0=0, sigma_0_bounds="fixed"),
        alpha=noise,
        optimizer=None,
    ).fit(X, y)
    mean, sd = ours.predict(X_new, return_std=True)
    their_mean, their_sd = process.predict(X_new, return_std=True)
    theirs = nlpd(y_new, their_mean, np.sqrt(their_sd**2 + noise))
    assert nlpd(y_new, mean, sd) == pytest.approx(theirs, abs=1e-6)
    np.testing.assert_allclose(mean, their_mean, atol=1e-8)
    their_likelihood = process.log_marginal_likelihood_value_
    assert ours.log_marginal_likelihood_ == pytest.approx(their_likelihood, abs=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_free_intercept_is_one_with_a_vague_prior(shape):
    X, y = problem(*shape)
    X, y = X + 0.7, y + 3.0
    vague = 1e7
    ours = BayesianLinearRegression(0.3, 0.7).fit(X, y)
    theirs = GaussianProcessRegressor(
        ConstantKernel(0.7) * DotProduct(0) + ConstantKernel(vague), alpha=0.3, optimizer=None
    ).fit(X, y)
    mean, sd = ours.predict(X + 1.0, return_std=True)
    their_mean, their_sd = theirs.predict(X + 1.0, return_std=True)
    np.testing.assert_allclose(mean, their_mean, atol=1e-4)
    np.testing.assert_allclose(sd, np.sqrt(their_sd**2 + 0.3), atol=1e-4)
    # the density of the mean under the vague prior, which contrasts leave out
    spread = -0.5 * np.log(2 * np.pi * vague * len(y))
    their_likelihood = theirs.log_marginal_likelihood_value_ - spread
    assert ours.log_marginal_likelihood_ == pytest.approx(their_likelihood, abs=1e-3)


def test_the_evidence_has_the_maximum_of_scikit_learn():
    X, y = problem(80, 6)
    ours = BayesianLinearRegression(fit_intercept=False).fit(X, y)
    none = {"alpha_1": 0, "alpha_2": 0, "lambda_1": 0, "lambda_2": 0}
    theirs = BayesianRidge(**none, max_iter=10_000, tol=1e-10, fit_intercept=False).fit(X, y)
    assert ours.noise_variance_ == pytest.approx(1 / theirs.alpha_, rel=1e-5)
    assert ours.weight_variance_ == pytest.approx(1 / theirs.lambda_, rel=1e-5)
    assert ours.converged_


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fixed", [{}, {"noise_variance": 0.25}, {"weight_variance": 2.0}])
def test_the_evidence_is_at_least_that_of_a_dense_grid(shape, fixed):
    X, y = problem(*shape)
    best = BayesianLinearRegression(**fixed).fit(X, y)
    noises = [fixed.get("noise_variance")] * 13
    weights = [fixed.get("weight_variance")] * 13
    noises = np.geomspace(1e-3, 10, 13) if noises[0] is None else noises[:1]
    weights = np.geomspace(1e-3, 10, 13) if weights[0] is None else weights[:1]
    for noise in noises:
        for weight in weights:
            other = BayesianLinearRegression(float(noise), float(weight)).fit(X, y)
            assert other.log_marginal_likelihood_ <= best.log_marginal_likelihood_ + 1e-6
    again = BayesianLinearRegression(best.noise_variance_, best.weight_variance_).fit(X, y)
    assert again.log_marginal_likelihood_ == pytest.approx(best.log_marginal_likelihood_)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 30),
    p=st.integers(1, 30),
    noise=st.floats(1e-3, 1e3),
    weight=st.floats(1e-3, 1e3),
    seed=st.integers(0, 100),
)
def test_the_mean_is_ridge_regression(n, p, noise, weight, seed):
    X, y = problem(n, p, seed=seed)
    ours = BayesianLinearRegression(noise, weight).fit(X, y)
    ridge = Ridge(alpha=noise / weight, solver="svd").fit(X, y)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, atol=1e-6)
    assert ours.intercept_ == pytest.approx(ridge.intercept_, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(3, 30), p=st.integers(1, 30), seed=st.integers(0, 100))
def test_a_rotation_of_the_features_changes_nothing(n, p, seed):
    X, y = problem(n, p, seed=seed)
    X_new, _ = problem(10, p, seed=seed + 1)
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((p, p)))[0]
    one = BayesianLinearRegression(0.3, 0.7).fit(X, y).predict(X_new, return_std=True)
    other = (
        BayesianLinearRegression(0.3, 0.7)
        .fit(X @ rotation, y)
        .predict(X_new @ rotation, return_std=True)
    )
    np.testing.assert_allclose(one, other, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_variance_grows_away_from_the_data(shape):
    X, y = problem(*shape)
    model = BayesianLinearRegression(0.3, 0.7).fit(X, y)
    away = np.outer([0.0, 1.0, 2.0, 10.0], np.ones(shape[1])) + X.mean(axis=0)
    sd = model.predict(away, return_std=True)[1]
    assert (np.diff(sd) > 0).all()
    assert sd[0] == pytest.approx(np.sqrt(0.3 * (1 + 1 / shape[0])))


@pytest.mark.parametrize("shape", [(60, 8), (30, 80)])
def test_sparse_and_float32_inputs(shape):
    X, y = problem(*shape)
    X = np.where(np.abs(X) > 1, X, 0.0).astype(np.float32)
    dense = BayesianLinearRegression().fit(X.astype(np.float64), y)
    expected = dense.predict(X.astype(np.float64), return_std=True)
    for other in (X, sp.csr_array(X), sp.csc_matrix(X)):
        model = BayesianLinearRegression().fit(other, y)
        np.testing.assert_allclose(model.predict(other, return_std=True), expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(40, 5), (10, 30)])
def test_a_weight_counts_a_row_that_many_times(shape):
    X, y = problem(*shape)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    weighted = BayesianLinearRegression().fit(X, y, sample_weight=weight)
    expected = BayesianLinearRegression().fit(X[repeated], y[repeated])
    np.testing.assert_allclose(
        weighted.predict(X, return_std=True), expected.predict(X, return_std=True), atol=1e-5
    )
    likelihood = expected.log_marginal_likelihood_
    assert weighted.log_marginal_likelihood_ == pytest.approx(likelihood, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("shape", [(40, 5), (10, 30)])
def test_the_scale_of_the_features_does_not_matter(shape, scale):
    X, y = problem(*shape)
    expected = BayesianLinearRegression().fit(X, y).predict(X, return_std=True)
    scaled = BayesianLinearRegression().fit(scale * X, y).predict(scale * X, return_std=True)
    np.testing.assert_allclose(scaled, expected, atol=1e-4)


def test_constant_columns_leave_the_mean():
    y = np.random.default_rng(0).standard_normal(50)
    model = BayesianLinearRegression().fit(np.full((50, 3), 7.0), y)
    mean, sd = model.predict(np.full((2, 3), 7.0), return_std=True)
    np.testing.assert_allclose(mean, y.mean())
    np.testing.assert_allclose(sd, y.std(ddof=1) * np.sqrt(1 + 1 / 50))
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-12)


def test_targets_without_signal_have_only_noise():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 3)), rng.standard_normal(400)
    model = BayesianLinearRegression().fit(X, y)
    assert model.noise_variance_ == pytest.approx(y.var(ddof=1), rel=0.05)
    assert model.converged_


@pytest.mark.parametrize("shape", [(2, 1), (2, 5), (50, 3), (5, 50)])
def test_exact_targets_have_positive_finite_deviations(shape):
    X, y = problem(*shape, noise=0.0)
    mean, sd = BayesianLinearRegression().fit(X, y).predict(X, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(sd).all() and (sd > 0).all()
    if shape[0] > 5:  # few rows in many dimensions do not tell signal from noise
        np.testing.assert_allclose(mean, y, atol=1e-3)


def test_duplicated_rows():
    X, y = problem(20, 4)
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    model = BayesianLinearRegression().fit(X, y)
    assert np.isfinite(model.log_marginal_likelihood_)


@pytest.mark.parametrize("name", ["noise_variance", "weight_variance"])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, "given", None])
def test_a_bad_variance_is_named(name, value):
    words = f"{name} must be a finite number > 0, or 'evidence', got"
    with pytest.raises(ValueError, match=words):
        BayesianLinearRegression(**{name: value}).fit([[0.0], [1.0]], [0.0, 1.0])


def test_what_cannot_be_decomposed_is_refused(monkeypatch):
    monkeypatch.setattr("kbench_learners._bayesian_linear._MAX_SIDE", 10)
    BayesianLinearRegression().fit(*problem(10, 50))
    with pytest.raises(ValueError, match="up to 10, and there are 11 rows and 12 columns"):
        BayesianLinearRegression().fit(*problem(11, 12))


def test_weights_that_are_no_counts_are_refused():
    X, y = problem(20, 4)
    with pytest.raises(ValueError, match=r"weights that sum to 0\.2: a weight counts"):
        BayesianLinearRegression().fit(X, y, sample_weight=np.full(20, 0.01))
    with pytest.raises(ValueError, match="sample_weight must be nonnegative, got -1"):
        BayesianLinearRegression().fit(X, y, sample_weight=-np.ones(20))
