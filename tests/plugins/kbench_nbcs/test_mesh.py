import pickle
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from kbench_nbcs import SimplicialMeshMap, _mesh, _mesh_cells, mesh_kernel, rotated_mesh_kernel
from kbench_nbcs._mesh import count_cells, locate, mesh_gram, metrics

ONE = 2**47


def odd_multipliers(p, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(2**63, size=p, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def blob(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * rng.uniform(0.1, 10, d) + rng.uniform(-5, 5, d)


def key_of(vertices, multipliers):
    """The hash of vertices with integer coordinates, by its definition."""
    out = []
    for vertex in np.atleast_2d(vertices):
        pairs = zip(vertex, multipliers, strict=True)
        key = sum(int(z) * int(m) for z, m in pairs) % 2**64
        out.append(((key ^ key >> 32) * 0xFF51AFD7ED558CCD) % 2**64 >> 1)
    return np.array(out, dtype=np.uint64)


def brute_force(u):
    """Coordinates in that of the p! simplices of the cell of `u` which contains it."""
    base = np.floor(u)
    best = None
    for order in permutations(range(len(u))):
        steps = np.eye(len(u))[list(order)]
        vertices = np.vstack([base, base + np.cumsum(steps, axis=0)])
        system = np.vstack([vertices.T, np.ones(len(u) + 1)])
        alpha = np.linalg.solve(system, np.append(u, 1.0))
        if best is None or alpha.min() > best[1].min():
            best = vertices, alpha
    return best


def as_dict(weights, keys):
    return {int(k): w / ONE for w, k in zip(weights, keys, strict=True) if w}


points = st.tuples(st.integers(1, 7), st.integers(0, 1000), st.sampled_from([0.3, 3.0, 1e3]))


def draw(point, n=40):
    p, seed, size = point
    return np.random.default_rng(seed).normal(size=(n, p)) * size


# ---------------------------------------------------------------------------
# One mesh
# ---------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 1000))
def test_agrees_with_a_brute_force_triangulation(p, seed):
    u = np.random.default_rng(seed).normal(size=(5, p)) * 3
    multipliers = odd_multipliers(p, seed)
    weights, keys = locate(u, multipliers)
    for row in range(len(u)):
        vertices, alpha = brute_force(u[row])
        found = as_dict(weights[row], keys[row])
        expected = dict(zip(key_of(vertices, multipliers).tolist(), alpha, strict=True))
        assert found.keys() <= expected.keys()
        for key, value in expected.items():
            assert found.get(key, 0.0) == pytest.approx(value, abs=1e-11)


@settings(max_examples=40, deadline=None)
@given(points)
def test_coordinates_are_a_partition_of_unity(point):
    weights, keys = locate(draw(point), odd_multipliers(point[0]))
    assert weights.min() >= 0
    assert np.all(weights.sum(axis=1) == ONE)  # exactly: they are integers
    assert np.all(np.diff(np.sort(keys, axis=1), axis=1) > 0)


@settings(max_examples=30, deadline=None)
@given(points)
def test_vertices_average_to_the_point(point):
    """The coordinates interpolate every linear function exactly."""
    p = point[0]
    u = draw(point, 10)
    multipliers = odd_multipliers(p)
    weights, keys = locate(u, multipliers)
    for row in range(len(u)):
        fraction = u[row] - np.floor(u[row])
        vertices = np.floor(u[row]) + (
            np.argsort(np.argsort(fraction)) >= np.arange(p + 1)[:, None]
        )
        np.testing.assert_array_equal(keys[row], key_of(vertices, multipliers))
        np.testing.assert_allclose(weights[row] / ONE @ vertices, u[row], atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(points)
def test_continuous_across_faces(point):
    """The embedding moves by at most 2 per unit (in the maximum norm) of the input."""
    p = point[0]
    a, b = draw(point, 2)
    a, b = a / point[2], b / point[2]
    n = 2000
    u = a + np.linspace(0, 1, n)[:, None] * (b - a)
    weights, keys = locate(u, odd_multipliers(p))
    columns, flat = np.unique(keys, return_inverse=True)
    indptr = np.arange(n + 1) * (p + 1)
    Z = sparse.csr_matrix((weights.ravel() / ONE, flat.ravel(), indptr), (n, len(columns)))
    jump = abs(Z[1:] - Z[:-1]).sum(axis=1).max()
    # each of the p + 1 differences of sorted fractions changes by two of them
    assert jump <= 2 * (p + 1) * np.abs(b - a).max() / (n - 1) + 1e-12


@settings(max_examples=40, deadline=None)
@given(points)
def test_levels_are_nested_barycentric_systems(point):
    """Lemma 2 of the paper: alpha_coarse = alpha_fine + beta alpha_new, beta = (1/2, 1/2)."""
    p = point[0]
    u = draw(point, 20)
    multipliers = odd_multipliers(p)
    coarse = locate(u, multipliers)
    fine = locate(2 * u, multipliers)
    for row in range(len(u)):
        total = {}
        fraction = 2 * u[row] - np.floor(2 * u[row])
        ranks = np.argsort(np.argsort(fraction))
        for k, weight in enumerate(fine[0][row]):
            vertex = np.floor(2 * u[row]) + (ranks >= k)
            # an even vertex is both ends of its "edge"; others lie half way along
            # the diagonal of some face, an edge of the coarse triangulation
            for end in (np.floor(vertex / 2), np.ceil(vertex / 2)):
                key = int(key_of(end, multipliers)[0])
                total[key] = total.get(key, 0.0) + 0.5 * weight / ONE
        expected = as_dict(coarse[0][row], coarse[1][row])
        for key in total.keys() | expected.keys():
            assert total.get(key, 0.0) == pytest.approx(expected.get(key, 0.0), abs=1e-12)


def test_ties_and_far_points():
    u = np.array([[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [-1e-30, 2.0, 1e300], [-1e300, 2**53, 0.25]])
    weights, keys = locate(u, odd_multipliers(3))
    assert np.all(weights.sum(axis=1) == ONE)
    assert weights.min() >= 0
    assert keys.shape == (4, 4)
    # a point of the grid is its vertex
    assert weights[0].tolist() == [0, 0, 0, ONE]


@settings(max_examples=40, deadline=None)
@given(
    points,
    st.integers(0, 60),
    st.sampled_from(["float64", "float32"]),
    st.sampled_from([np.int32, np.int64]),
)
def test_both_sets_of_kernels_give_the_same_bits(point, n_known, dtype, integer):
    compiled = pytest.importorskip("kbench_nbcs._mesh_compiled")
    p, n_meshes = point[0], 3
    u = np.tile(draw(point).T, (1, 3))  # more than go through together
    u[:, :3] = [0.0, -1e-30, 1e300]
    n = u.shape[1]
    multipliers = odd_multipliers(p)
    results = []
    for kernels in (_mesh_cells, compiled):
        weights = np.empty((n, p + 1), dtype=np.int64)
        keys = np.empty((n, p + 1), dtype=np.uint64)
        kernels.locate(u, multipliers, weights, keys)
        known = [np.unique(keys[: n_known // 2]), np.unique(keys[:3]), np.unique(keys)]
        tables = _mesh.vertex_tables(known)
        data = np.full(n * n_meshes * (p + 1) + 3, 9.0, dtype=dtype)
        indices = np.full(len(data), -9, dtype=integer)
        values, places = (each[3:].reshape(n, -1) for each in (data, indices))
        for mesh in range(n_meshes):
            kernels.embed(u, 0.5 * mesh, multipliers, tables, mesh, 0.3, values, places)
        ends = np.empty(n, dtype=integer)
        stop = kernels.compact(data, indices, 3, ends)
        assert stop == ends[-1] and data[2] == 9.0
        results.append((weights, keys, data[3:stop], indices[3:stop], ends))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("p", [1, 2, 5, 16, 33, 64])
def test_the_network_sorts(p):
    compiled = pytest.importorskip("kbench_nbcs._mesh_compiled")
    rng = np.random.default_rng(p)
    columns = rng.permuted(np.tile(np.arange(p)[:, None], 100), axis=0)
    for a, b in compiled.network(p).astype(int):
        columns[[a, b]] = np.sort(columns[[a, b]], axis=0)
    np.testing.assert_array_equal(columns, np.tile(np.arange(p)[:, None], 100))


def test_more_dimensions_than_a_network_takes_give_the_same_bits():
    compiled = pytest.importorskip("kbench_nbcs._mesh_compiled")
    p = compiled.MAX_NETWORK + 6
    u, multipliers = np.random.default_rng(0).normal(size=(p, 70)), odd_multipliers(p)
    results = []
    for kernels in (_mesh_cells, compiled):
        weights = np.empty((70, p + 1), dtype=np.int64)
        keys = np.empty((70, p + 1), dtype=np.uint64)
        kernels.locate(u, multipliers, weights, keys)
        results.append((weights, keys))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("params", [{}, {"n_levels": 2, "min_count": 2}, {"columns": "hashed"}])
def test_the_map_is_the_same_without_numba(monkeypatch, params):
    pytest.importorskip("numba")
    X, new = blob(500, 6), blob(300, 6, seed=1)
    mesh = SimplicialMeshMap(n_roots=3, random_state=0, **params)
    expected = mesh.fit(X).transform(np.vstack([X, new]))
    monkeypatch.setattr(_mesh, "kernels", _mesh_cells)
    found = mesh.fit(X).transform(np.vstack([X, new]))
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 300), st.integers(0, 100), st.booleans())
def test_vertices_are_found_where_they_are_known(n_known, seed, clustered):
    rng = np.random.default_rng(seed)
    top = 2**20 if clustered else 2**63  # clustered: all in one bucket
    keys = np.unique(rng.integers(top, size=n_known, dtype=np.uint64))
    asked = np.concatenate([keys, rng.integers(top, size=50, dtype=np.uint64)])[:, None]
    others = np.arange(5, dtype=np.uint64)
    slots, slot_columns, begin, shift = _mesh.vertex_tables([others, keys])
    columns = np.empty(asked.shape, dtype=np.int32)
    _mesh_cells.find(asked, slots, slot_columns, begin[1], shift[1], columns)
    lookup = {int(key): 5 + k for k, key in enumerate(keys)}
    assert columns.ravel().tolist() == [lookup.get(int(key), -1) for key in asked.ravel()]


def test_keys_are_counted_over_batches(monkeypatch):
    monkeypatch.setattr(_mesh, "BATCH_KEYS", 50)
    rng = np.random.default_rng(0)
    batches = [rng.integers(100, size=40, dtype=np.uint64) for _ in range(20)]
    keys, counts = count_cells(iter(batches))
    expected = np.unique(np.concatenate(batches), return_counts=True)
    np.testing.assert_array_equal(keys, expected[0])
    np.testing.assert_array_equal(counts, expected[1])


# ---------------------------------------------------------------------------
# The kernel
# ---------------------------------------------------------------------------


def simulated_kernel(delta, n=40_000, seed=0):
    """Mean inner product, scaled, over random shifts, with its standard error."""
    p = len(delta)
    u = np.random.default_rng(seed).uniform(size=(n, p))
    multipliers = odd_multipliers(p)
    (a, k), (b, m) = locate(u, multipliers), locate(u + delta, multipliers)
    products = np.zeros(n)
    for i in range(p + 1):
        products += ((k[:, i, None] == m) * (a[:, i, None] / ONE * (b / ONE))).sum(axis=1)
    products *= (p + 2) / 2
    return products.mean(), products.std() / np.sqrt(n)


@pytest.mark.parametrize("p", range(1, 9))
def test_kernel_agrees_with_simulation(p):
    rng = np.random.default_rng(p)
    for size in (0.0, 0.1, 0.4):
        delta = rng.normal(size=p) * size
        mean, error = simulated_kernel(delta)
        assert mesh_kernel(delta) == pytest.approx(mean, abs=4.5 * error + 1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(0, 100))
def test_kernel_is_symmetric_positive_definite_and_local(p, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, p)) * 0.5
    gram = mesh_kernel(X[:, None] - X)
    np.testing.assert_allclose(gram, gram.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(gram), 1.0, atol=1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-10
    far = rng.normal(size=p)
    far[0] = 2.0
    assert mesh_kernel(far) == 0.0


@pytest.mark.parametrize("p", [2, 5, 16])
def test_kernel_with_few_nodes_is_near_the_exact_one(p):
    delta = np.random.default_rng(p).normal(size=(200, p)) * 0.2
    np.testing.assert_allclose(mesh_kernel(delta, 16), mesh_kernel(delta), atol=0.01)


def test_kernel_in_one_dimension_is_the_cubic_spline():
    """For p = 1 the hats' autocorrelation is the cubic B-spline, 2/3 at 0."""
    from scipy.interpolate import BSpline

    spline = BSpline.basis_element([-2, -1, 0, 1, 2], extrapolate=False)
    t = np.linspace(-2.5, 2.5, 41)
    np.testing.assert_allclose(mesh_kernel(t[:, None]), 1.5 * np.nan_to_num(spline(t)), atol=1e-12)


def test_rotated_kernel_is_half_at_the_expected_distance():
    """Half height lies near 1.4 to 1.7 h / sqrt(d)."""
    t = np.linspace(0, 4, 4001)
    for d in (8, 16, 32, 64):
        value = rotated_mesh_kernel(t, d, d)
        assert value[0] == pytest.approx(1.0, abs=1e-6)
        half = t[np.argmax(value < 0.5)] * np.sqrt(d)
        assert 1.35 < half < 1.75


@pytest.mark.parametrize(
    ("d", "params"),
    [
        (3, {}),
        (8, {}),
        (6, {"projection_dim": 2}),
        (3, {"n_levels": 2}),
        (4, {"rotate": False}),
        (3, {"rotate": False, "scaling": "common"}),
    ],
)
def test_the_map_approximates_its_kernel(d, params):
    X = blob(60, d)
    mesh = SimplicialMeshMap(n_roots=600, pitch=1.0, random_state=1, **params).fit(X)
    Z = mesh.transform(X)
    gram, expected = (Z @ Z.T).toarray(), mesh_gram(mesh, X, X)
    assert np.sqrt(np.mean((gram - expected) ** 2)) < 0.02
    assert np.abs(gram - expected).max() < 0.15
    off_diagonal = expected[~np.eye(len(X), dtype=bool)]
    assert np.corrcoef(gram[~np.eye(len(X), dtype=bool)], off_diagonal)[0, 1] > 0.98


# ---------------------------------------------------------------------------
# The map
# ---------------------------------------------------------------------------


def test_is_a_scikit_learn_estimator():
    check_estimator(SimplicialMeshMap(n_roots=2))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 8),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(["standard", "common", "none"]),
    st.sampled_from(["float64", "float32"]),
)
def test_training_rows_sum_to_one_per_mesh(d, n_roots, n_levels, scaling, dtype):
    X = blob(50, d)
    mesh = SimplicialMeshMap(
        n_roots=n_roots, n_levels=n_levels, scaling=scaling, dtype=dtype, random_state=0
    ).fit(X)
    Z = mesh.transform(X)
    assert Z.dtype == dtype
    assert Z.indices.dtype == Z.indptr.dtype == np.int32
    assert Z.shape == (50, mesh.n_vertices_)
    assert np.all(np.diff(Z.indptr) == n_roots * n_levels * (mesh.dimension_ + 1))
    assert Z.indices.min() >= 0 and Z.indices.max() < mesh.n_vertices_
    assert Z.getnnz(axis=0).min() >= 1  # every column was met
    np.testing.assert_allclose(Z.sum(axis=1) / mesh.scale_, n_roots * n_levels, rtol=1e-5)
    assert metrics(mesh, X, None)["coverage"] == pytest.approx(1.0, abs=1e-5)


def test_a_continuous_function_of_the_input_and_zero_far_away():
    X = blob(300, 3)
    mesh = SimplicialMeshMap(random_state=0).fit(X)
    far = X + 1e4 * X.std(axis=0)
    assert mesh.transform(far).nnz == 0
    assert metrics(mesh, far, None)["coverage"] == 0.0
    assert np.isfinite(mesh.transform(np.full((2, 3), 1e300)).data).all()
    new = blob(300, 3, seed=0) + 0.2 * X.std(axis=0)
    assert 0.3 < metrics(mesh, new, None)["coverage"] < 1.0
    shares = np.asarray(mesh.transform(new).sum(axis=1)).ravel() / mesh.scale_ / mesh.n_roots
    assert shares.min() >= 0 and shares.max() <= 1 + 1e-12


def test_theorem_1_holds_of_the_levels():
    """A function of the coarse coordinates is one of the fine: refining loses nothing."""
    X = blob(400, 2)
    coarse = SimplicialMeshMap(n_roots=1, pitch=2.0, random_state=0).fit(X)
    both = SimplicialMeshMap(n_roots=1, pitch=2.0, n_levels=2, random_state=0).fit(X)
    k = coarse.n_vertices_
    Z = both.transform(X).toarray() / both.scale_
    np.testing.assert_allclose(Z[:, :k], coarse.transform(X).toarray() / coarse.scale_, atol=1e-12)
    fine = Z[:, k:]
    assert k < fine.shape[1] < len(X)
    f = Z[:, :k] @ np.random.default_rng(0).normal(size=k)
    weights, *_ = np.linalg.lstsq(fine, f, rcond=None)
    np.testing.assert_allclose(fine @ weights, f, atol=1e-9)


def test_roots_are_prefixes():
    X = blob(60, 4)
    few, many = (SimplicialMeshMap(n, random_state=3).fit(X) for n in (2, 5))
    Z = many.transform(X)[:, : few.n_vertices_] / many.scale_
    np.testing.assert_allclose((Z - few.transform(X) / few.scale_).toarray(), 0, atol=1e-13)


def test_units_of_the_inputs_do_not_matter():
    X = blob(80, 5)
    scaled = MinMaxScaler().fit_transform(X)
    make = SimplicialMeshMap(random_state=0)
    a, b = make.fit_transform(X), make.fit_transform(scaled)
    assert a.shape == b.shape
    # the same vertices, up to rounding, under the same hashes
    np.testing.assert_allclose(a.toarray(), b.toarray(), atol=1e-9)


def test_constant_columns_do_not_matter():
    X = blob(80, 3)
    wide = np.column_stack([np.full(80, 7.0), X[:, :2], np.zeros(80), X[:, 2]])
    new = blob(20, 3, seed=0) * 1.01
    other = np.column_stack([np.full(20, -9.0), new[:, :2], np.ones(20), new[:, 2]])
    for scaling in ("standard", "common", "none"):
        a = SimplicialMeshMap(scaling=scaling, random_state=0).fit(X)
        b = SimplicialMeshMap(scaling=scaling, random_state=0).fit(wide)
        np.testing.assert_allclose(
            a.transform(new).toarray(), b.transform(other).toarray(), atol=1e-10
        )
        np.testing.assert_allclose(mesh_gram(a, new, X), mesh_gram(b, other, wide), atol=1e-10)
    constant = SimplicialMeshMap(n_roots=2).fit(np.ones((5, 2)))
    assert constant.transform(np.zeros((3, 2))).shape == (3, 4)
    assert np.all(mesh_gram(constant, np.ones((5, 2)), np.ones((5, 2))) == 1.0)


@pytest.mark.parametrize("d", [1, 500])
def test_any_number_of_columns(d):
    X = blob(30, d)
    for projection_dim in ("auto", None, 3):
        mesh = SimplicialMeshMap(n_roots=2, projection_dim=projection_dim, random_state=0).fit(X)
        p = {"auto": min(d, 16), None: d, 3: min(d, 3)}[projection_dim]
        assert mesh.dimension_ == p
        Z = mesh.transform(X)
        assert Z.nnz == 30 * 2 * (p + 1)
        assert np.isfinite(mesh_gram(mesh, X, X)).all()


def test_sparse_input_is_as_good_as_dense(monkeypatch):
    X = sparse.random(200, 40, 0.2, format="csr", random_state=0)
    for params in ({}, {"columns": "hashed", "n_components": 512}):
        mesh = SimplicialMeshMap(n_roots=3, random_state=0, **params)
        expected = mesh.fit(X.toarray()).transform(X.toarray())
        monkeypatch.setattr(_mesh, "CHUNK_VALUES", 1)  # 64 rows at a time
        found = mesh.fit(X).transform(X)
        np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-10)
        monkeypatch.undo()


def test_rare_vertices_can_be_left_out():
    X = blob(300, 3)
    every = SimplicialMeshMap(n_roots=2, random_state=0).fit(X)
    kept = SimplicialMeshMap(n_roots=2, min_count=5, random_state=0).fit(X)
    counts = every.transform(X).getnnz(axis=0)
    np.testing.assert_array_equal(
        kept.transform(X).toarray(), every.transform(X)[:, counts >= 5].toarray()
    )
    with pytest.raises(ValueError, match="min_count=301 leaves no vertex"):
        SimplicialMeshMap(min_count=301).fit(X)


def test_hashed_columns_need_no_training():
    X = blob(100, 3)
    make = SimplicialMeshMap(
        n_roots=3, pitch=3.0, scaling="none", columns="hashed", n_components=64, random_state=0
    )
    a = make.fit(X).transform(X)
    # another training set: only the centre differs, which is taken back here
    b = make.fit(X[:5] * 2)
    np.testing.assert_allclose(
        b.transform(X + b.center_ - X.mean(axis=0)).toarray(), a.toarray(), atol=1e-9
    )
    assert a.shape == (100, 64) and a.has_canonical_format
    assert metrics(make, X + 1e6, None) == {"coverage": 1.0}


@pytest.mark.parametrize("d", [1, 2])
def test_hashed_columns_average_to_the_kernel(d):
    X = blob(12, d)
    mesh = SimplicialMeshMap(8, pitch=3.0, columns="hashed", n_components=16)
    grams = []
    for seed in range(200):
        Z = mesh.set_params(random_state=seed).fit(X).transform(X)
        grams.append((Z @ Z.T).toarray())
    errors = np.mean(grams, axis=0) - mesh_gram(mesh, X, X)
    # 5 standard errors
    assert (np.abs(errors) <= 5 * np.std(grams, axis=0, ddof=1) / np.sqrt(200)).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_roots": 0}, "n_roots must be an integer >= 1, got 0"),
        ({"n_levels": 1.5}, r"n_levels must be an integer >= 1, got 1\.5"),
        ({"pitch": 0.0}, r"pitch must be a finite number > 0, got 0\.0"),
        ({"pitch": np.inf}, "pitch must be a finite number > 0, got inf"),
        (
            {"projection_dim": -1},
            "projection_dim must be an integer >= 1, or 'auto' or None, got -1",
        ),
        ({"scaling": "minmax"}, "scaling must be one of 'standard', .*, got 'minmax'"),
        ({"columns": "all"}, "columns must be one of 'seen', 'hashed', got 'all'"),
        ({"min_count": 0}, "min_count must be an integer >= 1, got 0"),
        ({"n_components": True}, "n_components must be an integer >= 1, got True"),
        ({"dtype": "int32"}, "dtype must be one of 'float64', 'float32', got 'int32'"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        SimplicialMeshMap(**params).fit(np.eye(3))


def test_names_seeds_and_pickles():
    X = blob(40, 3)
    mesh = SimplicialMeshMap(n_roots=2, random_state=0).fit(X)
    names = mesh.get_feature_names_out()
    assert len(names) == mesh.n_vertices_ and names[0] == "simplicialmeshmap0"
    same = pickle.loads(pickle.dumps(mesh)).transform(X)
    assert (same != mesh.transform(X)).nnz == 0
    other = SimplicialMeshMap(n_roots=2, random_state=1).fit_transform(X)
    assert other.shape != same.shape or (other != same).nnz


def test_separates_rings_that_no_line_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    y = (np.sin(3 * np.linalg.norm(X, axis=1)) > 0).astype(int)
    model = make_pipeline(SimplicialMeshMap(random_state=0), LinearSVC(C=1.0))
    plain = LinearSVC(C=1.0).fit(X[:600], y[:600]).score(X[600:], y[600:])
    assert model.fit(X[:600], y[:600]).score(X[600:], y[600:]) > plain + 0.2
