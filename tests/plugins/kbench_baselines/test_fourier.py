"""Fourier features and their frequencies."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_wine
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import minmax_scale

from kbench_baselines import OrthogonalFourierFeatures, QMCFourierFeatures, RandomFourierFeatures
from kbench_baselines._fourier import gaussian_gram, gaussian_orthogonal, gaussian_qmc

WINE = minmax_scale(load_wine().data)[::2]


def test_rff_is_scikit_learns_sampler():
    ours = RandomFourierFeatures(30, bandwidth=1.4**-0.5, random_state=3).fit_transform(WINE)
    theirs = RBFSampler(gamma=0.7, n_components=30, random_state=3).fit_transform(WINE)
    np.testing.assert_array_equal(ours, theirs)


@given(st.integers(1, 12), st.integers(1, 40), st.integers(0, 10))
@settings(max_examples=40, deadline=None)
def test_orthogonal_frequencies_are_orthogonal_within_blocks(d, n, seed):
    W = gaussian_orthogonal(d, n, np.random.RandomState(seed))
    assert W.shape == (d, n)
    for start in range(0, n, d):
        block = W[:, start : start + d]
        lengths = np.linalg.norm(block, axis=0)
        np.testing.assert_allclose(block.T @ block, np.diag(lengths**2), atol=1e-9 * d * 20)


def test_orthogonal_and_quasi_random_frequencies_are_normal():
    rng = np.random.RandomState(0)
    orthogonal = np.stack([gaussian_orthogonal(3, 1, rng)[:, 0] for _ in range(500)])
    scrambled = np.stack([gaussian_qmc(3, 5, rng)[:, 4] for _ in range(500)])
    for draws in (orthogonal, scrambled):
        for column in draws.T:
            assert stats.kstest(column, "norm").pvalue > 1e-4


@pytest.mark.parametrize("cls", [OrthogonalFourierFeatures, QMCFourierFeatures])
def test_structured_frequencies_beat_independent_ones(cls):
    def error(make):
        errors = []
        for seed in range(20):
            fitted = make(64, random_state=seed).fit(WINE)
            Z = fitted.transform(WINE)
            errors.append(np.sum((Z @ Z.T - gaussian_gram(fitted, WINE, WINE)) ** 2))
        return np.mean(errors)

    assert error(cls) < 0.7 * error(RandomFourierFeatures)


def test_cosines_and_sines_have_unit_length():
    Z = OrthogonalFourierFeatures(50, random_state=0).fit_transform(WINE)
    np.testing.assert_allclose(np.sum(Z**2, axis=1), 1.0)


def test_sobol_says_how_many_inputs_it_takes():
    X = sp.csr_matrix((3, 30_000))
    with pytest.raises(ValueError, match=r"sequence='sobol'.*30000.*'halton'"):
        QMCFourierFeatures(4).fit(X)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["offsets", "pairs"])
def test_the_variance_of_random_features_is_that_of_the_docstring(form):
    X = np.array([[0.0, 0.0], [0.7, -0.4]])
    found = []
    for seed in range(4000):
        Z = RandomFourierFeatures(2, bandwidth=1.0, form=form, random_state=seed).fit_transform(X)
        found.append(Z[0] @ Z[1])
    square = 0.7**2 + 0.4**2
    once, twice = np.exp(-square / 2), np.exp(-2 * square)
    expected = (1 + twice / 2 - once**2) / 2 if form == "offsets" else (1 + twice) / 2 - once**2
    assert abs(np.mean(found) - once) < 5 * np.sqrt(expected / 4000)
    error = np.std((np.array(found) - once) ** 2) / np.sqrt(4000)
    assert abs(np.var(found) - expected) < 5 * error


@pytest.mark.parametrize(
    ("d", "n_components", "low", "high"), [(2, 64, 0.2, 0.45), (50, 32, 1.05, 1.3)]
)
def test_few_quasi_random_frequencies_are_worse_than_pairs_in_many_dimensions(
    d, n_components, low, high
):
    X = np.random.default_rng(d).normal(size=(200, d))
    K = np.exp(-_squares(X) / (2 * d))
    errors = []
    for make, options in ((QMCFourierFeatures, {}), (RandomFourierFeatures, {"form": "pairs"})):
        found = []
        for seed in range(10):
            options_of_seed = {"bandwidth": np.sqrt(d), "random_state": seed, **options}
            Z = make(n_components, **options_of_seed).fit_transform(X)
            found.append(np.linalg.norm(Z @ Z.T - K))
        errors.append(np.mean(found))
    assert low < errors[0] / errors[1] < high


def _squares(X):
    return ((X[:, None] - X) ** 2).sum(axis=2)
