"""Checks of learners."""

from __future__ import annotations

import numpy as np

from kbench.evaluation.search import is_number
from kbench.messages import did_you_mean
from kbench.testing._component import Component, named_error, tags_of
from kbench.testing._samples import blobs, noise


def check_labels(component: Component) -> None:
    """Predictions are labels of the kind that `fit` was given."""
    X, y = blobs(_most_classes(component))
    for names in (np.array([3, 7, 11]), np.array(["ash", "beech", "oak"])):
        predicted = component.predictions(component.fitted(X, names[y]), X)
        if predicted.shape != y.shape:
            raise component.fail(
                f"predict gives shape {predicted.shape} for {len(y)} rows; return one label each"
            )
        strange = set(predicted.tolist()) - set(names.tolist())
        if strange:
            raise component.fail(
                f"was fitted with the labels {names.tolist()} and predicts "
                f"{sorted(strange, key=repr)[:3]}; "
                "return self.classes_[...] instead of positions or signs"
            )


def check_classes(component: Component) -> None:
    """`classes_` holds the labels, sorted."""
    X, y = blobs(_most_classes(component))
    fitted = component.fitted(X, y)
    found = getattr(fitted, "classes_", None)
    if found is None or not np.array_equal(np.asarray(found), np.unique(y)):
        raise component.fail(
            f"classes_ is {'missing' if found is None else found} after a fit with labels "
            f"{np.unique(y).tolist()}; set self.classes_ = numpy.unique(y) in fit"
        )


def check_better_than_majority(component: Component) -> None:
    """Separable classes, two and three, are told apart better than by the largest one."""
    if _is_poor(component):
        raise component.skip("tagged poor_score")
    for n_classes in range(2, _most_classes(component) + 1):
        X, y = blobs(n_classes)
        X_new, y_new = blobs(n_classes, seed=1)
        predicted = component.predictions(component.fitted(X, y), X_new)
        majority = float(np.bincount(y_new).max() / len(y_new))
        if predicted.shape != y_new.shape or not np.isin(predicted, y).all():
            raise component.skip("does not predict the labels it was given: see check_labels")
        accuracy = float(np.mean(predicted == y_new))
        if accuracy < (1 + majority) / 2:
            raise component.fail(
                f"accuracy {accuracy:.2f} on {n_classes} well separated classes, of which the "
                f"largest has {majority:.0%}; check signs, the intercept and the loss (a learner "
                "that is meant to be poor has the tag classifier_tags.poor_score)"
            )


def check_one_class(component: Component) -> None:
    """Training labels of a single class are refused with a ValueError."""
    X, y = blobs(2)
    y = np.zeros_like(y)
    try:
        predicted = component.predictions(component.fitted(X, y), X)
    except ValueError as error:
        if "class" in str(error) or "label" in str(error):
            return
        raise component.fail(
            f"refuses a single class with {named_error(error)}; say that there is one class"
        ) from error
    except Exception as error:
        raise component.fail(
            f"meets a single class with {named_error(error)}; raise a ValueError that says so"
        ) from error
    if not np.array_equal(predicted, y):
        raise component.fail(
            "was fitted on a single class and predicts another; raise a ValueError in fit"
        )
    component.warn("accepts a single class, where a ValueError would show the mistake")


def check_kernelized(component: Component) -> None:
    """A kernelized learner has a parameter `kernel`."""
    if "kernel" not in (component.parameters() or {"kernel": None}):
        raise component.fail(
            "is declared kernelized and has no parameter 'kernel'; add it, or drop the flag"
        )


def check_path(component: Component) -> None:
    """`fit_path` gives the estimators that separate fits give, in order."""
    name = component.record.path
    values = list(component.record.grid.get(name, ()))
    allowed = component.parameters()
    if allowed is not None and name not in allowed:
        raise component.fail(f"has the path {name!r}, which is no parameter of it")
    estimator = component.build()
    if not callable(getattr(estimator, "fit_path", None)):
        raise component.fail(
            f"has the path {name!r} and no method fit_path(X, y, values); write it, or drop path"
        )
    if len(values) < 2:
        values = [getattr(estimator, name), 2 * getattr(estimator, name)]
    values = [values[-1], values[0]]
    X, y = blobs(_most_classes(component))
    along = list(component.build().fit_path(X.copy(), y.copy(), values))
    if len(along) != len(values):
        raise component.fail(f"fit_path gives {len(along)} estimators for {len(values)} values")
    for value, fitted in zip(values, along, strict=True):
        if fitted.get_params()[name] != value:
            raise component.fail(
                f"fit_path gives an estimator with {name}={fitted.get_params()[name]!r} where "
                f"{value!r} was asked for; keep the order of the values"
            )
        alone = component.fitted(X, y, **{name: value})
        agreeing = np.mean(component.predictions(alone, X) == component.predictions(fitted, X))
        if agreeing < 0.95:
            raise component.fail(
                f"fit_path and fit disagree on {1 - agreeing:.0%} of the rows at {name}={value!r}"
            )


def check_simpler(component: Component) -> None:
    """`simpler` orders the values of numeric parameters, the simpler model fitting noise worse."""
    simpler = component.record.simpler
    how = 'say simpler={"C": "smaller"}, or "larger", for each parameter that regularises'
    allowed = component.parameters()
    for name, direction in simpler.items():
        if allowed is not None and name not in allowed:
            raise component.fail(
                f"simpler names {name!r}, which is no parameter{did_you_mean(str(name), allowed)}"
            )
        if direction not in ("smaller", "larger"):
            raise component.fail(f"simpler says {direction!r} of {name!r}; {how}")
        values = list(component.record.grid.get(name, ()))
        strange = [value for value in values if not is_number(value)]
        if strange:
            raise component.fail(
                f"simpler orders {name!r}, and its grid has {strange[0]!r}, which is no Python "
                "number: the one-standard-error rule would pass it over"
            )
        if len(set(values)) > 1:
            _check_order(component, name, direction, sorted(values, reverse=direction == "larger"))


def _check_order(component: Component, name: str, direction: str, values: list[float]) -> None:
    """Fit labels that are mere chance: a simpler model cannot learn them by heart as well."""
    X, y = noise()
    simplest, other = (
        float(np.mean(component.predictions(component.fitted(X, y, **{name: value}), X) == y))
        for value in (values[0], values[-1])
    )
    if simplest > other + 0.05:
        raise component.fail(
            f"simpler says that {direction} values of {name!r} make simpler models, but "
            f"{name}={values[0]!r} fits random labels better than {name}={values[-1]!r} does "
            f"({simplest:.0%} of the training rows, {other:.0%}): turn it round"
        )


def _most_classes(component: Component) -> int:
    """Three, or two for a learner that says it takes no more."""
    tags = tags_of(component.build()).classifier_tags
    return 3 if tags is None or tags.multi_class else 2


def _is_poor(component: Component) -> bool:
    tags = tags_of(component.build()).classifier_tags
    return bool(tags is not None and tags.poor_score)
