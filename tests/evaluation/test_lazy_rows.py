"""Maps that are fitted on rows which are preprocessed when they are taken."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse

from kbench.evaluation import embedding, lazy_rows
from kbench.evaluation.preprocessing import Preprocessing
from kbench.kernels import Laplace
from kbench_balcan import BalcanF1, BalcanF2, BalcanF3
from kbench_baselines import _maclaurin, _nystroem, _sketches
from kbench_baselines._arc_cosine import ArcCosineFeatures
from kbench_baselines._base import Identity
from kbench_baselines._fourier import LaplaceFourierFeatures, RandomFourierFeatures
from kbench_baselines._leverage_fourier import LeverageFourierFeatures
from kbench_baselines._partitions import RandomBinningFeatures
from kbench_baselines._polynomial import PolynomialMap
from kbench_baselines._structured import FastfoodFeatures
from kbench_learners import KernelKMeansMap
from kbench_nbcs import NestedBarycentricMap, SimplicialMeshMap

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
    "nbcs": NestedBarycentricMap,
    "nbcs-rotated": partial(NestedBarycentricMap, n_roots=2, rotate=True),
    "regular": partial(NestedBarycentricMap, root="regular"),
    "mesh": partial(SimplicialMeshMap, n_roots=2),
    "mesh without rotation": partial(SimplicialMeshMap, n_roots=2, rotate=False, scaling="common"),
}


@pytest.mark.parametrize("X", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.filterwarnings("ignore:.*faces of the corner simplex:UserWarning")
def test_maps_are_the_same_as_in_memory(name, X, monkeypatch):
    if X is SPARSE and not getattr(MAPS[name](), "_accept_sparse", True):
        pytest.skip("takes dense rows only")
    monkeypatch.setattr("kbench_balcan._landmarks.MAX_CANDIDATES", 300)
    monkeypatch.setattr("kbench.estimators.BLOCK_VALUES", 2000)
    monkeypatch.setattr("kbench_nbcs._forest.CHUNK_VALUES", 2000)
    monkeypatch.setattr("kbench_nbcs._mesh.CHUNK_VALUES", 2000)
    monkeypatch.setattr("kbench_nbcs._mesh.BATCH_KEYS", 9000)
    steps = Preprocessing("standard").fit_blocks([lazy_rows.take(X)], [])
    taken = []
    preprocess = embedding.preprocess

    def counted(steps, rows, numbers, *args):
        taken.append(len(numbers))
        return preprocess(steps, rows, numbers, *args)

    expected = MAPS[name]()
    if hasattr(expected, "random_state"):
        expected.random_state = 0
    found = MAPS[name]().set_params(**expected.get_params())
    assert expected.takes_lazy_rows
    monkeypatch.setattr(embedding, "preprocess", counted)
    found.fit(embedding.LazyRows(steps, lazy_rows.take(X), True))
    assert max(taken) <= N / 2
    scaled = steps.transform(X)
    Z, expected_Z = (fitted.transform(scaled[:200]) for fitted in (found, expected.fit(scaled)))
    Z, expected_Z = (A.toarray() if scipy.sparse.issparse(A) else A for A in (Z, expected_Z))
    np.testing.assert_allclose(Z, expected_Z, rtol=1e-10, atol=1e-10 * abs(expected_Z).max())


def test_maps_that_take_no_lazy_rows_get_an_array():
    steps = Preprocessing("standard").fit_blocks([lazy_rows.take(DENSE)], [])
    lazy = embedding.LazyRows(steps, lazy_rows.take(DENSE), True)
    np.testing.assert_array_equal(np.asarray(lazy), steps.transform(DENSE))
