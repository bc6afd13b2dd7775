"""Balanced Winnow: multiplicative updates for linear separators."""

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state

from kbench.parameters import choice, integer, number
from kbench_learners._estimator import SCHEMES, LinearClassifier, binary_problems

_LARGEST_EXPONENT = 300.0  # caps a weight at 1e130, far from overflow
_BLOCK = 4096
_WORTH_COMPILING = 5_000_000  # entries seen in all passes; loading numba takes a second


def winnow_pass(X, signs, order, learning_rate, largest_exponent, a, w, total, survived):
    """Run Balanced Winnow once over the rows, those between two mistakes together.

    The weights `w` are ``sinh(learning_rate a)`` with bounded exponents, `a` is the signed sum of
    the mistakes, and `total` the sum of the weights over the predictions before the last mistake;
    all three are updated. A margin of 0 predicts 1. Returns the mistakes of this pass, and the
    predictions since the last one, of which `survived` came before the pass.
    """
    # a margin below this is a mistake: one of 0 only where the sign is negative
    thresholds = np.where(signs > 0, 0.0, np.nextafter(0.0, 1.0))
    weighted = np.empty_like(w)
    n_mistakes = 0
    gap = 32.0  # rows between two mistakes, a running mean
    for begin in range(0, len(order), _BLOCK):
        rows = order[begin : begin + _BLOCK]
        block = X[rows] * signs[rows, None]
        below = thresholds[rows]
        start = 0
        while start < len(rows):
            stop = start + max(16, int(2 * gap))
            wrong = block[start:stop] @ w < below[start:stop]
            first = int(wrong.argmax())
            if not wrong[first]:
                survived += len(wrong)
                gap += len(wrong) / 10
                start = stop
                continue
            survived += first + 1
            gap += (first + 1 - gap) / 10
            np.multiply(w, survived, out=weighted)
            total += weighted
            survived = 0
            start += first + 1
            n_mistakes += 1
            a += block[start - 1]
            np.multiply(a, learning_rate, out=w)
            np.clip(w, -largest_exponent, largest_exponent, out=w)
            np.sinh(w, out=w)
    return n_mistakes, survived


def _pass_for(n_entries: int):
    """Choose the compiled pass where numba is installed and loading it pays."""
    if n_entries >= _WORTH_COMPILING:
        try:
            from kbench_learners._winnow_compiled import winnow_pass as compiled
        except (ImportError, RuntimeError):  # no numba, or no folder it may cache in
            return winnow_pass
        return compiled
    return winnow_pass


def winnow_epochs(X, signs, learning_rate: float, n_epochs: int, order_of):
    """Run Balanced Winnow over the rows until a pass makes no mistake.

    The weights are ``u = exp(learning_rate a)`` and
    ``v = exp(-learning_rate a)``, where `a` is the sum of ``signs[i] X[i]``
    over the mistakes, so that ``u - v = 2 sinh(learning_rate a)``: only `a`
    is kept. ``order_of(epoch)`` is the order of the rows in a pass. Returns ``(u - v) / 2`` in
    the end, and averaged over all predictions, and the mistakes of each pass that was run.
    """
    X = np.ascontiguousarray(X)
    one_pass = _pass_for(X.size * n_epochs)
    a, w, total = (np.zeros(X.shape[1]) for _ in range(3))
    mistakes, survived = [], 0
    for epoch in range(n_epochs):
        order = np.asarray(order_of(epoch), dtype=np.int64)
        n_mistakes, survived = one_pass(
            X, signs, order, learning_rate, _LARGEST_EXPONENT, a, w, total, survived
        )
        mistakes.append(n_mistakes)
        if not n_mistakes:
            break
    total += survived * w
    return w, total / (len(X) * len(mistakes)), mistakes


@dataclass(eq=False, repr=False)
class BalancedWinnow(LinearClassifier):
    """Balanced Winnow: two weight vectors with multiplicative updates.

    Predicts the sign of ``(u - v) . x``. On a mistake with sign s,
    ``u_j *= exp(learning_rate s x_j)`` and ``v_j *= exp(-learning_rate s x_j)``
    [1]_ [2]_. Mistakes grow with the logarithm of the number of features where
    few of them matter. It is not rotation invariant: the basis of the features
    counts.

    Parameters
    ----------
    learning_rate : float, default 0.1
        Learning rate, positive.
    n_epochs : int, default 20
        Passes over the training rows; training stops after one without mistake.
    averaged : bool, default True
        Predict with the average of the weights over all steps, an
        online-to-batch conversion, instead of the last ones.
    norm : {"l2", "l1", "max"} or None, default "l2"
        Norm to which rows are scaled, in ``fit`` and ``predict``; None to
        leave them.
    fit_intercept : bool, default True
        Append a constant feature 1 to the scaled rows.
    multiclass : {"ovr", "ovo"}, default "ovr"
        One classifier for each class against the rest, or for each pair of
        classes, which vote.
    shuffle : bool, default True
        Go through the rows in a new random order in each pass.
    random_state : int, RandomState or None, default None
        Determines the orders.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    coef_ : ndarray, shape (n_problems, n_features_in_)
        ``(u - v) / 2`` for the scaled rows. One problem for two classes; of a
        pair of classes the first is positive.
    intercept_ : ndarray, shape (n_problems,)
        Coefficient of the constant feature; 0 without.
    n_mistakes_ : ndarray of int, shape (n_problems,)
        Mistakes during training.
    n_epochs_ : int
        Passes that were run, the most of any problem.

    References
    ----------
    .. [1] N. Littlestone, "Learning quickly when irrelevant attributes
       abound: A new linear-threshold algorithm", Machine Learning 2 (1988).
    .. [2] Z. Nevo and R. El-Yaniv, "On online learning of decision lists",
       JMLR 3 (2003).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.2], [0.9, 0.1], [0.1, 1.0], [0.2, 0.8]])
    >>> BalancedWinnow(random_state=0).fit(X, ["a", "a", "b", "b"]).predict([[1.0, 0.0]])
    array(['a'], dtype='<U1')
    """

    _takes_sparse = False

    learning_rate: float = number(0.1, above=0)
    n_epochs: int = integer(20, least=1)
    averaged: bool = True
    norm: str | None = choice("l2", ("l2", "l1", "max"), otherwise=(None,))
    fit_intercept: bool = True
    multiclass: str = choice("ovr", SCHEMES)
    shuffle: bool = True
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X, codes) -> None:
        rng = check_random_state(self.random_state)
        X = self._scaled(X)
        if self.fit_intercept:
            X = np.hstack([X, np.ones((len(X), 1))])
        fits = []
        for rows, signs in binary_problems(codes, len(self.classes_), self.multiclass):
            n = len(rows)
            fits.append(
                winnow_epochs(
                    X if n == len(X) else X[rows],
                    signs,
                    float(self.learning_rate),
                    self.n_epochs,
                    lambda _, n=n: rng.permutation(n) if self.shuffle else np.arange(n),
                )
            )
        weights = np.array([average if self.averaged else last for last, average, _ in fits])
        self.coef_ = weights[:, : self.n_features_in_]
        self.intercept_ = weights[:, -1] if self.fit_intercept else np.zeros(len(weights))
        self.n_mistakes_ = np.array([sum(mistakes) for *_, mistakes in fits])
        self.n_epochs_ = max(len(mistakes) for *_, mistakes in fits)

    def _scaled(self, X):
        return X if self.norm is None else normalize(X, norm=self.norm)

    def _margins(self, X) -> np.ndarray:
        return super()._margins(self._scaled(X))
