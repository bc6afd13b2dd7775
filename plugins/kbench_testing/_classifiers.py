"""Checks of learners for classification."""

from __future__ import annotations

import numpy as np

from kbench.errors import PluginError
from kbench.features import predict_all, validate_labels
from kbench_testing._subject import Subject, blobs, is_poor, most_classes, sample


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
