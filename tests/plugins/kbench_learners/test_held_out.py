"""Learners of other libraries that are stopped early on held-out rows."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron

from kbench.errors import PluginError
from kbench.registry.callables import resolve
from kbench_learners import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    MultilayerPerceptronClassifier,
    MultilayerPerceptronRegressor,
    PathRidgeClassifier,
)
from kbench_learners._held_out import MIN_ROWS, can_hold_out, count_bins
from kbench_learners._references import perceptron


def lightgbm(name):
    module = pytest.importorskip("lightgbm", reason="needs the extra 'reference'")
    assert module is not None
    from kbench_learners import _lightgbm

    return getattr(_lightgbm, name)


def boosted(name):
    """Return a classifier and a regressor of a library."""
    if name == "lightgbm":
        return lightgbm("LightGBMClassifier"), lightgbm("LightGBMRegressor")
    if name == "mlp":
        return MultilayerPerceptronClassifier, MultilayerPerceptronRegressor
    return GradientBoostingClassifier, GradientBoostingRegressor


LIBRARIES = ["scikit-learn", "lightgbm", "mlp"]
MAX_ROUNDS = {"scikit-learn": "max_iter", "lightgbm": "n_estimators", "mlp": "max_iter"}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:700, 10:40:2] / 16, y[:700]


@pytest.mark.parametrize(
    ("sizes", "held_out"),
    [
        ([250, 250], True),
        ([250, 249], False),  # too few rows
        ([499, 1], False),  # a class of one row
        ([498, 2], True),
        ([10] * 50, True),
        ([9] * 60, False),  # 54 held-out rows
    ],
)
def test_a_stratified_tenth_is_held_out_where_it_can_be(sizes, held_out):
    y = np.repeat(np.arange(len(sizes)), sizes)
    assert can_hold_out(y, has_classes=True) is held_out
    assert can_hold_out(y.astype(float), has_classes=False) is (len(y) >= MIN_ROWS)


@pytest.mark.parametrize("library", [*LIBRARIES[:2], pytest.param("mlp", marks=pytest.mark.slow)])
def test_held_out_rows_end_the_rounds(library, digits):
    X, y = digits
    classifier, regressor = boosted(library)
    X_new, f = make_friedman1(600, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = classifier(random_state=0).fit(X, y)
        assert fitted.score(X, y) > 0.8
        for each in (fitted, regressor(random_state=0).fit(X_new, f)):
            assert 1 <= each.n_iter_ < getattr(each, MAX_ROUNDS[library])
    again = classifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_class_of_one_row_is_learned(library, digits):
    X, y = digits[0], np.where(np.arange(700) == 3, 2, digits[1] % 2)
    classifier, _ = boosted(library)
    options = {"max_iter": 30} if library == "mlp" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = classifier(random_state=0, **options).fit(X, np.array(["a", "b", "c"])[y])
    assert list(fitted.classes_) == ["a", "b", "c"]
    assert set(fitted.predict(X)) <= {"a", "b", "c"}
    assert library == "mlp" or fitted.n_iter_ == 100


def test_without_lightgbm_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.delitem(sys.modules, "kbench_learners._lightgbm", raising=False)
    words = r"needs the package 'lightgbm', .*: pip install 'kbench-core\[lightgbm\]'"
    with pytest.raises(PluginError, match=words):
        resolve("kbench_learners._lightgbm:LightGBMClassifier")


def test_boosting_is_scikit_learn_s(digits):
    X, y = digits
    for options in ({}, {"early_stopping": False, "max_iter": 7}):
        ours = GradientBoostingClassifier(0.2, 15, 10, 1.0, random_state=0, **options).fit(X, y)
        theirs = HistGradientBoostingClassifier(
            learning_rate=0.2,
            max_leaf_nodes=15,
            min_samples_leaf=10,
            l2_regularization=1.0,
            random_state=0,
            tol=1.0 / len(y),  # 0.1 for all rows of the held-out tenth
            **{"max_iter": 500, "early_stopping": True, **options},
        ).fit(X, y)
        assert ours.n_iter_ == theirs.n_iter_
        np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    X, y = load_wine(return_X_y=True)
    assert GradientBoostingClassifier().fit(X, y).n_iter_ == 100
    assert GradientBoostingClassifier(early_stopping=False, max_iter=120).fit(X, y).n_iter_ == 120


@pytest.mark.parametrize("balanced", [False, True])
def test_all_rows_are_fitted_again_with_as_many_rounds(digits, balanced):
    X, y = digits
    stopped = GradientBoostingClassifier(random_state=0, max_leaf_nodes=4).fit(X, y)
    again = GradientBoostingClassifier(
        random_state=0, max_leaf_nodes=4, refit=True, balanced=balanced
    ).fit(X, y)
    theirs = HistGradientBoostingClassifier(
        max_iter=stopped.n_iter_,
        max_leaf_nodes=4,
        max_bins=count_bins(X, 255),
        early_stopping=False,
        random_state=0,
    ).fit(X, y)
    assert again.n_iter_ == stopped.n_iter_ < 500
    np.testing.assert_array_equal(again.predict_proba(X), theirs.predict_proba(X))
    assert (again.predict_proba(X) != stopped.predict_proba(X)).any()


def test_few_rows_of_which_none_is_held_out_are_fitted_once(monkeypatch, digits):
    fits = []
    fit = HistGradientBoostingRegressor.fit
    monkeypatch.setattr(
        HistGradientBoostingRegressor, "fit", lambda *a, **k: fits.append(1) or fit(*a, **k)
    )
    X, y = digits
    GradientBoostingRegressor(random_state=0, refit=True, max_iter=20).fit(X[:499], y[:499])
    assert len(fits) == 1
    GradientBoostingRegressor(random_state=0, refit=True, max_iter=20).fit(X[:500], y[:500])
    assert len(fits) == 3


def test_a_column_has_at_most_so_many_bins():
    rng = np.random.default_rng(0)
    X, fine = rng.normal(size=(400, 2)), rng.integers(3, size=(400, 1))
    model = GradientBoostingRegressor(max_bins=16, max_iter=2).fit(X, X[:, 0]).model_
    assert list(model._bin_mapper.n_bins_non_missing_) == [16, 16]
    few = GradientBoostingRegressor(max_bins=16, max_iter=2).fit(fine, X[:, 0]).model_
    assert list(few._bin_mapper.n_bins_non_missing_) == [3]


def test_rounds_that_gain_next_to_nothing_end(digits):
    X, y = digits
    model = GradientBoostingClassifier(0.3, 7, 20, 10.0, random_state=0).fit(X, y % 2).model_
    scores = model.validation_score_
    last, before = (max(scores[end - 10 : end]) - scores[end - 11] for end in (len(scores), -1))
    assert model.n_iter_ < 500
    assert last < 1.0 / len(y) < before


@pytest.mark.slow
@pytest.mark.parametrize("library", ["scikit-learn", "lightgbm"])
def test_weights_of_rows_count(library, digits):
    X, y = digits
    y = y % 2
    classifier, regressor = boosted(library)
    weight = np.where(y == 1, 50.0, 1.0)
    noise = np.random.default_rng(0).normal(size=X.shape)
    plain = classifier(random_state=0).fit(noise, y).predict_proba(noise + 9)[:, 1].mean()
    heavy = classifier(random_state=0).fit(noise, y, weight).predict_proba(noise + 9)[:, 1].mean()
    assert heavy > plain + 0.2
    mean = regressor(random_state=0).fit(noise, y, weight).predict(noise + 9).mean()
    assert mean > 0.8
    with pytest.raises(ValueError, match="sample_weight must be nonnegative"):
        classifier().fit(X, y, -weight)


def test_an_mlp_that_has_not_converged_is_reported(digits):
    X, y = digits
    for rows in (slice(None), slice(200)):  # with held-out rows and without
        with pytest.warns(ConvergenceWarning, match="Maximum iterations"):
            MultilayerPerceptronClassifier(max_iter=2, random_state=0).fit(X[rows], y[rows])


def test_the_perceptron_is_scikit_learn_s(digits):
    X, y = digits
    ours = perceptron().set_params(random_state=0).fit(X, y)
    theirs = Perceptron(random_state=0).fit(X, y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    np.testing.assert_array_equal(ours.intercept_, theirs.intercept_)
    averaged = perceptron(averaged=True).set_params(random_state=0).fit(X, y)
    assert averaged.score(X, y) > ours.score(X, y)


def test_costs_of_classes_change_the_decisions_only():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] + rng.normal(size=400) > 1.9, "rare", "often")
    plain = GradientBoostingClassifier(max_iter=20, random_state=0).fit(X, y)
    weighted = GradientBoostingClassifier(max_iter=20, random_state=0, balanced=True)
    weighted.fit(X, y)
    probabilities = weighted.predict_proba(X)
    assert np.array_equal(probabilities, plain.predict_proba(X))
    is_rare = probabilities[:, 1] > np.mean(y == "rare")
    assert np.array_equal(weighted.predict(X) == "rare", is_rare)
    assert np.sum(plain.predict(X) == "rare") < is_rare.sum()


def test_a_class_without_weight_is_not_predicted():
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    weight = np.where(y == 1, 0.0, 1.0)
    for learner in (
        GradientBoostingClassifier(max_iter=5, random_state=0, balanced=True),
        PathRidgeClassifier(balanced=True),
    ):
        predicted = learner.fit(X, y, sample_weight=weight).predict(X)
        assert set(predicted) == {0, 2}
