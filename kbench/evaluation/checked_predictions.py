"""Checks of what maps and learners return, before anything is computed from it.

A prediction of the wrong shape or type does not fail by itself: numpy compares
a column with a row, and text with numbers, and the result is a wrong number.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from kbench.arrays import namespace, to_numpy
from kbench.errors import PluginError
from kbench.evaluation.lazy_rows import Matrix, is_sparse
from kbench.evaluation.targets import Scale
from kbench.records import TaskType


class FittedMap(Protocol):
    """A feature map of a plugin, after its fit; it may have more attributes."""

    def transform(self, X: Matrix, /) -> Matrix:
        """Embed rows."""

    def __getattr__(self, name: str, /) -> Any: ...


class FittedLearner(Protocol):
    """A learner of a plugin, after its fit; it may have more methods, and attributes."""

    def predict(self, Z: Matrix, /, **options: bool) -> Any:
        """Predict rows: an array, or with `return_std` a tuple of two."""

    def __getattr__(self, name: str, /) -> Any: ...


@dataclass(frozen=True)
class Predictions:
    """Predictions of a learner for the test rows.

    Parameters
    ----------
    predicted : ndarray, shape (n_test,)
        Of ``predict``: labels, or numbers in the target's units.
    probabilities : ndarray, shape (n_test, n_classes), optional
        Of ``predict_proba``; the classes are those of the training set, sorted.
    decision : ndarray, shape (n_test,) or (n_test, n), optional
        Of ``decision_function``, from learners without probabilities.
    label_probabilities : ndarray, shape (n_test, n_classes), optional
        Of ``label_probabilities``: how likely a rule that draws its labels is to
        draw each one.
    sd : ndarray, shape (n_test,), optional
        Standard deviation of a normal predictive distribution with the mean `predicted`,
        from regressors whose ``predict`` has the parameter ``return_std``.
    """

    predicted: np.ndarray
    probabilities: np.ndarray | None = None
    decision: np.ndarray | None = None
    label_probabilities: np.ndarray | None = None
    sd: np.ndarray | None = None

    @classmethod
    def join(cls, parts: "Sequence[Predictions]") -> "Predictions":
        """Return the predictions of several blocks of rows, one after the other."""

        def of(key: str) -> Any:
            values = [getattr(part, key) for part in parts]
            return None if values[0] is None else np.concatenate(values)

        return cls(*(of(field.name) for field in fields(cls)))

    def validate(
        self, task: TaskType, classes: np.ndarray, n_test: int, name: str
    ) -> "Predictions":
        """Return the predictions of the learner `name` in the types of `scores`.

        Raises PluginError as `validate_labels` and the functions after it do. `classes` are the
        labels of the training set.
        """
        if task == "regression":
            return Predictions(
                validate_numbers(self.predicted, n_test, f"predict of {name}"),
                sd=None if self.sd is None else validate_deviations(self.sd, n_test, name),
            )
        k = len(classes)

        def probabilities(values: ArrayLike | None, method: str) -> np.ndarray | None:
            if values is None:
                return None
            return validate_probabilities(values, n_test, k, f"{method} of {name}")

        decision = self.decision
        return Predictions(
            validate_labels(self.predicted, classes, n_test, name),
            probabilities(self.probabilities, "predict_proba"),
            None if decision is None else validate_decision(decision, n_test, name),
            probabilities(self.label_probabilities, "label_probabilities"),
        )


@dataclass(frozen=True)
class Committed:
    """The predictions of one split, which are handed over before its labels are revealed."""

    chosen: tuple[Predictions, ...]
    """Of the chosen candidate, for each seed of the map."""

    default: tuple[Predictions, ...] = ()
    """Those of the default candidate; empty if there was no search."""


def predict_all(
    learner: FittedLearner, Z: Matrix, predicted: np.ndarray, task: TaskType
) -> Predictions:
    """Return everything that a fitted learner predicts for some rows besides labels or targets.

    Predictions of a regressor are standardised like the targets that it was fitted on.
    """
    if task == "regression":
        if not has_distribution(learner):
            return Predictions(predicted)
        returned = learner.predict(Z, return_std=True)
        if not (isinstance(returned, tuple) and len(returned) == 2):
            raise PluginError(
                f"predict with return_std of {type(learner).__name__} returned "
                f"{_describe(returned)}; expected a tuple of means and standard deviations"
            )
        return Predictions(predicted, sd=returned[1])
    has_probabilities = hasattr(learner, "predict_proba")
    return Predictions(
        predicted,
        learner.predict_proba(Z) if has_probabilities else None,
        learner.decision_function(Z)
        if not has_probabilities and hasattr(learner, "decision_function")
        else None,
        learner.label_probabilities(Z) if hasattr(learner, "label_probabilities") else None,
    )


def has_distribution(regressor: FittedLearner) -> bool:
    """Return whether a fitted regressor predicts standard deviations too."""
    return "return_std" in inspect.signature(regressor.predict).parameters


def unstandardise(predictions: Predictions, scale: Scale, n_rows: int, name: str) -> Predictions:
    """Return standardised predictions in the target's units, checked."""
    checked = predictions.validate("regression", np.empty(0), n_rows, name)
    sd = None if checked.sd is None or scale.log is not None else scale.sd * checked.sd
    return Predictions(scale.restore(checked.predicted), sd=sd)


SUM_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}
"""Largest difference of the sum of a row of probabilities from 1, by dtype."""


def check_embedding(Z: Matrix, n_rows: int, name: str) -> None:
    """Raise PluginError unless an embedding by a map has a row of finite numbers per input.

    >>> check_embedding(np.zeros((3, 2)), 4, "feature map 'rff'")
    Traceback (most recent call last):
    kbench.errors.PluginError: feature map 'rff' returned an array of shape (3, 2) and dtype
    float64 from transform; expected 4 rows of finite real numbers
    """
    expected = f"from transform; expected {n_rows:,} rows of finite real numbers"
    shape: tuple[int, ...] = getattr(Z, "shape", ())
    dtype = getattr(Z, "dtype", None)
    is_right = len(shape) == 2 and shape[0] == n_rows and dtype is not None
    if is_right and namespace(Z) is not np:
        xp = namespace(Z)
        is_right = xp.isdtype(dtype, ("real floating", "integral"))
        # without a copy on the host, unless there is something to tell
        if is_right and bool(xp.isfinite(xp.sum(Z))):
            return
        Z = to_numpy(Z)
    elif dtype is not None:
        is_right = is_right and dtype.kind in "fiu"
    _check(Z, Z.data if is_sparse(Z) else Z, is_right, name, f" {expected}")


def validate_labels(
    predicted: ArrayLike, classes: np.ndarray, n_rows: int, name: str
) -> np.ndarray:
    """Return labels that the learner `name` predicted, as an array.

    Raises PluginError unless there is one label per row, of the type of the classes and among them.
    """
    expected = f"from predict; expected {n_rows:,} labels in an array of shape ({n_rows},)"
    labels = np.asarray(predicted)
    if labels.shape != (n_rows,):
        raise PluginError(f"{name} returned {_describe(predicted)} {expected}")
    if labels.dtype.kind != classes.dtype.kind:
        raise PluginError(
            f"{name} returned {_describe(predicted)} {expected} and of the type that they "
            f"were given in, {classes.dtype}"
        )
    unknown = labels[~np.isin(labels, classes)]
    if len(unknown):
        raise PluginError(
            f"{name} returned the label {unknown[0]!r} {expected}, each one of the "
            f"{len(classes)} classes"
        )
    return labels


def validate_numbers(predicted: ArrayLike, n_rows: int, name: str) -> np.ndarray:
    """Return numbers that a regressor predicted, in float64; `name` says where they come from.

    Raises PluginError unless there is one finite real number per row.

    >>> validate_numbers(np.zeros((3, 1)), 3, "predict of learner 'ridge'")
    Traceback (most recent call last):
    kbench.errors.PluginError: predict of learner 'ridge' returned an array of shape (3, 1) and
    dtype float64; expected 3 finite numbers in an array of shape (3,)
    """
    expected = f"expected {n_rows:,} finite numbers in an array of shape ({n_rows},)"
    array = np.asarray(predicted)
    is_right = array.shape == (n_rows,) and array.dtype.kind in "fiu"
    _check(predicted, array, is_right, name, f"; {expected}")
    return array.astype(np.float64)


def validate_deviations(values: ArrayLike, n_rows: int, name: str) -> np.ndarray:
    """Return predictive standard deviations; raises PluginError unless all are positive."""
    method = f"predict with return_std of {name}"
    sd = validate_numbers(values, n_rows, method)
    if len(sd) and sd.min() <= 0:
        raise PluginError(
            f"{method} returned the standard deviation {sd.min():g}; expected positive numbers"
        )
    return sd


def validate_probabilities(values: ArrayLike, n_rows: int, n_classes: int, name: str) -> np.ndarray:
    """Return probabilities, of `name`; PluginError for anything other than a distribution per row.

    A row must sum to 1, to 1e-6; to 1e-3 in float32.
    """
    expected = f"expected probabilities of shape ({n_rows}, {n_classes}) whose rows sum to 1"
    array = np.asarray(values)
    is_right = array.shape == (n_rows, n_classes) and array.dtype.kind == "f"
    _check(values, array, is_right, name, f"; {expected}")
    tolerance = SUM_TOLERANCE.get(array.dtype.name, 1e-3)
    exact = array.astype(np.float64)
    outside = exact[(exact < -tolerance) | (exact > 1 + tolerance)]
    if len(outside):
        raise PluginError(f"{name} returned {outside[0]:g}; {expected}")
    sums = exact.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > tolerance:
        raise PluginError(f"{name} returned a row with the sum {sums[worst]:g}; {expected}")
    return np.asarray(np.clip(array, 0.0, 1.0))


def validate_decision(values: ArrayLike, n_rows: int, name: str) -> np.ndarray:
    """Return decision values in float64; PluginError unless there is one finite row per input."""
    expected = f"from decision_function; expected {n_rows:,} rows of finite real numbers"
    array = np.asarray(values)
    is_right = array.ndim in (1, 2) and len(array) == n_rows and array.dtype.kind in "fiu"
    _check(values, array, is_right, name, f" {expected}")
    return array.astype(np.float64)


def _check(returned: object, values: ArrayLike, is_right: bool, name: str, expected: str) -> None:
    """Raise PluginError for values of another shape or type, or that are not finite."""
    bad = _non_finite(np.asarray(values)) if is_right else _describe(returned)
    if bad:
        raise PluginError(f"{name} returned {bad}{expected}")


def _non_finite(values: np.ndarray) -> str:
    """Return the first value that is not finite, for a message; empty if there is none."""
    # a sum needs no second array; one that overflows proves nothing
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return ""
    wrong = values[~np.isfinite(values)]
    return f"the value {wrong.flat[0]}" if wrong.size else ""


def _describe(value: Any) -> str:
    if getattr(value, "shape", None) is not None and getattr(value, "dtype", None) is not None:
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of length {len(value)}"
    return f"a {type(value).__name__}"
