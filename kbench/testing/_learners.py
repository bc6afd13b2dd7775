"""Checks of learners for both tasks."""

from __future__ import annotations

import numpy as np

from kbench.evaluation.search import is_number
from kbench.messages import did_you_mean
from kbench.testing._samples import blobs, linear, noise
from kbench.testing._subject import Subject, most_classes


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
    is_regression = subject.task == "regression"
    X, y = linear() if is_regression else blobs(most_classes(subject))
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
        separate, together = subject.output(alone, X), subject.output(fitted, X)
        close = (
            np.abs(separate - together) <= 1e-3 * y.std() if is_regression else separate == together
        )
        agreeing = np.mean(close)
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
    """Fit random targets, which a simpler model cannot learn by heart as well."""
    X, y = noise(subject.task)
    simplest, other = (
        _fit_of(subject, subject.output(subject.fitted(X, y, **{name: value}), X), y)
        for value in (values[0], values[-1])
    )
    if simplest > other + 0.05:
        is_regression = subject.task == "regression"
        what, share = ("numbers", "variance") if is_regression else ("labels", "training rows")
        raise subject.fail(
            f"simpler says that {direction} values of {name!r} make simpler models, but "
            f"{name}={values[0]!r} fits random {what} better than {name}={values[-1]!r} does "
            f"({simplest:.0%} of the {share}, {other:.0%}): reverse the direction"
        )


def _fit_of(subject: Subject, predicted: np.ndarray, y: np.ndarray) -> float:
    """Return the share of labels, or of the variance of numbers, that predictions explain."""
    if subject.task == "regression":
        return 1.0 - float(np.mean((predicted - y) ** 2) / y.var())
    return float(np.mean(predicted == y))
