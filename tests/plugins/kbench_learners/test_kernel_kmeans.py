"""Kernel k-means: with a linear kernel it is k-means, and it never gets worse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from kbench.kernels import Gaussian, Linear
from kbench_learners import KernelKMeans, KernelKMeansMap
from kbench_learners._kernel_kmeans import lloyd


@parametrize_with_checks(
    [KernelKMeans(), KernelKMeans(n_clusters=2, kernel="linear"), KernelKMeansMap(3)]
)
def test_scikit_learn_interface(estimator, check):
    check(estimator)


def test_linear_kernel_is_k_means():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    X = np.repeat(centres, 30, axis=0) + rng.normal(size=(90, 2))
    ours = KernelKMeans(3, "linear", random_state=0).fit(X)
    theirs = KMeans(3, n_init=5, random_state=0).fit(X)
    assert adjusted_rand_score(ours.labels_, theirs.labels_) == 1.0
    assert ours.inertia_ == pytest.approx(theirs.inertia_)
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)


def test_inner_and_outer_circle():
    X, y = make_circles(200, factor=0.1, noise=0.02, random_state=0)
    ours = KernelKMeans(2, Gaussian(0.4), n_init=20, random_state=0).fit(X)
    assert (
        adjusted_rand_score(ours.labels_, y)
        > 0.9
        > adjusted_rand_score(KMeans(2, n_init=20, random_state=0).fit(X).labels_, y)
    )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n_clusters=st.integers(1, 6))
def test_inertia_falls_and_is_what_it_says(seed, n_clusters):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    K = Linear()(X)
    labels = rng.integers(0, n_clusters, 30)
    inertias = [lloyd(K, K.diagonal(), labels, n_clusters, steps).inertia for steps in range(1, 8)]
    assert (np.diff(inertias) <= 1e-9).all()
    end = lloyd(K, K.diagonal(), labels, n_clusters, 100)
    assert end.converged
    exact = sum(
        np.sum((X[end.labels == c] - X[end.labels == c].mean(axis=0)) ** 2)
        for c in np.unique(end.labels)
    )
    assert end.inertia == pytest.approx(exact)
    assert len(np.unique(end.labels)) == n_clusters


@pytest.mark.parametrize("first", [0, 1])
def test_a_row_between_two_centres_stays(first):
    # the middle row is as far from -1, the centre of `first`, as from 1, its own
    X = np.array([[-1.0], [0.0], [2.0]])
    labels = np.array([first, 1 - first, 1 - first])
    found = lloyd(Linear()(X), (X**2).ravel(), labels, 2, max_iter=5)
    assert found.labels.tolist() == labels.tolist()
    assert (found.n_iter, found.converged) == (1, True)
    assert found.inertia == pytest.approx(2.0)


def test_equal_rows_and_many_clusters():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    assert KernelKMeans(4, random_state=0).fit(X).inertia_ == pytest.approx(0, abs=1e-12)
    assert sorted(KernelKMeans(10, random_state=0).fit(X).labels_) == list(range(10))


def test_precomputed():
    X = np.random.default_rng(0).normal(size=(40, 2))
    kernel = Gaussian(1.0)
    direct = KernelKMeans(3, kernel, random_state=0).fit(X)
    gram = KernelKMeans(3, "precomputed", random_state=0).fit(kernel(X))
    np.testing.assert_array_equal(gram.labels_, direct.labels_)
    np.testing.assert_array_equal(gram.predict(kernel(X[:5], X)), direct.predict(X[:5]))


def test_no_convergence_is_reported():
    X = np.random.default_rng(0).normal(size=(200, 2))
    clusterer = KernelKMeans(8, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        clusterer.fit(X)
    assert not clusterer.converged_


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer >= 1, got 0"),
        ({"n_clusters": 11}, "n_clusters must be at most n_samples = 10, got 11"),
        ({"n_init": 0}, "n_init must be an integer >= 1, got 0"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
        ({"kernel": "rbf"}, "kernel must be one of .*, got 'rbf'"),
    ],
)
def test_mistakes_name_the_parameter(params, message):
    with pytest.raises(ValueError, match=message):
        KernelKMeans(**params).fit(np.arange(10.0)[:, None])


# ---------------------------------------------------------------------------
# Similarities to the centres
# ---------------------------------------------------------------------------


def test_features_are_inner_products_with_centres_of_length_1():
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(60, 3)), rng.normal(size=(7, 3))
    fitted = KernelKMeansMap(4, "linear", random_state=0).fit(X)
    centres = np.array([X[fitted.kmeans_.labels_ == c].mean(axis=0) for c in range(4)])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.transform(X_new), X_new @ centres.T)
    # with k(x, x) = 1 they are cosines
    Z = KernelKMeansMap(4, Gaussian(1.0), random_state=0).fit(X).transform(X)
    assert Z.min() >= 0 and Z.max() <= 1


def test_no_more_than_max_rows_are_clustered():
    X = np.random.default_rng(0).normal(size=(300, 2))
    sizes = []

    def kernel(X, Y):
        sizes.append((len(X), len(Y)))
        return np.exp(-np.abs(X[:, None] - Y).sum(axis=2))

    fitted = KernelKMeansMap(500, kernel, max_rows=40, random_state=0).fit(X)
    assert max(sizes) <= (40, 40)
    # one cluster for each row: the features are the similarities to the rows
    assert fitted.transform(X).shape == (300, 40)
    assert len(fitted.get_feature_names_out()) == 40
    # the bandwidth is that of all rows
    assert KernelKMeansMap(max_rows=2).fit(X).kernel_ == Gaussian().resolve(X)


def test_a_centre_at_the_origin_has_the_feature_0():
    Z = KernelKMeansMap(1, "linear", random_state=0).fit_transform([[-1.0, 1.0], [1.0, -1.0]])
    np.testing.assert_array_equal(Z, [[0.0], [0.0]])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer >= 1, got 0"),
        ({"max_rows": 1.5}, "max_rows must be an integer >= 1, got 1.5"),
        ({"kernel": "precomputed"}, "kernel must compare inputs, got a precomputed one"),
    ],
)
def test_mistakes_name_the_parameter_of_the_map(params, message):
    with pytest.raises(ValueError, match=message):
        KernelKMeansMap(**params).fit(np.arange(10.0)[:, None])
