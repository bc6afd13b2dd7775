"""Maps that are fitted on rows which are preprocessed when they are taken."""

import re
from functools import partial
from pkgutil import resolve_name

import numpy as np
import pytest
import scipy.sparse

from kbench.evaluation import embedding, lazy_rows
from kbench.evaluation.preprocessing import Preprocessing
from kbench.kernels import Laplace
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build as build_registry
from kbench_balcan import BalcanF1, BalcanF2, BalcanF3
from kbench_baselines import _maclaurin, _nystroem, _sketches
from kbench_baselines._arc_cosine import ArcCosineFeatures
from kbench_baselines._base import Identity
from kbench_baselines._chi2 import AdditiveChi2Map, SkewedChi2Map
from kbench_baselines._fourier import LaplaceFourierFeatures, RandomFourierFeatures
from kbench_baselines._leverage_fourier import LeverageFourierFeatures
from kbench_baselines._partitions import (
    MondrianFeatures,
    RandomBinningFeatures,
    RandomTreesFeatures,
)
from kbench_baselines._polynomial import PolynomialMap, PolynomialSketch, SplineFeatures
from kbench_baselines._structured import FastfoodFeatures
from kbench_learners import KernelKMeansMap
from kbench_nbcs import NestedBarycentricMap, SimplicialMeshMap
from kbench_zero_one import ZeroOneFeatures

N = 3000
rng = np.random.default_rng(0)
DENSE = rng.normal(size=(N, 5)) * np.linspace(1, 9, N)[:, None]
SPARSE = scipy.sparse.csr_matrix(np.where(abs(DENSE) > 3, DENSE, 0.0))

MAPS = {
    "identity": Identity,
    "rff": partial(RandomFourierFeatures, 20),
    "laplace": partial(LaplaceFourierFeatures, 20),
    "leverage": partial(LeverageFourierFeatures, 20, n_rows=400),
    "fastfood": partial(FastfoodFeatures, 20),
    "nystroem": partial(_nystroem.NystroemMap, 20),
    "nystroem of a kernel": partial(_nystroem.NystroemMap, 20, kernel=Laplace()),
    "kmeans": partial(_nystroem.kmeans_nystroem, 10, n_candidates=300),
    "rpcholesky": partial(_nystroem.rpcholesky_nystroem, 20, n_candidates=300),
    "leverage-nystroem": partial(_nystroem.leverage_nystroem, 20, n_candidates=300),
    "kernel-kmeans": partial(KernelKMeansMap, 5, max_rows=200),
    "f1": partial(BalcanF1, n_landmarks=20),
    "f2": partial(BalcanF2, n_landmarks=20, sampling="rpcholesky"),
    "f3": partial(BalcanF3, n_landmarks=20, sampling="greedy"),
    "polynomial": PolynomialMap,
    "maclaurin": partial(_maclaurin.RandomMaclaurinFeatures, 20),
    "optimized": partial(_maclaurin.OptimizedMaclaurinFeatures, 20, n_rows=100),
    "sketch": partial(_sketches.ProductSketch, 20, kernel="gaussian"),
    "arc-cosine": partial(ArcCosineFeatures, 20),
    "binning": partial(RandomBinningFeatures, 5),
    "mondrian": partial(MondrianFeatures, 5),
    "trees": partial(RandomTreesFeatures, 5),
    "splines": SplineFeatures,
    "uniform splines": partial(SplineFeatures, knots="uniform"),
    "tensor sketch": partial(PolynomialSketch, 20),
    "additive-chi2": AdditiveChi2Map,
    "skewed-chi2": partial(SkewedChi2Map, 20),
    "zero-one": partial(ZeroOneFeatures, n_components=50),
    "kmeans landmarks": partial(BalcanF2, n_landmarks=10, sampling="kmeans"),
    "nbcs": NestedBarycentricMap,
    "nbcs-rotated": partial(NestedBarycentricMap, n_roots=2, rotate=True),
    "regular": partial(NestedBarycentricMap, root="regular"),
    "mesh": partial(SimplicialMeshMap, n_roots=2),
    "mesh without rotation": partial(SimplicialMeshMap, n_roots=2, rotate=False, scaling="common"),
}


NONNEGATIVE = {"additive-chi2", "skewed-chi2"}
WHOLE = {"kmeans landmarks"}
"""Maps that take all rows at once."""


def build(name):
    """Return an unfitted map with a fixed seed."""
    made = MAPS[name]()
    if "random_state" in made.get_params():
        made.set_params(random_state=0)
    return made


def make_lazy(name, X):
    """Return lazy rows as a map requires them, and the same rows in memory."""
    required = "nonnegative" if name in NONNEGATIVE else None
    step = "standard" if required is None else "minmax"
    steps = Preprocessing(step, required).fit_blocks([lazy_rows.take(X)], [])
    return embedding.LazyRows(steps, lazy_rows.take(X), True), steps.transform(X)


def assert_same_features(found, expected, X):
    Z, expected_Z = (fitted.transform(X[:200]) for fitted in (found, expected))
    Z, expected_Z = (A.toarray() if scipy.sparse.issparse(A) else A for A in (Z, expected_Z))
    np.testing.assert_allclose(Z, expected_Z, rtol=1e-10, atol=1e-10 * abs(expected_Z).max())


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("kbench_balcan._landmarks.MAX_CANDIDATES", 300)
    monkeypatch.setattr("kbench.estimators.BLOCK_VALUES", 2000)
    monkeypatch.setattr("kbench_nbcs._forest.CHUNK_VALUES", 2000)
    monkeypatch.setattr("kbench_nbcs._mesh.CHUNK_VALUES", 2000)
    monkeypatch.setattr("kbench_nbcs._mesh.BATCH_KEYS", 9000)
    monkeypatch.setattr("kbench_baselines._polynomial.COLUMN_VALUES", 2 * N)
    monkeypatch.setattr(MondrianFeatures, "_whole_values", 64)


def takes(name, X):
    """Return whether a map takes rows that are dense, or sparse."""
    return isinstance(X, np.ndarray) or build(name).__sklearn_tags__().input_tags.sparse


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("X", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.filterwarnings("ignore:.*faces of the corner simplex:UserWarning")
def test_maps_are_the_same_as_in_memory(name, X, monkeypatch):
    if not takes(name, X):
        pytest.skip("takes dense rows only")
    taken = []
    preprocess = embedding.preprocess

    def counted(steps, rows, numbers, *args):
        taken.append(len(numbers))
        return preprocess(steps, rows, numbers, *args)

    expected, found = build(name), build(name)
    lazy, scaled = make_lazy(name, abs(X) if name in NONNEGATIVE else X)
    assert expected.takes_lazy_rows
    monkeypatch.setattr(embedding, "preprocess", counted)
    found.fit(lazy)
    assert name in WHOLE or max(taken) <= N / 2
    assert_same_features(found, expected.fit(scaled), scaled)


HOSTILE = {
    "constant columns": np.column_stack([DENSE[:, :2], np.full((N, 2), 7.0), np.zeros(N)]),
    "rows of zeros": np.where(np.arange(N)[:, None] % 3 == 0, 0.0, DENSE),
    "a last block with one row": DENSE[: 4 * 64 + 1],
    "equal rows": np.ones((500, 5)),
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("data", HOSTILE)
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_hostile_rows_give_the_same_as_in_memory(name, data, monkeypatch):
    monkeypatch.setattr("kbench.estimators.BLOCK_VALUES", 64 * 5)
    expected, found = build(name), build(name)
    lazy, scaled = make_lazy(name, HOSTILE[data])
    try:
        expected.fit(scaled)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            found.fit(lazy)
        return
    assert_same_features(found.fit(lazy), expected, scaled)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", MAPS)
def test_a_late_value_that_is_not_finite_is_the_same_error(name, value):
    _, scaled = make_lazy(name, DENSE)
    scaled[-2, 3] = value
    with pytest.raises(ValueError) as expected:
        build(name).fit(scaled)
    steps = Preprocessing("none").fit_blocks([lazy_rows.take(scaled)], [])
    lazy = embedding.LazyRows(steps, lazy_rows.take(scaled), True, build(name))
    with pytest.raises(ValueError, match=re.escape(str(expected.value))):
        # a map that is fitted on a few rows sees others when it embeds them
        build(name).fit(lazy).transform(scaled[-64:])


@pytest.mark.parametrize("name", sorted(NONNEGATIVE))
def test_a_late_negative_value_is_the_same_error(name):
    _, scaled = make_lazy(name, DENSE)
    scaled[-2, 3] = -1.0
    steps = Preprocessing("none").fit_blocks([lazy_rows.take(scaled)], [])
    with pytest.raises(ValueError, match="Negative values"):
        build(name).fit(embedding.LazyRows(steps, lazy_rows.take(scaled), True, build(name)))


def test_all_maps_of_kbench_take_lazy_rows_unless_they_use_the_targets():
    registry = build_registry(list_plugins())
    for name, record in registry.all("feature map").items():
        make = record.make
        make = make if callable(make) else resolve_name(str(make))
        assert record.supervised or make().takes_lazy_rows, name


def test_maps_that_take_no_lazy_rows_get_an_array():
    steps = Preprocessing("standard").fit_blocks([lazy_rows.take(DENSE)], [])
    lazy = embedding.LazyRows(steps, lazy_rows.take(DENSE), True)
    np.testing.assert_array_equal(np.asarray(lazy), steps.transform(DENSE))
