"""Balanced Winnow against the textbook algorithm, one row after the other."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import kbench_learners._winnow as module
from kbench_learners import BalancedWinnow
from kbench_learners._winnow import winnow_epochs


@parametrize_with_checks([BalancedWinnow(), BalancedWinnow(norm=None, multiclass="ovo")])
def test_scikit_learn_interface(estimator, check):
    check(estimator)


def textbook(X, signs, rate, n_epochs):
    """Littlestone's two weight vectors, as printed."""
    u, v = np.ones(X.shape[1]), np.ones(X.shape[1])
    total, mistakes = np.zeros(X.shape[1]), []
    for _ in range(n_epochs):
        count = 0
        for x, s in zip(X, signs, strict=True):
            total += u - v
            if ((u - v) @ x >= 0) != (s > 0):
                count += 1
                u *= np.exp(rate * s * x)
                v *= np.exp(-rate * s * x)
        mistakes.append(count)
        if not count:
            break
    return u - v, total / (len(X) * len(mistakes)), mistakes


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 60),
    rate=st.sampled_from([0.05, 0.5, 2.0]),
    noise=st.sampled_from([0.0, 0.3]),
)
def test_two_weight_vectors(seed, n, rate, noise):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    signs = np.where((X[:, 0] > 0) ^ (rng.random(n) < noise), 1.0, -1.0)
    last, average, mistakes = winnow_epochs(X, signs, rate, 4, lambda _: np.arange(n))
    exact_last, exact_average, exact_mistakes = textbook(X, signs, rate, 4)
    assert mistakes == exact_mistakes
    np.testing.assert_allclose(2 * last, exact_last, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(2 * average, exact_average, rtol=1e-9, atol=1e-12)


def test_many_rows_are_taken_in_blocks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3))
    signs = np.where(X @ [1.0, 1.0, 0.0] > 0, 1.0, -1.0)
    last, average, mistakes = winnow_epochs(X, signs, 0.1, 2, lambda _: np.arange(9000))
    exact = textbook(X, signs, 0.1, 2)
    assert mistakes == exact[2]
    np.testing.assert_allclose(2 * last, exact[0], rtol=1e-8)
    np.testing.assert_allclose(2 * average, exact[1], rtol=1e-8)


def test_the_compiled_pass_is_the_same(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(module, "_WORTH_COMPILING", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    X[::7] = 0.0  # margins of exactly 0
    signs = np.where((X[:, 0] > 0) ^ (rng.random(300) < 0.2), 1.0, -1.0)
    assert module._pass_for(1) is not module.winnow_pass
    found = winnow_epochs(X, signs, 0.2, 3, lambda _: np.arange(300))
    exact = textbook(X, signs, 0.2, 3)
    assert found[2] == exact[2]
    np.testing.assert_allclose(2 * found[0], exact[0], rtol=1e-9)
    np.testing.assert_allclose(2 * found[1], exact[1], rtol=1e-9)


def test_mistakes_grow_with_the_logarithm_of_the_features():
    """Littlestone's point: of many features few matter."""

    def mistakes(n_features):
        rng = np.random.default_rng(0)
        X = rng.choice([-1.0, 1.0], (800, n_features))
        y = X[:, :3].sum(axis=1) > 0
        winnow = BalancedWinnow(
            0.3, n_epochs=50, norm=None, fit_intercept=False, shuffle=False
        ).fit(X, y)
        return winnow.n_mistakes_[0]

    few, many = mistakes(10), mistakes(640)
    assert many < few * 2 * math.log(2 * 640) / math.log(2 * 10)


def test_weights_cannot_overflow():
    # contradictory labels and a large rate: weights grow without end
    X = np.array([[1.0, 0.5], [1.0, 0.0], [0.3, 1.0]] * 50)
    winnow = BalancedWinnow(1e3, norm=None, random_state=0).fit(X, [0, 1, 1] * 50)
    assert np.isfinite(winnow.coef_).all()


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("averaged", [True, False])
def test_three_classes(multiclass, averaged):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    winnow = BalancedWinnow(
        n_epochs=50, multiclass=multiclass, averaged=averaged, random_state=0
    ).fit(X, names)
    assert winnow.decision_function(X).shape == (150, 3)
    assert winnow.coef_.shape == (3, 4)
    # no line separates versicolor from both others
    assert winnow.score(X, names) > (0.85 if multiclass == "ovo" else 0.55)


def test_row_norms_make_scale_irrelevant():
    X = np.abs(np.random.default_rng(0).normal(size=(80, 5)))
    y = X[:, 0] > X[:, 1]
    scales = np.random.default_rng(1).uniform(0.1, 10, (80, 1))
    for norm in ("l2", "l1", "max"):
        first, second = (
            BalancedWinnow(norm=norm, random_state=0).fit(Z, y).predict(X) for Z in (X, X * scales)
        )
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"learning_rate": 0}, "learning_rate must be a finite number > 0, got 0"),
        ({"learning_rate": np.inf}, "learning_rate must be a finite number > 0, got inf"),
        ({"n_epochs": 0}, "n_epochs must be an integer >= 1, got 0"),
        ({"norm": "l3"}, "norm must be one of 'l2', 'l1', 'max', or None, got 'l3'"),
        ({"multiclass": "auto"}, "multiclass must be one of 'ovr', 'ovo', got 'auto'"),
    ],
)
def test_mistakes_name_the_parameter(params, message):
    with pytest.raises(ValueError, match=message):
        BalancedWinnow(**params).fit([[0.0], [1.0]], [0, 1])


def test_a_single_class():
    with pytest.raises(ValueError, match="1 class"):
        BalancedWinnow().fit([[0.0], [1.0]], [1, 1])
