"""Preprocessing of inputs before any map: categories, missing values and scaling.

Every step is fitted on training rows only: again in every inner fold, or once for all
of them, on blocks of rows (the protocol's `refit_maps_in_inner_folds`). Categories are
encoded by the targets, and therefore never once for all inner folds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

from kbench.errors import DatasetError
from kbench.evaluation.lazy_rows import VALUES, Matrix, Rows, is_sparse, iterate_row_numbers, take
from kbench.evaluation.splits import strata, stratified_folds
from kbench.messages import SHARED_CATEGORIES
from kbench.records import TaskType


class UnitBall:
    """Scale rows by the largest training norm; project longer rows onto the unit ball.

    >>> import numpy as np
    >>> step = UnitBall().partial_fit(np.array([[3., 4.]]))
    >>> step.transform(np.array([[1.5, 2.], [30., 40.]]))
    array([[0.3, 0.4],
           [0.6, 0.8]])
    """

    _largest = 0.0

    def partial_fit(self, X: Matrix) -> "UnitBall":
        """Learn the largest norm of a row of a dense or CSR matrix, from more rows."""
        self._largest = max(self._largest, float(_row_norms(X).max(initial=0.0)))
        # norms of smaller rows are wrong: their squares underflow
        self.scale_ = self._largest if self._largest > 1e-150 else 1.0
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Scale rows; none is longer than 1 then."""
        factors = 1.0 / (self.scale_ * np.maximum(_row_norms(X) / self.scale_, 1.0))
        if is_sparse(X):
            scaled = X.copy()
            scaled.data = scaled.data * np.repeat(factors, np.diff(X.indptr))
            return scaled
        return X * factors[:, None]


CROSS_FOLDS = 5
"""Number of parts of the training rows; the targets of the other parts encode each part."""


class CategoryMeans:
    """Encode categories by smoothed means of the targets, with scikit-learn's `TargetEncoder`.

    For more than two classes there is one column for each; they come after all others. Training
    rows are encoded by cross-fitting: a learner would trust the means of rare categories too much.
    """

    def __init__(self, columns: Sequence[int], task: TaskType) -> None:
        self.columns, self.task = list(columns), task

    def fit(self, codes: np.ndarray, y: np.ndarray) -> "CategoryMeans":
        """Learn the means of all rows, and those of the rows outside of each part of them."""
        targets = self._targets(np.asarray(y))
        self._encoders = _encoders(codes, targets)
        n_folds, self._parts = min(CROSS_FOLDS, len(y) // 2), np.zeros(len(y), dtype=np.int8)
        self._encoders_of_parts = [self._encoders]
        if n_folds > 1:
            labels = np.unique(y, return_inverse=True)[1] if self.task == "classification" else y
            # the folds are no part of a comparison: one draw for all methods
            for train, test in stratified_folds(strata(labels, self.task), n_folds, 0):
                self._parts[test] = len(self._encoders_of_parts)
                self._encoders_of_parts.append(_encoders(codes[train], targets[train]))
        return self

    def transform(self, X: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Encode training rows with these numbers, or others; new categories get the mean of all.

        Each part of the training rows is encoded by the means of the others.
        """
        codes = X[:, self.columns]
        parts = np.zeros(len(codes), dtype=np.int8) if rows is None else self._parts[rows]
        encoded = np.empty((len(codes), len(self.columns) * len(self._encoders)))
        for part in np.unique(parts):
            of_part = codes[parts == part]
            encoded[parts == part] = np.hstack(
                [encoder.transform(of_part) for encoder in self._encoders_of_parts[part]]
            )
        numeric = np.delete(np.asarray(X, dtype=np.float64), self.columns, axis=1)
        return np.hstack([numeric, encoded])

    def _targets(self, y: np.ndarray) -> np.ndarray:
        """Return what is averaged: numbers, the second of two classes, or each class."""
        if self.task == "regression":
            return np.asarray(y, dtype=np.float64)[:, None]
        classes = np.unique(y)
        averaged = classes[1:] if len(classes) == 2 else classes
        return np.asarray(y[:, None] == averaged, dtype=np.float64)


def _encoders(codes: np.ndarray, targets: np.ndarray) -> list[Any]:
    from sklearn.preprocessing import TargetEncoder

    return [TargetEncoder(target_type="continuous").fit(codes, target) for target in targets.T]


class Imputer:
    """Impute the median in numeric columns, the most frequent value in nominal ones.

    Parameters
    ----------
    kinds : sequence of {"numeric", "onehot"}
    indicates : bool, default False
        Append a column of 0 and 1 for each pattern in which training values are missing:
        columns that are missing together, as the indicators of a category are, have one.
    """

    def __init__(self, kinds: Sequence[str], indicates: bool = False) -> None:
        self._kinds = kinds
        self._indicates = indicates

    def fit(self, columns: Iterable[np.ndarray]) -> "Imputer":
        """Learn one value per column; 0 for a column without values."""
        learnt, first = list[float](), dict[bytes, int]()
        kinds, rest = chain(self._kinds, repeat("numeric")), iter(columns)
        for column in rest:  # many together: a call of numpy for each takes seconds
            block = np.array([column, *islice(rest, VALUES // len(column))])
            is_missing = np.isnan(block)
            medians = _present_medians(block, len(column) - is_missing.sum(axis=1))
            for row, missing, median, kind in zip(block, is_missing, medians, kinds, strict=False):
                if self._indicates and missing.any():
                    first.setdefault(np.packbits(missing).tobytes(), len(learnt))
                if kind == "onehot" and not missing.all():
                    levels, counts = np.unique(row[~missing], return_counts=True)
                    median = levels[counts.argmax()]
                learnt.append(float(median))
        self.values_ = np.array(learnt)
        self._indicated = np.array(list(first.values()), dtype=np.intp)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Replace every NaN."""
        is_missing = np.isnan(X)
        imputed = np.where(is_missing, self.values_.astype(X.dtype), X)
        if not len(self._indicated):
            return imputed
        return np.hstack([imputed, is_missing[:, self._indicated].astype(X.dtype)])


def _present_medians(block: np.ndarray, n_present: np.ndarray) -> np.ndarray:
    """Return the medians of the values of rows that are not NaN, 0 for a row without any."""
    places = np.array([np.maximum(n_present - 1, 0) // 2, n_present // 2])  # NaN come last
    lower, upper = np.partition(block, np.unique(places), axis=1)[np.arange(len(block)), places]
    medians = np.where(n_present % 2, lower, np.where(n_present, (lower + upper) / 2, 0.0))
    return medians + 0.0  # no zero has a sign


class Preprocessing:
    """The steps before a map, in order.

    `step` is the protocol's. "minmax" maps the training range to [0, 1] and clips test values
    to it; sparse input is scaled without shifting, by the largest absolute value ("minmax") or
    the standard deviation ("standard"). If it does not meet what the map `requires`, a step
    is added.
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

    def fit_transform(self, X: Matrix, y: np.ndarray, unlabeled: "Matrix | None" = None) -> Matrix:
        """Fit every step on training inputs and return them; `unlabeled` inputs count too.

        Only categories use the targets.
        """
        self._fit_categories(take(X), y)
        X = self._encode(X, np.arange(X.shape[0]))
        everything = X if unlabeled is None else _stack(X, self._encode(unlabeled))
        self._fit(lambda: (everything,), lambda: everything.T, is_sparse(everything))
        return self._scale(X)

    def fit_blocks(
        self, parts: Sequence[Rows], samples: Sequence[Rows], y: np.ndarray | None = None
    ) -> "Preprocessing":
        """Fit every step in blocks of rows on training inputs and, if given, unlabeled ones.

        Imputed values are those of `samples` of both. DatasetError is raised for columns of
        categories without the targets of the training inputs.
        """
        self._fit_categories(parts[0], y)

        def iterate_blocks() -> Iterator[Matrix]:
            for part in parts:
                for rows in iterate_row_numbers(np.arange(part.shape[0])):
                    yield self._encode(part[rows], rows if part is parts[0] else None)

        def iterate_columns() -> Iterator[np.ndarray]:
            numeric = np.delete(np.arange(parts[0].shape[1]), find_categories(self.kinds))
            for column in numeric.tolist():
                yield np.concatenate([sample.column(column) for sample in samples])
            # means of categories are never missing: any row will do, and is not copied
            means = self._encode(parts[0][:1])[:, len(numeric) :]
            shape = sum(sample.shape[0] for sample in samples), means.shape[1]
            yield from np.broadcast_to(means, shape).T

        self._fit(iterate_blocks, iterate_columns, is_sparse(parts[0].matrix))
        return self

    def _fit_categories(self, X: Rows, y: np.ndarray | None) -> None:
        self._categories = None
        if categories := find_categories(self.kinds):
            if y is None:
                raise DatasetError(SHARED_CATEGORIES)
            codes = np.column_stack([X.column(column) for column in categories])
            self._categories = CategoryMeans(categories, self.task).fit(codes, y)

    def _encode(self, X: Matrix, rows: np.ndarray | None = None) -> Matrix:
        """Encode the categories of training rows with these numbers, or of others."""
        return X if self._categories is None else self._categories.transform(X, rows)

    def _fit(
        self,
        blocks: Callable[[], Iterable[Matrix]],
        columns: Callable[[], Iterable[np.ndarray]],
        sparse: bool,
    ) -> None:
        """Fit the steps after the categories."""
        self._steps: list[Any] = []
        if self.missing in ("impute", "impute_with_indicators") and not sparse:
            kinds = [kind for kind in self.kinds if kind != "target_encoded"]
            imputer = Imputer(kinds, self.missing == "impute_with_indicators")
            self._steps.append(imputer.fit(columns()))
        for name in self._names():
            step = _make(name, sparse)
            for X in blocks():
                step.partial_fit(self._scale(X))
            self._steps.append(step)
        if self.requires == "nonnegative" and sparse:
            for X in map(self._scale, blocks()):
                if is_sparse(X) and X.nnz and X.data.min() < 0:
                    raise DatasetError(
                        "this map needs nonnegative inputs; sparse data are not shifted, so that "
                        "their negative values stay negative"
                    )

    def transform(self, X: Matrix, rows: np.ndarray | None = None) -> Matrix:
        """Apply the fitted steps to training rows with these numbers, or to any rows."""
        return self._scale(self._encode(X, rows))

    def _scale(self, X: Matrix) -> Matrix:
        """Apply the steps after the categories."""
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


def find_categories(kinds: Sequence[str]) -> list[int]:
    """Return the columns of categories."""
    return [column for column, kind in enumerate(kinds) if kind == "target_encoded"]


def _stack(X: Matrix, more: Matrix) -> Matrix:
    if is_sparse(X):
        from scipy.sparse import vstack

        return vstack([X, more], format="csr")
    return np.vstack([X, more])


def _make(name: str, sparse: bool) -> Any:
    if name == "unit_ball":
        return UnitBall()
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if name == "standard":
        return StandardScaler(with_mean=not sparse)
    return MaxAbsScaler(clip=True) if sparse else MinMaxScaler(clip=True)


def _row_norms(X: Matrix) -> np.ndarray:
    from sklearn.utils.extmath import row_norms

    return np.asarray(row_norms(X))
