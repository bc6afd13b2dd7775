"""The median distance between rows."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from kbench.kernels import median_distance


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
        assert median_distance(X, metric=norm) == pytest.approx(median)
        # squares are expanded for sparse rows, which costs half of the digits
        assert median_distance(sp.csr_matrix(X), metric=norm) == pytest.approx(median, abs=1e-6)


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
