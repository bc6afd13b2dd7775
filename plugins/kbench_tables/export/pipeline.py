"""Steps of an exported pipeline after its encoder.

All steps are scikit-learn estimators; `kbench_tables.export` fits them. This module is bundled with
an exported model, and so are its imports: it needs numpy, scipy and scikit-learn only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if

from kbench.evaluation.checked_predictions import has_distribution
from kbench.evaluation.preprocessing import Preprocessing
from kbench.evaluation.targets import LogTargets, Scale


class PreprocessingStep(Preprocessing, BaseEstimator):  # type: ignore[misc]
    """The protocol's preprocessing as a step of a pipeline."""

    @classmethod
    def from_fitted(cls, fitted: Preprocessing) -> PreprocessingStep:
        """Return a fitted preprocessing as such a step."""
        step = cls()
        step.__dict__.update(vars(fitted))
        return step


class NamedClasses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A learner of labels 0..k-1 that predicts their names.

    Parameters
    ----------
    estimator : classifier
        The learner.
    names : ndarray, shape (n_classes,)
        The names of the labels 0..k-1.

    Attributes
    ----------
    calibration_ : CalibratedClassifierCV or None
        Maps decision values to probabilities, if the learner has none.
    threshold_ : float or None
        The learner's probability of the second of two classes, or its decision value, from which
        this class is predicted.
    """

    calibration_: Any = None
    threshold_: float | None = None

    def __init__(self, estimator: Any = None, names: Any = ()) -> None:
        self.estimator = estimator
        self.names = names

    def fit(self, X: Any, y: Any) -> NamedClasses:
        """Fit a copy of the learner; `y` has labels among `names`."""
        place = {name: code for code, name in enumerate(np.asarray(self.names).tolist())}
        codes = np.array([place[name] for name in np.asarray(y).tolist()])
        self.estimator_ = clone(self.estimator).fit(X, codes)
        return self

    @property
    def classes_(self) -> np.ndarray:
        """Names of the classes, in the order of the columns of `predict_proba`."""
        return self._to_names(self.estimator_.classes_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the name of a class for each row."""
        if self.threshold_ is None:
            return self._to_names(self.estimator_.predict(X))
        has_shares = hasattr(self.estimator_, "predict_proba")
        scores = getattr(self.estimator_, "predict_proba" if has_shares else "decision_function")(X)
        # of two decision values, the larger one decides
        margins = scores if has_shares else np.diff(scores.reshape(len(scores), -1), prepend=0.0)
        return np.asarray(self.classes_[(margins[:, -1] >= self.threshold_).astype(int)])

    def _to_names(self, codes: Any) -> np.ndarray:
        return np.asarray(np.asarray(self.names)[np.asarray(codes, dtype=int)])

    @available_if(lambda self: self.calibration_ or hasattr(self.estimator_, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities, in the order of `classes_`."""
        if self.calibration_ is None:
            return np.asarray(self.estimator_.predict_proba(X))
        decision = np.asarray(self.estimator_.decision_function(X))
        return np.asarray(self.calibration_.predict_proba(decision.reshape(len(decision), -1)))

    @available_if(lambda self: hasattr(self.estimator_, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the learner's scores."""
        return np.asarray(self.estimator_.decision_function(X))


class ScaledTarget(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A learner of standardised targets, or logarithms, that predicts in the target's units.

    scikit-learn's `TransformedTargetRegressor` maps back what ``predict`` returns, but not
    the standard deviations of ``predict(X, return_std=True)``.

    Parameters
    ----------
    estimator : regressor
        The learner.
    is_log : bool
        Whether it learns logarithms, and the predictions are means with Duan's smearing.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> X, y = np.arange(20.0)[:, None], 1000 + 5 * np.arange(20.0)
    >>> model = ScaledTarget(BayesianRidge()).fit(X, y)
    >>> mean, sd = model.predict([[10.0]], return_std=True)
    >>> mean.round(3)
    array([1050.])
    """

    log_: LogTargets | None = None

    def __init__(self, estimator: Any = None, is_log: bool = False) -> None:
        self.estimator, self.is_log = estimator, is_log

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ScaledTarget:
        """Fit a copy of the learner on standardised targets."""
        y = np.asarray(y, dtype=np.float64)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        log = LogTargets.fit(y) if self.is_log else None
        y = y if log is None else log.log(y)
        scale = Scale.fit(y, "regression", weight)
        weights, y = {} if weight is None else {"sample_weight": weight}, scale.standardise(y)
        fitted = clone(self.estimator).fit(X, y, **weights)
        if log is not None:
            scale = replace(scale, log=log).smeared(y - fitted.predict(X), weight)
        return self.with_fitted(fitted, scale)

    def with_fitted(self, estimator: Any, scale: Scale) -> ScaledTarget:
        """Take a learner that is fitted on targets of a scale."""
        self.estimator_ = estimator
        self.mean_, self.sd_ = scale.mean, scale.sd
        if scale.log is not None:
            self.log_ = scale.log
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return a number for each row, and with `return_std` their standard deviations.

        The standard deviations are those of a normal predictive distribution and include the noise
        of an observation. ValueError is raised if the learner has none.
        """
        scale = Scale(self.mean_, self.sd_, self.log_)
        if not return_std:
            return scale.restore(self.estimator_.predict(X))
        if not self.has_distribution:
            raise ValueError(
                f"{type(self.estimator_).__name__} predicts no standard deviations: call predict "
                "without return_std, or export a learner with a predictive distribution"
            )
        mean, sd = self.estimator_.predict(X, return_std=True)
        return scale.restore(mean), self.sd_ * np.asarray(sd)

    @property
    def has_distribution(self) -> bool:
        """Whether ``predict(X, return_std=True)`` works."""
        return self.log_ is None and has_distribution(self.estimator_)
