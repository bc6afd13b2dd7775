"""Gradients of nested simplices and meshes, which are constant in each cell."""

import numpy as np
import pytest

from kbench_nbcs import NestedBarycentricMap, SimplicialMeshMap

RNG = np.random.default_rng(0)
X, LABELS = RNG.standard_normal((40, 3)), np.arange(40) % 2
NEAR, FAR = RNG.standard_normal((12, 3)) / 3, 5 * RNG.standard_normal((12, 3))

MAPS = [
    NestedBarycentricMap(2),
    NestedBarycentricMap(3, root="regular"),
    NestedBarycentricMap(2, n_roots=3, rotate=True, random_state=0),
    NestedBarycentricMap(3, split="adaptive"),
    SimplicialMeshMap(4, random_state=0),
    SimplicialMeshMap(3, n_levels=2, random_state=0),
    SimplicialMeshMap(4, projection_dim=2, rotate=False, random_state=0),
    SimplicialMeshMap(4, columns="hashed", n_components=500, random_state=0),
]


@pytest.mark.parametrize("rows", [NEAR, FAR], ids=["near", "far"])
@pytest.mark.parametrize("make", MAPS, ids=str)
def test_gradients_are_those_of_the_coordinates(make, rows):
    # far rows are outside of the roots, where coordinates are clipped
    fitted = make.fit(X, LABELS)
    coef = RNG.standard_normal((2, fitted.n_vertices_))
    gradients = fitted.input_gradient(rows, coef)
    step, slopes = 1e-6, []
    for unit in step * np.eye(3):
        difference = fitted.transform(rows + unit) - fitted.transform(rows - unit)
        slopes.append(coef @ difference.toarray().T / (2 * step))
    expected = np.stack(slopes, axis=-1)
    np.testing.assert_allclose(gradients, expected, atol=1e-5 * max(np.abs(expected).max(), 1.0))
    np.testing.assert_allclose(fitted.input_gradient(rows, coef[0]), gradients[0], atol=1e-12)


def test_linear_functions_have_their_slope_everywhere():
    slope = np.array([1.0, -2.0, 0.5])
    fitted = NestedBarycentricMap(3).fit(X)
    gradients = fitted.input_gradient(X, fitted.vertices_ @ slope)
    np.testing.assert_allclose(gradients, np.tile(slope, (40, 1)), atol=1e-9)


def test_a_simplex_without_volume_does_no_harm():
    flat = np.column_stack([X[:, :2], np.ones(40)])  # a constant column
    fitted = NestedBarycentricMap(2, root="regular").fit(flat)
    coef = RNG.standard_normal(fitted.n_vertices_)
    assert np.isfinite(fitted.input_gradient(flat, coef)).all()
