"""F1, F2, F3 against exact references, the theorems' sizes, and the paper's data."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import kbench_balcan
import kbench_balcan._map as map_module
from kbench.kernels import Cosine, Gaussian, Linear, Polynomial, Similarity, is_psd
from kbench.registry import resolve
from kbench_balcan import (
    BalcanF1,
    BalcanF2,
    BalcanF3,
    HiddenSubset,
    TensorProductMap,
    concatenate,
    conic,
    conic_margin,
    hidden_subset,
    tensor,
    theory_sizes,
)
from kbench_learners import KernelPerceptron, KernelSVM, LinearSVM

MAPS = [BalcanF1, BalcanF2, BalcanF3]
SAMPLINGS = ["uniform", "kmeans", "rpcholesky", "greedy"]


@parametrize_with_checks([BalcanF1(), BalcanF2(), BalcanF3()])
def test_scikit_learn_interface(estimator, check):
    check(estimator)


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(120, 3))


# ---------------------------------------------------------------------------
# The maps
# ---------------------------------------------------------------------------


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
    f2 = BalcanF2(Linear(), n_landmarks=n_landmarks, basis=basis, random_state=seed).fit(X)
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
        for kernel in ("gaussian", "laplace", Polynomial(2), Cosine()):
            for basis in ("triangular", "eigen"):
                BalcanF2(kernel, n_landmarks=60, basis=basis, random_state=0).fit(points)
                BalcanF2(kernel, n_landmarks=60, basis=basis).fit(points + 1e4)


@pytest.mark.parametrize("make", MAPS)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_landmarks": 200}, "n_landmarks=200 landmarks.*n_samples = 120"),
        ({"n_landmarks": 0}, "n_landmarks=0"),
        ({"n_landmarks": "all"}, "n_landmarks='all'"),
        ({"n_landmarks": "theory"}, "margin=None"),
        ({"n_landmarks": "theory", "margin": 0.5, "epsilon": 1.0}, "epsilon=1.0"),
        ({"n_landmarks": "theory", "margin": 0.5, "delta": 0}, "delta=0"),
        ({"n_landmarks": "theory", "margin": 0.5}, "ask for .* landmarks"),
        ({"sampling": "random"}, "sampling='random'.*'uniform'"),
        ({"kernel": "rbf"}, "kernel='rbf'"),
        ({"kernel": lambda X, Y: X}, "returned shape"),
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
        (BalcanF2(basis="svd"), "basis='svd'"),
        (BalcanF2(rank_tolerance=-1), "rank_tolerance=-1"),
        (BalcanF2(Similarity(lambda X, Y: -X @ Y.T)), "no positive eigenvalue"),
        (BalcanF2("linear", sampling="greedy"), "nothing can be spanned"),
        (BalcanF3(projection="sparse"), "projection='sparse'"),
        (BalcanF3(n_components=0), "n_components=0"),
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


# ---------------------------------------------------------------------------
# Landmarks
# ---------------------------------------------------------------------------


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


# ---------------------------------------------------------------------------
# Theory
# ---------------------------------------------------------------------------


def test_sizes_are_the_theorems():
    margin, epsilon, delta = 0.3, 0.05, 0.01
    for mapping in ("f1", "f2"):
        sizes = theory_sizes(margin, epsilon, delta, mapping=mapping)
        exact = math.ceil(8 / epsilon * (1 / margin**2 + math.log(1 / delta)))
        assert sizes.n_landmarks == sizes.n_components == exact
    sizes = theory_sizes(margin, epsilon, delta)
    # F3 is F2 for epsilon/2 and delta/2 ...
    half = theory_sizes(margin, epsilon / 2, delta / 2, mapping="f2")
    assert sizes.n_landmarks == half.n_landmarks
    # ... and three vectors fail Theorem 2 together with at most epsilon delta / 4
    eta, d3 = margin / 16, sizes.n_components
    failure = [3 * 2 * math.exp(-(eta**2 - eta**3) * k / 4) for k in (d3, d3 - 1)]
    assert failure[0] <= epsilon * delta / 4 < failure[1]
    assert sizes.margin == margin / 4


def test_sizes_with_noise_off_the_origin_and_separable():
    plain = theory_sizes(0.2, 0.1, 0.1, mapping="f2")
    assert theory_sizes(1.0, 0.1, 0.1, mapping="f2", radius=5.0) == plain
    noisy = theory_sizes(0.2, 0.1, 0.1, mapping="f2", alpha=0.2)
    assert noisy.error == pytest.approx(0.8 * 0.1 + 0.2)
    assert noisy.n_landmarks == plain.n_landmarks
    separable = theory_sizes(0.5, 0.1, 0.1, target="separable")
    d = separable.n_components
    assert separable.error * d * math.log(d) <= 0.1 * (1 + 1e-12)
    # no larger epsilon does
    d = theory_sizes(0.5, separable.error * 1.01, 0.1).n_components
    assert separable.error * 1.01 * d * math.log(d) > 0.1


def test_dimension_grows_with_the_logarithm_only():
    sizes = [theory_sizes(0.5, 10.0**-k, 0.1) for k in (2, 4, 8)]
    assert sizes[2].n_components < 4 * sizes[0].n_components
    assert sizes[2].n_landmarks > 1e5 * sizes[0].n_landmarks
    assert sizes[0].n_components > sizes[0].n_landmarks  # F3 gains nothing
    assert sizes[2].n_components < sizes[2].n_landmarks  # only for tiny epsilon


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"epsilon": 1.5}, "epsilon=1.5"),
        ({"delta": 1}, "delta=1"),
        ({"margin": 0}, "margin=0"),
        ({"margin": 2}, "margin=2"),
        ({"alpha": 1}, "alpha=1"),
        ({"radius": -1}, "radius=-1"),
        ({"mapping": "f4"}, "mapping='f4'"),
        ({"target": "zero"}, "target='zero'"),
        ({"target": "separable", "mapping": "f2"}, "Corollary 2"),
    ],
)
def test_theory_refuses(params, message):
    with pytest.raises(ValueError, match=message):
        theory_sizes(**{"margin": 0.5, "epsilon": 0.1, "delta": 0.1, **params})


def test_theory_in_the_maps():
    X = np.random.default_rng(0).normal(size=(700, 30))
    params = {"n_landmarks": "theory", "margin": 0.5, "epsilon": 0.2, "delta": 0.1}
    d = theory_sizes(0.5, 0.2, 0.1, mapping="f2").n_landmarks
    assert BalcanF1("gaussian", **params).fit(X).n_landmarks_ == d
    with pytest.warns(UserWarning, match="F2 is returned"):
        f3 = BalcanF3("gaussian", **params).fit(X)
    assert f3.n_landmarks_ == theory_sizes(0.5, 0.2, 0.1).n_landmarks
    assert f3.n_components_ == f3.n_landmarks_


def test_corollary_1_and_theorem_1_hold():
    """With theory's landmarks, the error of the best separator is at most epsilon."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = X[np.abs(X[:, 0]) > 0.4]
    y = X[:, 0] > 0
    for make, mapping in ((BalcanF1, "f1"), (BalcanF2, "f2")):
        # linear kernel: the margin of (1, 0, 0) is 0.4
        z = make("linear", n_landmarks="theory", margin=0.4, epsilon=0.2, random_state=0)
        Z = z.fit(X[:400]).transform(X)
        assert z.n_landmarks_ == theory_sizes(0.4, 0.2, 0.1, mapping=mapping).n_landmarks
        assert LinearSVM(C=1e3, fit_intercept=False).fit(Z, y).score(Z, y) >= 0.8


# ---------------------------------------------------------------------------
# Closure
# ---------------------------------------------------------------------------


def test_closure_on_maps(points):
    left = BalcanF2(Polynomial(2), n_landmarks=40, random_state=0)  # exact: rank 10
    right = BalcanF2(Linear(), n_landmarks=40, random_state=0)  # exact: rank 3
    Z = concatenate([left, right], [2.0, 0.5]).fit_transform(points)
    K = (2.0 * Polynomial(2) + 0.5 * Linear())(points)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-8 * K.max())
    Z = tensor([left, right]).fit_transform(points)
    K = (Polynomial(2) * Linear())(points)
    assert Z.shape == (120, 30)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-8 * np.abs(K).max())
    assert len(tensor([left, right]).fit(points).get_feature_names_out()) == 30
    for bad in ([], [left, right, left]):
        with pytest.raises(ValueError, match=r"maps=|weights="):
            concatenate(bad, [1.0, -1.0])
    with pytest.raises(ValueError, match=r"maps=\[\]"):
        TensorProductMap([]).fit(points)


# ---------------------------------------------------------------------------
# The paper's data, and what it says of them
# ---------------------------------------------------------------------------

SURFACES = [
    ("ellipse", 1.0, 1.0, 0.2, 1.2),
    ("hyperbola", 1.0, 1.0, 0.2, 1.2),
    ("ellipse", 1.0, 0.5, 0.1, 1.1),
    ("hyperbola", 1.0, 0.5, 0.1, 1.1),
]


@pytest.mark.parametrize("negatives", ["uniform", "gaussian"])
@pytest.mark.parametrize(("surface", "a", "b", "c", "M"), SURFACES)
def test_conic_data_have_the_margin(surface, negatives, a, b, c, M):
    data = conic(surface, negatives, a, b, c, M, n_samples=3000, seed=1)
    sign = 1 if surface == "ellipse" else -1
    # the separator of section 6.1 in the space of (1 + x.z)^2:
    # phi(x) = (1, x1^2, x2^2, sqrt2 x1, sqrt2 x2, sqrt2 x1 x2)
    x1, x2 = data.X.T
    w = np.array([-1, 1 / a**2, sign / b**2])
    phi = np.column_stack([np.ones(len(x1)), x1**2, x2**2])
    lengths = np.sqrt(Polynomial(2).diag(data.X))
    margins = (2 * data.y - 1) * (phi @ w) / np.linalg.norm(w) / lengths
    assert margins.min() >= conic_margin(a, b, c, M)
    assert conic_margin(a, b, c, M) == pytest.approx(
        c / ((1 + 2 * M**2) * np.sqrt(1 + 1 / a**4 + 1 / b**4))
    )
    assert np.abs(data.X).max() <= M
    assert 0.45 < data.y.mean() < 0.55
    again = conic(surface, negatives, a, b, c, M, n_samples=3000, seed=1)
    assert again.checksum == data.checksum
    assert conic(surface, negatives, a, b, c, M, n_samples=3000, seed=2).checksum != data.checksum


def test_gaussian_negatives_have_the_standard_deviation():
    data = conic("hyperbola", "gaussian", n_samples=4000)
    assert data.X[data.y == 0].std() == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"a": 0}, "a=0"),
        ({"c": -1}, "c=-1"),
        ({"M": np.inf}, "M=inf"),
        ({"surface": "parabola"}, "surface='parabola'"),
        ({"negatives": "cauchy"}, "negatives='cauchy'"),
        ({"n_samples": 0}, "n_samples=0"),
    ],
)
def test_conic_refuses(params, message):
    with pytest.raises(ValueError, match=message):
        conic(**params)


def test_conic_refuses_empty_regions(monkeypatch):
    import kbench_balcan._conic as module

    monkeypatch.setattr(module, "_MAX_BATCHES", 5)
    with pytest.raises(ValueError, match="region of class 1 is empty"):
        conic(M=0.5)


def test_f2_with_a_linear_svm_is_the_kernel_svm():
    """Degree 2 in two dimensions: F2 is an isometry, so both solve one problem."""
    kernel = Polynomial(2)
    for seed in range(3):
        data = conic(n_samples=140, seed=seed)
        f2 = BalcanF2(kernel, n_landmarks=10, random_state=0).fit(data.X[:10])
        Z = f2.transform(data.X)
        train, test = slice(0, 40), slice(40, 140)
        on_features = SVC(kernel="linear", C=10, tol=1e-8).fit(Z[train], data.y[train])
        on_kernel = KernelSVM(kernel, C=10, tol=1e-8).fit(data.X[train], data.y[train])
        np.testing.assert_allclose(
            on_features.decision_function(Z[test]),
            on_kernel.decision_function(data.X[test]),
            atol=1e-4,
        )
        # this project's linear SVM, whose intercept is hardly penalised
        linear = LinearSVM(C=10, loss="hinge", intercept_scaling=1e3, tol=1e-10)
        linear.fit(Z[train], data.y[train])
        np.testing.assert_allclose(
            linear.decision_function(Z[test]),
            on_kernel.decision_function(data.X[test]),
            atol=1e-3,
        )


def test_perceptron_on_f2_is_the_kernel_perceptron():
    """Section 7: updates commute with an isometry, so the mistakes are the same."""
    kernel = Polynomial(2)
    data = conic(n_samples=140, seed=0)
    f2 = BalcanF2(kernel, n_landmarks=10, random_state=0).fit(data.X[:10])
    params = {"n_epochs": 20, "shuffle": False}
    plain = KernelPerceptron("linear", **params).fit(f2.transform(data.X[:40]), data.y[:40])
    kernelized = KernelPerceptron(kernel, **params).fit(data.X[:40], data.y[:40])
    np.testing.assert_array_equal(plain.support_, kernelized.support_)
    np.testing.assert_allclose(
        plain.decision_function(f2.transform(data.X)), kernelized.decision_function(data.X)
    )


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_lower_bound_needs_the_distribution(alpha):
    """Section 5: landmarks from the distribution work, others do not."""
    n_bits = 16
    data = hidden_subset(n_bits, seed=3)
    kernel = HiddenSubset(n_bits, alpha=alpha, seed=3)
    assert data.X.shape == (256, n_bits)
    train, test = slice(0, 128), slice(128, 256)
    anywhere = np.random.default_rng(0).integers(0, 2, (20, n_bits)).astype(float)
    for make in (BalcanF1, BalcanF2):
        svm = LinearSVM(C=10.0)
        good = make_pipeline(make(kernel, n_landmarks=20, random_state=0), svm)
        good.fit(data.X[train], data.y[train])
        assert good.score(data.X[test], data.y[test]) == 1.0
        # all queries outside the hidden subset return the same: nothing is learnt
        blind = make(kernel, n_landmarks=20, random_state=0).fit(anywhere)
        Z = blind.transform(data.X)
        assert np.ptp(Z, axis=0).max() < 1e-12


@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_lower_bound_margin(alpha):
    kernel = HiddenSubset(8, alpha=alpha, seed=1)
    data = hidden_subset(8, seed=1)
    everything = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(float)
    K = kernel(everything)
    assert is_psd(K)
    np.testing.assert_allclose(K.diagonal(), 1.0)
    np.testing.assert_array_equal(kernel.diag(everything), 1.0)
    if alpha:
        assert is_psd(K).smallest == pytest.approx(alpha)  # positive definite
    off = K[~np.eye(256, dtype=bool)] / (1 - alpha)
    assert set(np.unique(off.round(12))) == {-0.5, 1.0}
    # w = the two images' difference: margin sqrt(3)/2 (1 - alpha) in the direction of the
    # hidden labels; in the second coordinate the images are c(x) sqrt(3)/2
    codes = kernel._codes(data.X)
    signs = 2 * data.y - 1
    np.testing.assert_allclose(kernel._images(codes)[:, 1] * signs, np.sqrt(3) / 2)


def test_hidden_subset_refuses():
    for bad in (3, 0, 42, "8"):
        with pytest.raises(ValueError, match="n_bits="):
            HiddenSubset(bad)
    with pytest.raises(ValueError, match="alpha=1"):
        HiddenSubset(8, alpha=1)
    with pytest.raises(ValueError, match="0 or 1"):
        HiddenSubset(8)(np.full((1, 8), 0.5))


# ---------------------------------------------------------------------------
# Registration
# ---------------------------------------------------------------------------


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
