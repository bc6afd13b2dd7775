"""The sizes that the theorems ask for, and what they promise."""

import math

import numpy as np
import pytest

from kbench_balcan import BalcanF1, BalcanF2, BalcanF3, theory_sizes
from kbench_learners import LinearSVM


def test_sizes_are_the_theorems():
    margin, epsilon, delta = 0.3, 0.05, 0.01
    for mapping in ("f1", "f2"):
        sizes = theory_sizes(margin, epsilon, delta, mapping=mapping)
        exact = math.ceil(8 / epsilon * (1 / margin**2 + math.log(1 / delta)))
        assert sizes.n_landmarks == sizes.n_components == exact
    sizes = theory_sizes(margin, epsilon, delta)
    # F3 is F2 for epsilon/2 and delta/2 ...
    half = theory_sizes(margin, epsilon / 2, delta / 2, mapping="f2")
    assert sizes.n_landmarks == half.n_landmarks
    # ... and three vectors fail Theorem 2 together with at most epsilon delta / 4
    eta, d3 = margin / 16, sizes.n_components
    failure = [3 * 2 * math.exp(-(eta**2 - eta**3) * k / 4) for k in (d3, d3 - 1)]
    assert failure[0] <= epsilon * delta / 4 < failure[1]
    assert sizes.margin == margin / 4


def test_sizes_with_noise_off_the_origin_and_separable():
    plain = theory_sizes(0.2, 0.1, 0.1, mapping="f2")
    assert theory_sizes(1.0, 0.1, 0.1, mapping="f2", radius=5.0) == plain
    noisy = theory_sizes(0.2, 0.1, 0.1, mapping="f2", alpha=0.2)
    assert noisy.error == pytest.approx(0.8 * 0.1 + 0.2)
    assert noisy.n_landmarks == plain.n_landmarks
    separable = theory_sizes(0.5, 0.1, 0.1, target="separable")
    d = separable.n_components
    assert separable.error * d * math.log(d) <= 0.1 * (1 + 1e-12)
    # no larger epsilon does
    d = theory_sizes(0.5, separable.error * 1.01, 0.1).n_components
    assert separable.error * 1.01 * d * math.log(d) > 0.1


def test_dimension_grows_with_the_logarithm_only():
    sizes = [theory_sizes(0.5, 10.0**-k, 0.1) for k in (2, 4, 8)]
    assert sizes[2].n_components < 4 * sizes[0].n_components
    assert sizes[2].n_landmarks > 1e5 * sizes[0].n_landmarks
    assert sizes[0].n_components > sizes[0].n_landmarks  # F3 gains nothing
    assert sizes[2].n_components < sizes[2].n_landmarks  # only for tiny epsilon


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be .*got 0.0"),
        ({"epsilon": 1.5}, "epsilon must be .*got 1.5"),
        ({"delta": 1}, "delta must be .*got 1"),
        ({"margin": 0}, "margin must be .*got 0"),
        ({"margin": 2}, "margin must be .*got 2"),
        ({"alpha": 1}, "alpha must be .*got 1"),
        ({"radius": -1}, "radius must be .*got -1"),
        ({"mapping": "f4"}, "mapping must be .*got 'f4'"),
        ({"target": "zero"}, "target must be .*got 'zero'"),
        ({"target": "separable", "mapping": "f2"}, "mapping must be 'f3'.*got 'f2'.*Corollary 2"),
    ],
)
def test_theory_refuses(params, message):
    with pytest.raises(ValueError, match=message):
        theory_sizes(**{"margin": 0.5, "epsilon": 0.1, "delta": 0.1, **params})


def test_theory_in_the_maps():
    X = np.random.default_rng(0).normal(size=(700, 30))
    params = {"n_landmarks": "theory", "margin": 0.5, "epsilon": 0.2, "delta": 0.1}
    d = theory_sizes(0.5, 0.2, 0.1, mapping="f2").n_landmarks
    assert BalcanF1("gaussian", **params).fit(X).n_landmarks_ == d
    with pytest.warns(UserWarning, match="F2 is returned"):
        f3 = BalcanF3("gaussian", **params).fit(X)
    assert f3.n_landmarks_ == theory_sizes(0.5, 0.2, 0.1).n_landmarks
    assert f3.n_components_ == f3.n_landmarks_


def test_corollary_1_and_theorem_1_hold():
    """With theory's landmarks, the error of the best separator is at most epsilon."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = X[np.abs(X[:, 0]) > 0.4]
    y = X[:, 0] > 0
    for make, mapping in ((BalcanF1, "f1"), (BalcanF2, "f2")):
        # linear kernel: the margin of (1, 0, 0) is 0.4
        z = make("linear", n_landmarks="theory", margin=0.4, epsilon=0.2, random_state=0)
        Z = z.fit(X[:400]).transform(X)
        assert z.n_landmarks_ == theory_sizes(0.4, 0.2, 0.1, mapping=mapping).n_landmarks
        assert LinearSVM(C=1e3, fit_intercept=False).fit(Z, y).score(Z, y) >= 0.8
