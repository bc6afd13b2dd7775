"""Training data of one search or fit; fits of preprocessing and maps on it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbench.evaluation.preprocessing import Preprocessing
from kbench.evaluation.rows import whole
from kbench.evaluation.search._spec import EstimatorSpec
from kbench.evaluation.splits import derive_seed
from kbench.evaluation.targets import Scale
from kbench.records import TaskType


@dataclass(frozen=True)
class Data:
    """Training data of one search or fit.

    Parameters
    ----------
    X : ndarray, CSR matrix or Rows, shape (n_samples, n_features)
        With `pairwise`, the Gram matrix of the rows, shape (n_samples, n_samples).
    y : ndarray, shape (n_samples,)
        Labels, or targets in their units.
    unlabelled : like X, optional
        Inputs without labels, on which unsupervised maps are fitted.
    kinds : sequence of {"numeric", "nominal", "category"}, optional
        Kind of each column.
    missing : {"error", "drop_rows", "impute", "indicate"}
        The protocol's treatment of missing values.
    pairwise : bool
        Never preprocess; slice columns as well as rows.
    task : {"classification", "regression"}
    weight : ndarray of float, shape (n_samples,), optional
        Weights of the rows.
    parts : ndarray of int, shape (n_samples,), optional
        Numbers of what inner folds keep together.
    """

    X: Any
    y: np.ndarray
    unlabelled: Any = None
    kinds: Sequence[str] = ()
    missing: str = "error"
    pairwise: bool = False
    task: TaskType = "classification"
    weight: np.ndarray | None = None
    parts: np.ndarray | None = None

    def rows(self, rows: np.ndarray, columns: np.ndarray | None = None) -> Any:
        """Return inputs of `rows`; of a Gram matrix, against `columns`."""
        if self.pairwise:
            return self.X[np.ix_(rows, rows if columns is None else columns)]
        return self.X[rows]

    def weights(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the weights of some rows."""
        return None if self.weight is None else self.weight[rows]

    def scale(self, rows: np.ndarray) -> Scale:
        """Return the scale of the targets of some rows."""
        return Scale.of(self.y[rows], self.task, self.weights(rows))


def preprocessed(
    data: Data, rows: np.ndarray | None, step: str, requires: str | None
) -> tuple[Preprocessing, Any]:
    """Fit the preprocessing on some labelled rows, or all, and the unlabelled ones.

    The preprocessed labelled rows are returned too. Other rows are `transform`ed.
    """
    if rows is None:
        X, y = whole(data.X), data.y
    else:
        X, y = data.rows(rows), data.y[rows]
    steps = preprocessing_of(data, step, requires)
    return steps, steps.fit_transform(X, y, whole(data.unlabelled))


def preprocessing_of(data: Data, step: str, requires: str | None) -> Preprocessing:
    """Return the preprocessing of these data, not fitted."""
    if data.pairwise:
        return Preprocessing("none")
    return Preprocessing(step, requires, data.kinds, data.missing, data.task)


def fit_map(
    spec: EstimatorSpec,
    params: Mapping[str, Any],
    seed: int,
    X: Any,
    y: np.ndarray,
    unlabelled: Any = None,
) -> Any:
    """Build and fit a map; one that does not use `y` is fitted on unlabelled rows, if any."""
    estimator = spec.build(params, derive_seed(seed, "map"))
    if spec.supervised:
        return estimator.fit(X, y)
    return estimator.fit(X if unlabelled is None else unlabelled)


def has_converged(estimator: Any, caught: Sequence[warnings.WarningMessage]) -> bool:
    """Whether a fit converged, by its warnings and its fitted attributes."""
    from sklearn.exceptions import ConvergenceWarning

    if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        return False
    if getattr(estimator, "converged_", True) is False:
        return False
    return int(getattr(estimator, "fit_status_", 0)) == 0
