"""Logistic regression against scikit-learn's own."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from kbench_learners import LogisticClassifier, _descent, _design
from kbench_learners import _logistic as logistic


@parametrize_with_checks([LogisticClassifier(), LogisticClassifier(multiclass="ovr")])
def test_scikit_learn_interface(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("C", [1e-2, 1e2])
def test_it_is_scikit_learn_s(n_classes, C):
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    X, names = X[:300] / 16, np.array(["a", "b", "c", "d", "e"])[y[:300]]
    ours = LogisticClassifier(C=C, tol=1e-8).fit(X, names)
    theirs = LogisticRegression(C=C, tol=1e-8, max_iter=10_000).fit(X, names)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    sparse = LogisticClassifier(C=C, tol=1e-8).fit(sp.csr_matrix(X), names)
    np.testing.assert_allclose(sparse.coef_, ours.coef_, atol=1e-4)


@pytest.mark.parametrize("C", [1e-2, 1e2])
def test_each_class_against_the_rest_is_scikit_learn_s(C):
    X, y = load_digits(n_class=5, return_X_y=True)
    X, y = X[:300] / 16, y[:300]
    ours = LogisticClassifier(C=C, multiclass="ovr", tol=1e-8).fit(X, y)
    theirs = OneVsRestClassifier(LogisticRegression(C=C, tol=1e-8, max_iter=10_000)).fit(X, y)
    assert ours.coef_.shape == (5, 64)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("few_steps", [1e9, 0.0, -1.0])  # factorised at once, later, never
@pytest.mark.parametrize("multiclass", ["multinomial", "ovr"])
def test_a_path_is_separate_fits(multiclass, few_steps, monkeypatch):
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 5][:300, :12] / 16, y[y < 5][:300]
    values = [2.0**11, 2.0**-3, 8.0]
    separate = [LogisticRegression(C=C, tol=1e-8, solver="newton-cholesky") for C in values]
    if multiclass == "ovr":
        separate = [OneVsRestClassifier(each) for each in separate]
    monkeypatch.setattr(logistic, "_FEW_STEPS", few_steps)
    if few_steps < 0.0:
        monkeypatch.setattr(_descent, "_MAX_FACTOR_ENTRIES", 0)
    path = LogisticClassifier(multiclass=multiclass, tol=1e-8).fit_path(X, y, values)
    for C, fitted, alone in zip(values, path, separate, strict=True):
        assert fitted.C == C and fitted.converged_
        expected = alone.fit(X, y).predict_proba(X)
        np.testing.assert_allclose(fitted.predict_proba(X), expected, atol=1e-4)


@pytest.mark.parametrize("C", [1e-3, 1e3])
def test_no_convergence_is_reported(C):
    X, y = load_digits(n_class=3, return_X_y=True)
    classifier = LogisticClassifier(C=C, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="raise max_iter=1"):
        classifier.fit(X, y)
    assert not classifier.converged_


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0}, "C must be a finite number > 0, got 0"),
        ({"tol": "small"}, "tol must be a finite number > 0, got 'small'"),
        ({"multiclass": "ovo"}, "multiclass must be one of 'multinomial', 'ovr', got 'ovo'"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
    ],
)
def test_mistakes_name_the_parameter(params, message):
    with pytest.raises(ValueError, match=message):
        LogisticClassifier(**params).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_weights_change_decisions_and_keep_probabilities_calibrated(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    scores = np.column_stack([np.full(2000, 3.0), *(2.0 * X[:, 1:n_classes].T)])
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    weighted = LogisticClassifier(balanced=True).fit(X, y)
    assert np.allclose(
        weighted.coef_,
        LogisticRegression(class_weight="balanced", tol=1e-8).fit(X, y).coef_,
        atol=1e-4,
    )
    shares = np.bincount(y) / len(y)
    assert np.allclose(weighted.predict_proba(X).mean(axis=0), shares, atol=0.02)
    assert np.bincount(weighted.predict(X))[0] < 0.9 * np.sum(y == 0)
    assert not hasattr(weighted, "begin_fit")


@pytest.fixture
def hessians(monkeypatch):
    """A list with an entry for each Hessian that is computed."""
    computed = []
    gram = _design.Design.gram

    def counted(self, *args, **kwargs):
        computed.append(1)
        return gram(self, *args, **kwargs)

    monkeypatch.setattr(_design.Design, "gram", counted)
    return computed


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_two_classes_in_memory_take_few_hessians(C, hessians):
    """A Hessian after each step took most of the time: three to six of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 200))
    y = X @ rng.normal(size=200) * 0.3 + rng.logistic(size=2000) > 0
    fitted = LogisticClassifier(C=C).fit(X, y)
    assert 1 <= len(hessians) <= 2
    best = LogisticRegression(C=C, tol=1e-12, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(fitted.coef_, best.coef_, atol=5e-5)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_path_takes_over_the_hessians_of_its_first_value(n_classes, hessians):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 100))
    y = (0.3 * X @ rng.normal(size=(100, n_classes)) + rng.gumbel(size=(2000, n_classes))).argmax(1)
    values = [0.5, 1.0, 4.0, 16.0]
    path = LogisticClassifier().fit_path(X, y, values)
    # four of each column without it
    assert len(hessians) <= 2 * len(path[0].coef_)
    for C, fitted in zip(values, path, strict=True):
        assert fitted.converged_
        # the criterion is that of a fit alone: the largest entry of the gradient
        excess = (fitted.predict_proba(X) - (y[:, None] == np.arange(n_classes)))[
            :, -len(fitted.coef_) :
        ]
        gradient = fitted.coef_ / (C * len(y)) + excess.T @ X / len(y)
        assert np.abs(gradient).max() <= 1.01e-6
        alone = LogisticClassifier(C=C).fit(X, y)
        np.testing.assert_allclose(fitted.coef_, alone.coef_, atol=1e-3)


def test_the_loss_of_two_classes_is_exact_for_any_scores():
    scores = np.array([-1e4, -800.0, -30.0, -1e-9, 0.0, 1e-9, 30.0, 800.0, 1e4])
    loss = _descent.Logistic(coding=np.array([-1.0, 1.0]), C=np.array([0.5, 2.0]))
    for code, sign, cost in ((0, -1.0, 0.5), (1, 1.0, 2.0)):
        for score in scores:
            value, slopes = loss.of(np.array([[score]]), np.array([code]))
            expected = cost * np.logaddexp(0.0, -sign * score)
            assert value == pytest.approx(expected, rel=1e-12, abs=0.0)
            slope = -cost * sign * expit(-sign * score)
            assert slopes[0, 0] == pytest.approx(slope, rel=1e-12, abs=0.0)


def test_a_diagonal_is_that_of_each_c():
    rng = np.random.default_rng(0)
    X = sp.random(700, 900, 0.01, random_state=0) @ sp.diags(10 ** rng.uniform(-2, 2, 900))
    y = (X @ rng.normal(size=(900, 3)) + rng.gumbel(size=(700, 3))).argmax(axis=1)
    values = [2.0**power for power in range(-5, 13)]
    path = LogisticClassifier().fit_path(X.tocsr(), y, values)
    alone = [LogisticClassifier(C=C).fit(X.tocsr(), y) for C in values]
    assert sum(each.n_iter_ for each in path) < 0.5 * sum(each.n_iter_ for each in alone)
