"""The baseline maps against the exact kernels they approximate."""

import importlib
import pickle
import subprocess
import sys
import warnings

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.kernel_approximation import AdditiveChi2Sampler, Nystroem, RBFSampler
from sklearn.metrics.pairwise import additive_chi2_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import kbench_baselines
from kbench.kernels import Matern
from kbench_baselines import (
    ArcCosineFeatures,
    Identity,
    KMeansNystroem,
    LaplaceFourierFeatures,
    LeverageNystroem,
    MaternFourierFeatures,
    OrthogonalFourierFeatures,
    PolynomialMap,
    PolynomialSketch,
    QMCFourierFeatures,
    RandomBinningFeatures,
    RandomFourierFeatures,
    RandomMaclaurinFeatures,
    RPCholeskyNystroem,
    SkewedChi2Map,
    UniformNystroem,
)
from kbench_baselines._arc_cosine import arc_cosine_gram, arc_cosine_kernel
from kbench_baselines._bandwidth import median_distance
from kbench_baselines._binning import bin_keys, binning_gram
from kbench_baselines._chi2 import additive_chi2_gram, skewed_chi2_gram
from kbench_baselines._fourier import gaussian_gram, laplace_gram, matern_gram
from kbench_baselines._frequencies import gaussian_orthogonal, gaussian_qmc
from kbench_baselines._landmarks import (
    _ridge_scores,
    distinct_rows,
    kernel_diagonal,
    leverage_rows,
    rpcholesky_pivots,
)
from kbench_baselines._maclaurin import maclaurin_gram
from kbench_baselines._nystroem import inverse_root, nystroem_gram
from kbench_baselines._polynomial import polynomial_gram

MAPS = {record.name: record for record in kbench_baselines.kbench_feature_maps()}
WINE = minmax_scale(load_wine().data)[::2]

# random maps whose inner products average to the kernel, each with its Gram function
UNBIASED = {
    "rff": (RandomFourierFeatures(20), gaussian_gram),
    "orthogonal": (OrthogonalFourierFeatures(20), gaussian_gram),
    "orthogonal odd": (OrthogonalFourierFeatures(31), gaussian_gram),
    "sobol": (QMCFourierFeatures(20), gaussian_gram),
    "halton": (QMCFourierFeatures(21, sequence="halton"), gaussian_gram),
    "laplace l1": (LaplaceFourierFeatures(20), laplace_gram),
    "laplace l2": (LaplaceFourierFeatures(21, norm="l2"), laplace_gram),
    "matern 1/2": (MaternFourierFeatures(20, nu=0.5), matern_gram),
    "matern 3/2": (MaternFourierFeatures(20), matern_gram),
    "matern 5/2": (MaternFourierFeatures(20, nu=2.5), matern_gram),
    "binning": (RandomBinningFeatures(20), binning_gram),
    "binning hashed": (RandomBinningFeatures(20, columns="hashed", n_components=7), binning_gram),
    "step": (ArcCosineFeatures(20, order=0), arc_cosine_gram),
    "relu": (ArcCosineFeatures(20), arc_cosine_gram),
    "relu plain": (ArcCosineFeatures(20, bias=0.0, standardize=False), arc_cosine_gram),
    "maclaurin exp": (RandomMaclaurinFeatures(20), maclaurin_gram),
    "maclaurin polynomial": (
        RandomMaclaurinFeatures(20, kernel="polynomial", degree=3),
        maclaurin_gram,
    ),
    "sketch": (PolynomialSketch(20), polynomial_gram),
    "skewed chi2": (SkewedChi2Map(20), skewed_chi2_gram),
}
NYSTROEM = [UniformNystroem, KMeansNystroem, RPCholeskyNystroem, LeverageNystroem]
EVERY = [getattr(kbench_baselines, name) for name in kbench_baselines.__all__]
SEEDED = [cls for cls in EVERY if "random_state" in cls().get_params()]
WITH_MEDIAN = [cls for cls in EVERY if cls().get_params().get("gamma") == "median"]


def dense(Z):
    return Z.toarray() if sp.issparse(Z) else Z


def resolve(path):
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)


def small(cls, **params):
    """An estimator of few columns with a seed."""
    has = cls().get_params()
    few = {"n_components": 40, "n_grids": 20, "random_state": 0}
    return cls(**{name: value for name, value in few.items() if name in has} | params)


# ---------------------------------------------------------------------------
# Records
# ---------------------------------------------------------------------------


@parametrize_with_checks([cls() for cls in EVERY])
def test_estimators_follow_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", MAPS)
def test_records_name_real_parameters_and_measure_the_declared_kernel(name):
    record = MAPS[name]
    fitted = resolve(record.make)()
    parameters = fitted.get_params()
    assert set(record.grid) <= set(parameters)
    assert np.prod([len(values) for values in record.grid.values()]) <= 5
    for key, values in record.grid.items():
        for value in values:
            clone(fitted).set_params(**{key: value}).fit(WINE)
    if "random_state" in parameters:
        fitted.set_params(random_state=0)
    Z = fitted.fit_transform(WINE)
    K = resolve(record.kernel)(fitted, WINE, WINE)
    assert K.shape == (len(WINE), len(WINE))
    assert np.linalg.norm(dense(Z @ Z.T) - K) < 0.3 * np.linalg.norm(K)


def test_importing_the_plugin_loads_neither_scikit_learn_nor_scipy():
    code = (
        "import sys, kbench_baselines; kbench_baselines.kbench_feature_maps(); "
        "assert not {'sklearn', 'scipy', 'pandas'} & set(sys.modules); "
        "assert 'RandomFourierFeatures' in dir(kbench_baselines)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="Missing"):
        kbench_baselines.Missing  # noqa: B018


# ---------------------------------------------------------------------------
# Laws that hold for every map
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", UNBIASED)
def test_inner_products_average_to_the_kernel(case):
    estimator, kernel = UNBIASED[case]
    X = WINE[:12, :5]
    n_seeds = 200
    grams = np.stack(
        [
            dense(Z @ Z.T)
            for Z in (
                clone(estimator).set_params(random_state=seed).fit_transform(X)
                for seed in range(n_seeds)
            )
        ]
    )
    exact = kernel(estimator.fit(X), X, X)
    error = np.abs(grams.mean(axis=0) - exact)
    # 5 standard errors: a false alarm once in about 10,000 for 144 entries
    assert (error <= 5 * grams.std(axis=0, ddof=1) / np.sqrt(n_seeds) + 1e-12).all()


@pytest.mark.parametrize("case", UNBIASED)
def test_gram_error_falls_with_the_number_of_features(case):
    estimator, kernel = UNBIASED[case]
    size = "n_grids" if hasattr(estimator, "n_grids") else "n_components"
    params = {"n_components": 2**16} if "hashed" in case else {}

    def error(n):
        errors = []
        for seed in range(10):
            fitted = clone(estimator).set_params(**params | {size: n, "random_state": seed})
            Z = fitted.fit_transform(WINE)
            errors.append(np.linalg.norm(dense(Z @ Z.T) - kernel(fitted, WINE, WINE)) ** 2)
        return np.sqrt(np.mean(errors))

    # Monte Carlo predicts a factor of 4, quasi-Monte Carlo and orthogonality more
    assert error(320) < 0.45 * error(20)


@pytest.mark.parametrize("cls", SEEDED)
def test_seeds_clones_and_pickles(cls):
    first = small(cls).fit(WINE)
    Z = dense(first.transform(WINE))
    np.testing.assert_array_equal(Z, dense(clone(first).fit(WINE).transform(WINE)))
    np.testing.assert_array_equal(Z, dense(pickle.loads(pickle.dumps(first)).transform(WINE)))
    other = dense(small(cls, random_state=1).fit_transform(WINE))
    assert other.shape != Z.shape or not np.allclose(other, Z)


@pytest.mark.parametrize("cls", EVERY)
def test_float32_is_kept_and_close_to_float64(cls):
    X = WINE.astype(np.float32)
    Z = small(cls).fit_transform(X)
    assert Z.dtype == np.float32
    reference = dense(small(cls).fit_transform(X.astype(np.float64)))
    # inner products: columns of a Nystroem map may differ by a rotation
    near = np.abs(dense(Z @ Z.T) - reference @ reference.T) < 2e-3 * np.abs(reference).max() ** 2
    # a row next to the wall of a cell may fall on its other side
    assert near.mean() > (0.98 if cls is RandomBinningFeatures else 0.9999)


@pytest.mark.parametrize(
    "cls", [cls for cls in EVERY if cls().__sklearn_tags__().input_tags.sparse]
)
def test_sparse_input_gives_the_same_features(cls):
    X = np.where(WINE > 0.4, WINE, 0.0)
    expected = small(cls).fit(X).transform(X)
    for kind in (sp.csr_matrix, sp.csr_array, sp.csc_array):
        fitted = small(cls).fit(kind(X))
        Z = dense(fitted.transform(kind(X)))
        np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, rtol=1e-6, atol=1e-6)
        record = next((r for r in MAPS.values() if r.make.endswith(":" + cls.__name__)), None)
        K = resolve(record.kernel)(fitted, kind(X), kind(X))
        np.testing.assert_allclose(K, resolve(record.kernel)(fitted, X, X), atol=1e-7)


@pytest.mark.parametrize("cls", WITH_MEDIAN)
@given(log_scale=st.integers(-10, 10))
@settings(max_examples=5, deadline=None)
def test_median_bandwidth_makes_maps_free_of_the_unit(cls, log_scale):
    """With powers of two, every number in the computation is the same but for its exponent."""
    reference, scaled = small(cls).fit(WINE), small(cls).fit(WINE * 2.0**log_scale)
    np.testing.assert_allclose(
        dense(scaled.transform(WINE * 2.0**log_scale)),
        dense(reference.transform(WINE)),
        rtol=1e-6,
        atol=1e-9,
    )


@pytest.mark.parametrize("cls", WITH_MEDIAN)
def test_gamma_factor_multiplies_the_median_and_leaves_numbers_alone(cls):
    base = small(cls).fit(WINE).gamma_
    assert small(cls, gamma_factor=4).fit(WINE).gamma_ == pytest.approx(4 * base)
    assert small(cls, gamma=0.3, gamma_factor=4).fit(WINE).gamma_ == 0.3


@pytest.mark.parametrize("cls", EVERY)
def test_feature_names_and_pandas_output(cls):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(WINE, columns=[f"c{j}" for j in range(WINE.shape[1])])
    fitted = small(cls).fit(frame)
    Z = fitted.transform(frame)
    names = fitted.get_feature_names_out()
    assert len(set(names)) == len(names) == Z.shape[1]
    if not sp.issparse(Z):
        shown = fitted.set_output(transform="pandas").transform(frame)
        assert list(shown.columns) == list(names)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (RandomFourierFeatures(0), "n_components .* 0"),
        (RandomFourierFeatures(10, gamma=-1), "gamma .* -1"),
        (RandomFourierFeatures(10, gamma="scale"), "gamma .* 'median'.* 'scale'"),
        (OrthogonalFourierFeatures(2.5), "n_components .* 2.5"),
        (OrthogonalFourierFeatures(10, gamma_factor=0), "gamma_factor .* 0"),
        (QMCFourierFeatures(10, sequence="x"), "sequence .*'sobol', 'halton'.* 'x'"),
        (LaplaceFourierFeatures(10, norm="l3"), "norm .*'l1', 'l2'.* 'l3'"),
        (MaternFourierFeatures(10, nu=float("inf")), "nu .* inf"),
        (RandomBinningFeatures(columns="all"), "columns .* 'all'"),
        (RandomBinningFeatures(n_grids=True), "n_grids .* True"),
        (ArcCosineFeatures(order=2), "order .* 2"),
        (ArcCosineFeatures(bias=-0.5), "bias .* -0.5"),
        (RandomMaclaurinFeatures(kernel="rbf"), "kernel .* 'rbf'"),
        (RandomMaclaurinFeatures(gamma="median"), "gamma .* 'norm'.* 'median'"),
        (UniformNystroem(kernel="poly"), "kernel .* 'poly'"),
        (KMeansNystroem(n_candidates=0), "n_candidates .* 0"),
        (PolynomialMap(0), "degree .* 0"),
        (PolynomialMap(coef0=-1), "coef0 .* -1"),
        (SkewedChi2Map(skewedness=0), "skewedness .* 0"),
    ],
)
def test_wrong_parameters_are_named_with_value_and_choices(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(WINE)


# ---------------------------------------------------------------------------
# Bandwidth
# ---------------------------------------------------------------------------


@given(
    hnp.arrays(
        float,
        st.tuples(st.integers(2, 12), st.integers(1, 4)),
        elements=st.integers(-4, 4).map(float),
    )
)
@settings(max_examples=50, deadline=None)
def test_median_distance_against_all_pairs(X):
    for norm, metric in (("l2", "euclidean"), ("l1", "cityblock")):
        pairs = cdist(X, X, metric)[np.triu_indices(len(X), 1)]
        median = np.median(pairs)
        if median == 0:
            median = np.median(pairs[pairs > 0]) if (pairs > 0).any() else 1.0
        assert median_distance(X, norm) == pytest.approx(median)
        # squares are expanded for sparse rows, which costs half of the digits
        assert median_distance(sp.csr_matrix(X), norm) == pytest.approx(median, abs=1e-6)


@pytest.mark.parametrize("n_features", [3, 17, 64])
def test_median_distance_sees_through_repeated_rows_and_far_origins(n_features):
    """Expanded squares leave rounding errors between equal rows, and cancel far away."""
    rows = np.random.RandomState(0).rand(3, n_features)
    X = rows[np.random.RandomState(1).permutation(np.repeat([0, 1, 2], [240, 30, 30]))]
    pairs = cdist(X, X)[np.triu_indices(300, 1)]
    assert np.median(pairs) == 0
    exact = np.median(pairs[pairs > 0])
    for same in (X, X + 1e6, sp.csr_matrix(X)):
        assert median_distance(same) == pytest.approx(exact, rel=1e-6)


def test_median_distance_of_a_sample_is_near_that_of_all_rows():
    X = np.random.RandomState(0).normal(size=(1200, 4))
    exact = np.median(cdist(X, X)[np.triu_indices(1200, 1)])
    assert median_distance(X) == pytest.approx(exact, rel=0.05)


# ---------------------------------------------------------------------------
# Fourier features
# ---------------------------------------------------------------------------


def test_rff_is_scikit_learns_sampler():
    ours = RandomFourierFeatures(30, gamma=0.7, random_state=3).fit_transform(WINE)
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


# ---------------------------------------------------------------------------
# Nystroem
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [5, 40])
def test_uniform_nystroem_is_scikit_learns(n_components):
    ours = UniformNystroem(n_components, gamma=2.0, random_state=3).fit(WINE)
    theirs = Nystroem(gamma=2.0, n_components=n_components, random_state=3).fit(WINE)
    np.testing.assert_array_equal(ours.component_indices_, theirs.component_indices_)
    np.testing.assert_allclose(ours.transform(WINE), theirs.transform(WINE), atol=1e-8)


@pytest.mark.parametrize("cls", NYSTROEM)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", Matern(nu=2.5)])
def test_nystroem_on_all_rows_is_exact_and_silent(cls, kernel):
    X = WINE[:30]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = cls(100, kernel=kernel, random_state=0).fit(X)
        Z = fitted.transform(X)
        again = cls(100, kernel=kernel, random_state=0).fit_transform(X)
    assert Z.shape[1] <= 30
    np.testing.assert_array_equal(Z, again)
    np.testing.assert_allclose(Z @ Z.T, nystroem_gram(fitted, X, X), atol=1e-6)


@pytest.mark.parametrize("cls", NYSTROEM)
def test_nystroem_is_the_projection_on_its_landmarks(cls):
    """What it leaves of the Gram matrix is positive semidefinite, and 0 at landmarks."""
    fitted = cls(15, gamma_factor=4, random_state=0).fit(WINE)
    Z, L = fitted.transform(WINE), fitted.transform(fitted.components_)
    residual = fitted.kernel_(WINE, WINE) - Z @ Z.T
    assert np.linalg.eigvalsh(residual).min() > -1e-8
    np.testing.assert_allclose(Z @ L.T, fitted.kernel_(WINE, fitted.components_), atol=1e-8)
    if hasattr(fitted, "component_indices_"):
        np.testing.assert_array_equal(fitted.components_, WINE[fitted.component_indices_])
        assert len(set(fitted.component_indices_)) == 15


@pytest.mark.parametrize("cls", [KMeansNystroem, RPCholeskyNystroem])
def test_chosen_landmarks_beat_uniform_ones_on_uneven_clusters(cls):
    rng = np.random.RandomState(0)
    centres = 10 * rng.normal(size=(12, 3))
    sizes = [600, *[10] * 11]
    X = np.concatenate([c + rng.normal(size=(n, 3)) for c, n in zip(centres, sizes, strict=True)])

    def left(make):
        errors = []
        for seed in range(5):
            Z = make(30, gamma=0.05, random_state=seed).fit_transform(X)
            errors.append(len(X) - np.sum(Z**2))
        return np.mean(errors)

    assert left(cls) < 0.7 * left(UniformNystroem)


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
    for cls in (KMeansNystroem, RPCholeskyNystroem):
        fitted = cls(30, random_state=0).fit(X)
        assert len(fitted.components_) == 6
        Z = fitted.transform(X)
        np.testing.assert_allclose(Z @ Z.T, fitted.kernel_(X, X), atol=1e-6)


def test_distinct_rows_are_the_first_of_each_kind():
    X = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
    for rows in (X, sp.csr_matrix(X)):
        np.testing.assert_array_equal(distinct_rows(rows), [0, 1, 3])


@pytest.mark.parametrize("cls", NYSTROEM[1:])
def test_costly_choices_look_at_a_bounded_number_of_rows(cls):
    X = np.random.RandomState(0).normal(size=(400, 3))
    fitted = cls(20, n_candidates=50, random_state=0).fit(X)
    assert fitted.components_.shape == (20, 3)
    # n_candidates below n_components: as many as are needed
    assert cls(60, n_candidates=10, random_state=0).fit(X).components_.shape == (60, 3)


def test_kernels_are_resolved_on_the_training_data():
    fitted = UniformNystroem(10, kernel=Matern(), random_state=0).fit(WINE)
    assert fitted.kernel_ == Matern().resolve(WINE)


@given(
    hnp.arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(-3, 3))
)
@settings(max_examples=50, deadline=None)
def test_inverse_root_is_that_of_the_pseudo_inverse(A):
    K = A @ A.T
    R = inverse_root(K, np.float64)
    np.testing.assert_allclose(R, R.T, rtol=1e-6, atol=1e-9)
    projection = R @ K @ R
    np.testing.assert_allclose(projection @ projection, projection, atol=1e-3)
    assert np.abs(K - projection @ K).max() <= 1e-6 * max(1.0, np.abs(K).max())


def test_kernel_diagonal_in_blocks():
    np.testing.assert_allclose(
        kernel_diagonal(polynomial_kernel, WINE, block=7), np.diag(polynomial_kernel(WINE))
    )


# ---------------------------------------------------------------------------
# Polynomials, histograms, bins, neurons
# ---------------------------------------------------------------------------


@given(
    X=hnp.arrays(float, (4, 3), elements=st.floats(-2, 2)),
    degree=st.integers(1, 4),
    gamma=st.floats(0.1, 3),
    coef0=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
)
@settings(max_examples=60, deadline=None)
def test_polynomial_features_are_exact(X, degree, gamma, coef0):
    fitted = PolynomialMap(degree, gamma=gamma, coef0=coef0).fit(X)
    Z = fitted.transform(X)
    np.testing.assert_allclose(Z @ Z.T, polynomial_gram(fitted, X, X), rtol=1e-9, atol=1e-9)
    S = fitted.transform(sp.csr_matrix(X))
    assert S.format == "csr"
    np.testing.assert_allclose(S.toarray(), Z, atol=1e-12)


def test_polynomial_names_come_from_the_inputs():
    fitted = PolynomialMap().fit([[1.0, 2.0]])
    assert list(fitted.get_feature_names_out(["a", "b"])) == ["1", "a", "b", "a^2", "a b", "b^2"]


def test_additive_chi2_map_approaches_its_kernel():
    direct = (
        2 * WINE[:, None] * WINE / np.where(WINE[:, None] + WINE > 0, WINE[:, None] + WINE, 1)
    ).sum(-1)
    np.testing.assert_allclose(additive_chi2_gram(None, WINE, WINE), direct, atol=1e-10)
    assert additive_chi2_kernel(WINE).max() <= 0
    errors = []
    for steps in (1, 2, 3):
        Z = AdditiveChi2Sampler(sample_steps=steps).fit_transform(WINE)
        errors.append(np.linalg.norm(Z @ Z.T - direct) / np.linalg.norm(direct))
    assert errors[2] < errors[0] and errors[2] < 0.1


def test_skewed_chi2_kernel_against_its_definition():
    fitted = SkewedChi2Map(skewedness=0.3).fit(WINE)
    X, Z = WINE[:, None] + 0.3, WINE + 0.3
    np.testing.assert_allclose(
        skewed_chi2_gram(fitted, WINE, WINE), np.prod(2 * np.sqrt(X * Z) / (X + Z), axis=-1)
    )


@given(
    hnp.arrays(np.float64, (8, 3), elements=st.floats(-5, 5)),
    st.floats(0.1, 3),
    st.integers(0, 100),
)
@settings(max_examples=50, deadline=None)
def test_rows_share_a_key_exactly_where_they_share_a_cell(X, pitch, seed):
    rng = np.random.RandomState(seed)
    shift = pitch * rng.uniform(size=3)
    multipliers = rng.randint(2**63, size=3, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = bin_keys(X, np.full(3, pitch), shift, multipliers)
    cells = np.floor((X - shift) / pitch)
    same = (cells[:, None] == cells).all(axis=-1)
    np.testing.assert_array_equal(keys[:, None] == keys, same)


def test_binning_has_one_entry_a_grid_and_none_for_unseen_cells():
    fitted = RandomBinningFeatures(30, random_state=0).fit(WINE)
    Z = fitted.transform(WINE)
    assert Z.format == "csr"
    np.testing.assert_array_equal(np.diff(Z.indptr), 30)
    np.testing.assert_allclose(Z.data, 1 / np.sqrt(30))
    # every column is there for a training row
    assert (Z.sum(axis=0) > 0).all()
    assert fitted.transform(WINE + 1e6).nnz == 0
    hashed = RandomBinningFeatures(30, columns="hashed", n_components=50, random_state=0)
    assert hashed.fit_transform(WINE).shape == (len(WINE), 50)
    assert hashed.transform(WINE + 1e300).shape == (len(WINE), 50)


def test_arc_cosine_kernels_against_their_integrals():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(5, 2))
    angles = np.linspace(0, 2 * np.pi, 20_001)[:-1]
    w = np.stack([np.cos(angles), np.sin(angles)])
    active = (X @ w > 0).astype(float)
    relu = np.maximum(X @ w, 0)
    # E r^2 = 2 for the length of a standard normal vector in the plane
    np.testing.assert_allclose(
        arc_cosine_kernel(X, X, 0), 2 * active @ active.T / len(angles), atol=1e-3
    )
    np.testing.assert_allclose(
        arc_cosine_kernel(X, X, 1), 2 * 2 * relu @ relu.T / len(angles), atol=1e-3
    )


def test_standardized_neurons_do_not_depend_on_shift_and_unit():
    reference = ArcCosineFeatures(30, random_state=0).fit_transform(WINE)
    moved = ArcCosineFeatures(30, random_state=0).fit_transform(100 * WINE - 7)
    np.testing.assert_allclose(moved, reference, atol=1e-9)
    K = arc_cosine_gram(ArcCosineFeatures().fit(WINE), WINE, WINE)
    assert np.mean(np.diag(K)) == pytest.approx(1.0)


def test_maclaurin_degree_zero_and_constant_data():
    Z = RandomMaclaurinFeatures(10, gamma_factor=1e-12, random_state=0).fit_transform(WINE)
    np.testing.assert_allclose(Z @ Z.T, 1.0, atol=1e-6)
    assert np.isfinite(RandomMaclaurinFeatures(10).fit_transform(np.zeros((3, 2)))).all()


def test_identity_passes_dense_and_sparse_rows_on():
    np.testing.assert_array_equal(Identity().fit_transform(WINE), WINE)
    S = sp.csr_matrix(WINE)
    assert (Identity().fit_transform(S) != S).nnz == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nystroem", "nystroem-kmeans", "rff", "orthogonal-rff"])
def test_default_grids_are_strong_on_digits(name):
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, X / 16, test_size=0.3, random_state=0, stratify=y)
    X_train, X_test = parts[0], parts[1]
    y_train, y_test = train_test_split(y, test_size=0.3, random_state=0, stratify=y)
    record = MAPS[name]
    best = 0.0
    for factor in record.grid["gamma_factor"]:
        map_ = resolve(record.make)(gamma_factor=factor, random_state=0).fit(X_train)
        learner = LinearSVC(C=10, dual=False).fit(map_.transform(X_train), y_train)
        best = max(best, learner.score(map_.transform(X_test), y_test))
    assert best >= 0.97


def test_only_maps_with_the_same_span_say_so():
    from kbench.records import Search
    from kbench_baselines import span_of_nystroem

    plain = span_of_nystroem({})
    assert plain.startswith("300 uniform landmarks: gaussian(bandwidth=")
    assert span_of_nystroem({"gamma": 0.5, "gamma_factor": 1}) == (
        "300 uniform landmarks: gaussian(bandwidth=1)"
    )
    assert span_of_nystroem({"gamma": Search((0.5, 2.0)), "gamma_factor": 1}).endswith(
        "gaussian(bandwidth=0.5), gaussian(bandwidth=1)"
    )
    for params in (
        {"kernel": "laplacian"},  # its gamma would not be told
        {"kernel": "laplacian", "gamma": 2.0},
        {"kernel": Search(("rbf", "laplacian"))},
        {"random_state": 7},  # other landmarks
        {"gamma": 0.5},  # fitted once for each factor of the default grid
        {"gamma": 0.5, "gamma_factor": 4.0},
        {"gamma": 0.5, "gamma_factor": Search((1.0, 4.0))},
        {"gamma": Search(("median", 1.0)), "gamma_factor": 1},
    ):
        assert span_of_nystroem(params) == "", params
