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
from kbench.records import TaskType
from kbench.tables.dates import DateColumn, is_dates

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
        Name and categories of each column; None for a column of numbers or dates.
    coded : sequence of str, optional
        Columns whose categories become one column of their numbers.
    dates : sequence of str, optional
        Columns of dates, as `kbench.tables.dates.DateColumn` reads them.

    Examples
    --------
    >>> import pandas as pd
    >>> encoder = TableEncoder([("age", None), ("city", ["Oslo", "Rome"])])
    >>> encoder.fit_transform(pd.DataFrame({"city": ["Rome", None], "age": [40, 31.5]}))
    array([[40. ,  0. ,  1. ],
           [31.5,  nan,  nan]])
    """

    def __init__(
        self,
        columns: Sequence[tuple[str, Sequence[str] | None]] = (),
        coded: Sequence[str] = (),
        dates: Sequence[str] = (),
    ) -> None:
        self.columns = columns
        self.coded = coded
        self.dates = dates

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
        place = {str(name).strip(): name for name in X.columns} | {name: name for name in X.columns}
        missing = [name for name, _ in self.columns if name not in place]
        if missing:
            raise ValueError(f"the table has no column {', '.join(map(repr, missing[:8]))}")
        dates = {date.name: date for date in (DateColumn.parsed(d, "dates") for d in self.dates)}
        parts = []
        for name, categories in self.columns:
            column = X[place[name]]
            if name in dates:
                parts.append(_dates(column, dates[name]))
            elif categories is None:
                parts.append(_numbers(column, name))
            elif name in self.coded:
                parts.append(_codes(column, categories))
            else:
                parts.append(_indicators(column, categories))
        encoded: np.ndarray = np.hstack(parts)
        return encoded

    def _of_array(self, X: Any) -> np.ndarray:
        names = [name for name, _ in self.columns]
        if self.dates or any(categories is not None for _, categories in self.columns):
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


def _dates(column: Any, date: DateColumn) -> np.ndarray:
    values = column
    if not is_dates(column):
        values = column.replace(list(MISSING), np.nan)
    encoded = date.encode(values)
    wrong = np.flatnonzero(np.isnan(encoded[:, 0]) & values.notna().to_numpy())
    if len(wrong):
        raise ValueError(
            f"column {date.name!r} must be dates written as {date.format}: "
            f"{values.iloc[wrong[0]]!r}"
        )
    return encoded


def _indicators(column: Any, categories: Sequence[str]) -> np.ndarray:
    """Return a column of 0 and 1 for each category; NaN where the value is missing."""
    codes = _numbered(column, categories)
    rows = np.asarray(codes[:, None] == np.arange(len(categories)), dtype=np.float64)
    rows[np.isnan(codes)] = np.nan
    return rows


def _codes(column: Any, categories: Sequence[str]) -> np.ndarray:
    """Return the numbers of categories; NaN where the value is missing."""
    return _numbered(column, categories)[:, None]


def _numbered(column: Any, categories: Sequence[str]) -> np.ndarray:
    """Return the numbers of categories, -1 for others, NaN where the value is missing."""
    import pandas

    codes, values = pandas.factorize(column.astype(object))
    place = {category: j for j, category in enumerate(categories)}
    numbers = _as_numbers(categories)
    # one more for -1, which pandas gives to missing values
    found = np.full(len(values) + 1, np.nan)
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
        found[i] = -1 if j is None else j
    return found[codes]


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
    kinds : sequence of {"numeric", "nominal", "category"}, optional
        Kind of each column. A column of categories is encoded by the targets.
    missing : {"error", "drop_rows", "impute", "indicate"}
        The protocol's treatment of missing values.
    task : {"classification", "regression"}
        Task of the targets.
    """

    def __init__(
        self,
        step: str = "minmax",
        requires: str | None = None,
        kinds: Sequence[str] = (),
        missing: str = "error",
        task: TaskType = "classification",
    ) -> None:
        self.step = step
        self.requires = requires
        self.kinds = kinds
        self.missing = missing
        self.task = task

    def fit(self, X: Any, y: Any = None) -> Preprocessor:
        """Learn ranges, medians and means of the targets."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> Any:
        """Learn from training rows and return them, encoded without their own targets."""
        self.preprocessing_ = Preprocessing(
            self.step, self.requires, self.kinds, self.missing, self.task
        )
        return self.preprocessing_.fit_transform(X, y)

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
