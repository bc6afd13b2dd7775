"""Binary problems of several classes, and classifiers by their margins."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kbench.parameters import check_choice
from kbench_learners._estimator import Estimator, class_numbers

SCHEMES = ("ovr", "ovo")


class MarginClassifier(ClassifierMixin, Estimator):
    """A classifier by the margins of binary problems.

    A subclass checks its parameters in `_check_parameters`, fits in `_fit`, and returns
    margins in `_margins`, in the order of `binary_problems`. Without a parameter
    `multiclass`, each class is against the rest.
    """

    def fit(self, X, y):
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs, or a square Gram matrix with a precomputed kernel. Only a learner
            whose tags say so takes sparse matrices.
        y : array-like, shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self
            The fitted classifier.

        Raises
        ------
        ValueError
            If a parameter is out of range or `y` has one class only.
        """
        self._fit_checked(X, y)
        self._warn_unless_converged()
        return self

    def decision_function(self, X):
        """Score the classes.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs, or similarities to the training rows with a precomputed kernel.

        Returns
        -------
        ndarray, shape (n_samples,), or (n_samples, n_classes) for more than two
            Two classes: positive for ``classes_[1]``. More: one score for each class;
            with "ovo", votes plus a share below 1/2 that breaks ties by the sum of the
            pair decisions.
        """
        return self.scores_of(self._checked_margins(X))

    def scores_of(self, margins):
        """Combine the margins of all problems into scores, as `decision_function` does.

        Parameters
        ----------
        margins : ndarray, shape (n_samples, n_problems)

        Returns
        -------
        ndarray, shape (n_samples,), or (n_samples, n_classes) for more than two
        """
        return class_scores(margins, len(self.classes_), getattr(self, "multiclass", "ovr"))

    def predict(self, X):
        """Predict the class with the highest score.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs, or similarities to the training rows with a precomputed kernel.

        Returns
        -------
        ndarray, shape (n_samples,)
            Labels.
        """
        scores = self.decision_function(X)
        codes = (scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def _training_data(self, X, y):
        """Validate a training set; set `classes_` and return rows and their class numbers."""
        X, y = self._validated(X, y, order=self._order)
        return X, class_numbers(self, y)

    def _checked_margins(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self._margins(self._validated(X, reset=False))


def binary_problems(
    codes: np.ndarray, n_classes: int, scheme: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of each binary problem, and signs 1.0 and -1.0 of its two sides.

    `codes` are labels 0..n_classes-1. Two classes are one problem, whatever the scheme, and
    the second is positive. "ovr" is each class against the rest, "ovo" each pair of classes
    (i, j) with i < j, of which i is positive.
    """
    check_choice(scheme, "multiclass", SCHEMES)
    everything = np.arange(len(codes))
    if n_classes == 2:
        yield everything, np.where(codes == 1, 1.0, -1.0)
    elif scheme == "ovr":
        for k in range(n_classes):
            yield everything, np.where(codes == k, 1.0, -1.0)
    else:
        for i, j in combinations(range(n_classes), 2):
            rows = np.flatnonzero((codes == i) | (codes == j))
            yield rows, np.where(codes[rows] == i, 1.0, -1.0)


def class_scores(margins: np.ndarray, n_classes: int, scheme: str) -> np.ndarray:
    """Combine margins of binary problems, shape (n_samples, n_problems), into class scores.

    Of pairs, votes are counted, and the sum of margins decides ties. The scores of two
    classes are one column.
    """
    if n_classes == 2:
        return margins[:, 0]
    if scheme != "ovo":
        return margins
    votes = np.zeros((len(margins), n_classes))
    sums = np.zeros((len(margins), n_classes))
    for problem, (i, j) in enumerate(combinations(range(n_classes), 2)):
        first = margins[:, problem] >= 0
        votes[:, i] += first
        votes[:, j] += ~first
        sums[:, i] += margins[:, problem]
        sums[:, j] -= margins[:, problem]
    # squeezed into (-1/3, 1/3): the sum never outweighs a vote
    return votes + sums / (3 * (np.abs(sums) + 1))
