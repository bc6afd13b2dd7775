"""Probabilities from decision values, by a calibration fitted on the training set.

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

import numpy as np
from sklearn.calibration import CalibratedClassifierCV

from kbench.estimators import DecisionValues
from kbench.evaluation.checked_predictions import Predictions, validate_decision
from kbench.evaluation.embedding import Fitting
from kbench.evaluation.search._blocks import select_shared
from kbench.evaluation.search._folds import Select, embed_fold, inner_folds
from kbench.evaluation.specs import Candidate
from kbench.evaluation.splits import Fold, rare_classes
from kbench.records import Protocol

_SHOWN = 5
"""Classes that a note lists."""


@dataclass(frozen=True)
class Calibration:
    """Calibrated probabilities of the test set, if there are any, with metrics and notes."""

    probabilities: np.ndarray | None
    metrics: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def calibrate(fitting: Fitting, candidate: Candidate, predictions: Predictions) -> Calibration:
    """Calibrate the checked predictions of a fitted classifier for the test set.

    Probabilities of the learner itself are kept. Without decision values, or where all training
    rows of a class are in one inner fold, there are none, and a note says why. The `candidate` is
    fitted on the inner folds of the search. ``calibration_time_s`` is the time of all that is done
    here.
    """
    if predictions.probabilities is not None:
        return Calibration(predictions.probabilities)
    y, protocol = fitting.data.y, fitting.protocol
    classes, decision = np.unique(y), predictions.decision
    if decision is None:
        return _leave_out("the learner has neither probabilities nor decision values")
    if problem := _problem(decision, len(classes)):
        return _leave_out(problem)
    start, cpu_start = time.perf_counter(), time.process_time()
    folds = inner_folds(fitting)
    if alone := [k for k in classes if any(k not in y[train] for train, _ in folds)]:
        return _leave_out(f"all training rows of {_format_classes(alone)} are in one inner fold")
    with warnings.catch_warnings(action="ignore"):
        values, converged = _out_of_fold(fitting, folds, candidate)
        model = _fit_calibration(values, fitting)
        probabilities = model.predict_proba(decision.reshape(len(decision), -1))
    metrics = {
        "calibration_time_s": time.perf_counter() - start,
        "calibration_time_cpu_s": time.process_time() - cpu_start,
        "calibration_converged": float(np.mean(converged)),
    }
    return Calibration(probabilities, metrics, _notes(y, converged, protocol))


def _out_of_fold(
    fitting: Fitting, folds: Sequence[Fold], candidate: Candidate
) -> tuple[np.ndarray, list[bool]]:
    """Fit a candidate on each inner fold, with the seeds of the search.

    Return decision values of all training rows, and which of the fits converged.
    """
    values: list[np.ndarray] = []
    converged = []
    candidates, name = [candidate], fitting.learner.label
    select: Select = lambda _, fold: embed_fold(fitting, candidates, fold)  # noqa: E731
    if fitting.shares_map:
        _, select = select_shared(fitting, candidates, folds)
    for number, fold in enumerate(folds):
        embedded = select(number, fold)
        ((fitted, has_converged),) = embedded.fit(candidates)
        for Z in embedded.embed_test_rows():
            decision = validate_decision(fitted.decision_function(Z), Z.shape[0], name)
            values.append(decision.reshape(len(decision), -1))
        converged.append(has_converged and embedded.converged)
    order = np.argsort(np.concatenate([test for _, test in folds]))
    return np.concatenate(values)[order], converged


def _fit_calibration(values: np.ndarray, fitting: Fitting) -> CalibratedClassifierCV:
    """Fit the calibration on decision values of the training rows."""
    data = fitting.data
    rows = np.arange(len(data.y))
    # an ensemble of one: the values are out of fold already
    model = CalibratedClassifierCV(
        DecisionValues(), method=fitting.protocol.calibration, cv=[(rows, rows)], ensemble=True
    )
    return model.fit(values, data.y, sample_weight=data.weight)


def _problem(decision: np.ndarray, n_classes: int) -> str:
    """Return why decision values are not one per class, or one for two classes; else ""."""
    if n_classes < 2:
        return "the training set has one class"
    n_columns = decision[0].size
    expected = 1 if n_classes == 2 else n_classes
    return "" if n_columns == expected else f"{n_columns} decision values per row, not {expected}"


def _leave_out(reason: str) -> Calibration:
    return Calibration(None, notes=[f"no calibrated probabilities: {reason}"])


def _notes(y: np.ndarray, converged: list[bool], protocol: Protocol) -> list[str]:
    notes = []
    if rare := rare_classes(y, protocol.inner_folds):
        n = protocol.inner_folds
        notes.append(f"calibrated with fewer than {n} training rows of {_format_classes(rare)}")
    if not all(converged):
        failed = len(converged) - sum(converged)
        notes.append(f"{failed} of {len(converged)} fits of the calibration did not converge")
    return notes


def _format_classes(classes: list[int]) -> str:
    # the names of the classes are not among what a computation sees
    listed = ", ".join(str(k) for k in classes[:_SHOWN])
    more = f" and {len(classes) - _SHOWN} more" if len(classes) > _SHOWN else ""
    return f"class {listed}{more} (numbered from 0)"
