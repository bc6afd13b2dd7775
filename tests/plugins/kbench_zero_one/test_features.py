"""The feature map of Lemma 1 against the kernel it stands for."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from kbench_zero_one import ZeroOneFeatures, ZeroOneKernel, sigmoid_polynomial
from kbench_zero_one._features import (
    MonomialTable,
    approximated_kernel,
    n_monomials,
    truncation_degree,
)


def ball(m, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X * rng.uniform(size=(m, 1)) ** (1 / d)


@parametrize_with_checks([ZeroOneFeatures(), ZeroOneFeatures(n_components=5)])
def test_sklearn_checks(estimator, check):
    check(estimator)


@settings(max_examples=30, deadline=None)
@given(
    d=st.integers(1, 3),
    nu=st.floats(0.05, 0.6),
    tol=st.floats(1e-4, 0.5),
    seed=st.integers(0, 10**6),
)
def test_exact_map_keeps_within_the_tail(d, nu, tol, seed):
    X = ball(30, d, seed)
    X[0] /= np.linalg.norm(X[0])  # the tail is largest on the sphere
    features = ZeroOneFeatures(nu, tol=tol, n_components=10**4)
    Z = features.fit_transform(X)
    assert features.exact_degree_ == features.degree_
    assert features.tail_ <= tol
    assert np.abs(Z @ Z.T - ZeroOneKernel(nu)(X)).max() <= features.tail_ * (1 + 1e-9) + 1e-12
    assert Z.shape[1] == math.comb(d + features.degree_, d)


@given(nu=st.floats(0.01, 0.99), tol=st.floats(1e-6, 0.99))
def test_truncation_degree_is_the_least(nu, tol):
    degree = truncation_degree(nu, tol)
    assert nu ** (degree + 1) / (1 - nu) <= tol
    assert degree == 0 or nu**degree / (1 - nu) > tol


def test_blocks_are_the_powers():
    X = ball(10, 3)
    blocks = list(MonomialTable(3, 4).blocks(X, 0.5))
    for j, block in enumerate(blocks):
        assert block.shape[1] == n_monomials(3, j)
        np.testing.assert_allclose(block @ block.T, 0.5**j * (X @ X.T) ** j, atol=1e-12)


def test_lemma_1():
    """A polynomial of a halfspace is linear in the features, with its P_B norm as length."""
    nu, w = 0.5, np.array([0.6, -0.8])
    polynomial = sigmoid_polynomial(L=1.0, epsilon=0.05, nu=nu)
    X = ball(50, 2)
    features = ZeroOneFeatures(nu, tol=nu**polynomial.degree).fit(X)
    blocks = list(MonomialTable(2, polynomial.degree).blocks(w[None], 1.0))
    v = np.hstack(
        [
            beta * nu ** (-j / 2) * block[0]
            for j, (beta, block) in enumerate(zip(polynomial.monomial, blocks, strict=True))
        ]
    )
    Z = features.transform(X)[:, : len(v)]
    np.testing.assert_allclose(Z @ v, polynomial(X @ w), atol=1e-10)
    assert np.log(v @ v) == pytest.approx(polynomial.log_norm)


def test_sketch_is_unbiased():
    X = ball(8, 6)
    shape = {"nu": 0.5, "tol": 1e-3, "n_components": 64}
    total = np.zeros((8, 8))
    squares = np.zeros((8, 8))
    for seed in range(400):
        features = ZeroOneFeatures(**shape, random_state=seed).fit(X)
        Z = features.transform(X)
        total += Z @ Z.T
        squares += (Z @ Z.T) ** 2
    assert features.exact_degree_ < features.degree_
    mean = total / 400
    error = np.sqrt((squares / 400 - mean**2) / 400)
    assert np.all(np.abs(mean - ZeroOneKernel(0.5)(X)) <= 5 * error + features.tail_)


def test_sketch_errors_fall_with_the_width():
    X = ball(100, 12)
    K = ZeroOneKernel(0.5)(X)

    def error(n):
        Zs = (
            ZeroOneFeatures(n_components=n, random_state=seed).fit_transform(X) for seed in range(5)
        )
        return np.mean([np.linalg.norm(Z @ Z.T - K) for Z in Zs]) / np.linalg.norm(K)

    errors = [error(n) for n in (100, 1000, 8000)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


@settings(max_examples=30, deadline=None)
@given(d=st.integers(1, 40), n=st.integers(1, 300), nu=st.floats(0.1, 0.9))
def test_never_more_than_n_components(d, n, nu):
    X = ball(5, d)
    features = ZeroOneFeatures(nu, n_components=n, random_state=0).fit(X)
    Z = features.transform(X)
    assert Z.shape == (5, len(features.get_feature_names_out()))
    assert Z.shape[1] <= n
    assert np.isfinite(Z).all()


def test_float32_and_determinism():
    X = ball(20, 8).astype(np.float32)
    features = ZeroOneFeatures(n_components=50, random_state=3)
    Z = features.fit_transform(X)
    assert Z.dtype == np.float32
    np.testing.assert_array_equal(Z, features.fit_transform(X))
    np.testing.assert_allclose(Z, features.fit_transform(X.astype(float)), atol=1e-5)


def test_large_inputs_are_scaled_and_later_ones_projected():
    X = 7 * ball(30, 2)
    features = ZeroOneFeatures(tol=1e-8).fit(X)
    far = np.vstack([X, 100 * X])
    Z = features.transform(far)
    np.testing.assert_allclose(Z @ Z.T, approximated_kernel(features, far, far), atol=1e-7)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"nu": 1.0}, "nu must be a finite number > 0 and < 1, got 1.0"),
        ({"tol": 0.0}, "tol must be a finite number > 0 and < 1, got 0.0"),
        ({"n_components": 0}, "n_components must be an integer >= 1, got 0"),
        ({"scale": False}, "at most 1 with scale=False, got"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=re.compile(message)):
        ZeroOneFeatures(**params).fit(3 * ball(10, 2))
