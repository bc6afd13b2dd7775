"""Polynomials, histograms, bins, neurons: features against their definitions."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.preprocessing import minmax_scale

from kbench_baselines import (
    ArcCosineFeatures,
    Identity,
    PolynomialMap,
    RandomBinningFeatures,
    RandomMaclaurinFeatures,
    SkewedChi2Map,
)
from kbench_baselines._arc_cosine import arc_cosine_gram, arc_cosine_kernel
from kbench_baselines._chi2 import additive_chi2_gram, skewed_chi2_gram
from kbench_baselines._partitions import bin_keys
from kbench_baselines._polynomial import polynomial_gram

WINE = minmax_scale(load_wine().data)[::2]


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
    Z = RandomMaclaurinFeatures(10, bandwidth_factor=1e6, random_state=0).fit_transform(WINE)
    np.testing.assert_allclose(Z @ Z.T, 1.0, atol=1e-6)
    assert np.isfinite(RandomMaclaurinFeatures(10).fit_transform(np.zeros((3, 2)))).all()


def test_identity_passes_dense_and_sparse_rows_on():
    np.testing.assert_array_equal(Identity().fit_transform(WINE), WINE)
    S = sp.csr_matrix(WINE)
    assert (Identity().fit_transform(S) != S).nnz == 0
