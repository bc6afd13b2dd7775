"""Scores of the predictions of one split."""

from __future__ import annotations

from collections.abc import Sequence

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


def scores_over_seeds(
    assignment: Assignment, predictions: Sequence[Predictions]
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return the means of the scores over seeds of the map, and each measure by seed.

    A measure that is not defined for all seeds is absent. The second is empty for one seed.
    """
    each = [scores(assignment, given) for given in predictions]
    if len(each) == 1:
        return each[0], {}
    by_seed = {
        name: [values[name] for values in each]
        for name in each[0]
        if name in MEASURES and all(name in values for values in each)
    }
    of_split = {name: value for name, value in each[0].items() if name not in MEASURES}
    return {
        **{name: float(np.mean(values)) for name, values in by_seed.items()},
        **of_split,
    }, by_seed
