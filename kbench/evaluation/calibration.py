"""Probabilities from decision values, by a calibration fitted on the training part.

The decision values that the calibration is fitted on are out of fold: the learner of
each inner fold has not seen the rows that it scores. One calibration is then applied to
the decision values of the final fit, as in scikit-learn's
``CalibratedClassifierCV(ensemble=False)``. Labels are not changed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV

from kbench.evaluation.method import Method
from kbench.evaluation.outputs import Predictions
from kbench.evaluation.search import Candidate, Data, inner_folds, out_of_fold_decisions
from kbench.evaluation.splits import Fold, rare_classes
from kbench.records import Protocol

_SHOWN = 5
"""Classes that a note lists."""


@dataclass(frozen=True)
class Calibration:
    """Calibrated probabilities of the test part, if there are any, with measures and notes."""

    probabilities: np.ndarray | None
    measures: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def calibrate(
    method: Method,
    data: Data,
    candidate: Candidate,
    protocol: Protocol,
    seed: int,
    predictions: Predictions,
) -> Calibration:
    """Calibrate the checked predictions of a fitted classifier for the test part.

    Probabilities of the learner itself are kept. Without decision values, or where all
    training rows of a class are in one inner fold, there are none, and a note says why.

    `data` is the training part, `candidate` was chosen by the search, and `seed` is that
    of the search: preprocessing, map and learner are fitted on its inner folds.
    ``calibration_time_s`` is the time of everything that is done here.
    """
    if predictions.probabilities is not None:
        return Calibration(predictions.probabilities)
    classes, decision = np.unique(data.y), predictions.decision
    if decision is None:
        return _without("the learner has neither probabilities nor decision values")
    if problem := _problem(decision, len(classes)):
        return _without(problem)
    start, cpu_start = time.perf_counter(), time.process_time()
    folds = inner_folds(data, protocol, seed)
    if alone := [k for k in classes if _is_in_one_fold(data.y == k, folds)]:
        return _without(f"all training rows of {_named(alone)} are in one inner fold")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values, converged = _out_of_fold(method, data, folds, candidate, seed, protocol)
        model = _fitted(values, data, protocol)
        probabilities = model.predict_proba(decision.reshape(len(decision), -1))
    measures = {
        "calibration_time_s": time.perf_counter() - start,
        "calibration_time_cpu_s": time.process_time() - cpu_start,
        "calibration_converged": float(np.mean(converged)),
    }
    return Calibration(probabilities, measures, _notes(data.y, converged, protocol))


def _out_of_fold(
    method: Method,
    data: Data,
    folds: Sequence[Fold],
    candidate: Candidate,
    seed: int,
    protocol: Protocol,
) -> tuple[np.ndarray, list[bool]]:
    """Return decision values of all training rows, and which of the fits converged."""
    values: list[np.ndarray] = []
    converged = []
    for decision, has_converged in out_of_fold_decisions(
        method.feature_map, method.learner, data, folds, candidate, seed, protocol
    ):
        values.append(decision.reshape(len(decision), -1))
        converged.append(has_converged)
    order = np.argsort(np.concatenate([test for _, test in folds]))
    return np.concatenate(values)[order], converged


def _fitted(values: np.ndarray, data: Data, protocol: Protocol) -> CalibratedClassifierCV:
    """Fit the calibration on decision values of the training rows."""
    rows = np.arange(len(data.y))
    # an ensemble of one: the values are out of fold already
    model = CalibratedClassifierCV(
        _DecisionValues(), method=protocol.calibration, cv=[(rows, rows)], ensemble=True
    )
    return model.fit(values, data.y, sample_weight=data.weight)


class _DecisionValues(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose inputs are the decision values of another one."""

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> _DecisionValues:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0] if len(self.classes_) == 2 else X


def _problem(decision: np.ndarray, n_classes: int) -> str:
    """Return why decision values are not one per class, or one for two classes; else ""."""
    if n_classes < 2:
        return "the training part has one class"
    n_columns = decision[0].size
    expected = 1 if n_classes == 2 else n_classes
    return "" if n_columns == expected else f"{n_columns} decision values per row, not {expected}"


def _is_in_one_fold(members: np.ndarray, folds: Sequence[Fold]) -> bool:
    return any(not members[train].any() for train, _ in folds)


def _without(reason: str) -> Calibration:
    return Calibration(None, notes=[f"no calibrated probabilities: {reason}"])


def _notes(y: np.ndarray, converged: list[bool], protocol: Protocol) -> list[str]:
    notes = []
    if rare := rare_classes(y, protocol.inner_folds):
        n = protocol.inner_folds
        notes.append(f"calibrated with fewer than {n} training rows of {_named(rare)}")
    if not all(converged):
        failed = len(converged) - sum(converged)
        notes.append(f"{failed} of {len(converged)} fits of the calibration did not converge")
    return notes


def _named(classes: list[int]) -> str:
    # the names of the classes are not among what a computation sees
    listed = ", ".join(str(k) for k in classes[:_SHOWN])
    more = f" and {len(classes) - _SHOWN} more" if len(classes) > _SHOWN else ""
    return f"class {listed}{more} (numbered from 0)"
