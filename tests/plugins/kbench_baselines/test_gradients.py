"""Gradients of maps in their inputs, against finite differences."""

import numpy as np
import pytest

from kbench.kernels import Cosine, Gaussian, Laplace, LaplaceBalcan, Linear, Matern, Polynomial
from kbench_baselines import (
    ArcCosineFeatures,
    LaplaceFourierFeatures,
    MaternFourierFeatures,
    NystroemMap,
    OrthogonalFourierFeatures,
    QMCFourierFeatures,
    RandomFourierFeatures,
)

RNG = np.random.default_rng(0)
X, X_NEW = RNG.standard_normal((40, 3)), RNG.standard_normal((12, 3))
KERNELS = [
    Gaussian(),
    LaplaceBalcan(),
    Laplace(),
    Matern(nu=0.5),
    Matern(nu=1.5),
    Matern(nu=2.5),
    Linear(),
    Polynomial(degree=3),
    Gaussian() + 2.0 * Linear(),
]
MAPS = [
    # an odd number: the last column of Fourier features is another one
    RandomFourierFeatures(21),
    RandomFourierFeatures(21, form="pairs"),
    OrthogonalFourierFeatures(21),
    QMCFourierFeatures(21),
    LaplaceFourierFeatures(21),
    LaplaceFourierFeatures(20, norm="l2"),
    MaternFourierFeatures(21),
    ArcCosineFeatures(30),
    NystroemMap(15),
    NystroemMap(15, kernel="laplacian"),
    NystroemMap(15, landmarks="kmeans"),
    *(NystroemMap(15, kernel=kernel) for kernel in KERNELS),
]


def differences(function, X, step=1e-6):
    """Central differences, (n_outputs, n_samples, n_features), of a function of rows."""
    slopes = [
        (function(X + unit) - function(X - unit)) / (2 * step) for unit in step * np.eye(X.shape[1])
    ]
    return np.stack(slopes, axis=-1).swapaxes(0, 1)


@pytest.mark.parametrize("make", MAPS, ids=str)
def test_gradients_are_those_of_the_features(make):
    fitted = make.set_params(random_state=0).fit(X)
    coef = RNG.standard_normal((2, fitted.transform(X[:1]).shape[1]))
    gradients = fitted.input_gradient(X_NEW, coef)
    expected = differences(lambda rows: fitted.transform(rows) @ coef.T, X_NEW)
    np.testing.assert_allclose(gradients, expected, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(fitted.input_gradient(X_NEW, coef[0]), gradients[0], atol=1e-12)


def test_the_gradient_at_a_landmark_with_a_cusp_is_that_of_the_others():
    for kernel in (LaplaceBalcan(bandwidth=1.0), Matern(bandwidth=1.0, nu=0.5)):
        alone = kernel.input_gradient(X[:1], X[1:4], np.ones(3))
        beside = kernel.input_gradient(X[:1], X[:4], np.ones(4))
        np.testing.assert_allclose(beside, alone)


@pytest.mark.parametrize("kernel", [LaplaceBalcan(1.0), Matern(1.0, nu=0.5)], ids=str)
def test_a_landmark_that_differs_by_rounding_is_at_its_cusp(kernel):
    """Its direction is noise, along which the gradient would have full length."""
    rows, turn = (
        X[:3] + 50.0,
        np.linalg.qr(np.random.default_rng(0).normal(size=(X.shape[1],) * 2))[0],
    )
    one, other = rows @ turn @ turn.T, rows
    assert (one != other).any()
    np.testing.assert_array_equal(
        kernel.input_gradient(one[:1], other[:1], np.ones(1)), np.zeros((1, X.shape[1]))
    )
    near = other[:1] + 1e-9  # a distance, not rounding
    length = np.linalg.norm(kernel.input_gradient(near, other[:1], np.ones(1)))
    slope = -kernel.input_gradient([[1e-9]], [[0.0]], [1.0])[0, 0]
    assert length == pytest.approx(slope, rel=1e-4)


def test_a_map_without_gradients_has_no_such_method():
    for made, words in [
        (NystroemMap(kernel=Cosine()), "kernels with one are 'rbf'"),
        (NystroemMap(kernel=lambda X, Y: X @ Y.T), "no gradient with kernel="),
        (ArcCosineFeatures(order=0), "order=1 has one"),
    ]:
        assert not hasattr(made, "input_gradient")
        with pytest.raises(AttributeError) as raised:
            _ = made.input_gradient
        assert words in str(raised.value.__cause__)


def test_wrong_coefficients_are_refused():
    fitted = RandomFourierFeatures(8, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"coef must have shape \(8,\) or \(n_outputs, 8\)"):
        fitted.input_gradient(X, np.ones(7))
    with pytest.raises(ValueError, match="has no gradient"):
        Cosine().input_gradient(X, X, np.ones(40))
