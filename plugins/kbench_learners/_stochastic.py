"""Stochastic gradient descent: scikit-learn's, in memory or in passes over blocks of rows."""

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from kbench_learners._estimator import coding_matrix

PATIENCE = 5
"""Passes without an improvement by `tol` after which training stops, as in scikit-learn."""

_LOSSES = {
    "hinge": lambda margins: np.maximum(0.0, 1.0 - margins),
    "squared_hinge": lambda margins: np.maximum(0.0, 1.0 - margins) ** 2,
    "log_loss": lambda margins: np.logaddexp(0.0, -margins),
    "modified_huber": lambda margins: np.where(
        margins >= -1.0, np.maximum(0.0, 1.0 - margins) ** 2, -4.0 * margins
    ),
}


class StochasticClassifier(SGDClassifier):
    """Linear classifier by stochastic gradient descent, one-vs-rest.

    In memory it is scikit-learn's ``SGDClassifier``. Over blocks all classes see the rows in the
    same order, which a seed draws for each pass.

    Parameters
    ----------
    alpha : float, default 1e-4
        Weight of the L2 penalty, which is added to the mean loss of the rows.
    loss : {"hinge", "log_loss", "squared_hinge", "modified_huber"}, default "hinge"
        The loss of a linear support vector machine, of logistic regression, and others.
    max_iter : int, default 1000
        Maximum number of passes over the rows.
    tol : float or None, default 1e-3
        Training stops when the mean loss of five passes has not improved by this.
    random_state : int, RandomState or None, default None
        Seed of the orders.

    References
    ----------
    L. Bottou, Large-scale machine learning with stochastic gradient descent, COMPSTAT 2010.
    """

    sample_rows = 1

    def __init__(self, alpha=1e-4, loss="hinge", max_iter=1000, tol=1e-3, random_state=None):
        super().__init__(loss, alpha=alpha, max_iter=max_iter, tol=tol, random_state=random_state)

    def fit_path(self, X, y, values, sample_weight=None):
        """Fit for several values of `alpha`, one by one.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Labels of at least two classes.
        values : sequence of float
            Values of `alpha`, in any order.
        sample_weight : array-like, shape (n_samples,), optional
            Nonnegative weights of the rows' losses; all 1 by default.

        Returns
        -------
        list of classifiers
            Fitted clones, in the order of `values`.
        """
        fitted = [clone(self).set_params(alpha=alpha) for alpha in values]
        for each in fitted:
            each.fit(X, y, sample_weight=sample_weight)
            each.converged_ = each.n_iter_ < each.max_iter or each.tol is None
        return fitted

    @available_if(lambda self: self.loss in _LOSSES)
    def begin_fit(self, sample, values):
        """Begin a fit over blocks of rows, for several `values` of `alpha` together.

        `sample` is a sample of the rows, as it is described for `kbench.Learner`. Other losses of
        scikit-learn than those of `loss` are fitted in memory only.
        """
        return StochasticFit(self, sample.classes, values)


class StochasticFit:
    """A fit for several values of `alpha`, which gets the rows of a pass in an `order`."""

    nbytes = 0

    def __init__(self, estimator, classes, values):
        self._estimator, self._classes = estimator, classes
        self._fitted = [clone(estimator).set_params(alpha=alpha) for alpha in values]
        for each in self._fitted:
            each.shuffle = False
        self._running = list(range(len(values)))
        self._signs = coding_matrix(len(classes), "ovr").T
        self._seed, self._n_passes = check_random_state(estimator.random_state).randint(2**31), 0
        self._best, self._waited = np.full(len(values), np.inf), np.zeros(len(values))
        self._sums, self._n_rows = np.zeros(len(values)), 0

    @property
    def is_done(self):
        """Whether no more passes are needed."""
        return not self._running

    def order(self, n_rows):
        """Draw the order in which the next pass gets `n_rows` rows."""
        return np.random.default_rng([self._seed, self._n_passes]).permutation(n_rows)

    def add(self, Z, codes, weight=None):
        """Take steps on a block of rows with the numbers of their classes."""
        Z, y = Z.astype(np.float64, copy=False), self._classes[codes]
        weight = np.ones(len(codes)) if weight is None else weight
        self._n_rows += len(codes)
        for k in self._running if weight.any() else ():
            each = self._fitted[k]
            scores = Z @ each.coef_.T + each.intercept_ if hasattr(each, "coef_") else 0.0
            self._sums[k] += weight @ _LOSSES[each.loss](self._signs[codes] * scores).mean(axis=1)
            each.partial_fit(Z, y, self._classes, weight)

    def step(self):
        """End a pass: all rows have been used."""
        losses, tol = self._sums / self._n_rows, self._estimator.tol
        improves = np.full(len(losses), True) if tol is None else losses <= self._best - tol
        self._waited = np.where(improves, 0, self._waited + 1)
        self._best = np.minimum(losses, self._best)
        self._sums, self._n_rows, self._n_passes = np.zeros(len(losses)), 0, self._n_passes + 1
        is_last = self._n_passes >= self._estimator.max_iter
        for k in self._running:
            self._fitted[k].n_iter_ = self._n_passes
            self._fitted[k].converged_ = tol is None or not is_last
        self._running = [k for k in self._running if self._waited[k] < PATIENCE and not is_last]

    def estimators(self):
        """Return the fitted classifiers, in the order of the values."""
        return self._fitted
