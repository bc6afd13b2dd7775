"""Preprocessing of inputs before any map: missing values and scaling.

Every step is fitted on training rows only: anew in every inner fold, or once for all
of them, on blocks of rows (the protocol's `inner_fit`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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

    _largest = 0.0

    def fit(self, X: Any) -> UnitBall:
        """Learn the largest norm of a row of a dense or CSR matrix."""
        self._largest = 0.0
        return self.partial_fit(X)

    def partial_fit(self, X: Any) -> UnitBall:
        """Learn from more rows."""
        self._largest = max(self._largest, float(_row_norms(X).max(initial=0.0)))
        self.scale_ = self._largest or 1.0
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
        return self.fit_blocks(lambda: (X,), X)

    def fit_blocks(self, blocks: Callable[[], Iterable[Any]], sample: Any) -> Preprocessing:
        """Fit every step on training inputs in blocks of rows, which `blocks` yields.

        Scales are those of all rows, imputed values those of `sample`.
        """
        sparse = hasattr(sample, "indptr")
        self._steps: list[Any] = []
        if self.impute is not None and not sparse:
            self._steps.append(Imputer(self.impute).fit(sample))
        for name in self._names():
            step = _make(name, sparse)
            for X in blocks():
                step.partial_fit(self.transform(X))
            self._steps.append(step)
        if self.requires == "nonnegative" and sparse:
            for X in map(self.transform, blocks()):
                if X.nnz and X.data.min() < 0:
                    raise DatasetError(
                        "this map needs nonnegative inputs; sparse data are not shifted, so that "
                        "their negative values stay negative"
                    )
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
