"""Checks that feature maps and learners share."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np

from kbench.features import resolve
from kbench.messages import did_you_mean
from kbench.records import Tune, alternatives
from kbench_testing._subject import (
    Subject,
    blobs,
    inputs,
    linear,
    named_error,
    quiet,
    read_tags,
    same,
    targets,
)

_METRIC_NAME = re.compile(r"[\w\-. :/]+")


def sample(subject: Subject, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and targets that suit a map or a learner."""
    if subject.is_learner:
        return linear(60, seed) if subject.task == "regression" else blobs(2, seed)
    X = inputs(subject.record.requires, seed=seed)
    return X, targets(X, subject.task)


def agree(first: Any, second: Any) -> bool:
    """Return whether two outputs are equal: labels exactly, numbers up to rounding."""
    if getattr(first, "dtype", None) is not None and first.dtype.kind not in "fc":
        return bool(np.array_equal(first, second))
    return same(first, second)


def check_grid(subject: Subject) -> None:
    """The grid names real parameters, and each of its values builds."""
    allowed = subject.parameters()
    for name, values in subject.record.grid.items():
        if allowed is not None and name not in allowed:
            raise subject.fail(
                f"the grid searches over {name!r}, which is not a parameter"
                f"{did_you_mean(name, allowed)}; rename it in the record's grid"
            )
        subject.fail_if(
            isinstance(values, str) or not len(values),
            f"the grid has {values!r} for {name!r}; give a list with at least one value",
        )
        for value in alternatives(Tune(tuple(values))):
            with subject.failing(
                f"cannot be built with {name}={value!r} of its grid: {{error}}; remove that "
                "value, or accept it"
            ):
                subject.build(**{name: value})


def check_determinism(subject: Subject) -> None:
    """Equal `random_state` and data give equal outputs, whatever ran before."""
    subject.skip_if(read_tags(subject.build()).non_deterministic, "tagged non_deterministic")
    X, y = sample(subject)
    outputs = []
    for state in (1, 2):
        estimator = subject.build()
        with quiet(state):  # the global state must not matter
            subject.fit(estimator, X.copy(), y.copy())
            # the first call only: a second one may differ for another reason
            outputs.append(subject.apply(estimator, X.copy()))
    subject.fail_if(
        not agree(*outputs),
        "two fits on the same data with the same random_state differ; draw only from "
        "check_random_state(self.random_state), in fit, never from numpy's global state",
    )


def check_inputs_untouched(subject: Subject) -> None:
    """Read-only inputs are accepted, and no input is changed."""
    X, y = sample(subject)
    for frozen in (False, True):
        inputs, target = X.copy(), y.copy()
        inputs.flags.writeable = target.flags.writeable = not frozen
        estimator = subject.build()
        try:
            with quiet():
                subject.fit(estimator, inputs, target)
                subject.apply(estimator, inputs)
        except ValueError as error:
            if frozen and "read-only" in str(error):
                raise subject.fail(
                    f"writes into its inputs: {named_error(error)}; work on a copy"
                ) from error
            raise
        subject.fail_if(
            not (np.array_equal(inputs, X) and np.array_equal(target, y)),
            "changes its inputs in place; work on a copy (validate_data(..., copy=True) makes one)",
        )


def check_pickle_and_clone(subject: Subject) -> None:
    """A clone has the same parameters, a pickle gives the same outputs."""
    from sklearn.base import clone

    estimator = subject.build()
    with subject.failing(
        "cannot be cloned: {error}; __init__ must only store each parameter, unchanged, under "
        "its own name"
    ):
        twin = clone(estimator)
    before, after = estimator.get_params(deep=False), twin.get_params(deep=False)
    for name, value in before.items():
        subject.fail_if(
            repr(value) != repr(after[name]),
            f"a clone has {name}={after[name]!r} instead of {value!r}; __init__ must only "
            "store its parameters",
        )
    X, y = sample(subject)
    fitted = subject.fitted(X, y)
    with subject.failing(
        "cannot be pickled once it is fitted: {error}; keep no lambdas, generators or open files "
        "on self"
    ):
        restored = pickle.loads(pickle.dumps(fitted))
    expected = subject.output(fitted, X)
    is_steady = agree(expected, subject.output(fitted, X))
    subject.fail_if(
        is_steady and not agree(expected, subject.output(restored, X)),
        "has different outputs after pickling; __getstate__ and __setstate__ must keep all "
        "fitted attributes",
    )


def check_width(subject: Subject) -> None:
    """`n_features_in_` is set by fit, and inputs of another width are rejected."""
    subject.skip_if(read_tags(subject.build()).no_validation, "tagged no_validation")
    X, y = sample(subject)
    fitted = subject.fitted(X, y)
    if getattr(fitted, "n_features_in_", None) != X.shape[1]:
        width = getattr(fitted, "n_features_in_", "missing")
        raise subject.fail(
            f"n_features_in_ is {width} after a fit on {X.shape[1]} columns; call "
            "validate_data(self, X) in fit"
        )
    for wrong in (X[:, :-1], np.hstack([X, np.zeros((len(X), 1))])):
        try:
            subject.output(fitted, wrong)
        except ValueError:
            continue
        except Exception as error:
            raise subject.fail(
                f"fails on inputs of another width with {named_error(error)}; call "
                "validate_data(self, X, reset=False), which raises a ValueError"
            ) from error
        raise subject.fail(
            f"was fitted on {X.shape[1]} columns and accepts {wrong.shape[1]}; call "
            "validate_data(self, X, reset=False) first"
        )


def check_unfitted(subject: Subject) -> None:
    """Use before fit raises a NotFittedError."""
    from sklearn.exceptions import NotFittedError

    X, _ = sample(subject)
    estimator = subject.build()
    method = "predict" if subject.is_learner else "transform"
    try:
        with quiet():
            subject.apply(estimator, X.copy())
    except NotFittedError:
        return
    except Exception as error:
        raise subject.fail(
            f"{method} before fit raises {named_error(error)}; call check_is_fitted(self) first"
        ) from error
    if subject.is_learner:
        raise subject.fail("predicts before it is fitted; call check_is_fitted(self) first")
    if read_tags(estimator).requires_fit:
        subject.warn("works before fit; if it has no state, say so with the tag requires_fit=False")


def check_metrics(subject: Subject) -> None:
    """`metrics` returns finite or NaN floats under names that MLflow takes."""
    X, y = sample(subject)
    metrics = resolve(subject.record.metrics)(subject.fitted(X, y), X, y)
    for name, value in dict(metrics).items():
        if not isinstance(name, str) or not _METRIC_NAME.fullmatch(name):
            raise subject.fail(f"metrics returns the name {name!r}; use letters, digits and _ only")
        with subject.failing(f"metrics returns {value!r} for {name!r}; it must be one number"):
            float(value)


def check_sklearn(subject: Subject) -> None:
    """scikit-learn's estimator checks pass."""
    from sklearn.utils.estimator_checks import check_estimator

    estimator = subject.build()
    if type(estimator).__module__.partition(".")[0] == "sklearn":
        raise subject.skip("a class of scikit-learn")
    expected: dict[str, str] = {}
    if read_tags(estimator).non_deterministic:
        expected["check_classifiers_train"] = "tagged non_deterministic"
    if subject.kind == "feature map":
        # missing is a warning, which check_unfitted gives
        expected["check_estimators_unfitted"] = "see check_unfitted"
    # an object without tags or parameters cannot be checked at all
    advice = "is not a scikit-learn estimator: {error}; derive it from BaseEstimator"
    with subject.failing(advice, TypeError), quiet():
        outcomes = check_estimator(
            estimator, on_fail=None, on_skip=None, expected_failed_checks=expected
        )
    if failed := [outcome for outcome in outcomes if outcome["status"] == "failed"]:
        lines = [
            f"  {outcome['check_name']}: {named_error(outcome['exception'])}" for outcome in failed
        ]
        raise subject.fail(
            f"{len(failed)} of scikit-learn's estimator checks failed (each is explained in "
            "scikit-learn's guide on developing estimators):\n" + "\n".join(lines)
        ) from failed[0]["exception"]
