"""The kernel perceptron against the textbook, and its mistake bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import kbench_learners._kernel_perceptron as module
from kbench.kernels import Gaussian, Linear, Polynomial
from kbench_learners import KernelPerceptron

OUTPUTS = ["last", "averaged", "voted", "survivor"]


@parametrize_with_checks([KernelPerceptron(n_epochs=3, output="voted")])
def test_scikit_learn_interface(estimator, check):
    check(estimator)


def hypotheses(K, signs, n_epochs):
    """Every hypothesis of the textbook perceptron, as dual coefficients, one per step."""
    a, sequence = np.zeros(len(K)), []
    for _ in range(n_epochs):
        mistakes = 0
        for i, s in enumerate(signs):
            sequence.append(a.copy())
            if (K[i] @ a >= 0) != (s > 0):
                a[i] += s
                mistakes += 1
        if not mistakes:
            break
    return np.array(sequence), a


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 50),
    n_epochs=st.integers(1, 4),
    block=st.sampled_from([3, 7, 256]),
    output=st.sampled_from(OUTPUTS),
)
def test_textbook(seed, n, n_epochs, block, output):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] * X[:, 1] > 0) ^ (rng.random(n) < 0.1)
    y[:2] = [False, True]
    kernel = Gaussian(0.7)
    T = rng.normal(size=(20, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        fitted = KernelPerceptron(kernel, n_epochs, output, shuffle=False).fit(X, y)
    sequence, last = hypotheses(kernel(X), np.where(y, 1.0, -1.0), n_epochs)
    values = kernel(T, X) @ sequence.T
    if output == "last":
        exact = kernel(T, X) @ last
    elif output == "averaged":
        exact = values.mean(axis=1)
    elif output == "voted":
        exact = np.where(values >= 0, 1.0, -1.0).mean(axis=1)
    else:
        # the hypothesis with the longest run, the first of several
        changes = np.flatnonzero((np.diff(sequence, axis=0) != 0).any(axis=1)) + 1
        edges = np.concatenate([[0], changes, [len(sequence)]])
        runs = np.diff(edges)
        if len(runs) < fitted.n_mistakes_[0] + 1:
            runs = np.append(runs, 0)  # a mistake on the very last row
        at = int(runs.argmax())
        exact = values[:, edges[at]]
    np.testing.assert_allclose(fitted.decision_function(T), exact, atol=1e-9)
    assert fitted.n_mistakes_[0] == np.abs(np.diff(np.vstack([sequence, last]), axis=0)).sum()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), margin=st.sampled_from([0.05, 0.2, 0.5]))
def test_mistake_bound_on_separable_data(seed, margin):
    """At most (R / gamma)^2 mistakes in any number of passes (Novikoff)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))
    X = X[np.abs(X[:, 0]) >= margin]
    y = X[:, 0] > 0
    y[0] = ~y[1] if y.all() or (~y).all() else y[0]
    fitted = KernelPerceptron("linear", n_epochs=10_000, random_state=0).fit(X, y)
    gamma = np.abs(X[:, 0]).min()
    assert 1 <= fitted.n_mistakes_[0] <= Linear().diag(X).max() / gamma**2
    assert fitted.n_epochs_ < 10_000  # it stopped after a pass without mistake
    last = KernelPerceptron("linear", n_epochs=10_000, output="last", random_state=0).fit(X, y)
    assert last.score(X, y) == 1.0


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    noise=st.floats(0, 0.4),
    gamma=st.floats(0.05, 2),
    direction=st.integers(0, 5),
)
def test_mistake_bound_with_hinge_loss(seed, noise, gamma, direction):
    """One pass: at most ((R + D) / gamma)^2, for every unit vector and every gamma."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] > 0) ^ (rng.random(120) < noise)
    y[:2] = [False, True]
    kernel = Polynomial(2)
    fitted = KernelPerceptron(kernel, n_epochs=1, random_state=0).fit(X, y)
    # a unit vector of the kernel's space: along x_1, or spanned by random rows
    a = rng.normal(size=5)
    S = X[rng.integers(0, 120, 5)]
    if direction == 0:
        values = np.sqrt(2) * X[:, 0]
    else:
        values = kernel(X, S) @ a / np.sqrt(a @ kernel(S) @ a)
    hinge = np.maximum(0, gamma - np.where(y, 1, -1) * values)
    R = np.sqrt(kernel.diag(X).max())
    bound = ((R + np.linalg.norm(hinge)) / gamma) ** 2
    assert fitted.n_mistakes_[0] <= bound * (1 + 1e-9)


def test_only_mistakes_are_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    X = X[np.abs(X[:, 0]) > 0.3]
    fitted = KernelPerceptron("linear", random_state=0).fit(X, X[:, 0] > 0)
    assert len(fitted.support_) <= fitted.n_mistakes_[0] < 100
    assert fitted.support_vectors_.shape == (len(fitted.support_), 2)
    np.testing.assert_array_equal(fitted.support_vectors_, X[fitted.support_])


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_three_classes(multiclass, output):
    X, y = load_iris(return_X_y=True)
    fitted = KernelPerceptron("gaussian", output=output, multiclass=multiclass, random_state=0).fit(
        X, y
    )
    assert fitted.decision_function(X).shape == (150, 3)
    assert fitted.score(X, y) > 0.85
    assert fitted.n_mistakes_.shape == (3,)


@pytest.mark.parametrize("output", ["averaged", "voted"])
def test_precomputed(output):
    X, y = load_iris(return_X_y=True)
    kernel = Gaussian(1.0)
    params = {"output": output, "random_state": 0}
    direct = KernelPerceptron(kernel, **params).fit(X[::2], y[::2])
    gram = KernelPerceptron("precomputed", **params).fit(kernel(X[::2]), y[::2])
    np.testing.assert_allclose(
        gram.decision_function(kernel(X, X[::2])), direct.decision_function(X), atol=1e-9
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_epochs": 0}, "n_epochs must be an integer >= 1, got 0"),
        ({"output": "best"}, "output must be one of .*'averaged'.*, got 'best'"),
        ({"multiclass": "auto"}, "multiclass must be one of 'ovr', 'ovo', got 'auto'"),
        ({"kernel": "rbf"}, "kernel must be one of .*, got 'rbf'"),
    ],
)
def test_mistakes_name_the_parameter(params, message):
    with pytest.raises(ValueError, match=message):
        KernelPerceptron(**params).fit([[0.0], [1.0]], [0, 1])
