"""Maps compute in the namespace of their inputs: the same features as on the host."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils import get_tags

from kbench import kernels
from kbench.arrays import host_type, namespace, on_device, on_host, to_numpy
from kbench_baselines import (
    ArcCosineFeatures,
    FastfoodFeatures,
    Identity,
    LaplaceFourierFeatures,
    LeverageFourierFeatures,
    MaternFourierFeatures,
    NystroemMap,
    OptimizedMaclaurinFeatures,
    OrthogonalFourierFeatures,
    PolynomialMap,
    PolynomialSketch,
    ProductSketch,
    QMCFourierFeatures,
    RandomFourierFeatures,
    RandomMaclaurinFeatures,
    SplineFeatures,
    StructuredOrthogonalFeatures,
)
from tests.support.array_libraries import LIBRARIES, library

RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(120, 5)), RNG.normal(size=(30, 5)) + 0.3
SKETCHES = [
    (projection, is_complex)
    for projection in ("rademacher", "srht", "countsketch")
    for is_complex in (True, False)
]
MAPS = {
    "identity": Identity(),
    "rff": RandomFourierFeatures(21),
    "rff pairs": RandomFourierFeatures(21, form="pairs"),
    "orthogonal": OrthogonalFourierFeatures(20),
    "qmc": QMCFourierFeatures(21),
    "laplace": LaplaceFourierFeatures(21),
    "laplace l2": LaplaceFourierFeatures(20, norm="l2"),
    "matern": MaternFourierFeatures(21),
    "leverage": LeverageFourierFeatures(21, n_rows=100),
    "fastfood": FastfoodFeatures(21),
    "sorf": StructuredOrthogonalFeatures(20),
    "arc-cosine": ArcCosineFeatures(20),
    "arc-cosine steps": ArcCosineFeatures(20, order=0, standardize=False),
    "polynomial": PolynomialMap(),
    "polynomial homogeneous": PolynomialMap(3, gamma=0.5, coef0=0),
    "tensor-sketch": PolynomialSketch(20, gamma=0.5),
    "tensor-sketch homogeneous": PolynomialSketch(20, degree=3, coef0=0),
    "maclaurin": RandomMaclaurinFeatures(20),
    "maclaurin polynomial": RandomMaclaurinFeatures(20, kernel="polynomial", degree=3),
    **{
        f"{projection} {is_complex}": ProductSketch(
            21, projection=projection, complex_to_real=is_complex, degree=3, coef0=float(is_complex)
        )
        for projection, is_complex in SKETCHES
    },
    "sketch gaussian": ProductSketch(21, kernel="gaussian"),
    **{
        f"optimized {projection} {is_complex}": OptimizedMaclaurinFeatures(
            21, projection=projection, complex_to_real=is_complex, n_rows=50
        )
        for projection, is_complex in SKETCHES
    },
    "optimized exponential": OptimizedMaclaurinFeatures(20, kernel="exponential", bandwidth="norm"),
    **{
        f"nystroem {landmarks}": NystroemMap(20, landmarks=landmarks)
        for landmarks in ("uniform", "kmeans", "rpcholesky", "leverage")
    },
    **{
        f"nystroem {kernel!r}": NystroemMap(20, kernel=kernel)
        for kernel in (
            "laplacian",
            kernels.LaplaceBalcan(),
            *(kernels.Matern(nu=nu) for nu in (0.5, 1.5, 2.5)),
            kernels.Linear(),
            *(kernels.Polynomial(degree) for degree in (1, 2, 3)),
            kernels.Cosine(),
            2.0 * kernels.Gaussian() + kernels.Linear(),
            kernels.Gaussian() * kernels.Polynomial(2),
            kernels.normalized(kernels.Polynomial(2)),
        )
    },
}


@pytest.fixture(params=LIBRARIES)
def xp(request):
    with library(request.param) as xp:
        yield xp


def seeded(name):
    made = clone(MAPS[name])
    return made.set_params(random_state=3) if "random_state" in made.get_params() else made


def assert_equal(there, expected, dtype):
    assert host_type(there) == expected.dtype == dtype
    tolerance = 1e-10 if dtype is np.float64 else 1e-4
    difference = np.abs(to_numpy(there) - expected).max()
    assert difference <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", MAPS)
def test_features_are_those_of_the_host(xp, name, dtype):
    made, rows = seeded(name), xp.asarray(T.astype(dtype))
    assert get_tags(made).array_api_support
    host = clone(made).fit(X.astype(dtype))
    expected = host.transform(T.astype(dtype))
    there = clone(made).fit(xp.asarray(X.astype(dtype)))
    for fitted in (host, there, on_device(host, rows)):
        features = fitted.transform(rows)
        assert namespace(features) is namespace(rows)
        assert_equal(features, expected, dtype)
    for fitted in (there, on_host(there)):
        features = fitted.transform(T.astype(dtype))
        assert type(features) is np.ndarray
        assert_equal(features, expected, dtype)


@pytest.mark.parametrize("name", [name for name in MAPS if hasattr(MAPS[name], "input_gradient")])
def test_gradients_are_those_of_the_host(xp, name):
    host, there = seeded(name).fit(X), seeded(name).fit(xp.asarray(X))
    coef = RNG.normal(size=(2, host.transform(T).shape[1]))
    expected = host.input_gradient(T, coef)
    for fitted in (host, there):
        gradients = fitted.input_gradient(xp.asarray(T), xp.asarray(coef))
        assert namespace(gradients) is namespace(xp.asarray(T))
        np.testing.assert_allclose(to_numpy(gradients), expected, rtol=1e-8, atol=1e-9)
        one = fitted.input_gradient(xp.asarray(T), xp.asarray(coef[0]))
        np.testing.assert_allclose(to_numpy(one), expected[0], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["rff", "fastfood", "nystroem uniform", "tensor-sketch"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.ones(5), "Expected 2D array"),
        (np.ones((2, 4)), "X has 4 features"),
        (np.full((2, 5), np.nan), "contains NaN"),
        (np.full((2, 5), np.inf), "contains infinity"),
        (np.ones((0, 5)), r"0 sample\(s\)"),
        (np.ones((2, 5)) * 1j, "Complex data not supported"),
    ],
)
def test_errors_are_those_of_the_host(xp, name, wrong, message):
    host, there = seeded(name).fit(X), seeded(name).fit(xp.asarray(X))
    with pytest.raises(ValueError, match=message) as expected:
        host.transform(wrong)
    with pytest.raises(ValueError, match=message) as raised:
        there.transform(xp.asarray(wrong))
    assert str(raised.value) == str(expected.value)


def test_integers_become_float64_as_on_the_host(xp):
    whole = RNG.integers(5, size=(20, 3))
    there = seeded("rff").fit(xp.asarray(whole)).transform(xp.asarray(whole))
    assert_equal(there, seeded("rff").fit(whole).transform(whole), np.float64)


@pytest.mark.filterwarnings("ignore:overflow")
def test_large_finite_values_are_no_infinities(xp):
    large = np.full((4, 3), 1e308)
    there = Identity().fit(xp.asarray(large)).transform(xp.asarray(large))
    np.testing.assert_array_equal(to_numpy(there), large)


def test_rows_far_from_zero_keep_their_distances(xp):
    shifted, rows = X + 1e6, T + 1e6
    made = NystroemMap(20, random_state=0)
    there = clone(made).fit(xp.asarray(shifted)).transform(xp.asarray(rows))
    np.testing.assert_allclose(to_numpy(there), made.fit(shifted).transform(rows), atol=1e-6)


def test_map_fitted_on_sparse_rows_takes_arrays(xp):
    for made in (seeded("rff"), NystroemMap(20, random_state=0)):
        fitted = made.fit(sp.csr_matrix(X))
        assert_equal(fitted.transform(xp.asarray(T)), fitted.transform(T), np.float64)


def test_map_without_support_computes_on_the_host(xp):
    def own(A, B):
        return np.asarray(A @ B.T)

    for made in (SplineFeatures(), NystroemMap(10, kernel=own, random_state=0)):
        assert not get_tags(made).array_api_support
        features = made.fit(xp.asarray(X)).transform(xp.asarray(T))
        assert type(features) is np.ndarray
        np.testing.assert_array_equal(features, clone(made).fit(X).transform(T))


def test_scikit_learn_computes_monomials_where_the_rows_are(xp, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    made, rows, asked = PolynomialMap().fit(X), xp.asarray(T), []
    transform = PolynomialFeatures.transform
    monkeypatch.setattr(
        PolynomialFeatures, "transform", lambda self, X: (asked.append(X), transform(self, X))[1]
    )
    with config_context(array_api_dispatch=True):
        features = made.transform(rows)
        again = PolynomialMap().fit(rows).transform(rows)
    assert {namespace(each) for each in asked} == {namespace(rows)}
    for found in (features, again):
        assert_equal(found, made.transform(T), np.float64)


def test_kernels_without_support_come_back(xp):
    positive = np.abs(X[:10])
    for kernel in (
        kernels.Chi2(),
        kernels.Intersection(),
        kernels.resolve_kernel(lambda A, B: A @ B.T),
    ):
        K = kernel(xp.asarray(positive), xp.asarray(positive))
        assert namespace(K) is namespace(xp.asarray(X))
        np.testing.assert_allclose(to_numpy(K), kernel(positive, positive))


@pytest.mark.parametrize(
    "kernel",
    [kernels.Gaussian(1.0), kernels.Laplace(1.0), kernels.Polynomial(9), 2 * kernels.Cosine()],
    ids=repr,
)
def test_diagonals_are_those_of_the_host(xp, kernel):
    there = kernel.diag(xp.asarray(X))
    np.testing.assert_allclose(to_numpy(there), kernel.diag(X), rtol=1e-12)
    K = to_numpy(kernel(xp.asarray(X)))
    np.testing.assert_allclose(np.diag(K), kernel.diag(X), rtol=1e-12)
