"""Nystroem maps and the choice of their landmarks."""

import warnings

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.preprocessing import minmax_scale

from kbench.kernels import Matern
from kbench_baselines import NystroemMap
from kbench_baselines._nystroem import (
    _ridge_scores,
    distinct_rows,
    inverse_root,
    kernel_diagonal,
    leverage_rows,
    nystroem_gram,
    rpcholesky_pivots,
)

WINE = minmax_scale(load_wine().data)[::2]
LANDMARKS = ["uniform", "kmeans", "rpcholesky", "leverage"]


@pytest.mark.parametrize("n_components", [5, 40])
def test_uniform_nystroem_is_scikit_learns(n_components):
    ours = NystroemMap(n_components, bandwidth=0.5, random_state=3).fit(WINE)
    theirs = Nystroem(gamma=2.0, n_components=n_components, random_state=3).fit(WINE)
    np.testing.assert_array_equal(ours.component_indices_, theirs.component_indices_)
    np.testing.assert_allclose(ours.transform(WINE), theirs.transform(WINE), atol=1e-8)


@pytest.mark.parametrize("landmarks", LANDMARKS)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", Matern(nu=2.5)])
def test_nystroem_on_all_rows_is_exact_and_silent(landmarks, kernel):
    X = WINE[:30]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        map_ = NystroemMap(100, landmarks=landmarks, kernel=kernel, random_state=0)
        fitted = map_.fit(X)
        Z = fitted.transform(X)
        again = clone(map_).fit_transform(X)
    assert Z.shape[1] <= 30
    np.testing.assert_array_equal(Z, again)
    np.testing.assert_allclose(Z @ Z.T, nystroem_gram(fitted, X, X), atol=1e-6)


@pytest.mark.parametrize("landmarks", LANDMARKS)
def test_nystroem_is_the_projection_on_its_landmarks(landmarks):
    """What it leaves of the Gram matrix is positive semidefinite, and 0 at landmarks."""
    fitted = NystroemMap(15, landmarks=landmarks, bandwidth_factor=0.5, random_state=0).fit(WINE)
    Z, L = fitted.transform(WINE), fitted.transform(fitted.components_)
    residual = fitted.kernel_(WINE, WINE) - Z @ Z.T
    assert np.linalg.eigvalsh(residual).min() > -1e-8
    np.testing.assert_allclose(Z @ L.T, fitted.kernel_(WINE, fitted.components_), atol=1e-8)
    assert (fitted.component_indices_ is None) == (landmarks == "kmeans")
    if landmarks != "kmeans":
        np.testing.assert_array_equal(fitted.components_, WINE[fitted.component_indices_])
        assert len(set(fitted.component_indices_)) == 15


@pytest.mark.parametrize("landmarks", ["kmeans", "rpcholesky"])
def test_chosen_landmarks_beat_uniform_ones_on_uneven_clusters(landmarks):
    rng = np.random.RandomState(0)
    centres = 10 * rng.normal(size=(12, 3))
    sizes = [600, *[10] * 11]
    X = np.concatenate([c + rng.normal(size=(n, 3)) for c, n in zip(centres, sizes, strict=True)])

    def left(landmarks):
        errors = []
        for seed in range(5):
            map_ = NystroemMap(30, landmarks=landmarks, bandwidth=10**0.5, random_state=seed)
            Z = map_.fit_transform(X)
            errors.append(len(X) - np.sum(Z**2))
        return np.mean(errors)

    assert left(landmarks) < 0.7 * left("uniform")


def test_leverage_draws_rare_points_more_often():
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.normal(size=(780, 2)), 30 + 10 * rng.normal(size=(20, 2))])
    rare = [
        np.mean(leverage_rows(lambda A, B: rbf_kernel(A, B, gamma=0.1), X, 50, state) >= 780)
        for state in map(np.random.RandomState, range(10))
    ]
    assert np.mean(rare) > 5 * 20 / 800


def test_ridge_scores_from_all_rows_are_exact():
    K = rbf_kernel(WINE, gamma=5.0)
    scores = _ridge_scores(rbf_kernel_5, WINE, np.diag(K), WINE, np.ones(len(WINE)), rank=10)
    values = np.linalg.eigvalsh(K)
    ridge = values[:-10].sum() / 10
    exact = np.diag(K @ np.linalg.inv(K + ridge * np.eye(len(K))))
    np.testing.assert_allclose(scores, exact, atol=1e-9)


def rbf_kernel_5(A, B):
    return rbf_kernel(A, B, gamma=5.0)


def test_rpcholesky_draws_pairs_from_its_distribution():
    """The chance of an ordered pair by the definition, against 1,000 draws."""
    X = np.array([[0.0], [0.3], [1.0], [2.5]])

    def fast(A, B):
        return np.exp(-((A - B.T) ** 2))

    K = fast(X, X)
    expected = {}
    for i in range(4):
        residual = np.diag(K) - K[i] ** 2 / K[i, i]
        residual[i] = 0.0
        for j in np.flatnonzero(residual > 1e-12):
            expected[i, j] = K[i, i] / np.trace(K) * residual[j] / residual.sum()
    rng = np.random.RandomState(0)
    counts = dict.fromkeys(expected, 0)
    for _ in range(1000):
        counts[tuple(rpcholesky_pivots(fast, X, 2, rng))] += 1
    frequencies = 1000 * np.array(list(expected.values()))
    assert stats.chisquare(list(counts.values()), frequencies).pvalue > 1e-4


def test_repeated_rows_are_landmarks_once():
    X = np.repeat(WINE[:6], 10, axis=0)
    for landmarks in ("kmeans", "rpcholesky"):
        fitted = NystroemMap(30, landmarks=landmarks, random_state=0).fit(X)
        assert len(fitted.components_) == 6
        Z = fitted.transform(X)
        np.testing.assert_allclose(Z @ Z.T, fitted.kernel_(X, X), atol=1e-6)


def test_distinct_rows_are_the_first_of_each_kind():
    X = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
    for rows in (X, sp.csr_matrix(X)):
        np.testing.assert_array_equal(distinct_rows(rows), [0, 1, 3])


@pytest.mark.parametrize("landmarks", LANDMARKS[1:])
def test_costly_choices_look_at_a_bounded_number_of_rows(landmarks):
    X = np.random.RandomState(0).normal(size=(400, 3))
    map_ = NystroemMap(20, landmarks=landmarks, n_candidates=50, random_state=0)
    assert map_.fit(X).components_.shape == (20, 3)
    # n_candidates below n_components: as many as are needed
    map_.set_params(n_components=60, n_candidates=10)
    assert map_.fit(X).components_.shape == (60, 3)


def test_kernels_are_resolved_on_the_training_data():
    fitted = NystroemMap(10, kernel=Matern(), random_state=0).fit(WINE)
    assert fitted.kernel_ == Matern().resolve(WINE)


@given(
    hnp.arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(-3, 3))
)
@example(np.array([[1.0, 2.0**-23], [1.0, 0.0]]))  # an eigenvalue next to the cut
@example(np.array([[4e-45, 4e-45], [1.26845203e-12, 4e-45], [4e-45, 1.26845203e-12]]))
@settings(max_examples=50, deadline=None)
def test_inverse_root_is_that_of_the_pseudo_inverse(A):
    K = A @ A.T
    R = inverse_root(K, np.float64)
    # rounding is relative to the largest entry, which may be 1e12
    np.testing.assert_allclose(R, R.T, rtol=1e-6, atol=1e-9 * max(1.0, np.abs(R).max()))
    projection = R @ K @ R
    values, eps = np.linalg.eigvalsh(K), np.finfo(float).eps
    kept = values[values > 10 * eps * values[-1]]
    # what rounding of K does to the smallest of its eigenvalues
    blur = len(K) * eps * values[-1] / kept[0] if len(kept) else 0.0
    np.testing.assert_allclose(projection @ projection, projection, atol=max(1e-3, blur))
    assert np.abs(K - projection @ K).max() <= 1e-6 * max(1.0, np.abs(K).max())


def test_kernel_diagonal_in_blocks():
    np.testing.assert_allclose(
        kernel_diagonal(polynomial_kernel, WINE, block=7), np.diag(polynomial_kernel(WINE))
    )


def test_only_maps_with_the_same_span_say_so():
    from kbench.records import Ref, Tune
    from kbench_baselines import span_of_nystroem

    def gaussian(**params):
        return Ref("gaussian", params)

    given, kernel = {"bandwidth": Tune(("median", 2.0))}, {"bandwidth_factor": 0.5}
    assert span_of_nystroem(given | kernel) == (
        "300 uniform landmarks: gaussian(bandwidth=0.5 median), gaussian(bandwidth=1)"
    )
    assert span_of_nystroem({}).count("gaussian(") == 4
    same = span_of_nystroem({"bandwidth_factor": 1})
    for kernel in (gaussian(), gaussian(bandwidth="median"), gaussian(bandwidth_factor=1.0)):
        assert span_of_nystroem({"kernel": kernel}) == same
    for params in (
        {"kernel": "laplacian"},  # no kernel object has its bandwidth
        {"kernel": "laplacian", "bandwidth": 2.0},
        {"kernel": gaussian(), "bandwidth_factor": Tune((1.0, 2.0))},
        {"kernel": Tune(("rbf", "laplacian"))},
        {"random_state": 7},  # other landmarks
        {"landmarks": "kmeans"},
        {"landmarks": Tune(("uniform", "leverage"))},
    ):
        assert span_of_nystroem(params) == "", params
