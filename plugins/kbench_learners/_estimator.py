"""Bases of the learners: checks of inputs, binary problems of classes, paths, linear functions."""

import warnings
from collections.abc import Iterator
from itertools import combinations
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from kbench.arrays import as_type, like, namespace, to_numpy
from kbench.estimators import is_validated
from kbench.parameters import check_parameters


def check_classes(estimator: BaseEstimator, classes: np.ndarray) -> None:
    """Raise a ValueError for targets of one class."""
    if len(classes) < 2:
        raise ValueError(
            f"y has 1 class, {classes[0]!r}; {type(estimator).__name__} needs samples "
            "of at least 2 classes"
        )


def class_numbers(estimator: BaseEstimator, y) -> np.ndarray:
    """Set `classes_` of an estimator, and return labels as their numbers."""
    if np.asarray(y).dtype.kind not in "biuU":  # the check takes longer than a small fit
        check_classification_targets(y)
    estimator.classes_, codes = np.unique(y, return_inverse=True)
    check_classes(estimator, estimator.classes_)
    return codes.reshape(-1)


def clones_along(estimator: BaseEstimator, parameter: str, values) -> list:
    """Return clones with each of some values of a parameter; a ValueError says which is wrong."""
    clones = [clone(estimator).set_params(**{parameter: value}) for value in values]
    for each in clones:
        check_parameters(each)
    return clones


class Estimator(BaseEstimator):
    """An estimator on rows of float64, which says whether its solution has converged."""

    _takes_sparse = True
    _order: str | None = None  # memory layout that `_fit` needs

    def fit(self, X, y):
        """Fit the estimator.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs, or a square Gram matrix with a precomputed kernel. Only a learner
            whose tags say so takes sparse matrices.
        y : array-like, shape (n_samples,)
            Labels of at least two classes, or targets.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter is out of range or `y` has one class only.
        """
        self._fit_checked(X, y)
        self._warn_unless_converged()
        return self

    def _validated(self, *data, **options):
        if options == {"reset": False} and (is_validated(self, *data) or self._is_on_device(*data)):
            return data[0]
        sparse = "csr" if self._takes_sparse else False
        return validate_data(self, *data, accept_sparse=sparse, dtype=np.float64, **options)

    def _inputs(self, X):
        """Validate the rows that a fitted estimator predicts."""
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def _is_on_device(self, X) -> bool:
        """Return whether rows are on a device, where kbench has checked them; check their size."""
        if namespace(X) is np:
            return False
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return True

    def _fit_checked(self, X, y, **weights) -> None:
        """Validate parameters and a training set, and fit; `_fit` gets the weights."""
        check_parameters(self)
        X, y = self._training_data(X, y)
        self._fit(X, y, **weights)

    def _complaints(self) -> list[str]:
        """Return messages about solutions that have not converged."""
        return []

    def _warn_unless_converged(self) -> None:
        if not getattr(self, "converged_", True):
            for message in self._complaints():
                warnings.warn(message, ConvergenceWarning, stacklevel=3)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags


class Regressor(RegressorMixin, Estimator):
    """A regressor of one target.

    A subclass fits in `_fit`, and returns predictions of validated inputs in `_predicted`.
    """

    def predict(self, X):
        """Predict the targets.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs, or similarities to the training rows with a precomputed kernel.

        Returns
        -------
        ndarray, shape (n_samples,)
        """
        return self._predicted(self._inputs(X))

    def _training_data(self, X, y):
        """Validate a training set."""
        X, y = self._validated(X, y, order=self._order, y_numeric=True)
        return X, np.asarray(y, dtype=np.float64)


class Weighted:
    """`fit` of an estimator that takes weights of the rows; `_fit` gets them, or None."""

    def fit(self, X, y, sample_weight=None):
        """Fit the estimator.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs. Only a learner whose tags say so takes sparse matrices.
        y : array-like, shape (n_samples,)
            Labels of at least two classes, or targets.
        sample_weight : array-like, shape (n_samples,), optional
            Nonnegative weights of the rows' losses; all 1 by default.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or a weight is out of range or `y` has one class only.
        """
        self._fit_checked(X, y, sample_weight=sample_weight)
        self._warn_unless_converged()
        return self


class Predictive:
    """A regressor with normal predictive distributions: means, and optional standard deviations."""

    def predict(self, X, return_std=False):
        """Predict the targets.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs.
        return_std : bool, default False
            Return standard deviations too.

        Returns
        -------
        mean : ndarray, shape (n_samples,)
        sd : ndarray, shape (n_samples,)
            Of a new observation, noise included; only with `return_std`.
        """
        X = self._inputs(X)
        return self._distribution(X) if return_std else self._predicted(X)

    def _distribution(self, X) -> tuple[np.ndarray, np.ndarray]:
        return self._predicted(X), self._deviations(X)


class ProbabilityClassifier(ClassifierMixin, Estimator):
    """A classifier that predicts by its `predict_proba`, divided by the costs of the classes."""

    _costs: ClassVar[np.ndarray | float] = 1.0

    def predict(self, X):
        """Predict the most probable class, or that of the smallest expected cost.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples,)
            Labels.
        """
        codes = (self.predict_proba(X) / self._costs).argmax(axis=1)  # raises NotFittedError
        return self.classes_[codes]


def row_weights(sample_weight, n_samples: int) -> np.ndarray | None:
    """Return weights of the rows in float64; None without weights."""
    if sample_weight is None:
        return None
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weight.shape}; expected ({n_samples},)")
    if weight.min() < 0:
        raise ValueError(f"sample_weight must be nonnegative, got {weight.min():g}")
    if not weight.any():
        raise ValueError("all values of sample_weight are zero")
    return weight


def class_shares(codes, weight=None) -> np.ndarray:
    """Return the shares of the classes 0..n_classes-1 in the weights of the rows."""
    totals = np.bincount(codes, weights=weight)
    return totals / totals.sum()


SCHEMES = ("ovr", "ovo")


class MarginClassifier(ClassifierMixin, Estimator):
    """A classifier by the margins of binary problems.

    A subclass fits in `_fit`, and returns margins in `_margins`, in the order of
    `binary_problems`. Without a parameter `multiclass`, each class is against the rest.
    """

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
        return self._margins(self._inputs(X))


def coding_matrix(n_classes: int, scheme: str) -> np.ndarray:
    """Return the sign of each class in each binary problem; 0 is a class that is not in it.

    Two classes are one problem, whatever the scheme, and the second is positive. "ovr" is each
    class against the rest, "ovo" each pair of classes (i, j) with i < j, of which i is positive.
    """
    if n_classes == 2:
        return np.array([[-1.0, 1.0]])
    if scheme == "ovr":
        return 2.0 * np.eye(n_classes) - 1.0
    pairs = list(combinations(range(n_classes), 2))
    coding = np.zeros((len(pairs), n_classes))
    for problem, (i, j) in enumerate(pairs):
        coding[problem, [i, j]] = 1.0, -1.0
    return coding


def binary_problems(
    codes: np.ndarray, n_classes: int, scheme: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of each binary problem, and signs 1.0 and -1.0 of its two sides.

    `codes` are labels 0..n_classes-1; the problems are those of `coding_matrix`.
    """
    for coding in coding_matrix(n_classes, scheme):
        signs = coding[codes]
        rows = np.flatnonzero(signs)
        yield rows, signs[rows]


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


class PathMixin:
    """An estimator that is fitted for several values of one parameter together.

    A subclass names the parameter in `_path` and fits all of a list of estimators, which
    differ in it only, in `_fit_together`.
    """

    _path: ClassVar[str]
    _row_share = 1.0

    def scale_sizes(self, row_share: float) -> None:
        """Compute fits of a share of the rows as those of all rows: `row_share` of them."""
        self._row_share = row_share

    def _fit_path(self, X, y, values, **weights):
        """Return fitted clones, in the order of `values`; `_fit_together` gets the weights."""
        fitted = clones_along(self, self._path, values)
        X, target = self._training_data(X, y)
        names = ("classes_", "n_features_in_", "feature_names_in_", "_row_share")
        shared = {name: getattr(self, name) for name in names if hasattr(self, name)}
        for estimator in fitted:
            vars(estimator).update(shared)
        self._fit_together(X, target, fitted, **weights)
        for estimator in fitted:
            estimator._warn_unless_converged()
        return fitted

    def _fit(self, X, target, **weights) -> None:
        self._fit_together(X, target, [self], **weights)


class WeightedPathMixin(PathMixin, Weighted):
    """An estimator with a path and with weights of the rows."""

    def fit_path(self, X, y, values, sample_weight=None):
        """Fit for several values of the path's parameter, faster than one by one.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs.
        y : array-like, shape (n_samples,)
            Labels of at least two classes, or targets.
        values : sequence of float
            Values of the parameter (`C` or `alpha`), in any order.
        sample_weight : array-like, shape (n_samples,), optional
            Nonnegative weights of the rows' losses; all 1 by default.

        Returns
        -------
        list of estimators
            Fitted clones, in the order of `values`.
        """
        return self._fit_path(X, y, values, sample_weight=sample_weight)


class PathClassifier(PathMixin, MarginClassifier):
    """A classifier with a path, without weights of the rows."""

    def fit_path(self, X, y, values):
        """Fit for several values of the path's parameter, faster than one by one.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs, or a square Gram matrix with a precomputed kernel.
        y : array-like, shape (n_samples,)
            Labels of at least two classes.
        values : sequence of float
            Values of `C`, in any order.

        Returns
        -------
        list of classifiers
            Fitted clones, in the order of `values`.
        """
        return self._fit_path(X, y, values)


def linear_values(X, W: np.ndarray) -> np.ndarray:
    """Return products with rows in float64, which may be on a device, as an array of the host."""
    if namespace(X) is np:
        return np.asarray(X @ W)
    X = as_type(X, np.float64)
    return to_numpy(X @ like(W, X))


class LinearClassifier(MarginClassifier):
    """A classifier with a row of `coef_` and a value of `intercept_` for each problem.

    It predicts rows on a device, too.
    """

    def _margins(self, X) -> np.ndarray:
        return linear_values(X, self.coef_.T) + self.intercept_

    def pair_decisions(self, X):
        """Return signed decisions of all pairs of classes, "ovo" only.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples, n_classes, n_classes)
            Entry (k, l) is positive for class k against class l.
        """
        margins = self._checked_margins(X)
        k = len(self.classes_)
        out = np.zeros((len(margins), k, k))
        for number, (first, second) in enumerate(combinations(range(k), 2)):
            out[:, first, second] = margins[:, number]
            out[:, second, first] = -margins[:, number]
        return out


class LinearRegressor(Weighted, Regressor):
    """A regressor with coefficients `coef_` and a number `intercept_`."""

    def _predicted(self, X) -> np.ndarray:
        return linear_values(X, self.coef_) + self.intercept_
