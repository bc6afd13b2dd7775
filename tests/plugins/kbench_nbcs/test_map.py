import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.utils.estimator_checks import check_estimator

from kbench_nbcs import NestedBarycentricMap, _descent, _forest, _roots

one_root = partial(NestedBarycentricMap, rotate=True)


def blob(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 10, d) + rng.uniform(-5, 5, d)
    spread = X.std(0) + (n == 1)
    y = (np.linalg.norm((X - X.mean(0)) / spread, axis=1) > np.sqrt(d)).astype(int)
    return X, y


maps = st.fixed_dictionaries(
    {
        "depth": st.integers(0, 4),
        "split": st.sampled_from(["barycentre", "adaptive"]),
        "split_point": st.sampled_from(["nearest", "mean"]),
        "root": st.sampled_from(["regular", "corner"]),
        "rotate": st.booleans(),
        "min_samples_split": st.sampled_from([1, 5]),
        "random_state": st.integers(0, 3),
    }
)
shapes = st.tuples(st.integers(20, 80), st.integers(1, 6), st.integers(0, 5))


def fitted(params, shape, n_roots=1):
    X, y = blob(*shape)
    if n_roots > 1:
        params = {**params, "rotate": True}
    return NestedBarycentricMap(**params, n_roots=n_roots).fit(X, y), X, y


def dense(nbcs, X):
    return nbcs.transform(X).toarray()


@settings(max_examples=60, deadline=None)
@given(maps, shapes, st.integers(1, 3))
def test_coordinates_are_barycentric(params, shape, n_roots):
    nbcs, X, _ = fitted(params, shape, n_roots)
    Z = nbcs.transform(X)
    d = X.shape[1]
    assert Z.shape == (len(X), nbcs.n_vertices_)
    assert Z.indices.dtype == np.int32
    assert np.all(np.diff(Z.indptr) == n_roots * (d + 1))
    assert Z.data.min() >= 0
    blocks = Z.data.reshape(len(X), n_roots, d + 1)
    np.testing.assert_allclose(blocks.sum(axis=2), 1, atol=1e-12)
    np.testing.assert_allclose(nbcs.inverse_transform(Z), X, atol=1e-9 * np.ptp(X, axis=0).max())
    # no vertex twice in a row
    columns = np.sort(Z.indices.reshape(len(X), -1), axis=1)
    assert np.all(np.diff(columns, axis=1) > 0)


@settings(max_examples=40, deadline=None)
@given(maps, shapes)
def test_the_coordinates_solve_the_linear_system_of_a_leaf(params, shape):
    nbcs, X, _ = fitted(params, shape)
    Z, vertices = nbcs.transform(X), nbcs.vertices_
    leaves = {tuple(sorted(leaf)) for leaf in nbcs.simplices_}
    d = X.shape[1]
    scale = np.ptp(X, axis=0)
    for row in range(0, len(X), 7):
        columns = Z.indices[Z.indptr[row] : Z.indptr[row + 1]]
        assert tuple(sorted(columns)) in leaves
        system = np.vstack([(vertices[columns] / scale).T, np.ones(d + 1)])
        if np.linalg.cond(system) < 1e6:
            alpha = np.linalg.solve(system, np.append(X[row] / scale, 1))
            np.testing.assert_allclose(Z.data[Z.indptr[row] : Z.indptr[row + 1]], alpha, atol=1e-7)


@settings(max_examples=40, deadline=None)
@given(maps, shapes)
def test_finer_systems_contain_coarser_ones(params, shape):
    X, y = blob(*shape)
    coarse = one_root(**params).fit(X, y)
    fine = one_root(**{**params, "depth": params["depth"] + 1}).fit(X, y)
    k = coarse.n_vertices_
    assert fine.n_vertices_ >= k
    np.testing.assert_array_equal(fine.vertices_[:k], coarse.vertices_)
    np.testing.assert_array_equal(
        fine.split_simplices_[: coarse.n_splits_], coarse.split_simplices_
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 9))
def test_continuous_across_faces(depth, d, seed):
    """Walk along a segment: with shorter steps, the largest step of the embedding shrinks.

    The steps differ by 50, since in a sliver the embedding is so steep that the
    longer ones step over it; a jump would stay as it is.
    """
    X, _ = blob(60, d, seed)
    nbcs = one_root(depth, random_state=seed).fit(X)
    a, b = X[0], X[1]
    steps = [2_000, 100_000]
    jumps = []
    for n in steps:
        t = np.linspace(0, 1, n)[:, None]
        Z = nbcs.transform(a + t * (b - a))
        jumps.append(abs(Z[1:] - Z[:-1]).sum(axis=1).max())
    assert jumps[1] < jumps[0] / 4


@settings(max_examples=60, deadline=None)
@given(maps, shapes, st.integers(1, 3), st.sampled_from(["float64", "float32"]))
def test_both_sets_of_kernels_give_the_same_bits(params, shape, n_roots, dtype):
    pytest.importorskip("numba")
    X, y = blob(*shape)
    params = {**params, "dtype": dtype, "n_roots": n_roots}
    if n_roots > 1:
        params["rotate"] = True
    with_numba = NestedBarycentricMap(**params).fit(X, y)
    Z = with_numba.transform(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_forest, "kernels", _descent)
        patch.setattr(_roots, "kernels", _descent)
        without = NestedBarycentricMap(**params).fit(X, y)
        Z_numpy = without.transform(X)
    assert Z.dtype == Z_numpy.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(Z.indices, Z_numpy.indices)
    np.testing.assert_array_equal(Z.data, Z_numpy.data)


def test_the_first_root_of_several_is_that_of_one():
    X, _ = blob(50, 3)
    one = one_root(0, random_state=0).fit(X)
    two = NestedBarycentricMap(0, n_roots=2, rotate=True, random_state=0).fit(X)
    np.testing.assert_array_equal(two.vertices_[:4], one.vertices_)


def test_the_corner_root_is_the_papers():
    X = np.array([[0.0, 10.0, 3.0], [1.0, 30.0, 5.0], [0.5, 20.0, 4.5]])
    nbcs = one_root(0, rotate=False).fit(X)
    U = (X - [0, 10, 3]) / [1, 20, 2]
    np.testing.assert_allclose(
        dense(nbcs, X), np.hstack([1 - U.sum(1, keepdims=True) / 3, U / 3]), atol=1e-15
    )


def test_uniform_subdivision_splits_non_empty_simplices_only():
    X, _ = blob(300, 2)
    nbcs = one_root(3, random_state=0).fit(X)
    coarse = one_root(2, random_state=0).fit(X)
    leaves = {tuple(np.sort(row)) for row in coarse.transform(X).indices.reshape(-1, 3)}
    split = nbcs.split_simplices_[coarse.n_splits_ :]
    assert {tuple(np.sort(row)) for row in split} == leaves
    # all of them, where every simplex has points
    grid = np.random.default_rng(0).random((20_000, 2))
    full = one_root(3, rotate=False).fit(grid)
    # half of the root is outside the unit square: nothing there is split
    assert full.n_splits_ <= 1 + 3 + 9
    assert one_root(3, min_samples_split=10**6).fit(grid).n_splits_ == 0


@pytest.mark.parametrize("split_point", ["nearest", "mean"])
def test_adaptive_splits_where_the_classifier_errs(split_point):
    X, y = blob(400, 2, seed=3)
    nbcs = one_root(1, split="adaptive", split_point=split_point, random_state=0).fit(X, y)
    flat = one_root(0, random_state=0).fit(X)
    wrong = nbcs._find_misclassified(flat.transform(X), y)
    scaled = (X - X.min(0)) / np.ptp(X, axis=0)
    centre = scaled[wrong].mean(axis=0)
    point = (nbcs.vertices_[3] - X.min(0)) / np.ptp(X, axis=0)
    if split_point == "nearest":
        row = int(np.argmin(((scaled - centre) ** 2).sum(axis=1)))
        assert nbcs.split_rows_.tolist() == [row]
        np.testing.assert_allclose(point, scaled[row], atol=1e-12)
    else:
        assert nbcs.split_rows_.tolist() == [-1]
        np.testing.assert_allclose(point, centre, atol=1e-12)


def test_adaptive_splits_stop_without_errors_and_at_copies_of_one_point():
    X, _ = blob(100, 2)
    separable = (X[:, 0] > X[:, 0].mean()).astype(int)
    gap = np.abs(X[:, 0] - X[:, 0].mean()) > 0.2 * X[:, 0].std()
    nbcs = one_root(5, split="adaptive", C=1e6, random_state=0)
    assert nbcs.fit(X[gap], separable[gap]).n_splits_ == 0
    # two labels at one place cannot be told apart, however often it is split
    copies = np.vstack([X[:4], np.repeat(X[4:5], 50, axis=0)])
    labels = np.arange(54) % 2
    assert nbcs.set_params(depth=30).fit(copies, labels).n_splits_ <= 5


def test_points_outside_are_clipped_or_refused():
    X, _ = blob(100, 3)
    far = X.mean(0) + 100 * np.ptp(X, axis=0)
    nbcs = one_root(5, random_state=0).fit(X)
    Z = nbcs.transform(far[None])
    assert Z.data.min() >= 0
    assert Z.sum() == pytest.approx(1)
    refusing = one_root(5, outside="error", random_state=0).fit(X)
    refusing.transform(X)
    with pytest.raises(ValueError, match=r"1 of rows .* outside"):
        refusing.transform(np.vstack([X, far]))


def test_corner_root_on_data_with_zeros_warns_and_is_linear():
    rng = np.random.default_rng(0)
    X = (rng.random((200, 6)) > 0.5).astype(float)
    X = X[X.sum(1) < 6]
    nbcs = one_root(4, rotate=False)
    with pytest.warns(UserWarning, match="faces of the corner simplex"):
        nbcs.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rotated = one_root(4, random_state=0).fit(X)
    ones = np.ones((len(X), 1))

    def rank(Z):
        return np.linalg.matrix_rank(np.hstack([ones, Z]))

    assert rank(dense(nbcs, X)) == 7
    assert rank(dense(rotated, X)) > 7


def test_sparse_input_is_the_same():
    X, y = blob(100, 5)
    X[X < 0.5] = 0
    for split in ("barycentre", "adaptive"):
        nbcs = one_root(2, split=split, random_state=0)
        a = dense(nbcs.fit(X, y), X)
        b = dense(nbcs.fit(sparse.csr_matrix(X), y), sparse.csr_matrix(X))
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(30, 1), (20, 200), (3, 10), (1, 4)])
def test_odd_shapes(shape):
    X, y = blob(*shape)
    nbcs = one_root(2, random_state=0).fit(X, y)
    Z = nbcs.transform(X)
    np.testing.assert_allclose(Z.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(nbcs.inverse_transform(Z), X, atol=1e-6)


def test_constant_columns():
    X, _ = blob(50, 3)
    X[:, 1] = 7.0
    for kwargs in ({}, {"root": "corner", "rotate": True}):
        nbcs = one_root(3, random_state=0, **kwargs).fit(X)
        np.testing.assert_allclose(nbcs.inverse_transform(nbcs.transform(X)), X, atol=1e-9)
    with pytest.warns(UserWarning, match="faces"):
        one_root(3, rotate=False).fit(X)


def test_single_precision_and_memory_maps(tmp_path):
    X, _ = blob(200, 4)
    X.tofile(tmp_path / "X")
    mapped = np.memmap(tmp_path / "X", dtype=float, mode="r", shape=X.shape)
    nbcs = one_root(2, random_state=0)
    np.testing.assert_array_equal(dense(nbcs.fit(mapped), mapped), dense(nbcs.fit(X), X))
    single = one_root(2, dtype="float32", random_state=0).fit(X.astype("float32"))
    Z = single.transform(X.astype("float32"))
    assert Z.dtype == np.float32
    np.testing.assert_allclose(Z.toarray(), dense(nbcs, X), atol=1e-5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"split": "none"}, "split must be one of 'barycentre', 'adaptive', got 'none'"),
        ({"split_point": "far"}, "split_point must be one of"),
        ({"root": "cube"}, "root must be one of"),
        ({"outside": "ignore"}, "outside must be one of"),
        ({"depth": -1}, "depth must be an integer >= 0, got -1"),
        ({"n_roots": 0}, "n_roots must be an integer >= 1, got 0"),
        ({"n_roots": 2}, "rotate=True"),
        ({"min_samples_split": 0}, "min_samples_split must be an integer >= 1, got 0"),
        ({"C": 0}, "C must be a finite number > 0, got 0"),
        ({"dtype": "int32"}, "dtype must be one of"),
        ({"split": "adaptive"}, "requires y"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        NestedBarycentricMap(**params).fit(np.eye(3))


@pytest.mark.parametrize("split", ["barycentre", "adaptive"])
def test_scikit_learn_contract(split):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(NestedBarycentricMap(split=split))


@pytest.mark.parametrize("root", ["regular", "corner"])
def test_the_cell_of_a_row_on_two_faces_does_not_hang_on_rounding(root):
    # processors round the product with the rotation differently, by less than this noise
    X, _ = load_wine(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    noise = 1e-14 * np.random.default_rng(0).standard_normal(X.shape)
    for seed in range(4):
        nbcs = NestedBarycentricMap(4, rotate=True, n_roots=4, root=root, random_state=seed)
        Z = nbcs.fit_transform(X[seed::3]).toarray()
        np.testing.assert_allclose(
            nbcs.fit_transform((X + noise)[seed::3]).toarray(), Z, rtol=0, atol=1e-9
        )
