"""Scores of the predictions of one split. Nothing here runs code of a plugin."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kbench.errors import PluginError
from kbench.evaluation.checked_predictions import Committed, Predictions
from kbench.evaluation.metrics import COMPUTE, METRICS, applies, take_rows
from kbench.evaluation.split_view import Assignment
from kbench.records import Details


@dataclass(frozen=True)
class Evaluation:
    """Metrics, details and predictions of one split.

    The predictions, `of_seeds` of the map, are of the test rows in the order of the split.
    """

    metrics: dict[str, float]
    details: Details
    of_seeds: tuple[Predictions, ...]

    @property
    def predictions(self) -> Predictions:
        """Those of the first seed of the map."""
        return self.of_seeds[0]


def compute_scores(
    assignment: Assignment,
    committed: Committed,
    metrics: Mapping[str, float],
    details: Details,
    name: str,
) -> Evaluation:
    """Score predictions, which are checked again, and add what the computation measured.

    Scores of the default candidate have the prefix ``default_``; all are means over the seeds of
    the map. `name` is the name of the learner for messages.
    """
    truth = assignment.truth

    def check(predictions: Iterable[Predictions]) -> tuple[Predictions, ...]:
        return tuple(p.validate(truth.task, truth.classes, len(truth.y), name) for p in predictions)

    checked = check(committed.chosen)
    values, by_seed = scores_over_seeds(assignment, checked)
    if committed.default:
        of_default, _ = scores_over_seeds(assignment, check(committed.default))
        values |= {METRICS[k].default_name: v for k, v in of_default.items() if k in METRICS}
    refuse_overwriting(metrics, values)
    notes = [*assignment.notes, *details.notes]
    return Evaluation(
        {**values, **metrics},
        replace(details, notes=notes, split_hash=assignment.digest, by_seed=by_seed),
        checked,
    )


def refuse_overwriting(
    added: Mapping[str, float], built_in: Iterable[str], name: str = "a plugin"
) -> Mapping[str, float]:
    """Return metrics that a plugin adds; raises PluginError if kbench has one of that name."""
    if taken := sorted(set(added) & set(built_in)):
        raise PluginError(
            f"metrics of {name} return {taken[0]!r}, which kbench measures itself; "
            "give it another name"
        )
    return added


def scores(assignment: Assignment, predictions: Predictions) -> dict[str, float]:
    """Score the predictions of one split by all built-in metrics that apply."""
    truth = assignment.truth
    values = {
        name: compute(truth, predictions)
        for name, compute in COMPUTE.items()
        if applies(METRICS[name], truth.task, predictions)
    }
    if assignment.seen is not None and truth.task == "classification":
        unseen = take_rows(truth, predictions, np.flatnonzero(~assignment.seen))
        values["accuracy_non_duplicates"] = COMPUTE["accuracy"](*unseen)
    metrics = {name: value for name, value in values.items() if value is not None}
    metrics["n_test"] = float(len(truth.y))
    if assignment.seen is not None:
        metrics["duplicate_test_fraction"] = float(assignment.seen.mean())
    return metrics


def scores_over_seeds(
    assignment: Assignment, predictions: Sequence[Predictions]
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return the means of the scores over seeds of the map, and each metric by seed.

    A metric that is not defined for all seeds is absent. The second is empty for one seed.
    """
    each = [scores(assignment, predicted) for predicted in predictions]
    if len(each) == 1:
        return each[0], {}
    by_seed = {
        name: [values[name] for values in each]
        for name in each[0]
        if name in METRICS and all(name in values for values in each)
    }
    of_split = {name: value for name, value in each[0].items() if name not in METRICS}
    return {
        **{name: float(np.mean(values)) for name, values in by_seed.items()},
        **of_split,
    }, by_seed
