"""Checks of metrics of predictions."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from kbench.errors import PluginError
from kbench.features import Criterion, Predictions, Truth, resolve, take_rows
from kbench.records import TASK_TYPES
from kbench_testing._subject import Subject, quiet

_N_ROWS = 60
_RTOL = 1e-9


def check_number(subject: Subject) -> None:
    """The metric is one finite number, for two classes, for several, and for targets."""
    for label, truth, good, bad in _cases(subject):
        for predictions in (good, bad):
            _value(subject, label, truth, predictions)


def check_direction(subject: Subject) -> None:
    """Right predictions are not worse than wrong ones, in the metric's direction."""
    for label, truth, good, bad in _cases(subject):
        right, wrong = (_value(subject, label, truth, each) for each in (good, bad))
        subject.fail_if(
            subject.record.gain(right) < subject.record.gain(wrong),
            f"is {right:g} for right predictions of {label} and {wrong:g} for wrong ones, "
            f"while better={subject.record.better!r}; change `better` or the function",
        )


def check_order_of_rows(subject: Subject) -> None:
    """The metric does not depend on the order of the rows, nor on chance."""
    order = np.random.default_rng(0).permutation(_N_ROWS)
    for label, truth, good, bad in _cases(subject):
        of_right, right = take_rows(truth, good, order[::2])
        of_wrong, wrong = take_rows(truth, bad, order[1::2])
        both = replace(truth, y=np.concatenate([of_right.y, of_wrong.y]))
        predictions = _join(right, wrong)
        first = _value(subject, label, both, predictions)
        again = _value(subject, label, *take_rows(both, predictions, order))
        subject.fail_if(
            abs(first - again) > _RTOL * max(abs(first), abs(again), 1.0),
            f"is {first!r} for {label}, and {again!r} for the same rows in another order; it "
            "must depend on neither the order of the rows nor on chance",
        )


def check_weights(subject: Subject) -> None:
    """Weights of one change nothing."""
    for label, truth, good, bad in _cases(subject):
        weighted = replace(truth, weight=np.ones(_N_ROWS))
        for predictions in (good, bad):
            plain = _value(subject, label, truth, predictions)
            value = _value(subject, label, weighted, predictions)
            subject.fail_if(
                abs(plain - value) > _RTOL * max(abs(plain), 1.0),
                f"is {plain!r} for {label} without weights and {value!r} with "
                "sample_weight=1 for all rows; both must be equal",
            )


def _value(subject: Subject, label: str, truth: Truth, predictions: Predictions) -> float:
    n_classes = len(truth.classes)
    metric = subject.record
    with subject.failing(f"fails for {label}: {{error}}", PluginError):
        criterion = Criterion.from_plugin(metric, resolve(metric.function), n_classes)
        with quiet(), np.errstate(all="ignore"):
            value = criterion.compute(truth, predictions)
    if value is None:
        raise subject.fail(f"is not defined for {label}")
    return value


def _cases(subject: Subject) -> Iterator[tuple[str, Truth, Predictions, Predictions]]:
    """Yield truth with right and with wrong predictions, of each task of the metric."""
    metric = subject.record
    tasks = TASK_TYPES if metric.task is None else (metric.task,)
    rng = np.random.default_rng(0)
    if "classification" in tasks and metric.needs != "distribution":
        for k in (2, 3):
            y = rng.permutation(np.arange(_N_ROWS) % k)
            wrong = (y + 1) % k
            yield (
                f"{k} classes",
                Truth(y, "classification", np.arange(k)),
                Predictions(y, _probabilities(y, k, rng)),
                Predictions(wrong, _probabilities(wrong, k, rng)),
            )
    if "regression" in tasks and metric.needs in ("predictions", "distribution"):
        y = rng.normal(size=_N_ROWS)
        error = rng.uniform(2.0, 3.0, _N_ROWS) * rng.choice([-1, 1], _N_ROWS)
        sd = rng.uniform(0.3, 0.4, _N_ROWS)
        near = Predictions(y + 0.02 * error, sd=sd)
        yield "targets", Truth(y, "regression", np.empty(0)), near, Predictions(y + error, sd=sd)


def _probabilities(labels: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return probabilities of which that of each label is the largest."""
    raw = rng.uniform(0.0, 0.1, (len(labels), k))
    raw[np.arange(len(labels)), labels] = 1.0
    return np.asarray(raw / raw.sum(axis=1, keepdims=True))


def _join(one: Predictions, other: Predictions) -> Predictions:
    def both(name: str) -> np.ndarray | None:
        parts = [getattr(each, name) for each in (one, other)]
        return None if parts[0] is None else np.concatenate(parts)

    return Predictions(
        np.concatenate([one.predicted, other.predicted]), both("probabilities"), sd=both("sd")
    )
