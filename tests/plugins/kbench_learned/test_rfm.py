"""The exact recursive feature machine."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from kbench.kernels import Gaussian
from kbench_learned import RecursiveFeatureMachineClassifier, RecursiveFeatureMachineRegressor
from kbench_learned._rfm import _best

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 5))
ALONG = np.array([1.0, -1.0, 0, 0, 0]) / np.sqrt(2)
Y = 3.0 * np.sin(2 * X @ ALONG) + 7.0


@pytest.mark.parametrize("kernel", ["matern-1/2", "gaussian"])
def test_it_finds_a_planted_direction(kernel):
    X_new = RNG.standard_normal((100, 5))
    wanted = 3.0 * np.sin(2 * X_new @ ALONG) + 7.0
    machines = [RecursiveFeatureMachineRegressor(kernel, rounds=n).fit(X, Y) for n in (0, 5)]
    errors = [np.mean((machine.predict(X_new) - wanted) ** 2) for machine in machines]
    assert errors[1] < 0.5 * errors[0]
    first = np.linalg.eigh(machines[1].transform_)[1][:, -1]
    assert np.degrees(np.arccos(min(1.0, abs(first @ ALONG)))) < 10


@pytest.mark.parametrize("start", [0, 4, 9])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_steps_find_the_best_penalty(start, noise):
    y = (Y - 7.0 + noise * RNG.standard_normal(200))[:, None]
    kernel, train, test = Gaussian(bandwidth=3.0), slice(0, 150), slice(150, 200)
    given = kernel, X[train], y[train], X[test], y[test]
    found = [_best(*given, i) for i in (start, *range(10))]
    assert found[0][0] == min(error for error, _, _ in found)
    assert found[0][2].shape == (150, 1)


def test_without_rounds_it_is_kernel_ridge_regression():
    fitted = RecursiveFeatureMachineRegressor("gaussian", rounds=0).fit(X, Y)
    K = fitted.kernel_(fitted.X_fit_, fitted.X_fit_)
    penalties = np.logspace(-7, 2, 19)
    predicted = [
        KernelRidge(alpha=a, kernel="precomputed").fit(K, Y - Y.mean()).predict(K) + Y.mean()
        for a in penalties
    ]
    closest = min(np.abs(each - fitted.predict(X)).max() for each in predicted)
    assert closest < 1e-5


def test_labels_may_be_texts():
    labels = np.where(X @ ALONG > 0, "up", "down")
    fitted = RecursiveFeatureMachineClassifier(rounds=2).fit(X, labels)
    assert fitted.score(X, labels) > 0.9
    assert fitted.decision_function(X).shape == (200,)


def test_too_many_rows_are_refused():
    with pytest.raises(ValueError, match="max_rows allows 100"):
        RecursiveFeatureMachineRegressor(max_rows=100).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "rbf"}, "kernel must be one of"),
        ({"metric": "low_rank"}, "metric must be one of"),
    ],
)
def test_mistakes_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        RecursiveFeatureMachineRegressor(**options).fit(X, Y)
