"""Kernels: values against exact references, laws by property tests."""

import ast
import pickle
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import pairwise

import kbench.kernels as kernels
from kbench.kernels import (
    AdditiveChi2,
    Chi2,
    Cosine,
    Gaussian,
    Intersection,
    Laplace,
    LaplaceBalcan,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Similarity,
    Sum,
    median_distance,
    normalized,
    resolve_kernel,
)
from kbench.kernels.base import SIMPLE
from kbench_testing import is_psd


def squared(x, z):
    return float(np.sum((x - z) ** 2))


def chi2_distance(x, z):
    total = x + z
    return float(np.sum(np.where(total > 0, (x - z) ** 2 / np.where(total > 0, total, 1), 0)))


# every kernel with its formula, written for one pair of rows
FORMULAS = [
    (Linear(), lambda x, z: x @ z),
    (Polynomial(degree=2, offset=0), lambda x, z: (x @ z) ** 2),
    (Polynomial(degree=3, offset=1.5), lambda x, z: (1.5 + x @ z) ** 3),
    (Polynomial(degree=9, offset=0.5), lambda x, z: (0.5 + x @ z) ** 9),
    (Cosine(), lambda x, z: x @ z / np.linalg.norm(x) / np.linalg.norm(z)),
    (Gaussian(bandwidth=0.7), lambda x, z: np.exp(-squared(x, z) / (2 * 0.7**2))),
    (LaplaceBalcan(bandwidth=0.7), lambda x, z: np.exp(-np.sqrt(squared(x, z)) / (2 * 0.7**2))),
    (Laplace(bandwidth=1 / 0.3), lambda x, z: np.exp(-0.3 * np.abs(x - z).sum())),
    (
        Matern(bandwidth=0.9),
        lambda x, z: (
            (1 + np.sqrt(3 * squared(x, z)) / 0.9) * np.exp(-np.sqrt(3 * squared(x, z)) / 0.9)
        ),
    ),
    (Matern(bandwidth=0.9, nu=0.5), lambda x, z: np.exp(-np.sqrt(squared(x, z)) / 0.9)),
    (
        Matern(bandwidth=0.9, nu=2.5),
        lambda x, z: (
            (1 + np.sqrt(5 * squared(x, z)) / 0.9 + 5 * squared(x, z) / (3 * 0.9**2))
            * np.exp(-np.sqrt(5 * squared(x, z)) / 0.9)
        ),
    ),
    (AdditiveChi2(), lambda x, z: np.sum((x + z) / 2) - chi2_distance(x, z) / 2),
    (Chi2(gamma=0.4), lambda x, z: np.exp(-0.4 * chi2_distance(x, z))),
    (Intersection(), lambda x, z: np.minimum(x, z).sum()),
    (2.0 * Linear() + Gaussian(1.0), lambda x, z: 2 * x @ z + np.exp(-squared(x, z) / 2)),
    (Linear() * Gaussian(1.0), lambda x, z: x @ z * np.exp(-squared(x, z) / 2)),
    (
        Normalized(Polynomial(2)),
        lambda x, z: (1 + x @ z) ** 2 / ((1 + x @ x) * (1 + z @ z)),
    ),
    (Similarity(lambda X, Y: X @ Y.T), lambda x, z: x @ z),
    (Similarity(lambda x, z: x @ z, pairs=True), lambda x, z: x @ z),
]
IDS = [repr(kernel)[:40] for kernel, _ in FORMULAS]
BY_VALUE = [k for k, _ in FORMULAS if not isinstance(k, Similarity)] + [
    Gaussian(bandwidth_factor=2.0),
    Precomputed(),
    Laplace(),
]


@pytest.fixture
def rows():
    return np.random.default_rng(0).uniform(0, 2, (40, 4))


@pytest.mark.parametrize(("kernel", "formula"), FORMULAS, ids=IDS)
def test_values_are_the_formulas(kernel, formula, rows):
    X, Y = rows[:33], rows[30:]
    exact = np.array([[formula(x, z) for z in Y] for x in X])
    np.testing.assert_allclose(kernel(X, Y), exact, rtol=1e-10, atol=1e-7)
    np.testing.assert_allclose(kernel.diag(X), [formula(x, x) for x in X], rtol=1e-10)
    np.testing.assert_allclose(kernel(X), kernel(X, X), atol=1e-7)


@pytest.mark.parametrize("kernel", BY_VALUE, ids=repr)
def test_kernels_are_values(kernel):
    again = eval(repr(kernel), vars(kernels))
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert kernel != Polynomial(degree=7)


@pytest.mark.parametrize("kernel", [k for k, _ in FORMULAS if k.psd], ids=repr)
def test_float32_is_kept(kernel, rows):
    K = kernel(rows.astype(np.float32))
    assert K.dtype == np.float32
    # distances between near rows lose half the digits of float32
    np.testing.assert_allclose(K, kernel(rows), rtol=2e-3, atol=1e-3)
    assert kernel.diag(rows.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(),
        Cosine(),
        Gaussian(1.0),
        LaplaceBalcan(1.0),
        Laplace(3.0),
        Matern(1.0),
        Intersection(),
        Linear() + Gaussian(1.0),
        normalized(Linear()),
    ],
    ids=repr,
)
def test_sparse_inputs(kernel, rows):
    rows[rows < 1] = 0
    sparse = sp.csr_matrix(rows)
    np.testing.assert_allclose(kernel(sparse, sparse[:5]), kernel(rows, rows[:5]), atol=1e-7)
    np.testing.assert_allclose(kernel.diag(sparse), kernel.diag(rows))


def test_scikit_learns_own_forms(rows):
    np.testing.assert_allclose(Laplace(2.5)(rows), pairwise.laplacian_kernel(rows, gamma=0.4))
    np.testing.assert_allclose(Gaussian(2.0)(rows), pairwise.rbf_kernel(rows, gamma=1 / 8))
    expected = np.median(pairwise.manhattan_distances(rows)[np.triu_indices(len(rows), 1)])
    assert Laplace().resolve(rows).bandwidth == pytest.approx(expected)
    assert Laplace().resolve(sp.csr_matrix(rows)).bandwidth == pytest.approx(expected)


finite_rows = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.just(3)),
    elements=st.integers(0, 24).map(lambda v: v / 8),
)


@pytest.mark.parametrize("kernel", [k for k, _ in FORMULAS if k.psd], ids=repr)
@settings(max_examples=15, deadline=None)
@given(X=finite_rows)
def test_gram_matrices_satisfy_mercer(kernel, X):
    K = kernel(X)
    # the distances that sqrt is taken of carry errors of 1e-15 * ||x||^2
    check = is_psd(K, tolerance=1e-6 * max(1.0, np.abs(K).max()))
    assert check, check


@settings(max_examples=25, deadline=None)
@given(X=finite_rows, c=st.floats(0, 5), d=st.floats(0, 5))
def test_closure(X, c, d):
    left, right = Gaussian(1.0), Polynomial(2)
    np.testing.assert_allclose((c * left + right * d)(X), c * left(X) + d * right(X), rtol=1e-12)
    np.testing.assert_allclose((left * right)(X), left(X) * right(X), rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(X=finite_rows)
def test_normalized_rows_have_unit_length(X):
    diag = normalized(Linear()).diag(X)
    zero = (X == 0).all(axis=1)
    np.testing.assert_array_equal(diag, np.where(zero, 0.0, 1.0))
    np.testing.assert_allclose(normalized(Linear())(X), Cosine()(X), atol=1e-7)


def test_algebra_takes_names_and_functions():
    assert Sum("linear", "gaussian") == Linear() + Gaussian()
    assert Product(Linear(), "cosine") == Linear() * Cosine()
    assert isinstance((Linear() + (lambda X, Y: X @ Y.T)).right, Similarity)
    assert 3 * Linear() == Linear() * 3 == Scaled(Linear(), 3.0)
    with pytest.raises(TypeError):
        Linear() + "linear"


def test_median_bandwidth(rows):
    distances = pairwise.euclidean_distances(rows)[np.triu_indices(len(rows), 1)]
    median = np.median(distances)
    assert median_distance(rows) == pytest.approx(median)
    assert Gaussian().resolve(rows).bandwidth == pytest.approx(median)
    assert Gaussian(bandwidth_factor=0.5).resolve(rows).bandwidth == pytest.approx(median / 2)
    assert LaplaceBalcan().resolve(rows).bandwidth ** 2 == pytest.approx(median)
    halved = LaplaceBalcan(bandwidth_factor=0.5).resolve(rows)
    assert halved.bandwidth**2 == pytest.approx(median / 2)
    resolved = Matern(bandwidth_factor=3, nu=0.5).resolve(rows)
    assert resolved == Matern(3 * median_distance(rows), nu=0.5)
    nested = (0.5 * normalized(Gaussian()) + Linear() * Gaussian()).resolve(rows)
    assert "median" not in repr(nested)
    assert Gaussian("median", bandwidth_factor=1) == Gaussian()


@pytest.mark.parametrize("kernel", [Gaussian, LaplaceBalcan, Laplace, Matern])
def test_bandwidth_factor_multiplies_numbers_too(kernel, rows):
    k = kernel(0.7, bandwidth_factor=4)
    same = kernel(1.4 if kernel is LaplaceBalcan else 2.8)  # the square of Laplace's is a distance
    np.testing.assert_allclose(k(rows), same(rows))
    assert k.resolve(rows).bandwidth == pytest.approx(same.bandwidth)
    assert k.resolve(rows).bandwidth_factor == 1.0
    assert k.resolve(rows).resolve(rows) == k.resolve(rows)


def test_median_is_a_fixed_sample_of_many_rows():
    X = np.random.default_rng(1).normal(size=(3000, 2))
    assert median_distance(X) == median_distance(X)
    assert median_distance(X) == pytest.approx(median_distance(X, n_rows=3000), rel=0.05)
    assert median_distance(sp.csr_matrix(X)) == pytest.approx(median_distance(X))


def test_median_of_equal_rows():
    assert median_distance(np.ones((5, 2))) == 1.0
    assert median_distance(np.ones((1, 2))) == 1.0
    mostly_equal = np.zeros((10, 1))
    mostly_equal[0] = 3.0
    assert median_distance(mostly_equal) == 3.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("as_input", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("seed", range(8))  # rounding errors depend on the rows
def test_median_of_repeated_rows_is_no_rounding_error(as_input, dtype, seed):
    distinct = (30 * np.random.default_rng(seed).normal(size=(30, 17))).astype(dtype)
    X = np.vstack([distinct, np.repeat(distinct[:1], 120, axis=0)])  # 80 % are one row
    distances = np.linalg.norm(X[:, None].astype(np.float64) - X, axis=2)
    assert np.median(distances) == 0
    of_different_rows = distances[distances > 0]  # every pair twice
    assert median_distance(as_input(X)) == pytest.approx(np.median(of_different_rows))


def test_precomputed(rows):
    K = Linear()(rows)
    k = Precomputed()
    columns = k.take(K, np.array([3, 1]))
    np.testing.assert_array_equal(k(K, columns), K[:, [3, 1]])
    np.testing.assert_array_equal(k(K), K)
    np.testing.assert_array_equal(k.diag(K), K.diagonal())
    with pytest.raises(ValueError, match="indices"):
        k(K, K)
    with pytest.raises(ValueError, match="combined"):
        k + Linear()


def test_similarity_uses_diag_and_resolve_of_the_function(rows):
    class Stretch:
        scale = None

        def __call__(self, X, Y):
            return self.scale * X @ Y.T

        def diag(self, X):
            return np.full(len(X), 7.0)

        def resolve(self, X):
            resolved = Stretch()
            resolved.scale = float(X.max())
            return resolved

    k = resolve_kernel(Stretch()).resolve(rows)
    np.testing.assert_allclose(k(rows), rows.max() * rows @ rows.T)
    np.testing.assert_array_equal(k.diag(rows), 7.0)


@pytest.mark.parametrize("kernel", [Gaussian, LaplaceBalcan, Laplace, Matern])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "mean", "2 median", True])
def test_bad_bandwidth(kernel, value):
    with pytest.raises(ValueError, match="bandwidth must be a finite number > 0, or 'median', got"):
        kernel(value)
    with pytest.raises(ValueError, match="bandwidth_factor must be a finite number > 0, got"):
        kernel(bandwidth_factor=value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polynomial(degree=0), "degree must be an integer >= 1, got 0"),
        (lambda: Polynomial(degree=1.5), "degree must be an integer >= 1, got 1.5"),
        (lambda: Polynomial(offset=-1), "offset must be a finite number >= 0, got -1"),
        (lambda: Chi2(gamma=-1), "gamma must be a finite number > 0, got -1"),
        (lambda: Matern(nu=2), "nu must be one of 0.5, 1.5, 2.5, got 2"),
        (lambda: -1 * Linear(), "weight must be a finite number >= 0, got -1"),
        (lambda: Similarity(3), "function must be callable, got 3"),
        (lambda: resolve_kernel("rbf"), "kernel must be one of .*'gaussian'.*, got 'rbf'"),
        (lambda: resolve_kernel(Gaussian), "kernel must be .*, got <class"),
        (lambda: Gaussian()([[1.0]]), "call kernel.resolve"),
        (lambda: Linear()([1.0]), "X must have 2 dimensions, .*, got 1"),
        (lambda: Linear()([[1.0]], [[1.0, 2.0]]), "Y must have as many features as X, 1, got 2"),
        (lambda: Polynomial(4)([[1e100]]), "NaN or infinite"),
        (lambda: Similarity(lambda X, Y: X @ Y.T * np.nan)([[1.0]]), "NaN or infinite"),
        (lambda: Similarity(lambda X, Y: X)([[1.0, 2.0]]), r"shape \(1, 2\)"),
        (lambda: Intersection()([[-1.0]]), "nonnegative"),
        (lambda: AdditiveChi2()([[-1.0]]), "nonnegative"),
        (lambda: normalized(Similarity(lambda X, Y: -X @ Y.T))([[1.0]]), "cannot be normalized"),
        (lambda: median_distance([[np.inf], [1.0]]), "finite"),
    ],
)
def test_mistakes_name_the_parameter(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_registered_names():
    from kbench.registry.callables import resolve
    from kbench_balcan import kbench_kernels

    specs = {spec.name: spec for spec in kbench_kernels()}
    parts = {each.__name__.lower(): each for each in (Sum, Product, Scaled, Normalized)}
    for name, kernel in {**SIMPLE, **parts}.items():
        assert resolve(specs[name].make) is kernel


def test_import_loads_numpy_only():
    code = (
        "import sys, kbench.kernels, kbench_balcan;"
        "print([m for m in ('sklearn', 'scipy', 'pandas', 'mlflow') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def imported_by(path):
    """Names of all modules that a file imports, in functions and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), "kbench.kernels")
            yield module
            # `from package import name` may import a module of that name
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_imports_run_one_way():
    paths = Path(kernels.__file__).parent.glob("*.py")
    names = {f"kbench.kernels.{path.stem}".removesuffix(".__init__"): path for path in paths}
    graph = {name: set(imported_by(path)) & names.keys() for name, path in names.items()}
    assert "kbench.kernels.base" in graph["kbench.kernels.distances"]
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("kernel", [Gaussian(), LaplaceBalcan(), Matern(), Matern(nu=0.5)], ids=str)
def test_distances_keep_their_digits_in_every_unit_and_far_from_0(kernel):
    X = np.random.default_rng(0).normal(size=(40, 3)).round(3)
    expected = kernel.resolve(X)(X, X[:9])
    far = 1e8 + X
    np.testing.assert_allclose(kernel.resolve(far)(far, far[:9]), expected, atol=1e-5)
    for unit, dtype in ((1e150, np.float64), (1e-150, np.float64), (1e30, np.float32)):
        scaled = (X * unit).astype(dtype)
        K = kernel.resolve(scaled)(scaled, scaled[:9])
        np.testing.assert_allclose(K, expected, atol=1e-5 if dtype == np.float64 else 1e-2)


@pytest.mark.parametrize("kernel", [Gaussian(), LaplaceBalcan(), Matern(nu=0.5), Matern(nu=2.5)])
def test_rows_have_the_distance_0_to_themselves(kernel):
    X = np.random.default_rng(0).normal(1e4, 1.0, (40, 5))
    kernel = kernel.resolve(X)
    # the root of a rounding error would be 1e-8
    for K in (kernel(X, X.copy()), kernel(X)):
        np.testing.assert_allclose(np.diagonal(K), 1.0, rtol=0, atol=2e-15)
