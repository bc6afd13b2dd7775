"""The paper's conic data: their margin, and F2 as an isometry on them."""

import numpy as np
import pytest
from sklearn.svm import SVC

from kbench.kernels import Polynomial
from kbench_balcan import BalcanF2, conic, conic_margin
from kbench_learners import KernelPerceptron, KernelSVM, LinearSVM

SURFACES = [
    ("ellipse", 1.0, 1.0, 0.2, 1.2),
    ("hyperbola", 1.0, 1.0, 0.2, 1.2),
    ("ellipse", 1.0, 0.5, 0.1, 1.1),
    ("hyperbola", 1.0, 0.5, 0.1, 1.1),
]


@pytest.mark.parametrize("negatives", ["uniform", "gaussian"])
@pytest.mark.parametrize(("surface", "a", "b", "c", "M"), SURFACES)
def test_conic_data_have_the_margin(surface, negatives, a, b, c, M):
    data = conic(surface, negatives, a, b, c, M, n_samples=3000, seed=1)
    sign = 1 if surface == "ellipse" else -1
    # the separator of section 6.1 in the space of (1 + x.z)^2:
    # phi(x) = (1, x1^2, x2^2, sqrt2 x1, sqrt2 x2, sqrt2 x1 x2)
    x1, x2 = data.X.T
    w = np.array([-1, 1 / a**2, sign / b**2])
    phi = np.column_stack([np.ones(len(x1)), x1**2, x2**2])
    lengths = np.sqrt(Polynomial(2).diag(data.X))
    margins = (2 * data.y - 1) * (phi @ w) / np.linalg.norm(w) / lengths
    assert margins.min() >= conic_margin(a, b, c, M)
    assert conic_margin(a, b, c, M) == pytest.approx(
        c / ((1 + 2 * M**2) * np.sqrt(1 + 1 / a**4 + 1 / b**4))
    )
    assert np.abs(data.X).max() <= M
    assert 0.45 < data.y.mean() < 0.55
    again = conic(surface, negatives, a, b, c, M, n_samples=3000, seed=1)
    assert again.checksum == data.checksum
    assert conic(surface, negatives, a, b, c, M, n_samples=3000, seed=2).checksum != data.checksum


def test_gaussian_negatives_have_the_standard_deviation():
    data = conic("hyperbola", "gaussian", n_samples=4000)
    assert data.X[data.y == 0].std() == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"a": 0}, "^a must be .*got 0"),
        ({"c": -1}, "^c must be .*got -1"),
        ({"M": np.inf}, "^M must be .*got inf"),
        ({"surface": "parabola"}, "^surface must be .*got 'parabola'"),
        ({"negatives": "cauchy"}, "^negatives must be .*got 'cauchy'"),
        ({"n_samples": 0}, "^n_samples must be .*got 0"),
    ],
)
def test_conic_refuses(params, message):
    with pytest.raises(ValueError, match=message):
        conic(**params)


def test_conic_refuses_empty_regions(monkeypatch):
    import kbench_balcan._data as module

    monkeypatch.setattr(module, "_MAX_BATCHES", 5)
    with pytest.raises(ValueError, match="region of class 1 is empty"):
        conic(M=0.5)


def test_f2_with_a_linear_svm_is_the_kernel_svm():
    """Degree 2 in two dimensions: F2 is an isometry, so both solve one problem."""
    kernel = Polynomial(2)
    for seed in range(3):
        data = conic(n_samples=140, seed=seed)
        f2 = BalcanF2(kernel, n_landmarks=10, random_state=0).fit(data.X[:10])
        Z = f2.transform(data.X)
        train, test = slice(0, 40), slice(40, 140)
        on_features = SVC(kernel="linear", C=10, tol=1e-8).fit(Z[train], data.y[train])
        on_kernel = KernelSVM(kernel, C=10, tol=1e-8).fit(data.X[train], data.y[train])
        np.testing.assert_allclose(
            on_features.decision_function(Z[test]),
            on_kernel.decision_function(data.X[test]),
            atol=1e-4,
        )
        # this project's linear SVM, whose intercept is hardly penalised
        linear = LinearSVM(C=10, loss="hinge", intercept_scaling=1e3, tol=1e-10)
        linear.fit(Z[train], data.y[train])
        np.testing.assert_allclose(
            linear.decision_function(Z[test]),
            on_kernel.decision_function(data.X[test]),
            atol=1e-3,
        )


def test_perceptron_on_f2_is_the_kernel_perceptron():
    """Section 7: updates commute with an isometry, so the mistakes are the same."""
    kernel = Polynomial(2)
    data = conic(n_samples=140, seed=0)
    f2 = BalcanF2(kernel, n_landmarks=10, random_state=0).fit(data.X[:10])
    params = {"n_epochs": 20, "shuffle": False}
    plain = KernelPerceptron("linear", **params).fit(f2.transform(data.X[:40]), data.y[:40])
    uses_kernel = KernelPerceptron(kernel, **params).fit(data.X[:40], data.y[:40])
    np.testing.assert_array_equal(plain.support_, uses_kernel.support_)
    np.testing.assert_allclose(
        plain.decision_function(f2.transform(data.X)), uses_kernel.decision_function(data.X)
    )
