"""Structured frequencies: Hadamard products against matrices, and their laws."""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import hadamard

from kbench_baselines import FastfoodFeatures, StructuredOrthogonalFeatures
from kbench_baselines._fourier import gaussian_gram
from kbench_baselines._sketches import padded_size, rows_together

RNG = np.random.default_rng(0)
AS_PUBLISHED = partial(StructuredOrthogonalFeatures, least_inputs=1)


def fastfood_matrix(fitted, block):
    """S H G P H B / sqrt(d) as a matrix."""
    size = fitted.block_size_
    H = hadamard(size)
    permutation = np.eye(size)[fitted.permutations_[block]]
    inner = permutation @ H @ np.diag(fitted.signs_[block])
    return np.diag(fitted.lengths_[block]) @ H @ np.diag(fitted.normals_[block]) @ inner


def orthogonal_matrix(fitted, block):
    """H D_1 H D_2 H D_3 / d as a matrix."""
    W = np.eye(fitted.block_size_)
    for signs in fitted.signs_[block]:
        W = hadamard(fitted.block_size_) @ np.diag(signs) @ W
    return W / fitted.block_size_


@pytest.mark.parametrize(
    ("cls", "matrix"),
    [(FastfoodFeatures, fastfood_matrix), (AS_PUBLISHED, orthogonal_matrix)],
)
@pytest.mark.parametrize("n_components", [1, 2, 15, 16, 17, 40, 41])
@pytest.mark.parametrize("n_features", [1, 5, 8])
def test_features_are_those_of_the_frequencies(cls, matrix, n_components, n_features):
    X = RNG.normal(size=(rows_together(8, np.ones(1)) + 3, n_features))
    fitted = cls(n_components, bandwidth=1.7, random_state=0).fit(X)
    assert fitted.block_size_ == padded_size(n_features)
    n_blocks = len(fitted.signs_)
    W = np.vstack([matrix(fitted, block) for block in range(n_blocks)])[:, :n_features]
    phases = X @ W.T / 1.7
    half = n_components // 2
    expected = np.hstack([np.cos(phases[:, :half]), np.sin(phases[:, :half])])
    if n_components % 2:
        expected = np.c_[expected, np.cos(phases[:, half] + fitted.offset_)]
    expected *= np.sqrt(2 / n_components)
    np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-10)


def test_fastfood_frequencies_are_normal_and_orthogonal_ones_have_one_length():
    X = np.zeros((2, 6))
    fitted = FastfoodFeatures(2 * 8 * 200, random_state=0).fit(X)
    W = np.vstack([fastfood_matrix(fitted, block) for block in range(200)])
    for column in W.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    fitted = AS_PUBLISHED(16, random_state=0).fit(X)
    W = orthogonal_matrix(fitted, 0)
    np.testing.assert_allclose(W @ W.T, 8 * np.eye(8), atol=1e-10)


def test_the_bias_of_sorf_shrinks_with_the_number_of_inputs():
    def bias(d):
        X = np.zeros((2, d))
        X[0, 0] = 1.5  # along an axis, where few directions show most
        values = [
            Z[0] @ Z[1]
            for Z in (
                AS_PUBLISHED(2 * d, bandwidth=1.0, random_state=seed).fit(X).transform(X)
                for seed in range(200)
            )
        ]
        fitted = AS_PUBLISHED(2, bandwidth=1.0).fit(X)
        return abs(np.mean(values) - gaussian_gram(fitted, X, X)[0, 1])

    small, large = bias(4), bias(128)
    assert small > 0.05 > 0.01 > large


@pytest.mark.parametrize("d", [1, 2, 3])
def test_sorf_of_few_inputs_is_padded_so_that_its_error_falls(d):
    X = RNG.normal(size=(60, d))
    fitted = StructuredOrthogonalFeatures(4096, random_state=0).fit(X)
    assert fitted.block_size_ == 64
    Z, K = fitted.transform(X), gaussian_gram(fitted, X, X)
    assert np.linalg.norm(Z @ Z.T - K) < 0.03 * np.linalg.norm(K)
    with pytest.raises(ValueError, match="least_inputs must be an integer >= 1, got 0"):
        StructuredOrthogonalFeatures(least_inputs=0).fit(X)
