"""Stochastic gradient descent in passes: its steps, its order and its end."""

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from kbench.evaluation.block_fits import Sample
from kbench_learners import StochasticClassifier, _stochastic

rng = np.random.default_rng(0)
X = rng.normal(size=(700, 6))
Y = np.digitize(X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=700), [-0.4, 0.5])


def fit_in_passes(values=(1e-3,), n_blocks=3, weight=None, **params):
    """Fit over blocks; return the estimators, and the rows in the order of the passes."""
    estimator = StochasticClassifier(random_state=0, **params)
    classes, counts = np.unique(Y, return_counts=True)
    fit, seen = estimator.begin_fit(Sample(X[:1], Y[:1], classes, counts), values), []
    while not fit.is_done:
        seen.append(fit.order(len(Y)))
        for rows in np.array_split(seen[-1], n_blocks):
            fit.add(X[rows], Y[rows], *([] if weight is None else [weight[rows]]))
        fit.step()
    return fit.estimators(), np.concatenate(seen)


@pytest.mark.parametrize("loss", sorted(_stochastic._LOSSES))
def test_the_steps_are_those_of_scikit_learn(loss):
    ((ours, other), seen) = fit_in_passes((1e-2, 1.0), loss=loss, max_iter=2, n_blocks=1)
    assert (ours.n_iter_, ours.converged_) == (2, False)
    theirs = SGDClassifier(loss, alpha=1e-2, shuffle=False).set_params(max_iter=1, tol=None)
    for order in np.split(seen, 2):
        theirs.partial_fit(X[order], Y[order], np.unique(Y))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12)
    assert hasattr(other, "predict_proba") == (loss in ("log_loss", "modified_huber"))


def test_passes_end_where_the_loss_stays():
    (fitted,), _ = fit_in_passes((0.1,))
    in_memory = StochasticClassifier(0.1, random_state=0).fit_path(X, Y, [0.1])[0]
    assert fitted.converged_ and in_memory.converged_ and 5 < fitted.n_iter_ < 60
    assert fitted.score(X, Y) == pytest.approx(in_memory.score(X, Y), abs=0.1)
    (fixed,), seen = fit_in_passes(max_iter=3, tol=None)
    assert fixed.converged_ and fixed.n_iter_ == 3
    assert not np.array_equal(seen[:700], seen[700:1400])


def test_rows_without_weight_do_not_count():
    weight = (np.arange(700) < 400).astype(float)
    (first,), _ = fit_in_passes(weight=weight, max_iter=4)
    X[400:] *= 7.0
    (second,), _ = fit_in_passes(weight=weight, max_iter=4)
    X[400:] /= 7.0
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-10)


def test_other_losses_are_fitted_in_memory_only():
    estimator = StochasticClassifier(loss="huber", random_state=0)
    assert not hasattr(estimator, "begin_fit")
    assert estimator.fit_path(X, Y, [1e-3])[0].n_iter_ > 0
