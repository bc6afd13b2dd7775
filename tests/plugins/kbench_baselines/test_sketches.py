"""Polynomial sketches and optimised Maclaurin features: their laws."""

from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from kbench_baselines import OptimizedMaclaurinFeatures, ProductSketch, RandomFourierFeatures
from kbench_baselines._fourier import gaussian_gram
from kbench_baselines._maclaurin import Moments, _expected_error, allocate
from kbench_baselines._sketches import draw_sketch, real_features, row_blocks

RNG = np.random.default_rng(0)
PAIR = RNG.normal(size=(2, 5))
WINE = scale(load_wine().data)[::2]


def terms(X):
    x, z = X
    return x @ x * (z @ z), x @ z, (x**2) @ (z**2)


def variance_of_signs(X, degree, is_complex):
    q, m, s = terms(X)
    if is_complex:
        return ((q + m**2 - s) ** degree + (2 * m**2 - s) ** degree) / 2 - m ** (2 * degree)
    return (q + 2 * m**2 - 2 * s) ** degree - m ** (2 * degree)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("is_complex", [False, True])
def test_signs_have_the_variance_of_the_docstring(degree, is_complex):
    n = 100_000
    sketch = draw_sketch(
        "rademacher", (5, n), degree, is_complex, np.random.RandomState(degree), np.float64
    )
    Z = sketch(PAIR) * np.sqrt(n)
    found = (Z[0] * Z[1].conj()).real
    assert abs(found.mean() - terms(PAIR)[1] ** degree) < 5 * found.std() / np.sqrt(n)
    # the standard error of a variance, from fourth moments
    error = np.std((found - found.mean()) ** 2) / np.sqrt(n)
    assert abs(found.var() - variance_of_signs(PAIR, degree, is_complex)) < 5 * error


def test_a_whole_block_of_hadamard_rows_is_exact_at_degree_one():
    X = RNG.normal(size=(4, 8))
    for is_complex in (False, True):
        rng = np.random.RandomState(0)
        sketch = draw_sketch("srht", (8, 16), 1, is_complex, rng, np.float64)
        Z = real_features(sketch(X), 16 * (1 + is_complex))
        np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-12)


@pytest.mark.parametrize("n_components", [3, 8, 11, 16])
@pytest.mark.parametrize("is_complex", [False, True])
def test_the_expected_variance_of_hadamard_rows_is_that_of_draws(n_components, is_complex):
    """One degree, 8 inputs: the law by which degrees are optimised."""
    degree, n_draws = 2, 4000
    X = RNG.normal(size=(2, 8)) / 2
    q, m, s = terms(X)
    if is_complex:
        one, mixed = (q + m**2 - s) ** degree, m**2 - (q - s) / 7
    else:
        one, mixed = (q + 2 * m**2 - 2 * s) ** degree, m**2 - (q + m**2 - 2 * s) / 7
    found = Moments(
        np.array([one - m ** (2 * degree)]),
        np.array([mixed**degree - m ** (2 * degree)]),
        np.zeros(1),
        8.0,
    )
    rng = np.random.RandomState(0)
    values = []
    for _ in range(n_draws):
        Z = draw_sketch("srht", (8, n_components), degree, is_complex, rng, np.float64)(X)
        values.append(Z[0] @ Z[1].conj())
    values = np.array(values)
    spread = np.abs(values - values.mean()) ** 2
    error = spread.std() / np.sqrt(n_draws)
    expected = _expected_error(found, 1, n_components)[0, -1]
    if n_components <= 8 or n_components == 16:
        assert abs(spread.mean() - expected) < 5 * error
    else:  # a convex upper bound or interpolation between whole blocks
        assert spread.mean() < 1.5 * expected + 5 * error


def test_degrees_are_optimal_among_all_allocations():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        variances = rng.exponential(size=3)
        found = Moments(variances, -variances * rng.uniform(0, 0.2, 3), np.array([9, 9, 0.0]), 4.0)
        best = allocate(found, 9)
        expected = _expected_error(found, 3, 9)

        def total(counts, expected=expected):
            return sum(expected[i, n - 1] for i, n in enumerate(counts))

        every = [each for each in product(range(1, 8), repeat=3) if sum(each) == 9]
        assert total(best) == pytest.approx(min(map(total, every)))


def test_degrees_follow_the_data():
    near = OptimizedMaclaurinFeatures(61, bandwidth_factor=4.0, random_state=0).fit(WINE)
    far = OptimizedMaclaurinFeatures(61, bandwidth_factor=0.5, random_state=0).fit(WINE)
    assert near.counts_[0] > 1.5 * far.counts_[0]
    assert near.counts_.sum() == far.counts_.sum() == 30
    alone = OptimizedMaclaurinFeatures(1).fit_transform(WINE)
    assert alone.shape == (len(WINE), 1)  # the constant, times the factor of each row
    line = OptimizedMaclaurinFeatures(
        61, kernel="polynomial", degree=1, bandwidth="norm", random_state=0
    )
    assert list(line.fit(WINE).counts_) == [30]


@pytest.mark.parametrize("projection", ["rademacher", "srht", "countsketch"])
@pytest.mark.parametrize("complex_to_real", [True, False])
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_inner_products_average_to_the_cut_series(projection, complex_to_real, kernel):
    X = WINE[:8, :5] / 2
    grams = []
    n_seeds = 50
    made = OptimizedMaclaurinFeatures(
        90,
        kernel=kernel,
        projection=projection,
        complex_to_real=complex_to_real,
        degree=3,
        bandwidth=2.0,
    )
    for seed in range(n_seeds):
        fitted = made.set_params(random_state=seed).fit(X)
        Z = fitted.transform(X)
        grams.append(Z @ Z.T)
    inputs = X - X.mean(axis=0) if kernel == "gaussian" else X
    inner = inputs @ inputs.T / 4
    cut = fitted.coefficients_[: len(fitted.counts_) + 1]
    exact = np.polynomial.polynomial.polyval(inner, cut)
    if kernel == "gaussian":
        exact *= np.exp(-np.add.outer(np.diag(inner), np.diag(inner)) / 2)
    errors = np.std(grams, axis=0, ddof=1) / np.sqrt(n_seeds)
    assert (abs(np.mean(grams, axis=0) - exact) <= 5 * errors + 1e-12).all()


def test_optimised_degrees_beat_fourier_features_where_they_should():
    def error(make):
        total = 0.0
        for seed in range(10):
            fitted = make(65, bandwidth_factor=1.0, random_state=seed).fit(WINE)
            Z = fitted.transform(WINE)
            total += np.sum((Z @ Z.T - gaussian_gram(fitted, WINE, WINE)) ** 2)
        return total

    assert error(OptimizedMaclaurinFeatures) < error(RandomFourierFeatures) / 2


def test_the_gaussian_sketch_approaches_its_kernel_with_the_degree():
    def bias(degree):
        grams = []
        for seed in range(100):
            fitted = ProductSketch(200, kernel="gaussian", degree=degree, random_state=seed)
            Z = fitted.fit_transform(WINE[:10])
            grams.append(Z @ Z.T)
        exact = gaussian_gram(fitted, WINE[:10], WINE[:10])
        return np.linalg.norm(np.mean(grams, axis=0) - exact)

    assert bias(8) < 0.6 * bias(2)


def test_blocks_of_rows_change_nothing():
    X = RNG.normal(size=(60, 3))
    assert len(row_blocks(60, 2**16)) == 4
    fitted = ProductSketch(2**15, random_state=0).fit(X)
    np.testing.assert_allclose(fitted.transform(X)[33:35], fitted.transform(X[33:35]), rtol=1e-12)


def test_a_homogeneous_kernel_has_no_constant_input():
    fitted = ProductSketch(40, coef0=0, random_state=0).fit(WINE)
    np.testing.assert_allclose(fitted.transform(3 * WINE), 9 * fitted.transform(WINE), rtol=1e-9)
