"""Checks that feature maps and learners share."""

import re

from kbench.features import group_values, resolve
from kbench.records import Tune, alternatives
from kbench_testing._subject import Subject, named_error, quiet, read_tags, same, sample

_METRIC_NAME = re.compile(r"[\w\-. :/]+")


def check_grid(subject: Subject) -> None:
    """The grid names real parameters, and each of its values builds."""
    for name, values in subject.record.grid.items():
        subject.fail_unless_parameter(name, "the grid searches over")
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
        not same(*outputs),
        "two fits on the same data with the same random_state differ; draw only from "
        "check_random_state(self.random_state), in fit, never from numpy's global state",
    )


def check_metrics(subject: Subject) -> None:
    """`metrics` returns finite or NaN floats under names that MLflow takes."""
    X, y = sample(subject)
    metrics = resolve(subject.record.metrics)(subject.fitted(X, y), X, y)
    for name, value in dict(metrics).items():
        if not isinstance(name, str) or not _METRIC_NAME.fullmatch(name):
            raise subject.fail(f"metrics returns the name {name!r}; use letters, digits and _ only")
        with subject.failing(f"metrics returns {value!r} for {name!r}; it must be one number"):
            float(value)


# What to change, by what the line of a failed check of scikit-learn contains.
_ADVICE = {
    "read-only": "do not write into inputs (validate_data(..., copy=True) makes a copy)",
    "check_estimator_cloneable": "let __init__ only store each parameter, unchanged, under its "
    "own name",
    "check_n_features_in": "call validate_data(self, X) in fit, and with reset=False after it",
    "check_estimators_pickle": "keep no lambdas, generators or open files on self, and let "
    "__getstate__ return all fitted attributes",
    "check_classifiers_one_label": "raise a ValueError in fit that says that there is one class",
    "check_classifiers_classes": "set self.classes_ = numpy.unique(y) in fit",
}


def check_sklearn(subject: Subject) -> None:
    """scikit-learn's estimator checks pass."""
    from sklearn.utils.estimator_checks import check_estimator

    estimator = subject.build()
    if type(estimator).__module__.partition(".")[0] == "sklearn":
        raise subject.skip("a class of scikit-learn")
    expected: dict[str, str] = {}
    if read_tags(estimator).non_deterministic:
        expected["check_classifiers_train"] = "tagged non_deterministic"
    if getattr(estimator, "shuffle", False):  # a row of weight 2 is one step, not two
        for kind in ("dense", "sparse"):
            expected[f"check_sample_weight_equivalence_on_{kind}_data"] = "rows in drawn order"
    # an object without tags or parameters cannot be checked at all
    no_estimator = "is not a scikit-learn estimator: {error}; derive it from BaseEstimator"
    with subject.failing(no_estimator, TypeError), quiet():
        outcomes = check_estimator(
            estimator, on_fail=None, on_skip=None, expected_failed_checks=expected
        )
    failed = [outcome for outcome in outcomes if outcome["status"] == "failed"]
    by_error = group_values((named_error(each["exception"]), each["check_name"]) for each in failed)
    lines = "".join(
        f"\n  {checks[0]}{f' and {len(checks) - 1} more' * (len(checks) > 1)}: {error}"
        for error, checks in by_error.items()
    )
    advice = "".join(f"{text}; " for part, text in _ADVICE.items() if part in lines)
    subject.fail_if(
        failed,
        f"{len(failed)} of scikit-learn's estimator checks failed; {advice}each is explained in "
        f"scikit-learn's guide on developing estimators:{lines}",
    )
