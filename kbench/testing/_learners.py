"""Checks of learners."""

from __future__ import annotations

import numpy as np

from kbench.errors import PluginError
from kbench.evaluation.outputs import checked_labels, predictions_of
from kbench.evaluation.search import is_number
from kbench.messages import did_you_mean
from kbench.testing._samples import blobs, noise
from kbench.testing._subject import Subject, named_error, tags_of


def check_labels(subject: Subject) -> None:
    """Predictions are labels of the kind that `fit` was given."""
    X, y = blobs(_most_classes(subject))
    for names in (np.array([3, 7, 11]), np.array(["ash", "beech", "oak"])):
        given = names[y]
        predicted = subject.output(subject.fitted(X, given), X)
        try:
            checked_labels(predicted, np.unique(given), len(y), "it")
        except PluginError as error:
            raise subject.fail(
                f"{error}; return self.classes_[...] instead of positions or signs"
            ) from None


def check_probabilities(subject: Subject) -> None:
    """Probabilities sum to 1 in each row; decision values are finite."""
    X, y = blobs(_most_classes(subject))
    fitted = subject.fitted(X, y)
    try:
        given = predictions_of(fitted, X, y, "classification")
        given.checked("classification", np.unique(y), len(y), "it")
    except PluginError as error:
        raise subject.fail(str(error)) from None


def check_classes(subject: Subject) -> None:
    """`classes_` holds the labels, sorted."""
    X, y = blobs(_most_classes(subject))
    fitted = subject.fitted(X, y)
    classes = getattr(fitted, "classes_", None)
    if classes is None or not np.array_equal(np.asarray(classes), np.unique(y)):
        raise subject.fail(
            f"classes_ is {'missing' if classes is None else classes} after a fit with labels "
            f"{np.unique(y).tolist()}; set self.classes_ = numpy.unique(y) in fit"
        )


def check_better_than_majority(subject: Subject) -> None:
    """Accuracy on two and three separable classes is better than that of the largest class."""
    if _is_poor(subject):
        raise subject.skip("tagged poor_score")
    for n_classes in range(2, _most_classes(subject) + 1):
        X, y = blobs(n_classes)
        X_new, y_new = blobs(n_classes, seed=1)
        predicted = subject.output(subject.fitted(X, y), X_new)
        majority = float(np.bincount(y_new).max() / len(y_new))
        if predicted.shape != y_new.shape or not np.isin(predicted, y).all():
            raise subject.skip("does not predict the labels it was given: see check_labels")
        accuracy = float(np.mean(predicted == y_new))
        if accuracy < (1 + majority) / 2:
            raise subject.fail(
                f"accuracy {accuracy:.2f} on {n_classes} well separated classes, of which the "
                f"largest has {majority:.0%}; check signs, the intercept and the loss (a learner "
                "that is meant to be poor has the tag classifier_tags.poor_score)"
            )


def check_one_class(subject: Subject) -> None:
    """Training labels of a single class are refused with a ValueError."""
    X, y = blobs(2)
    y = np.zeros_like(y)
    try:
        predicted = subject.output(subject.fitted(X, y), X)
    except ValueError as error:
        if "class" in str(error) or "label" in str(error):
            return
        raise subject.fail(
            f"refuses a single class with {named_error(error)}; say that there is one class"
        ) from error
    except Exception as error:
        raise subject.fail(
            f"meets a single class with {named_error(error)}; raise a ValueError that says so"
        ) from error
    if not np.array_equal(predicted, y):
        raise subject.fail(
            "was fitted on a single class and predicts another; raise a ValueError in fit"
        )
    subject.warn("accepts a single class, where a ValueError would show the mistake")


def check_kernelized(subject: Subject) -> None:
    """A kernelized learner has a parameter `kernel` or, for several of them, `kernels`."""
    if not {"kernel", "kernels"} & set(subject.parameters() or {"kernel": None}):
        raise subject.fail(
            "is declared kernelized and has no parameter 'kernel' or 'kernels'; add it, or drop "
            "the flag"
        )


def check_path(subject: Subject) -> None:
    """`fit_path` gives the estimators that separate fits give, in order."""
    name = subject.record.path
    values = list(subject.record.grid.get(name, ()))
    allowed = subject.parameters()
    if allowed is not None and name not in allowed:
        raise subject.fail(
            f"has the path {name!r}, which is not a parameter{did_you_mean(name, allowed)}"
        )
    estimator = subject.build()
    if not callable(getattr(estimator, "fit_path", None)):
        raise subject.fail(
            f"has the path {name!r} and no method fit_path(X, y, values); write it, or drop path"
        )
    if len(values) < 2:
        values = [getattr(estimator, name), 2 * getattr(estimator, name)]
    values = [values[-1], values[0]]
    X, y = blobs(_most_classes(subject))
    along = list(subject.build().fit_path(X.copy(), y.copy(), values))
    if len(along) != len(values):
        raise subject.fail(f"fit_path gives {len(along)} estimators for {len(values)} values")
    for value, fitted in zip(values, along, strict=True):
        if fitted.get_params()[name] != value:
            raise subject.fail(
                f"fit_path gives an estimator with {name}={fitted.get_params()[name]!r} where "
                f"{value!r} was asked for; keep the order of the values"
            )
        alone = subject.fitted(X, y, **{name: value})
        agreeing = np.mean(subject.output(alone, X) == subject.output(fitted, X))
        if agreeing < 0.95:
            raise subject.fail(
                f"fit_path and fit disagree on {1 - agreeing:.0%} of the rows at {name}={value!r}"
            )


def check_simpler(subject: Subject) -> None:
    """`simpler` orders the values of numeric parameters, the simpler model fitting noise worse."""
    simpler = subject.record.simpler
    how = 'say simpler={"C": "smaller"}, or "larger", for each parameter that regularises'
    allowed = subject.parameters()
    for name, direction in simpler.items():
        if allowed is not None and name not in allowed:
            raise subject.fail(
                f"simpler names {name!r}, which is not a parameter"
                f"{did_you_mean(str(name), allowed)}"
            )
        if direction not in ("smaller", "larger"):
            raise subject.fail(f"simpler says {direction!r} of {name!r}; {how}")
        values = list(subject.record.grid.get(name, ()))
        strange = [value for value in values if not is_number(value)]
        if strange:
            raise subject.fail(
                f"simpler orders {name!r}, and its grid has {strange[0]!r}, which is not a "
                "Python number: the one-standard-error rule would pass it over"
            )
        if len(set(values)) > 1:
            _check_order(subject, name, direction, sorted(values, reverse=direction == "larger"))


def _check_order(subject: Subject, name: str, direction: str, values: list[float]) -> None:
    """Fit random labels, which a simpler model cannot learn by heart as well."""
    X, y = noise()
    simplest, other = (
        float(np.mean(subject.output(subject.fitted(X, y, **{name: value}), X) == y))
        for value in (values[0], values[-1])
    )
    if simplest > other + 0.05:
        raise subject.fail(
            f"simpler says that {direction} values of {name!r} make simpler models, but "
            f"{name}={values[0]!r} fits random labels better than {name}={values[-1]!r} does "
            f"({simplest:.0%} of the training rows, {other:.0%}): reverse the direction"
        )


def _most_classes(subject: Subject) -> int:
    """Return 3, or 2 for a learner whose tags allow two classes only."""
    tags = tags_of(subject.build()).classifier_tags
    return 3 if tags is None or tags.multi_class else 2


def _is_poor(subject: Subject) -> bool:
    tags = tags_of(subject.build()).classifier_tags
    return bool(tags is not None and tags.poor_score)
