"""Mondrian features, tree embeddings and splines against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.preprocessing import SplineTransformer, minmax_scale

from kbench_baselines import MondrianFeatures, RandomTreesFeatures, SplineFeatures
from kbench_baselines._partitions import grow_mondrian

WINE = minmax_scale(load_wine().data)[::2]


def test_cuts_of_a_line_are_a_poisson_process():
    rng = np.random.RandomState(0)
    X = np.linspace(0, 3, 2000)[:, None]
    trees = [grow_mondrian(X, np.zeros(1), np.full(1, 3.0), 2.0, rng) for _ in range(300)]
    cuts = [tree.threshold[tree.feature >= 0] for tree in trees]
    counts = np.array([len(each) for each in cuts])
    # a mean of 6, the variance as large; 5 standard errors
    assert abs(counts.mean() - 6) < 5 * np.sqrt(6 / 300)
    assert abs(counts.var() - 6) < 5 * 6 * np.sqrt(2 / 300)
    assert stats.kstest(np.concatenate(cuts) / 3, "uniform").pvalue > 1e-4


def test_the_variance_of_a_mondrian_kernel_is_that_of_coins():
    X = WINE[:2, :4]
    n_trees = 2000
    fitted = MondrianFeatures(n_trees, bandwidth=1.0, random_state=0).fit(X)
    same = fitted.trees_[0].columns(X)
    assert same.shape == (2,)
    agree = np.array([len(set(tree.columns(X))) == 1 for tree in fitted.trees_])
    expected = np.exp(-abs(X[0] - X[1]).sum())
    deviation = np.sqrt(expected * (1 - expected) / n_trees)
    assert abs(agree.mean() - expected) < 5 * deviation


def test_mondrian_columns_are_cells_of_training_rows():
    fitted = MondrianFeatures(30, bandwidth_factor=0.25, random_state=0).fit(WINE)
    Z = fitted.transform(WINE)
    assert sp.issparse(Z) and Z.format == "csr"
    np.testing.assert_array_equal(np.diff(Z.indptr), 30)
    assert (Z.sum(axis=0) > 0).all()
    # between the training rows there are cells without one
    new = WINE[
        np.random.default_rng(0).permuted(np.tile(np.arange(len(WINE)), (13, 1)), axis=1).T,
        np.arange(13),
    ]
    assert fitted.transform(new).nnz < Z.nnz
    assert np.isfinite(fitted.transform(WINE * 1e300).data).all()


def test_equal_rows_have_one_cell():
    Z = MondrianFeatures(10, random_state=0).fit_transform(np.ones((5, 3)))
    assert Z.shape == (5, 10)


def test_tree_features_are_scikit_learns():
    ours = RandomTreesFeatures(25, max_depth=4, random_state=0).fit_transform(WINE)
    rng = np.random.RandomState(0)
    theirs = RandomTreesEmbedding(25, max_depth=4, random_state=rng).fit_transform(WINE)
    np.testing.assert_allclose(ours.toarray() * 5, theirs.toarray())


def test_tree_features_take_numbers_beyond_float32():
    X = np.vstack([WINE, np.full((1, 13), 1e300)])
    assert RandomTreesFeatures(5, random_state=0).fit_transform(X).shape[0] == len(X)


@pytest.mark.parametrize("knots", ["quantile", "uniform"])
def test_splines_are_scikit_learns(knots):
    theirs = SplineTransformer(n_knots=4, degree=2, knots=knots, extrapolation="constant")
    expected = theirs.fit_transform(WINE)
    np.testing.assert_allclose(
        SplineFeatures(4, degree=2, knots=knots).fit_transform(WINE), expected, atol=1e-9
    )


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_splines_of_repeated_and_constant_inputs_are_finite(degree):
    rows = np.array([[0.0, 7.0, 0.0]] * 20 + [[1.0, 7.0, 1e-9]])
    fitted = SplineFeatures(5, degree=degree).fit(rows)
    Z = fitted.transform(np.vstack([rows, [[-5.0, 9.0, 5.0]]]))
    assert np.isfinite(Z).all()
    np.testing.assert_allclose(Z.sum(axis=1), 3.0)
    assert len(fitted.get_feature_names_out(["a", "b", "c"])) == Z.shape[1]
