import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeClassifier

from kbench.evaluation.gram_sums import Sums, Targets
from kbench_learners import PathRidge, PathRidgeClassifier, _ridge

ALPHAS = [100.0, 1e-3, 1.0]


@pytest.fixture
def Z():
    return np.random.default_rng(0).normal(size=(300, 8)) @ np.diag(np.logspace(0, -2, 8)) + 2.0


def sums_of(Z, targets, weight=None):
    sums = Sums.zero(Z[0], targets.n_columns)
    rows = np.arange(len(Z))
    sums.add(Z, targets.block(rows), weight)
    return targets.select_present(sums, rows)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_give_the_classifier_of_scikit_learn(Z, n_classes, weighted):
    rng = np.random.default_rng(1)
    y = rng.integers(0, n_classes, len(Z)) * 2
    weight = rng.uniform(0, 2, len(Z)) if weighted else None
    sums = sums_of(Z, Targets(y, "classification"), weight)
    for fitted, alpha in zip(PathRidgeClassifier().fit_sums(sums, ALPHAS), ALPHAS, strict=True):
        peer = RidgeClassifier(alpha=alpha).fit(Z, y, sample_weight=weight)
        np.testing.assert_allclose(fitted.coef_, np.atleast_2d(peer.coef_), rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(fitted.intercept_, peer.intercept_, rtol=1e-8)
        np.testing.assert_array_equal(fitted.predict(Z), peer.predict(Z))
        assert (fitted.alpha, fitted.converged_, fitted.n_iter_) == (alpha, True, 1)


def test_few_values_are_factorised_and_many_are_not(Z, monkeypatch):
    y = Z @ np.arange(8) + np.random.default_rng(1).normal(size=len(Z))
    sums = sums_of(Z, Targets(y, "regression"))
    few = PathRidge().fit_sums(sums, ALPHAS)
    many = PathRidge().fit_sums(sums, [*ALPHAS, *np.logspace(-2, 4, 10)])
    for one, other in zip(few, many, strict=False):
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)
    monkeypatch.setattr(_ridge, "eigh", None)
    PathRidge().fit_sums(sums, ALPHAS[:1])
    with pytest.raises(TypeError):
        PathRidge().fit_sums(sums, 3 * ALPHAS)


def test_sums_give_the_regressor_of_scikit_learn(Z):
    y = Z @ np.arange(8) + np.random.default_rng(1).normal(size=len(Z))
    targets = Targets(y, "regression")
    y = targets.scale.standardise(y)
    for fitted in PathRidge().fit_sums(sums_of(Z, targets), ALPHAS):
        peer = Ridge(alpha=fitted.alpha).fit(Z, y)
        np.testing.assert_allclose(fitted.coef_, peer.coef_, rtol=1e-8)
        np.testing.assert_allclose(fitted.predict(Z), peer.predict(Z), rtol=1e-8, atol=1e-9)


def test_directions_without_variance_are_left_out(Z):
    Z = np.hstack([Z, np.ones((len(Z), 1)), Z[:, :1]])
    y = np.random.default_rng(1).integers(0, 2, len(Z))
    (fitted,) = PathRidgeClassifier().fit_sums(sums_of(Z, Targets(y, "classification")), [1e-20])
    assert abs(fitted.coef_[0, 8]) < 1e-8
    assert fitted.coef_[0, 9] == pytest.approx(fitted.coef_[0, 0])


def test_sums_are_refused_as_rows_are(Z):
    one_class = sums_of(Z, Targets(np.zeros(len(Z), dtype=int), "classification"))
    with pytest.raises(ValueError, match=r"y has 1 class, .*0.*; PathRidgeClassifier needs"):
        PathRidgeClassifier().fit_sums(one_class, [1.0])
    y = Targets(np.arange(len(Z)) * 1.0, "regression")
    with pytest.raises(ValueError, match="all values of sample_weight are zero"):
        PathRidge().fit_sums(sums_of(Z, y, np.zeros(len(Z))), [1.0])
    with pytest.raises(ValueError, match="alpha"):
        PathRidge().fit_sums(sums_of(Z, y), [-1.0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_weights_are_scikit_learn_s_and_need_the_rows(Z, n_classes):
    y = np.minimum(np.random.default_rng(2).poisson(0.3, len(Z)), n_classes - 1)
    ridge = PathRidgeClassifier(balanced=True).fit(Z, y)
    peer = RidgeClassifier(class_weight="balanced").fit(Z, y)
    np.testing.assert_allclose(ridge.coef_, np.atleast_2d(peer.coef_), rtol=1e-8)
    assert not hasattr(ridge, "fit_sums")
