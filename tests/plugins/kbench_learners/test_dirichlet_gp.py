"""Dirichlet-based Gaussian processes against scikit-learn's process, and what changes nothing."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_wine
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from kbench_learners import DirichletGPClassifier


@pytest.fixture(scope="module")
def parts():
    X, y = load_wine(return_X_y=True)
    return train_test_split(scale(X) / 4.0, y, random_state=0)


@parametrize_with_checks([DirichletGPClassifier(), DirichletGPClassifier(1e-4, 2.0, n_draws=50)])
def test_scikit_learn_interface(estimator, check):
    check(estimator)


@pytest.mark.parametrize("alpha", [1e-4, 0.01, 0.5])
@pytest.mark.parametrize("weight_variance", ["labels", 3.0])
def test_a_class_is_the_process_of_scikit_learn(parts, alpha, weight_variance):
    X, X_new, y, _ = parts
    ours = DirichletGPClassifier(alpha, weight_variance).fit(X, y)
    shape = alpha + (y[:, None] == ours.classes_)
    noise = np.log(1.0 + 1.0 / shape)
    target = np.log(shape) - noise / 2.0
    prior = target.mean()
    variance = target.var() if weight_variance == "labels" else weight_variance
    assert ours.weight_variance_ == pytest.approx(variance)
    mean, deviation = ours._function(X_new)
    for k in range(3):
        process = GaussianProcessRegressor(
            ConstantKernel(variance) * DotProduct(sigma_0=0, sigma_0_bounds="fixed"),
            alpha=noise[:, k],
            optimizer=None,
        ).fit(X, target[:, k] - prior)
        their_mean, their_sd = process.predict(X_new, return_std=True)
        np.testing.assert_allclose(mean[:, k], their_mean + prior, atol=1e-8)
        np.testing.assert_allclose(deviation[:, k], their_sd, atol=1e-6)


def test_probabilities_are_means_of_the_softmax(parts):
    X, X_new, y, _ = parts
    model = DirichletGPClassifier(n_draws=20_000, random_state=0).fit(X, y)
    mean, deviation = model._function(X_new)
    drawn = np.random.default_rng(7).standard_normal((20_000, *mean.shape))
    expected = softmax(mean + deviation * drawn, axis=2).mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(X_new), expected, atol=0.01)


def test_a_prediction_does_not_depend_on_the_other_rows(parts, monkeypatch):
    X, X_new, y, _ = parts
    model = DirichletGPClassifier(random_state=0).fit(X, y)
    together = model.predict_proba(X_new)
    monkeypatch.setattr("kbench_learners._bayesian_linear._DRAWN_ENTRIES", 10_000)
    np.testing.assert_allclose(model.predict_proba(X_new), together, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X_new[3:4]), together[3:4], atol=1e-12)


def test_it_classifies_and_its_probabilities_say_something(parts):
    X, X_new, y, y_new = parts
    model = DirichletGPClassifier(random_state=0).fit(X, y)
    assert model.score(X_new, y_new) > 0.95
    assert log_loss(y_new, model.predict_proba(X_new)) < 0.3


def test_rotations_of_the_features_change_nothing(parts):
    X, X_new, y, _ = parts
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((13, 13)))[0]
    one = DirichletGPClassifier(random_state=0).fit(X, y)
    other = DirichletGPClassifier(random_state=0).fit(X @ rotation, y)
    np.testing.assert_allclose(
        other.predict_proba(X_new @ rotation), one.predict_proba(X_new), atol=1e-10
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, "alpha must be a finite number > 0"),
        ({"alpha": "labels"}, "alpha must be a finite number > 0"),
        ({"weight_variance": -1.0}, "weight_variance must be a finite number > 0, or 'labels'"),
        ({"n_draws": 0}, "n_draws must be an integer >= 1"),
    ],
)
def test_bad_parameters_are_named(parts, parameters, message):
    X, _, y, _ = parts
    with pytest.raises(ValueError, match=message):
        DirichletGPClassifier(**parameters).fit(X, y)


def test_one_class_and_too_many_columns_are_refused():
    with pytest.raises(ValueError, match="y has 1 class"):
        DirichletGPClassifier().fit(np.ones((4, 2)), np.zeros(4))
    with pytest.raises(ValueError, match="up to 6,000, and there are 6,001"):
        DirichletGPClassifier().fit(np.ones((4, 6001)), [0, 1, 0, 1])
