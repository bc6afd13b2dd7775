"""Preprocessing of inputs before any map: missing values and scaling.

Every step is fitted on training rows only, and anew in every inner fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kbench.errors import DatasetError
from kbench.records import Dataset


class UnitBall:
    """Scale rows by the largest training norm; project longer rows onto the unit ball.

    >>> import numpy as np
    >>> step = UnitBall().fit(np.array([[3., 4.]]))
    >>> step.transform(np.array([[1.5, 2.], [30., 40.]]))
    array([[0.3, 0.4],
           [0.6, 0.8]])
    """

    def fit(self, X: Any) -> UnitBall:
        """Learn the largest norm of a row of a dense or CSR matrix."""
        norms = _row_norms(X)
        self.scale_ = float(norms.max()) if len(norms) and norms.max() > 0 else 1.0
        return self

    def transform(self, X: Any) -> Any:
        """Scale rows; none is longer than 1 then."""
        norms = _row_norms(X) / self.scale_
        factors = 1.0 / (self.scale_ * np.maximum(norms, 1.0))
        if hasattr(X, "indptr"):
            scaled = X.copy()
            scaled.data = scaled.data * np.repeat(factors, np.diff(X.indptr))
            return scaled
        return X * factors[:, None]


class Imputer:
    """Impute the median in numeric columns, the most frequent value in nominal ones."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._nominal = np.array([kind == "nominal" for kind in kinds], dtype=bool)

    def fit(self, X: np.ndarray) -> Imputer:
        """Learn one value per column; 0 for a column without values."""
        self.values_ = np.zeros(X.shape[1])
        for column in range(X.shape[1]):
            values = X[:, column]
            values = values[~np.isnan(values)]
            if not len(values):
                continue
            if self._nominal[column]:
                levels, counts = np.unique(values, return_counts=True)
                self.values_[column] = levels[counts.argmax()]
            else:
                self.values_[column] = np.median(values)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Replace every NaN."""
        return np.where(np.isnan(X), self.values_.astype(X.dtype), X)


class Preprocessing:
    """The steps before a map, in order.

    Parameters
    ----------
    step : {"minmax", "standard", "unit_ball", "none"}
        The protocol's step. "minmax" maps the training range to [0, 1] and
        clips test values to it; sparse input is scaled without shifting, by
        the largest absolute value ("minmax") or the deviation ("standard").
    requires : {None, "nonnegative", "unit_ball"}
        Requirement of the map; a step is added where `step` does not meet it.
    impute : sequence of {"numeric", "nominal"}, optional
        Kind of each column; missing values are imputed first.
    """

    def __init__(
        self, step: str, requires: str | None = None, impute: Sequence[str] | None = None
    ) -> None:
        self.step = step
        self.requires = requires
        self.impute = impute

    def fit(self, X: Any) -> Preprocessing:
        """Fit every step on training inputs, shape (n_samples, n_features)."""
        sparse = hasattr(X, "indptr")
        steps: list[Any] = [_make(name, sparse) for name in self._names()]
        if self.impute is not None and not sparse:
            steps.insert(0, Imputer(self.impute))
        for step in steps:
            X = step.fit(X).transform(X)
        if self.requires == "nonnegative" and sparse and X.nnz and X.data.min() < 0:
            raise DatasetError(
                "this map needs nonnegative inputs; sparse data are not shifted, so that their "
                "negative values stay negative"
            )
        self._steps = steps
        return self

    def transform(self, X: Any) -> Any:
        """Apply the fitted steps."""
        for fitted in self._steps:
            X = fitted.transform(X)
        return X

    def _names(self) -> list[str]:
        names = [] if self.step == "none" else [self.step]
        if self.requires == "unit_ball" and self.step != "unit_ball":
            names.append("unit_ball")
        if self.requires == "nonnegative" and self.step != "minmax":
            names.append("minmax")
        return names


def _make(name: str, sparse: bool) -> Any:
    if name == "unit_ball":
        return UnitBall()
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if name == "standard":
        return StandardScaler(with_mean=not sparse)
    return MaxAbsScaler(clip=True) if sparse else MinMaxScaler(clip=True)


def _row_norms(X: Any) -> np.ndarray:
    from sklearn.utils.extmath import row_norms

    return np.asarray(row_norms(X))


def missing_rows(X: Any) -> np.ndarray:
    """Mask of the rows that have a missing value, shape (n_samples,)."""
    if hasattr(X, "indptr"):
        holes = np.add.reduceat(np.append(np.isnan(X.data), False), X.indptr[:-1])
        return np.asarray((holes > 0) & (np.diff(X.indptr) > 0))
    return np.asarray(np.isnan(X).any(axis=1))


def refuse_missing(dataset: Dataset) -> None:
    """Raise a DatasetError that names the columns with missing values, and the choices."""
    X = dataset.X
    if hasattr(X, "indptr"):
        counts = np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1])
    else:
        counts = np.isnan(X).sum(axis=0)
    columns = np.flatnonzero(counts)
    if not len(columns):
        return
    shown = ", ".join(f"{dataset.feature_names[j]} ({counts[j]})" for j in columns[:5])
    more = f" and {len(columns) - 5} more columns" if len(columns) > 5 else ""
    raise DatasetError(
        f"{dataset.name} has {int(counts.sum())} missing values in {shown}{more}; "
        'set missing = "impute" or missing = "drop_rows" in [protocol]'
    )
