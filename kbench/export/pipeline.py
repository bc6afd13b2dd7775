"""Steps of an exported pipeline: its file names this module, and loading it imports it.

A pipeline takes the user's table, and predicts the user's labels. All steps are
scikit-learn estimators; `kbench.export` fits them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, clone
from sklearn.utils.metaestimators import available_if

from kbench.evaluation.outputs import has_distribution
from kbench.evaluation.preprocessing import Preprocessing
from kbench.evaluation.targets import Scale

_TRUTHS = {
    **dict.fromkeys(("0", "0.0", "False", "false", "FALSE"), "False"),
    **dict.fromkeys(("1", "1.0", "True", "true", "TRUE"), "True"),
}
"""Spellings of truth values."""

MISSING = ("", "?")
"""Texts that mean a missing value, beside those of pandas."""


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode the columns of a table as numbers, as its dataset was.

    Numbers pass; a nominal column becomes one indicator column per category, in
    order, all of them NaN where the value is missing and 0 where the value is
    not among the categories.

    Parameters
    ----------
    columns : sequence of (str, sequence of str or None)
        Name and categories of each column; None for a column of numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> encoder = TableEncoder([("age", None), ("city", ["Oslo", "Rome"])])
    >>> encoder.fit_transform(pd.DataFrame({"city": ["Rome", None], "age": [40, 31.5]}))
    array([[40. ,  0. ,  1. ],
           [31.5,  nan,  nan]])
    """

    def __init__(self, columns: Sequence[tuple[str, Sequence[str] | None]] = ()) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Do nothing: the categories are parameters."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> np.ndarray:
        """Return the encoded table, shape (n_samples, n_features).

        X is a data frame with the columns, in any order; others are ignored.
        Where all columns are numbers, it may be an array of shape (n_samples,
        n_columns). A `ValueError` says which columns are missing, or hold text
        where numbers belong.
        """
        if not hasattr(X, "columns"):
            return self._of_array(X)
        missing = [name for name, _ in self.columns if name not in X.columns]
        if missing:
            raise ValueError(f"the table has no column {', '.join(map(repr, missing[:8]))}")
        parts = [
            _numbers(X[name], name) if categories is None else _indicators(X[name], categories)
            for name, categories in self.columns
        ]
        encoded: np.ndarray = np.hstack(parts)
        return encoded

    def _of_array(self, X: Any) -> np.ndarray:
        names = [name for name, _ in self.columns]
        if any(categories is not None for _, categories in self.columns):
            raise ValueError(f"X must be a data frame with the columns {', '.join(names[:8])}")
        array: np.ndarray = np.asarray(X, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != len(names):
            raise ValueError(f"X must have shape (n_samples, {len(names)}), got {array.shape}")
        return array


def _numbers(column: Any, name: str) -> np.ndarray:
    import pandas

    try:
        values = pandas.to_numeric(column.replace(list(MISSING), np.nan))
    except (ValueError, TypeError) as error:
        raise ValueError(f"column {name!r} must be numbers: {error}") from None
    return values.to_numpy(dtype=np.float64, na_value=np.nan)[:, None]  # type: ignore[no-any-return]


def _indicators(column: Any, categories: Sequence[str]) -> np.ndarray:
    import pandas

    codes, values = pandas.factorize(column.astype(object))
    place = {category: j for j, category in enumerate(categories)}
    numbers = _as_numbers(categories)
    # one more for -1, which pandas gives to missing values
    width = len(categories)
    rows = np.full((len(values) + 1, width), np.nan)
    for i, value in enumerate(values):
        text = str(value).strip()
        if text in MISSING:
            continue
        j = place.get(text)
        if j is None and not isinstance(value, str):
            j = numbers.get(float(value)) if isinstance(value, int | float | np.number) else None
        if j is None and text in _TRUTHS:
            # 1 in one table is True in another
            j = place.get(_TRUTHS[text], numbers.get(float(_TRUTHS[text] == "True")))
        rows[i] = 0.0
        if j is not None:
            rows[i, j] = 1.0
    return rows[codes]


def _as_numbers(categories: Sequence[str]) -> Mapping[float, int]:
    """Return the places of categories that are numbers: 1 in one table is 1.0 in another."""
    places: dict[float, int] = {}
    for j, category in enumerate(categories):
        with contextlib.suppress(ValueError):
            places.setdefault(float(category), j)
    return places


class Preprocessor(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The protocol's preprocessing: missing values and scaling.

    Parameters
    ----------
    step : {"minmax", "standard", "unit_ball", "none"}
        The protocol's step.
    requires : {None, "nonnegative", "unit_ball"}
        What the feature map needs.
    impute : sequence of {"numeric", "nominal"}, optional
        Kind of each column, where missing values are imputed.
    """

    def __init__(
        self,
        step: str = "minmax",
        requires: str | None = None,
        impute: Sequence[str] | None = None,
    ) -> None:
        self.step = step
        self.requires = requires
        self.impute = impute

    def fit(self, X: Any, y: Any = None) -> Preprocessor:
        """Learn ranges and medians."""
        self.preprocessing_ = Preprocessing(self.step, self.requires, self.impute).fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the inputs of the feature map."""
        return self.preprocessing_.transform(X)


def _learner_has(name: str) -> Any:
    return available_if(lambda self: hasattr(self.estimator_, name))


class NamedClasses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A learner of labels 0..k-1 that predicts their names.

    Parameters
    ----------
    estimator : classifier
        The learner.
    names : ndarray, shape (n_classes,)
        The label that each of 0..k-1 stands for.
    """

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
        return self._named(self.estimator_.classes_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the name of a class for each row."""
        return self._named(self.estimator_.predict(X))

    def _named(self, codes: Any) -> np.ndarray:
        named: np.ndarray = np.asarray(self.names)[np.asarray(codes, dtype=int)]
        return named

    @_learner_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the learner's probabilities, in the order of `classes_`."""
        return np.asarray(self.estimator_.predict_proba(X))

    @_learner_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the learner's scores."""
        return np.asarray(self.estimator_.decision_function(X))


class ScaledTarget(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A learner of standardised targets that predicts in the target's units.

    scikit-learn's `TransformedTargetRegressor` maps back what ``predict`` returns, but not
    the standard deviations of ``predict(X, return_std=True)``.

    Parameters
    ----------
    estimator : regressor
        The learner.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> X, y = np.arange(20.0)[:, None], 1000 + 5 * np.arange(20.0)
    >>> model = ScaledTarget(BayesianRidge()).fit(X, y)
    >>> mean, sd = model.predict([[10.0]], return_std=True)
    >>> mean.round(3)
    array([1050.])
    """

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ScaledTarget:
        """Fit a copy of the learner on standardised targets."""
        y = np.asarray(y, dtype=np.float64)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        scale = Scale.of(y, "regression", weight)
        given = {} if weight is None else {"sample_weight": weight}
        fitted = clone(self.estimator).fit(X, scale.standardise(y), **given)
        return self.with_fitted(fitted, scale)

    def with_fitted(self, estimator: Any, scale: Scale) -> ScaledTarget:
        """Take a learner that is fitted on targets of a scale."""
        self.estimator_ = estimator
        self.mean_, self.sd_ = scale.mean, scale.sd
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return a number for each row, and with `return_std` their standard deviations.

        The deviations are those of a normal predictive distribution and include the noise
        of an observation. A `ValueError` says that the learner has none.
        """
        scale = Scale(self.mean_, self.sd_)
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
        return has_distribution(self.estimator_)
