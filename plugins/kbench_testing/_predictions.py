"""Checks of learners for one task: of labels, or of numbers."""

import numpy as np

from kbench.errors import PluginError
from kbench.features import predict_all, validate_labels, validate_numbers
from kbench_testing._subject import Subject, blobs, is_poor, most_classes, quiet, sample

_NORMAL_90 = 1.645
_MIN_EXPLAINED = 0.4


def check_labels(subject: Subject) -> None:
    """Predictions are labels of the kind that `fit` was given."""
    X, y = sample(subject)
    for names in (np.array([3, 7, 11]), np.array(["ash", "beech", "oak"])):
        labels = names[y]
        predicted = subject.output(subject.fitted(X, labels), X)
        advice = "{error}; return self.classes_[...] instead of indices or signs"
        with subject.failing(advice, PluginError):
            validate_labels(predicted, np.unique(labels), len(y), "it")


def check_probabilities(subject: Subject) -> None:
    """Probabilities sum to 1 in each row; decision values are finite."""
    X, y = sample(subject)
    fitted = subject.fitted(X, y)
    with subject.failing(kind=PluginError):
        predictions = predict_all(fitted, X, y, "classification")
        predictions.validate("classification", np.unique(y), len(y), "it")


def check_scheme(subject: Subject) -> None:
    """The record declares the default of a parameter `multiclass`, which labels show."""
    parameter = (subject.parameters() or {}).get("multiclass")
    declared = subject.record.multiclass
    if parameter is not None and parameter.default != repr(declared):
        raise subject.fail(
            f"has the parameter multiclass={parameter.default}, and its record says "
            f"multiclass={declared!r}; give the record the parameter's default, which labels show"
        )


def check_better_than_majority(subject: Subject) -> None:
    """Accuracy on two and three separable classes is better than that of the largest class."""
    subject.skip_if(is_poor(subject), "tagged poor_score")
    for n_classes in range(2, most_classes(subject) + 1):
        X, y = blobs(n_classes)
        X_new, y_new = blobs(n_classes, seed=1)
        predicted = subject.output(subject.fitted(X, y), X_new)
        majority = float(np.bincount(y_new).max() / len(y_new))
        if predicted.shape != y_new.shape or not np.isin(predicted, y).all():
            raise subject.skip("does not predict the labels it was given: see check_labels")
        accuracy = float(np.mean(predicted == y_new))
        subject.fail_if(
            accuracy < (1 + majority) / 2,
            f"accuracy {accuracy:.2f} on {n_classes} well separated classes (the largest has "
            f"{majority:.0%}); check signs, the intercept and the loss (a learner that is "
            "meant to be poor has the tag classifier_tags.poor_score)",
        )


def check_numbers(subject: Subject) -> None:
    """Predictions are finite numbers, one per row, and not a column."""
    X, y = sample(subject)
    predicted = subject.output(subject.fitted(X, y), X)
    with subject.failing("{error}; return a one-dimensional array of floats", PluginError):
        validate_numbers(predicted, len(y), "predict")


def check_better_than_mean(subject: Subject) -> None:
    """Errors on a linear problem are smaller than those of the mean."""
    subject.skip_if(is_poor(subject), "tagged poor_score")
    (X, y), (X_new, y_new) = sample(subject), sample(subject, seed=1)
    explained = _explain(subject, subject.output(subject.fitted(X, y), X_new), y_new)
    subject.fail_if(
        not explained > _MIN_EXPLAINED,
        f"explains {explained:.0%} of the variance of new targets on a linear problem whose "
        "inputs explain 80%; check signs, the intercept and the loss, and that predictions "
        "have the unit of the targets (a learner that is meant to be poor has the tag "
        "regressor_tags.poor_score)",
    )


def check_distribution(subject: Subject) -> None:
    """With `return_std`, standard deviations are positive and intervals cover normal noise."""
    (X, y), (X_new, y_new) = sample(subject), sample(subject, seed=1)
    fitted = subject.fitted(X, y)
    alone = subject.output(fitted, X_new)
    explained = _explain(subject, alone, y_new)
    with subject.failing(kind=PluginError), quiet():
        made = predict_all(fitted, X_new.copy(), alone, "regression")
        predictions = made.validate("regression", np.empty(0), len(y_new), "it")
    if predictions.sd is None:  # there is no predictive distribution
        return
    with quiet():
        mean, _ = fitted.predict(X_new.copy(), return_std=True)
    if not np.allclose(mean, alone, rtol=1e-6, atol=1e-8):
        raise subject.fail("predict gives other means with return_std=True than without")
    if explained <= _MIN_EXPLAINED and not is_poor(subject):
        raise subject.skip("not calibrated on what it cannot predict: see check_better_than_mean")
    covered = float(np.mean(np.abs(y_new - predictions.predicted) <= _NORMAL_90 * predictions.sd))
    subject.fail_if(
        not 0.75 <= covered <= 0.985,
        f"90 % intervals cover {100 * covered:.0f} % of new targets with normal noise; `std` "
        "is that of a new observation: the variance of the function plus that of the noise",
    )


def _explain(subject: Subject, predicted: np.ndarray, y: np.ndarray) -> float:
    """Return the share of the variance that predictions explain; skip what is not numbers."""
    are_numbers = predicted.shape == y.shape and predicted.dtype.kind in "fiu"
    if not (are_numbers and np.isfinite(predicted).all()):
        raise subject.skip("does not predict one finite number per row: see check_numbers")
    return 1.0 - float(np.mean((predicted - y) ** 2) / y.var())
