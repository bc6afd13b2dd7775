"""The kernel perceptron, which keeps only its mistakes."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.kernels import Precomputed, resolve_kernel
from kbench_learners._reduction import binary_problems, chosen_classes, class_scores, encoded

OUTPUTS = ("last", "averaged", "voted", "survivor")
_BLOCK = 256
_CHUNK_ENTRIES = 2**20


def perceptron_epochs(X, signs, kernel, n_epochs, order_of):
    """Run the perceptron in the kernel's space.

    Predictions of a block of rows are computed together and mended after each
    mistake in it, with the same result as one row after the other. The Gram
    matrix is never formed: a block against the mistakes so far, and a block
    with itself.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_samples, n_features)
        Rows.
    signs : ndarray, shape (n_samples,)
        1.0 or -1.0. A margin of 0 predicts 1.
    kernel : Kernel
        With all its numbers set.
    n_epochs : int
        Passes over the rows; fewer where one makes no mistake.
    order_of : callable
        ``order_of(epoch)`` is the order of the rows in that pass.

    Returns
    -------
    mistakes : ndarray of int, shape (n_mistakes,)
        Row of each mistake, in order; a row can be there more than once.
    survived : ndarray of int, shape (n_mistakes + 1,)
        Predictions made before the first mistake, between two, and after the
        last; the prediction that is a mistake counts for the one before.
    n_epochs : int
        Passes that were run.
    """
    coefficients = np.zeros(X.shape[0])
    mistakes: list[int] = []
    survived = [0]
    for epoch in range(n_epochs):
        before = len(mistakes)
        order = order_of(epoch)
        for begin in range(0, len(order), _BLOCK):
            rows = order[begin : begin + _BLOCK]
            support = np.flatnonzero(coefficients)
            margins = np.zeros(len(rows))
            for start in range(0, len(support), _CHUNK_ENTRIES // _BLOCK):
                part = support[start : start + _CHUNK_ENTRIES // _BLOCK]
                margins += kernel(X[rows], kernel.take(X, part)) @ coefficients[part]
            own = None
            position = 0
            while True:
                values, truth = margins[position:], signs[rows[position:]]
                wrong = (values >= 0) != (truth > 0)
                if not wrong.any():
                    survived[-1] += len(rows) - position
                    break
                first = position + int(wrong.argmax())
                if own is None:
                    own = kernel(X[rows], kernel.take(X, rows))
                row = rows[first]
                survived[-1] += first + 1 - position
                survived.append(0)
                mistakes.append(int(row))
                coefficients[row] += signs[row]
                margins += signs[row] * own[:, first]
                position = first + 1
        if len(mistakes) == before:
            break
    return np.array(mistakes, dtype=np.intp), np.array(survived), epoch + 1


def weights_of_mistakes(survived: np.ndarray, output: str) -> np.ndarray:
    """Weigh each mistake's term in the final hypothesis.

    Parameters
    ----------
    survived : ndarray of int, shape (n_mistakes + 1,)
        See `perceptron_epochs`.
    output : {"last", "averaged", "survivor"}
        The last hypothesis; the mean of all, each counted for as long as it
        survived; or the one that survived longest.

    Returns
    -------
    ndarray, shape (n_mistakes,)
        In [0, 1].
    """
    n_mistakes = len(survived) - 1
    if output == "last":
        return np.ones(n_mistakes)
    if output == "averaged":
        return np.cumsum(survived[:0:-1])[::-1] / survived.sum()
    return (np.arange(n_mistakes) < int(survived.argmax())).astype(float)


class KernelPerceptron(ClassifierMixin, BaseEstimator):
    """Perceptron in the space of a kernel.

    Its hypothesis is a sum of ``s_i k(x_i, x)`` over the mistakes i that it
    made, with signs s_i. On data that a unit vector of that space separates
    with margin gamma, it makes at most ``(R / gamma)^2`` mistakes in any
    number of passes, R the largest ``||phi(x)||``; otherwise, with D the root
    of the sum of squared hinge losses at margin gamma, one pass makes at most
    ``((R + D) / gamma)^2`` [1]_.

    There is no bias: use a kernel with a constant, such as
    ``Polynomial(offset=1)``, or add one.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        Name of a kernel, kernel object, or function ``k(X, Y)``;
        "precomputed" for Gram matrices.
    n_epochs : int, default 10
        Passes over the rows; it stops after one without mistake.
    output : {"averaged", "voted", "last", "survivor"}, default "averaged"
        How the sequence of hypotheses becomes one classifier: their mean
        (Cesa-Bianchi, Conconi and Gentile 2004) or their vote (Freund and
        Schapire 1999), each counted for the predictions that it survived; the
        last; or the one that survived longest.
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
    kernel_ : Kernel
        The kernel, its bandwidth set.
    support_ : ndarray of int, shape (n_support,)
        Rows on which some problem made a mistake.
    support_vectors_ : array or CSR matrix, shape (n_support, n_features_in_)
        These rows (their numbers with a precomputed kernel).
    dual_coef_ : ndarray, shape (n_problems, n_support)
        Coefficients of the final hypotheses; of the last ones for "voted".
    n_mistakes_ : ndarray of int, shape (n_problems,)
        Mistakes during training.
    n_epochs_ : int
        Passes that were run, the most of any problem.

    References
    ----------
    .. [1] Y. Freund and R. E. Schapire, "Large margin classification using the
       perceptron algorithm", Machine Learning 37 (1999), Theorems 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> KernelPerceptron("gaussian", random_state=0).fit(X, [0, 1, 1, 0]).predict(X)
    array([0, 1, 1, 0])
    """

    def __init__(
        self,
        kernel="gaussian",
        n_epochs=10,
        output="averaged",
        multiclass="ovr",
        shuffle=True,
        random_state=None,
    ):
        self.kernel = kernel
        self.n_epochs = n_epochs
        self.output = output
        self.multiclass = multiclass
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X, y):
        """Learn from labelled rows.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Inputs, or a square Gram matrix with a precomputed kernel.
        y : array, shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self
            The fitted classifier.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        if not isinstance(self.n_epochs, Integral) or self.n_epochs < 1:
            raise ValueError(f"n_epochs={self.n_epochs!r}: it must be an integer of at least 1")
        if self.output not in OUTPUTS:
            raise ValueError(
                f"output={self.output!r}: it must be one of {', '.join(map(repr, OUTPUTS))}"
            )
        self.classes_, codes = encoded(y, type(self).__name__)
        self.kernel_ = resolve_kernel(self.kernel).resolve(X)
        rng = check_random_state(self.random_state)
        problems = []
        for rows, signs in binary_problems(codes, len(self.classes_), self.multiclass):
            # one kernel object for all problems: rows are chosen by the order
            everywhere = np.zeros(X.shape[0])
            everywhere[rows] = signs

            def order_of(_, rows=rows):
                return rng.permutation(rows) if self.shuffle else rows

            mistakes, survived, n_epochs = perceptron_epochs(
                X, everywhere, self.kernel_, self.n_epochs, order_of
            )
            problems.append((mistakes, everywhere[mistakes], survived, n_epochs))
        self.support_ = np.unique(np.concatenate([mistakes for mistakes, *_ in problems]))
        self.support_vectors_ = self.kernel_.take(X, self.support_)
        output = "last" if self.output == "voted" else self.output
        self.dual_coef_ = np.zeros((len(problems), len(self.support_)))
        self._votes = []
        for coefficients, (mistakes, signs, survived, _) in zip(
            self.dual_coef_, problems, strict=True
        ):
            places = np.searchsorted(self.support_, mistakes)
            np.add.at(coefficients, places, signs * weights_of_mistakes(survived, output))
            if self.output == "voted":
                self._votes.append((places, signs, survived / survived.sum()))
        self.n_mistakes_ = np.array([len(mistakes) for mistakes, *_ in problems])
        self.n_epochs_ = max(n_epochs for *_, n_epochs in problems)
        return self

    def decision_function(self, X):
        """Score rows; positive for the second of two classes.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Inputs, or similarities to the training rows.

        Returns
        -------
        ndarray, shape (n_samples,), or (n_samples, n_classes) for more than two
            Scores; for "voted" the weighted share of votes, from -1 to 1.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        margins = np.zeros((X.shape[0], len(self.dual_coef_)))
        width = max(1, len(self.support_), *(len(votes[0]) for votes in self._votes))
        step = max(1, _CHUNK_ENTRIES // width)
        for start in range(0, X.shape[0] if len(self.support_) else 0, step):
            chunk = slice(start, start + step)
            K = self.kernel_(X[chunk], self.support_vectors_)
            if self.output == "voted":
                for problem, votes in enumerate(self._votes):
                    margins[chunk, problem] = self._voted(K, *votes)
            else:
                margins[chunk] = K @ self.dual_coef_.T
        return class_scores(margins, len(self.classes_), self.multiclass)

    @staticmethod
    def _voted(K, places, signs, shares):
        hypotheses = np.cumsum(K[:, places] * signs, axis=1)
        # the zero hypothesis in the beginning votes for the positive class
        return shares[0] + np.where(hypotheses >= 0, 1.0, -1.0) @ shares[1:]

    def predict(self, X):
        """Predict labels.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Inputs, or similarities to the training rows.

        Returns
        -------
        ndarray, shape (n_samples,)
            Labels.
        """
        return chosen_classes(self.decision_function(X), self.classes_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        precomputed = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise = precomputed
        return tags
