"""Estimators that are fitted for several values of one parameter together."""

from __future__ import annotations

from typing import ClassVar

from sklearn.base import clone

from kbench_learners._reduction import MarginClassifier


class PathMixin:
    """An estimator that is fitted for several values of one parameter together.

    A subclass names the parameter in `_path` and fits all of a list of estimators, which
    differ in it only, in `_fit_together`.
    """

    _path: ClassVar[str]

    def _fit_path(self, X, y, values, **weights):
        """Return fitted clones, in the order of `values`; `_fit_together` gets the weights."""
        fitted = [clone(self).set_params(**{self._path: value}) for value in values]
        for estimator in fitted:
            estimator._check_parameters()
        X, target = self._training_data(X, y)
        names = ("classes_", "n_features_in_", "feature_names_in_")
        shared = {name: getattr(self, name) for name in names if hasattr(self, name)}
        for estimator in fitted:
            vars(estimator).update(shared)
        self._fit_together(X, target, fitted, **weights)
        for estimator in fitted:
            estimator._warn_unless_converged()
        return fitted


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

    def _fit(self, X, codes) -> None:
        self._fit_together(X, codes, [self])
