"""F1, F2 and F3 against exact references."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import kbench_balcan
import kbench_balcan._map as map_module
from kbench.kernels import Cosine, Gaussian, Linear, Polynomial, Similarity
from kbench.registry.callables import resolve
from kbench_balcan import BalcanF1, BalcanF2, BalcanF3
from kbench_learners import LinearSVM
from kbench_testing import is_psd

MAPS = [BalcanF1, BalcanF2, BalcanF3]
SAMPLINGS = ["uniform", "kmeans", "rpcholesky", "greedy"]


@parametrize_with_checks([BalcanF1(), BalcanF2(), BalcanF3()])
def test_scikit_learn_interface(estimator, check):
    check(estimator)


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(120, 3))


def test_f1_is_the_similarity_to_the_landmarks(points):
    f1 = BalcanF1(Gaussian(1.0), n_landmarks=7, random_state=0).fit(points[:60])
    np.testing.assert_array_equal(f1.landmarks_, points[:60][f1.landmark_rows_])
    assert len(set(f1.landmark_rows_)) == 7
    np.testing.assert_allclose(f1.transform(points), Gaussian(1.0)(points, f1.landmarks_))


def test_f2_is_f1_times_the_inverse_cholesky_factor(points):
    f2 = BalcanF2(Gaussian(1.0), n_landmarks=9, random_state=0).fit(points)
    f1 = BalcanF1(Gaussian(1.0), n_landmarks=9, random_state=0).fit(points)
    U = np.linalg.cholesky(Gaussian(1.0)(f1.landmarks_)).T
    np.testing.assert_allclose(
        f2.transform(points), f1.transform(points) @ np.linalg.inv(U), atol=1e-8
    )


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("basis", ["triangular", "eigen"])
@pytest.mark.parametrize("kernel", [Gaussian(2.0), Polynomial(3), Cosine()], ids=repr)
def test_f2_is_the_orthogonal_projection(points, sampling, basis, kernel):
    f2 = BalcanF2(kernel, n_landmarks=15, sampling=sampling, basis=basis, random_state=1)
    Z = f2.fit(points).transform(points)
    # projections of phi(x) onto span(phi(S)) have the inner products K_xS K_SS^+ K_Sx
    K = kernel(points, f2.landmarks_)
    exact = K @ np.linalg.pinv(kernel(f2.landmarks_), rcond=1e-12, hermitian=True) @ K.T
    np.testing.assert_allclose(Z @ Z.T, exact, atol=1e-6 * np.abs(exact).max())
    # and no projection is longer than phi(x)
    assert (np.einsum("ij,ij->i", Z, Z) <= kernel.diag(points) * (1 + 1e-9)).all()


@pytest.mark.parametrize("basis", ["triangular", "eigen"])
def test_rank_deficient_landmarks(basis):
    """The degree-2 kernel of 2-D inputs has rank 6: F2 is an isometry."""
    X = np.random.default_rng(0).uniform(-1.2, 1.2, (100, 2))
    f2 = BalcanF2(Polynomial(2), n_landmarks=10, basis=basis, random_state=0).fit(X[:10])
    assert f2.n_components_ == 6
    Z = f2.transform(X)
    np.testing.assert_allclose(Z @ Z.T, Polynomial(2)(X), atol=1e-10)
    assert f2.get_feature_names_out().tolist() == [f"balcanf2{i}" for i in range(6)]


def test_equal_landmarks_count_once():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 5, axis=0)
    f2 = BalcanF2(Gaussian(1.0), n_landmarks=20, random_state=0).fit(X)
    assert f2.n_components_ == 4
    Z = f2.transform(X)
    np.testing.assert_allclose(Z @ Z.T, Gaussian(1.0)(X), atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_landmarks=st.integers(1, 25),
    rank=st.integers(1, 6),
    basis=st.sampled_from(["triangular", "eigen"]),
)
def test_landmark_features_reproduce_their_gram_matrix(seed, n_landmarks, rank, basis):
    X = np.random.default_rng(seed).normal(size=(25, rank))
    # three landmarks of one direction have a second eigenvalue of about 4 eps
    f2 = BalcanF2(
        Linear(), n_landmarks=n_landmarks, basis=basis, rank_tolerance=1e-12, random_state=seed
    ).fit(X)
    assert f2.n_components_ == min(n_landmarks, rank)
    Z = f2.transform(f2.landmarks_)
    K = Linear()(f2.landmarks_)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-8 * K.max())
    if basis == "triangular":
        # as U^T is: the first independent landmark has one feature, the next two ...
        used = f2.components_.any(axis=1)
        np.testing.assert_allclose(np.triu(Z[used], 1), 0, atol=1e-6 * np.sqrt(K.max()))


def test_f2_is_nystroem_up_to_a_rotation(points):
    f2 = BalcanF2(Gaussian(1.0), n_landmarks=20, random_state=0).fit(points)
    nystroem = Nystroem(gamma=0.5, n_components=20)
    nystroem.fit(f2.landmarks_)
    Z, N = f2.transform(points), nystroem.transform(points)
    np.testing.assert_allclose(Z @ Z.T, N @ N.T, atol=1e-8)


@pytest.mark.parametrize("projection", ["gaussian", "rademacher"])
def test_f3_projects_f2(points, projection):
    ratios = []
    for seed in range(40):
        params = {"n_landmarks": 40, "random_state": seed}
        f2 = BalcanF2(Gaussian(1.0), **params).fit(points)
        f3 = BalcanF3(Gaussian(1.0), n_components=12, projection=projection, **params).fit(points)
        assert f3.n_components_ == 12
        squared = [np.sum(f.transform(points) ** 2, axis=1) for f in (f3, f2)]
        ratios.append(np.mean(squared[0] / squared[1]))
        A = np.linalg.lstsq(f2.components_, f3.components_, rcond=None)[0] * np.sqrt(12)
        if projection == "rademacher":
            np.testing.assert_allclose(np.abs(A), 1.0, atol=1e-6)
        else:
            assert A.std() == pytest.approx(1.0, abs=0.15)
    # squared lengths are kept in expectation
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)


def test_f3_that_cannot_reduce_is_f2(points):
    f2 = BalcanF2(Polynomial(2), n_landmarks=30, random_state=0).fit(points)
    f3 = BalcanF3(Polynomial(2), n_landmarks=30, n_components=20, random_state=0)
    with pytest.warns(UserWarning, match="n_components=20.*10 features of F2"):
        f3.fit(points)
    np.testing.assert_allclose(f3.transform(points), f2.transform(points))


@pytest.mark.parametrize("make", MAPS)
@pytest.mark.parametrize("kernel", ["gaussian", Polynomial(2)], ids=repr)
def test_chunks_sparse_and_single_precision(make, kernel, points, monkeypatch):
    points = np.where(np.abs(points) < 0.5, 0.0, points)
    fitted = make(kernel, n_landmarks=9, random_state=0).fit(points)
    Z = fitted.transform(points)
    monkeypatch.setattr(map_module, "CHUNK_ENTRIES", 60)
    np.testing.assert_allclose(fitted.transform(points), Z, rtol=1e-12, atol=1e-12)
    sparse = sp.csr_matrix(points)
    np.testing.assert_allclose(fitted.transform(sparse), Z, atol=1e-9)
    np.testing.assert_allclose(
        make(kernel, n_landmarks=9, random_state=0).fit(sparse).transform(points), Z, atol=1e-6
    )
    single = make(kernel, n_landmarks=9, random_state=0).fit_transform(points.astype(np.float32))
    assert single.dtype == np.float32
    assert np.isfinite(single).all()


def test_single_precision_keeps_the_projection(points):
    params = {"n_landmarks": 60, "random_state": 0}
    single = BalcanF2(Gaussian(3.0), **params).fit(points.astype(np.float32))
    double = BalcanF2(Gaussian(3.0), rank_tolerance=60 * 2.0**-23, **params).fit(points)
    assert single.n_components_ == double.n_components_
    Z = single.transform(points.astype(np.float32)).astype(np.float64)
    W = double.transform(points)
    np.testing.assert_allclose(Z @ Z.T, W @ W.T, atol=1e-4)


@pytest.mark.parametrize("make", MAPS)
def test_precomputed_kernels(make, points):
    kernel = Gaussian(1.0)
    params = {"n_landmarks": 8, "random_state": 3}
    direct = make(kernel, **params).fit(points[:50])
    given_gram = make("precomputed", **params).fit(kernel(points[:50]))
    np.testing.assert_allclose(
        given_gram.transform(kernel(points, points[:50])), direct.transform(points), atol=1e-7
    )


def test_the_gram_matrix_of_the_data_is_never_formed():
    seen = []

    def linear(X, Y):
        seen.append(len(X) * len(Y))
        return X @ Y.T

    X = np.random.default_rng(0).normal(size=(3000, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        BalcanF2(linear, n_landmarks=500, random_state=0).fit_transform(X)
    assert max(seen) <= map_module.CHUNK_ENTRIES


def test_similarities_that_are_no_kernels(points):
    def sigmoid(X, Y):
        return np.tanh(X @ Y.T - 1)

    K = sigmoid(points, points)
    assert not is_psd(K)
    f1 = BalcanF1(sigmoid, n_landmarks=20, random_state=0).fit(points)
    np.testing.assert_allclose(f1.transform(points), K[:, f1.landmark_rows_])
    features = []
    for basis in ("triangular", "eigen"):
        f2 = BalcanF2(sigmoid, n_landmarks=20, basis=basis, random_state=0)
        with pytest.warns(UserWarning, match=r"negative eigenvalues, [0-9.]+%"):
            f2.fit(points)
        S = sigmoid(f2.landmarks_, f2.landmarks_)
        values, vectors = np.linalg.eigh(S)
        assert f2.clipped_ == pytest.approx(-values[values < 0].sum() / np.abs(values).sum())
        Z = f2.transform(f2.landmarks_)
        positive = np.maximum(values, 0)
        np.testing.assert_allclose(Z @ Z.T, (vectors * positive) @ vectors.T, atol=1e-8)
        features.append(f2.transform(points))
    np.testing.assert_allclose(features[0] @ features[0].T, features[1] @ features[1].T, atol=1e-7)


def test_asymmetric_similarities_are_symmetrised(points):
    asymmetric = Similarity(lambda X, Y: X @ Y.T + X.sum(axis=1)[:, None])
    f2 = BalcanF2(asymmetric, n_landmarks=5, random_state=0)
    with pytest.warns(UserWarning, match="not symmetric"):
        f2.fit(points)


def test_well_behaved_kernels_do_not_warn(points):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in ("gaussian", "laplace-balcan", Polynomial(2), Cosine()):
            for basis in ("triangular", "eigen"):
                BalcanF2(kernel, n_landmarks=60, basis=basis, random_state=0).fit(points)
                BalcanF2(kernel, n_landmarks=60, basis=basis).fit(points + 1e4)


@pytest.mark.parametrize("make", MAPS)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_landmarks": 200}, "n_landmarks must be at most n_samples = 120, got 200"),
        ({"n_landmarks": 0}, "n_landmarks must be an integer >= 1, or 'theory' or None, got 0"),
        ({"n_landmarks": "all"}, "n_landmarks must be .*'theory' or None, got 'all'"),
        ({"n_landmarks": "theory"}, "margin must be a number.*got None"),
        ({"n_landmarks": "theory", "margin": 0.5, "epsilon": 1.0}, "epsilon must be .*got 1.0"),
        ({"n_landmarks": "theory", "margin": 0.5, "delta": 0}, "delta must be .*got 0"),
        (
            {"n_landmarks": "theory", "margin": 0.5},
            "n_samples = 120, got .*'theory' with margin=0.5",
        ),
        ({"sampling": "random"}, "sampling must be one of 'uniform'.*got 'random'"),
        ({"kernel": "rbf"}, "kernel must be one of .*, got 'rbf'"),
        ({"kernel": lambda X, Y: X}, "must return shape"),
        ({"kernel": lambda X, Y: np.full((len(X), len(Y)), np.nan)}, "NaN"),
        ({"kernel": "precomputed"}, "square"),
    ],
)
def test_mistakes_name_the_parameter(make, params, message, points):
    with pytest.raises(ValueError, match=message):
        make(**params).fit(points).transform(points)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (BalcanF2(basis="svd"), "basis must be .*got 'svd'"),
        (BalcanF2(rank_tolerance=-1), "rank_tolerance must be .*or None, got -1"),
        (BalcanF2(Similarity(lambda X, Y: -X @ Y.T)), "no positive eigenvalue"),
        (BalcanF2("linear", sampling="greedy"), "nothing can be spanned"),
        (BalcanF3(projection="sparse"), "projection must be .*got 'sparse'"),
        (BalcanF3(n_components=0), "n_components must be .*'theory' or None, got 0"),
    ],
)
def test_mistakes_of_f2_and_f3(estimator, message, points):
    X = np.zeros((20, 2)) if estimator.sampling == "greedy" else points
    with pytest.raises(ValueError, match=message):
        estimator.fit(X)


def test_constant_columns_and_equal_rows():
    X = np.ones((30, 2))
    assert BalcanF2(n_landmarks=5).fit_transform(X).shape == (30, 1)
    X[:, 0] = np.arange(30)
    assert np.isfinite(BalcanF2(n_landmarks=5).fit_transform(X)).all()


def test_records(points):
    for record in kbench_balcan.kbench_feature_maps():
        fitted = resolve(record.make)(n_landmarks=10, random_state=0).fit(points)
        if record.kernel is not None:
            assert record.kernel(fitted, points[:5], points[:4]).shape == (5, 4)
        assert all(len(values) <= 4 for values in record.grid.values())
    names = {source.name for source in kbench_balcan.kbench_datasets()}
    assert names == {"conic", "hidden-subset"}
    assert set(kbench_balcan.__all__) <= set(dir(kbench_balcan))
    for name in kbench_balcan.__all__:
        assert getattr(kbench_balcan, name).__module__.startswith("kbench_balcan.")
    with pytest.raises(AttributeError, match="BalcanF4"):
        _ = kbench_balcan.BalcanF4


def test_a_classifier_on_the_maps():
    X, y = make_classification(300, 6, n_informative=4, random_state=0)
    for make in MAPS:
        model = make_pipeline(make(n_landmarks=40, random_state=0), LinearSVM(C=10.0))
        assert model.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.75


def test_f2_with_other_landmarks_or_fewer_directions_is_no_rotation_of_nystroem():
    from kbench_balcan import span_of_f2

    assert span_of_f2({"n_landmarks": 50}).startswith("50 uniform landmarks: gaussian(")
    for params in ({"random_state": 7}, {"rank_tolerance": 1e-3}, {"sampling": "greedy"}):
        assert span_of_f2({"n_landmarks": 50, **params}) == "", params


kernel = Gaussian.__call__


@pytest.mark.parametrize("make", [BalcanF1, BalcanF2, BalcanF3])
def test_a_sample_is_embedded_in_chunks_of_its_share(make, monkeypatch):
    """The memory of chunks grows with the rows, so that it is predicted from samples."""
    X = np.random.default_rng(0).normal(size=(100, 3))
    embedding = make(n_landmarks=10, random_state=0).fit(X)
    whole = embedding.transform(X)
    monkeypatch.setattr(map_module, "CHUNK_ENTRIES", 500)
    chunks = []
    monkeypatch.setattr(
        Gaussian, "__call__", lambda self, X, Y=None: chunks.append(len(X)) or kernel(self, X, Y)
    )
    embedding.scale_sizes(0.5)
    np.testing.assert_allclose(embedding.transform(X), whole, atol=1e-12)
    assert chunks == [25] * 4
