"""Scores of the predictions of one split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kbench.evaluation.assignment import Assignment
from kbench.evaluation.measures import COMPUTE, MEASURES, applies
from kbench.evaluation.outputs import Predictions


def scores(assignment: Assignment, predictions: Predictions) -> dict[str, float]:
    """Score the predictions of one split by all built-in measures that apply."""
    truth = assignment.truth
    measures = {
        name: compute(truth, predictions)
        for name, compute in COMPUTE.items()
        if applies(MEASURES[name], truth.task, predictions)
    }
    measures["n_test"] = float(len(truth.y))
    if assignment.seen is not None:
        measures["seen_rows"] = float(assignment.seen.mean())
        unseen = ~assignment.seen
        weight = None if truth.weight is None else truth.weight[unseen]
        if truth.task == "classification" and unseen.any() and (weight is None or weight.any()):
            part = replace(truth, y=truth.y[unseen], weight=weight)
            given = Predictions(np.asarray(predictions.predicted)[unseen])
            measures["accuracy_unseen"] = COMPUTE["accuracy"](part, given)
    return measures
