"""How landmarks are chosen."""

import numpy as np
import pytest

from kbench.kernels import Gaussian, Polynomial
from kbench_balcan import BalcanF1, BalcanF2


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(120, 3))


def test_greedy_landmarks_are_the_largest_residuals(points):
    kernel = Gaussian(1.0)
    rows = BalcanF1(kernel, n_landmarks=6, sampling="greedy").fit(points).landmark_rows_
    K = kernel(points)
    for k in range(1, 6):
        S = rows[:k]
        residual = K - K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
        assert residual.diagonal().argmax() == rows[k]


def test_pivots_stop_where_everything_is_spanned():
    X = np.random.default_rng(0).normal(size=(50, 2))
    for sampling in ("rpcholesky", "greedy"):
        f1 = BalcanF1(Polynomial(2), n_landmarks=20, sampling=sampling, random_state=0).fit(X)
        assert f1.n_landmarks_ == 6
        assert len(set(f1.landmark_rows_)) == 6


def test_chosen_landmarks_span_more_than_random_ones():
    # a few dense clusters and one far, small one that uniform landmarks miss
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(500, 2)) * 0.1, rng.normal(size=(10, 2)) + 10])

    def lost(sampling):
        error = []
        for seed in range(5):
            f2 = BalcanF2(Gaussian(1.0), n_landmarks=8, sampling=sampling, random_state=seed)
            Z = f2.fit_transform(X)
            error.append(np.sum(1 - np.einsum("ij,ij->i", Z, Z)))
        return np.mean(error)

    uniform = lost("uniform")
    assert all(lost(sampling) < uniform / 2 for sampling in ("kmeans", "rpcholesky"))
    assert lost("greedy") < uniform


def test_many_candidates_are_sampled(monkeypatch, points):
    import kbench_balcan._landmarks as landmarks

    monkeypatch.setattr(landmarks, "MAX_CANDIDATES", 30)
    f1 = BalcanF1("gaussian", n_landmarks=10, sampling="rpcholesky", random_state=0).fit(points)
    np.testing.assert_array_equal(f1.landmarks_, points[f1.landmark_rows_])


def test_many_rows_are_clustered_in_mini_batches(monkeypatch, points):
    import kbench_balcan._landmarks as landmarks

    def centres():
        f1 = BalcanF1("gaussian", n_landmarks=10, sampling="kmeans", random_state=0)
        return f1.fit(points).landmarks_

    of_all = centres()
    monkeypatch.setattr(landmarks, "MAX_CANDIDATES", len(points) - 1)
    in_batches = centres()
    assert in_batches.shape == of_all.shape
    assert not np.array_equal(in_batches, of_all)
    assert np.abs(in_batches).max() <= np.abs(points).max()
