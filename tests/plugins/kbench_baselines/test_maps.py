"""What all baseline maps keep, and the exact kernels that they approximate."""

import importlib
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import kbench_baselines
from kbench import BANDWIDTH_FACTORS
from kbench_baselines import (
    ArcCosineFeatures,
    FastfoodFeatures,
    LaplaceFourierFeatures,
    LeverageFourierFeatures,
    MaternFourierFeatures,
    MondrianFeatures,
    NystroemMap,
    OptimizedMaclaurinFeatures,
    OrthogonalFourierFeatures,
    PolynomialMap,
    PolynomialSketch,
    ProductSketch,
    QMCFourierFeatures,
    RandomBinningFeatures,
    RandomFourierFeatures,
    RandomMaclaurinFeatures,
    RandomTreesFeatures,
    SkewedChi2Map,
    SplineFeatures,
    StructuredOrthogonalFeatures,
)
from kbench_baselines._arc_cosine import arc_cosine_gram
from kbench_baselines._chi2 import skewed_chi2_gram
from kbench_baselines._fourier import gaussian_gram, laplace_gram, matern_gram
from kbench_baselines._maclaurin import maclaurin_gram
from kbench_baselines._partitions import binning_gram
from kbench_baselines._polynomial import polynomial_gram
from kbench_baselines._sketches import product_sketch_gram

MAPS = {record.name: record for record in kbench_baselines.kbench_feature_maps()}
WINE = minmax_scale(load_wine().data)[::2]

# random maps whose inner products average to the kernel, each with its Gram function
UNBIASED = {
    "rff": (RandomFourierFeatures(20), gaussian_gram),
    "rff pairs": (RandomFourierFeatures(21, form="pairs"), gaussian_gram),
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
    "fastfood": (FastfoodFeatures(20), gaussian_gram),
    "fastfood odd": (FastfoodFeatures(31), gaussian_gram),
    "leverage": (LeverageFourierFeatures(20), gaussian_gram),
    "leverage odd": (LeverageFourierFeatures(31), gaussian_gram),
    "mondrian": (MondrianFeatures(5), binning_gram),
    **{
        f"product {projection} {'complex' if in_two else 'real'}": (
            ProductSketch(21, projection=projection, complex_to_real=in_two, degree=degree),
            product_sketch_gram,
        )
        for projection, degree in (("rademacher", 3), ("srht", 3), ("countsketch", 2))
        for in_two in (True, False)
    },
}
# every class, and every choice of a parameter that makes another map of it
EVERY = [
    *(getattr(kbench_baselines, name) for name in kbench_baselines.__all__),
    *(partial(NystroemMap, landmarks=name) for name in ("kmeans", "rpcholesky", "leverage")),
    *(
        partial(cls, projection=name)
        for cls in (ProductSketch, OptimizedMaclaurinFeatures)
        for name in ("srht", "countsketch")
    ),
    partial(ProductSketch, complex_to_real=False, kernel="gaussian", degree=5),
]
SEEDED = [cls for cls in EVERY if "random_state" in cls().get_params()]
WITH_MEDIAN = [
    cls
    for cls in EVERY
    if cls().get_params().get("bandwidth") == "median"
    and cls().get_params().get("kernel") != "polynomial"
]


def dense(Z):
    return Z.toarray() if sp.issparse(Z) else Z


def resolve(path):
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)


def small(cls, **params):
    """An estimator of few columns with a seed."""
    has = cls().get_params()
    few = {"n_components": 40, "n_grids": 20, "n_trees": 20, "random_state": 0}
    return cls(**{name: value for name, value in few.items() if name in has} | params)


def size_of(estimator):
    """Return the name of the parameter that decides how much is averaged."""
    return next(n for n in ("n_grids", "n_trees", "n_components") if hasattr(estimator, n))


@pytest.mark.slow
@parametrize_with_checks([cls() for cls in EVERY])
def test_estimators_follow_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", MAPS)
def test_records_name_real_parameters_and_approximate_the_declared_kernel(name):
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
    if record.kernel is None:
        assert name in ("random-trees-embedding", "splines")
        return
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


@pytest.mark.parametrize("n_features", [5, 1])
@pytest.mark.parametrize("case", UNBIASED)
def test_inner_products_average_to_the_kernel(case, n_features):
    estimator, kernel = UNBIASED[case]
    X = WINE[:12, :n_features]
    # 200 maps of the size above, in fewer calls; odd sizes stay odd
    n_seeds, size = 67, size_of(estimator)
    estimator = clone(estimator).set_params(**{size: 3 * getattr(estimator, size)})
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
    size, X = size_of(estimator), WINE[::3]
    params = {"n_components": 2**16} if "hashed" in case else {}

    def error(n):
        errors = []
        for seed in range(10):
            fitted = clone(estimator).set_params(**params | {size: n, "random_state": seed})
            Z = fitted.fit_transform(X)
            errors.append(np.linalg.norm(dense(Z @ Z.T) - kernel(fitted, X, X)) ** 2)
        return np.sqrt(np.mean(errors))

    few = 5 if size == "n_trees" else 20
    # Monte Carlo predicts a factor of 4, quasi-Monte Carlo and orthogonality more
    assert error(16 * few) < 0.45 * error(few)


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


@pytest.mark.parametrize("cls", EVERY)
def test_features_have_the_dtype_of_their_inputs_whatever_the_map_was_fitted_on(cls):
    for first, other in ((np.float32, np.float64), (np.float64, np.float32)):
        fitted = small(cls).fit(WINE.astype(first))
        assert fitted.transform(WINE.astype(other)).dtype == other


@pytest.mark.parametrize(
    "cls", [cls for cls in EVERY if cls().__sklearn_tags__().input_tags.sparse]
)
def test_sparse_input_gives_the_same_features(cls):
    X = np.where(WINE > 0.4, WINE, 0.0)
    expected = dense(small(cls).fit(X).transform(X))
    for kind in (sp.csr_matrix, sp.csr_array, sp.csc_array):
        fitted = small(cls).fit(kind(X))
        Z = dense(fitted.transform(kind(X)))
        np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, rtol=1e-6, atol=1e-6)
        record = next(r for r in MAPS.values() if type(resolve(r.make)()) is type(fitted))
        if record.kernel is None:
            continue
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


@pytest.mark.parametrize("cls", [NystroemMap, RandomMaclaurinFeatures, ArcCosineFeatures])
def test_features_are_the_same_in_extreme_units(cls):
    expected = small(cls).fit_transform(WINE)
    for unit, dtype in ((1e150, np.float64), (1e-150, np.float64), (1e30, np.float32)):
        X = (WINE * unit).astype(dtype)
        Z = small(cls).fit_transform(X)
        tolerance = 1e-6 if dtype == np.float64 else 1e-2
        scale = np.abs(expected @ expected.T).max()
        np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=tolerance * scale)


@pytest.mark.parametrize("cls", [NystroemMap, ArcCosineFeatures])
def test_features_are_the_same_far_from_0(cls):
    expected = small(cls).fit_transform(WINE)
    Z = small(cls).fit_transform(WINE + 1e8)
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-3)


@pytest.mark.parametrize("cls", WITH_MEDIAN)
def test_bandwidth_factor_multiplies_the_median_and_numbers(cls):
    base = small(cls).fit(WINE).bandwidth_
    assert small(cls, bandwidth_factor=4).fit(WINE).bandwidth_ == pytest.approx(4 * base)
    assert small(cls, bandwidth=0.3, bandwidth_factor=4).fit(WINE).bandwidth_ == 1.2
    factors = {
        record.grid.get("bandwidth_factor")
        for record in MAPS.values()
        if type(resolve(record.make)()) is type(cls())
    }
    # the polynomial kernel of a sketch has no bandwidth, and a series is cut
    series = {ProductSketch: {None}, OptimizedMaclaurinFeatures: {(1.0, 0.5, 2.0)}}
    assert factors == series.get(type(cls()), {BANDWIDTH_FACTORS})


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
        (RandomFourierFeatures(form="sines"), "form .*'offsets', 'pairs'.* 'sines'"),
        (RandomFourierFeatures(10, bandwidth=-1), "bandwidth .* -1"),
        (RandomFourierFeatures(10, bandwidth="scale"), "bandwidth .* 'median'.* 'scale'"),
        (OrthogonalFourierFeatures(2.5), "n_components .* 2.5"),
        (OrthogonalFourierFeatures(10, bandwidth_factor=0), "bandwidth_factor .* 0"),
        (QMCFourierFeatures(10, sequence="x"), "sequence .*'sobol', 'halton'.* 'x'"),
        (LaplaceFourierFeatures(10, norm="l3"), "norm .*'l1', 'l2'.* 'l3'"),
        (MaternFourierFeatures(10, nu=float("inf")), "nu .* inf"),
        (RandomBinningFeatures(columns="all"), "columns .* 'all'"),
        (RandomBinningFeatures(n_grids=True), "n_grids .* True"),
        (ArcCosineFeatures(order=2), "order .* 2"),
        (ArcCosineFeatures(bias=-0.5), "bias .* -0.5"),
        (RandomMaclaurinFeatures(kernel="rbf"), "kernel .* 'rbf'"),
        (RandomMaclaurinFeatures(bandwidth="median"), "bandwidth .* 'norm'.* 'median'"),
        (NystroemMap(kernel="poly"), "kernel .*'rbf', 'laplacian', or a callable.* 'poly'"),
        (NystroemMap(landmarks="corners"), "landmarks .*'uniform', 'kmeans'.* 'corners'"),
        (NystroemMap(n_candidates=0), "n_candidates .* 0"),
        (PolynomialMap(0), "degree .* 0"),
        (PolynomialMap(coef0=-1), "coef0 .* -1"),
        (SkewedChi2Map(skewedness=0), "skewedness .* 0"),
        (FastfoodFeatures(0), "n_components .* 0"),
        (StructuredOrthogonalFeatures(bandwidth="scale"), "bandwidth .* 'median'.* 'scale'"),
        (LeverageFourierFeatures(pool_factor=0), "pool_factor .* 0"),
        (LeverageFourierFeatures(ridge=-1), "ridge .* 'auto'.* -1"),
        (ProductSketch(degree=0), "degree must be an integer >= 1, got 0"),
        (ProductSketch(projection="gaussian"), "projection .*'srht', 'countsketch'.* 'gaussian'"),
        (ProductSketch(bandwidth="foo"), "bandwidth .* 'median'.* 'foo'"),
        (ProductSketch(bandwidth_factor=0), "bandwidth_factor .* 0"),
        (ProductSketch(kernel="rbf"), "kernel .*'polynomial', 'gaussian'.* 'rbf'"),
        (ProductSketch(complex_to_real="yes"), "complex_to_real .* 'yes'"),
        (OptimizedMaclaurinFeatures(0), "n_components must be an integer >= 1, got 0"),
        (OptimizedMaclaurinFeatures(max_degree=1), "max_degree .* 1"),
        (OptimizedMaclaurinFeatures(kernel="exponential"), "bandwidth .* 'norm'.* 'median'"),
        (MondrianFeatures(0), "n_trees .* 0"),
        (RandomTreesFeatures(max_depth=0), "max_depth .* 0"),
        (SplineFeatures(1), "n_knots .* 1"),
        (SplineFeatures(knots="natural"), "knots .*'quantile', 'uniform'.* 'natural'"),
    ],
)
def test_wrong_parameters_are_named_with_value_and_choices(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(WINE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nystroem", "nystroem-kmeans", "rff", "orthogonal-rff"])
def test_default_grids_are_strong_on_digits(name):
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, X / 16, test_size=0.3, random_state=0, stratify=y)
    X_train, X_test = parts[0], parts[1]
    y_train, y_test = train_test_split(y, test_size=0.3, random_state=0, stratify=y)
    record = MAPS[name]
    best = 0.0
    for factor in record.grid["bandwidth_factor"]:
        map_ = resolve(record.make)(bandwidth_factor=factor, random_state=0).fit(X_train)
        learner = LinearSVC(C=10, dual=False).fit(map_.transform(X_train), y_train)
        best = max(best, learner.score(map_.transform(X_test), y_test))
    assert best >= 0.97
