"""Scores of the predictions of one split."""

from __future__ import annotations

import numpy as np

from kbench.evaluation.assignment import Assignment
from kbench.evaluation.measures import COMPUTE, MEASURES, applies, rows_of
from kbench.evaluation.outputs import Predictions


def scores(assignment: Assignment, predictions: Predictions) -> dict[str, float]:
    """Score the predictions of one split by all built-in measures that apply."""
    truth = assignment.truth
    values = {
        name: compute(truth, predictions)
        for name, compute in COMPUTE.items()
        if applies(MEASURES[name], truth.task, predictions)
    }
    if assignment.seen is not None and truth.task == "classification":
        unseen = rows_of(truth, predictions, np.flatnonzero(~assignment.seen))
        values["accuracy_unseen"] = COMPUTE["accuracy"](*unseen)
    measures = {name: value for name, value in values.items() if value is not None}
    measures["n_test"] = float(len(truth.y))
    if assignment.seen is not None:
        measures["seen_rows"] = float(assignment.seen.mean())
    return measures
