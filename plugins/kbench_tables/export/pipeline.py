"""Steps of an exported pipeline: from the user's table to the user's labels.

All steps are scikit-learn estimators; `kbench_tables.export` fits them. This module leaves with an
exported model, with all that it imports: numpy, scipy and scikit-learn are all that it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, clone
from sklearn.utils.metaestimators import available_if

from kbench.evaluation.outputs import has_distribution
from kbench.evaluation.preprocessing import Preprocessing
from kbench.evaluation.targets import Scale
from kbench.records import TaskType
from kbench.tables.texts import DateColumn, UnitColumn
from kbench_tables.export.values import Texts, UnitTexts, categories, columns_of, dates, numbers


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
        Columns of dates, as `kbench.tables.texts.DateColumn` reads them.
    decimal, thousands : str
        Decimal mark of texts that are numbers, and the sign between groups of three digits.
    missing : sequence of str, optional
        Texts of missing values, beside the usual ones.
    units : sequence of str, optional
        Columns of numbers with a unit, as `kbench.tables.texts.UnitColumn` reads them.

    Examples
    --------
    >>> encoder = TableEncoder([("age", None), ("city", ["Oslo", "Rome"])])
    >>> encoder.fit_transform([{"city": "Rome", "age": 40}, {"city": None, "age": "31.5"}])
    array([[40. ,  0. ,  1. ],
           [31.5,  nan,  nan]])
    """

    def __init__(
        self,
        columns: Sequence[tuple[str, Sequence[str] | None]] = (),
        coded: Sequence[str] = (),
        dates: Sequence[str] = (),
        decimal: str = ".",
        thousands: str = "",
        missing: Sequence[str] = (),
        units: Sequence[str] = (),
    ) -> None:
        self.columns = columns
        self.coded = coded
        self.dates = dates
        self.decimal = decimal
        self.thousands = thousands
        self.missing = missing
        self.units = units

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Do nothing: the categories are parameters."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> np.ndarray:
        """Return the encoded table, shape (n_samples, n_features).

        X is a data frame with the columns, in any order, a mapping of columns, or a list of
        mappings, one for each row; other columns are ignored. Where all columns are numbers, it
        may be an array of shape (n_samples, n_columns). A `ValueError` says which columns
        are missing, or hold text where numbers belong.
        """
        table = columns_of(X)
        if table is None:
            return self._of_array(X)
        chosen = self.chosen(table)
        dates_by_name = {date.name: date for date in self._dates()}
        units = {unit.name: unit for unit in self._units()}
        parts = []
        for name, known in self.columns:
            values = chosen[name]
            if name in dates_by_name:
                part = dates(values, dates_by_name[name], self.texts)
            elif name in units:
                texts = UnitTexts(missing=tuple(self.missing), column=units[name])
                part = numbers(values, name, texts)[:, None]
            elif known is None:
                part = numbers(values, name, self.texts)[:, None]
            else:
                part = categories(values, known, self.texts)[:, None]
                part = part if name in self.coded else _indicators(part, len(known))
            parts.append(part)
        encoded: np.ndarray = np.hstack(parts)
        return encoded

    def chosen(self, table: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the values of the columns, of those of a table; blanks around names are ignored.

        A `ValueError` names the columns that are missing.
        """
        place = {str(name).strip(): name for name in table} | {name: name for name in table}
        missing = [name for name, _ in self.columns if name not in place]
        if missing:
            raise ValueError(f"the table has no column {', '.join(map(repr, missing[:8]))}")
        return {name: table[place[name]] for name, _ in self.columns}

    @property
    def texts(self) -> Texts:
        """How texts are read."""
        return Texts(self.decimal, self.thousands, tuple(self.missing))

    def places(self) -> dict[str, slice]:
        """Return the columns of the encoded table that each column becomes."""
        widths = {date.name: len(date.feature_names) for date in self._dates()}
        places, start = {}, 0
        for name, known in self.columns:
            width = 1 if known is None or name in self.coded else len(known)
            width = widths.get(name, width)
            places[name] = slice(start, start + width)
            start += width
        return places

    def _dates(self) -> list[DateColumn]:
        return [DateColumn.parsed(spec, "dates") for spec in self.dates]

    def _units(self) -> list[UnitColumn]:
        return [UnitColumn.parsed(spec, "units") for spec in self.units]

    def read_as(self, texts: Texts) -> None:
        """Read further texts so; with another decimal mark, numbers with a unit have it too."""
        if texts.decimal != self.decimal:
            swapped = {".": ",", ",": "."}
            self.set_params(
                units=[
                    replace(
                        unit,
                        decimal=swapped[unit.decimal],
                        thousands=swapped.get(unit.thousands, unit.thousands),
                    ).spec
                    for unit in self._units()
                ]
            )
        self.set_params(
            decimal=texts.decimal, thousands=texts.thousands, missing=list(texts.missing)
        )

    def _of_array(self, X: Any) -> np.ndarray:
        names = [name for name, _ in self.columns]
        if self.dates or any(known is not None for _, known in self.columns):
            raise ValueError(f"X must be a data frame with the columns {', '.join(names[:8])}")
        array: np.ndarray = np.asarray(X, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != len(names):
            raise ValueError(f"X must have shape (n_samples, {len(names)}), got {array.shape}")
        return array


def _indicators(codes: np.ndarray, n_categories: int) -> np.ndarray:
    """Return a column of 0 and 1 for each category; NaN where the value is missing."""
    rows = np.asarray(codes == np.arange(n_categories), dtype=np.float64)
    rows[np.isnan(codes[:, 0])] = np.nan
    return rows


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

    Attributes
    ----------
    calibration_ : CalibratedClassifierCV or None
        Makes probabilities of decision values, where the learner has none.
    """

    calibration_: Any = None

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

    @available_if(lambda self: self.calibration_ or hasattr(self.estimator_, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities, in the order of `classes_`."""
        if self.calibration_ is None:
            return np.asarray(self.estimator_.predict_proba(X))
        decision = np.asarray(self.estimator_.decision_function(X))
        return np.asarray(self.calibration_.predict_proba(decision.reshape(len(decision), -1)))

    @_learner_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the learner's scores."""
        return np.asarray(self.estimator_.decision_function(X))


class DecisionValues(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose inputs are the decision values of another one.

    >>> DecisionValues().fit([[-1.0], [2.0]], [0, 1]).decision_function(np.array([[0.5]]))
    array([0.5])
    """

    def fit(self, X: Any, y: Any) -> DecisionValues:
        """Learn the classes."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the inputs: one column for two classes, else one for each class."""
        values: np.ndarray = X[:, 0] if len(self.classes_) == 2 else X
        return values

    def predict(self, X: Any) -> np.ndarray:
        """Return the classes with the largest values."""
        values = self.decision_function(X)
        places = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        chosen: np.ndarray = self.classes_[places]
        return chosen


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
