import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from kbench.kernels import Gaussian, LaplaceBalcan, Linear
from kbench_learners import CoreVectorMachine, _core_vector_machine
from kbench_learners._core_vector_machine import Similarities, core_set, decisions


def optimum(K, y, C, n_steps=200_000):
    """Dual objective by projected gradient with momentum, from the definition."""
    Q = np.outer(y, y) * (K + 1.0) + np.eye(len(y)) / C
    step = 1.0 / np.linalg.eigvalsh(Q)[-1]
    a = momentum = np.zeros(len(y))
    t = 1.0
    for _ in range(n_steps):
        new = np.maximum(0.0, momentum - step * (Q @ momentum - 1.0))
        if np.abs(new - a).max() < 1e-12:
            break
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        momentum = new + (t - 1.0) / following * (new - a)
        a, t = new, following
    return a


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), C=st.sampled_from([0.1, 1.0, 10.0]))
def test_small_tolerance_gives_the_support_vector_machine(seed, C):
    X, target = make_moons(60, noise=0.25, random_state=seed)
    y = np.where(target == 1, 1.0, -1.0)
    kernel = Gaussian(0.7)
    core = core_set(Similarities(kernel, X), y, C, 1e-9, 1000, np.random.RandomState(seed))
    reference = y * optimum(kernel(X), y, C)
    ours = decisions(kernel, X, X[core.index], core.coef)
    theirs = decisions(kernel, X, X, reference)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert core.converged and core.gap < 1e-6


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_a_gram_matrix_gives_the_numbers_of_its_kernel(multiclass):
    X, y = load_iris(return_X_y=True)
    kernel, train = Gaussian(1.0), np.random.RandomState(0).permutation(len(X))[:90]
    direct = CoreVectorMachine(C=10.0, kernel=kernel, multiclass=multiclass)
    gram = CoreVectorMachine(C=10.0, kernel="precomputed", multiclass=multiclass)
    assert gram.__sklearn_tags__().input_tags.pairwise
    assert not direct.__sklearn_tags__().input_tags.pairwise
    direct.fit(X[train], y[train])
    gram.fit(kernel(X[train]), y[train])
    np.testing.assert_allclose(
        gram.decision_function(kernel(X, X[train])), direct.decision_function(X), atol=1e-8
    )


@pytest.mark.parametrize("switched_off", ["_MAX_GRAM_ENTRIES", "_FULL_STEPS"])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), "precomputed"])
def test_the_ways_to_compute_agree(kernel, switched_off, monkeypatch):
    X, y = load_iris(return_X_y=True)
    inputs = X if kernel != "precomputed" else Gaussian(1.0)(X)
    machine = CoreVectorMachine(C=10.0, kernel=kernel).fit(inputs, y)
    quick = machine.decision_function(inputs)
    core_sizes = machine.core_sizes_
    monkeypatch.setattr(_core_vector_machine, switched_off, 0)
    np.testing.assert_allclose(machine.fit(inputs, y).decision_function(inputs), quick, atol=1e-4)
    np.testing.assert_array_equal(machine.core_sizes_, core_sizes)


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4])
def test_the_blown_up_ball_encloses_all_points(tol):
    X, target = make_circles(300, noise=0.1, factor=0.5, random_state=0)
    y, C = np.where(target == 1, 1.0, -1.0), 5.0
    kernel = Gaussian(0.5)
    core = core_set(Similarities(kernel, X), y, C, tol, 1000, np.random.RandomState(0))
    # Straight from the definition, in the space of (y phi(x), y, e_i / sqrt(C)).
    Q = np.outer(y, y) * (kernel(X) + 1.0) + np.eye(len(y)) / C
    a = np.zeros(len(y))
    a[core.index] = np.abs(core.coef) / np.abs(core.coef).sum()
    distance = np.sqrt(a @ Q @ a - 2.0 * Q @ a + np.diag(Q))
    radius = distance[a > 0].max()
    assert distance.max() <= (1.0 + tol) * radius * (1 + 1e-7)
    assert distance.max() / radius - 1.0 == pytest.approx(core.excess, abs=1e-6)
    assert core.converged and len(np.unique(core.index)) == len(core.index)


def test_core_sets_shrink_with_the_tolerance():
    X, y = make_moons(600, noise=0.2, random_state=0)
    coarse = CoreVectorMachine(C=10.0, tol=1e-2).fit(X, y)
    fine = CoreVectorMachine(C=10.0, tol=1e-7).fit(X, y)
    assert coarse.core_sizes_[0] < fine.core_sizes_[0] <= 600
    assert coarse.gap_ > fine.gap_


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_several_classes_and_sparse_inputs(multiclass):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    machine = CoreVectorMachine(C=10.0, multiclass=multiclass).fit(X, names)
    assert machine.score(X, names) > 0.95
    assert machine.decision_function(X).shape == (150, 3)
    sparse = CoreVectorMachine(C=10.0, multiclass=multiclass, kernel=machine.kernel_)
    sparse.fit(sp.csr_matrix(X), names)
    np.testing.assert_array_equal(sparse.predict(sp.csr_matrix(X)), machine.predict(X))


def test_too_small_a_core_is_reported():
    X, y = make_moons(300, noise=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_core_size=20"):
        machine = CoreVectorMachine(C=100.0, max_core_size=20).fit(X, y)
    assert not machine.converged_
    assert machine.core_sizes_[0] == 20
    assert machine.gap_ > 1e-3


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, "C must be a finite number > 0, got 0.0"),
        ({"tol": -1.0}, "tol must be a finite number > 0, got -1.0"),
        ({"max_core_size": 2}, "max_core_size must be an integer >= 10, got 2"),
        ({"kernel": Linear()}, "normalized"),
        ({"kernel": "gausian"}, "gausian"),
        ({"multiclass": "ecoc"}, "multiclass must be one of 'ovr', 'ovo', got 'ecoc'"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    X, y = make_moons(30, random_state=0)
    with pytest.raises(ValueError, match=message):
        CoreVectorMachine(**params).fit(X, y)


def test_other_kernels_of_constant_diagonal():
    X, y = make_moons(100, noise=0.1, random_state=0)
    assert CoreVectorMachine(C=10.0, kernel=LaplaceBalcan(0.5)).fit(X, y).score(X, y) > 0.9


def test_sklearn_contract():
    check_estimator(CoreVectorMachine())
