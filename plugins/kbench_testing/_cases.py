"""The checks of each kind of component, and their results."""

import traceback
import unittest
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from kbench import features
from kbench.errors import KbenchError, PluginError, SuiteError
from kbench.features import build, importable, list_plugins
from kbench.records import Cell, TaskType
from kbench_testing import (
    _datasets,
    _estimators,
    _feature_maps,
    _features,
    _kernels,
    _learners,
    _metrics,
    _predictions,
    _subject,
)
from kbench_testing._subject import Named, Subject

_AGAIN_S = 1.0


class TimeLimitExceeded(BaseException):
    """A block has taken too long. Code that catches every `Exception` lets it pass."""


if TYPE_CHECKING:
    import pytest

Check = Callable[[Subject], None]
Status = Literal["passed", "failed", "warned", "skipped"]

# Seconds that one check may take; those of the built-in components take up to 20.
TIME_S = 300.0


def check_loads(subject: Subject) -> None:
    """The plugin loads, and its records keep the rules of the hooks."""
    subject.fail_if(subject.record, f"is left out: {subject.record}")


def check_suite(subject: Subject) -> None:
    """The suite file has no error and plans at least one cell."""
    with subject.failing(kind=SuiteError):
        planned = _plan(subject)
    subject.fail_if(not planned, "plans no cell; give it datasets, feature_maps and learners")


def _plan(subject: Subject) -> Sequence[Cell]:
    """Return all cells of a suite, also those of blocks whose rules on size do not hold."""
    source = subject.record.read_text(encoding="utf-8")
    name, registry = subject.name, subject.registry
    if not features.has_rules(features.parse_toml(source, name)):
        return features.cells(features.read(source, name, registry), registry)
    sized: Sequence[Cell] | None = features.Verbs().one(
        "kbench_sized_cells", text=source, name=name, registry=registry
    )
    if sized is None:
        raise subject.skip("has rules on the size of data, which no installed feature supports")
    return sized


def check_draw(subject: Subject) -> None:
    """The function that draws the figure exists."""
    with subject.failing("cannot be drawn: {error}", PluginError):
        features.resolve(subject.record.draw)


def _checks_in(*modules: ModuleType) -> tuple[Check, ...]:
    """Return the functions ``check_...`` that modules define, in their order."""
    return tuple(
        function
        for module in modules
        for name, function in vars(module).items()
        if name.startswith("check_") and function.__module__ == module.__name__
    )


CHECKS: Mapping[str, tuple[Check, ...]] = {
    "plugin": (check_loads,),
    "feature map": _checks_in(_feature_maps, _estimators),
    "kernel": _checks_in(_kernels),
    "learner": _checks_in(_predictions, _learners, _estimators),
    "dataset": _checks_in(_datasets),
    "metric": _checks_in(_metrics),
    "suite": (check_suite,),
    "figure": (check_draw,),
    "feature": _checks_in(_features),
}
"""All checks, by the kind of component."""

_OF_TASK: Mapping[Check, TaskType] = {
    _predictions.check_labels: "classification",
    _predictions.check_probabilities: "classification",
    _predictions.check_scheme: "classification",
    _predictions.check_better_than_majority: "classification",
    _predictions.check_numbers: "regression",
    _predictions.check_better_than_mean: "regression",
    _predictions.check_distribution: "regression",
}

# checks of optional declarations
_ONLY_IF: Mapping[Check, Callable[[Any], object]] = {
    _feature_maps.check_learns_nothing_from_y: lambda record: not record.supervised,
    _feature_maps.check_gram_error: lambda record: record.kernel is not None,
    _feature_maps.check_unbiased: lambda record: record.unbiased,
    _estimators.check_grid: lambda record: record.grid,
    _estimators.check_metrics: lambda record: record.metrics is not None,
    _kernels.check_psd: lambda record: record.psd,
    _learners.check_kernelized: lambda record: record.uses_kernel,
    _learners.check_path: lambda record: record.path is not None,
    _learners.check_sums: lambda record: record.path is not None,
    _learners.check_passes: lambda record: record.path is not None,
    _learners.check_simpler: lambda record: record.simpler,
    _metrics.check_weights: lambda record: features.takes_weights(
        features.resolve(record.function)
    ),
    _datasets.check_expand: lambda record: record.expand is not None,
    _datasets.check_endings: lambda record: record.extensions,
}


def checks_of(component: Subject) -> list[Check]:
    """Return the checks that a component gets: those of its kind, its task and its declarations."""
    return [
        check
        for check in CHECKS.get(component.kind, ())
        if _OF_TASK.get(check) in (None, component.task)
        and (check not in _ONLY_IF or _ONLY_IF[check](component.record))
    ]


def components(
    plugin: Named, params: Mapping[str, Mapping[str, object]] | None = None
) -> list[Subject]:
    """List the components of a plugin, itself first.

    A learner that has a classifier and a regressor is listed twice, and so is a supervised
    map for both tasks.

    Parameters
    ----------
    plugin : module or str
        The plugin's module; or the name of its entry point, module or
        distribution. It may be that of a feature too.
    params : mapping of str to mapping, optional
        Parameters to check a component with, by its name: needed where one
        has no default and is in no grid.

    Raises
    ------
    PluginError
        There is no such plugin or feature.
    """
    everything = importable(list_plugins())
    subjects = [Subject("feature", each.name, each) for each in _subject.find_features(plugin)]
    for plugin_ in _subject.find(plugin, everything, optional=bool(subjects)):
        # one that is not installed is checked beside those that are
        registry = build(everything if plugin_ in everything else [*everything, plugin_])
        identity = (plugin_.name, plugin_.load)
        reason = next(p.reason for p in registry.plugins if (p.name, p.load) == identity)
        subjects.append(Subject("plugin", plugin_.name, reason))
        subjects += [
            Subject(kind, name, record, registry, (params or {}).get(name, {}), task)
            for kind in CHECKS
            if kind not in ("plugin", "feature")
            for name, record in registry.all(kind).items()  # type: ignore[arg-type]
            if (owner := registry.owner(kind, name)).name == plugin_.name  # type: ignore[arg-type]
            and owner.distribution == plugin_.distribution
            for task in _tasks(kind, record)
        ]
    return subjects


def _tasks(kind: str, record: Any) -> Iterable[TaskType | None]:
    """Return the tasks for which a component is checked; None where it sees no targets."""
    sees_targets = kind == "learner" or (kind == "feature map" and record.supervised)
    return tuple(record.tasks) if sees_targets else (None,)


def parametrize_with_checks(
    plugin: Named, params: Mapping[str, Mapping[str, object]] | None = None, slow: bool = True
) -> "pytest.MarkDecorator":
    """Make one pytest case of each component of a plugin and each check.

    Parameters
    ----------
    plugin, params
        As `components` takes them.
    slow : bool, default True
        Run scikit-learn's estimator checks too, which take seconds for
        each component.

    Returns
    -------
    pytest mark
        Decorates a test with the parameters ``component`` and ``check``.

    Raises
    ------
    PluginError
        There is no such plugin.

    Examples
    --------
    In a test module of the plugin, all there is to write::

        from kbench_testing import parametrize_with_checks

        @parametrize_with_checks("my-plugin")
        def test_conformance(component, check):
            check(component)
    """
    import pytest

    return pytest.mark.parametrize(
        ("component", "check"),
        [
            pytest.param(subject, check, id=f"{subject}-{check.__name__}")
            for subject, check in _cases(components(plugin, params), slow)
        ],
    )


@dataclass(frozen=True)
class CheckResult:
    """The result of one check.

    Parameters
    ----------
    component : Subject
    check : str
        Name of the check.
    status : {"passed", "failed", "warned", "skipped"}
    message : str, optional
        What is wrong and how to correct it.
    """

    component: Subject
    check: str
    status: Status
    message: str = ""


def run(checked: Iterable[Subject], slow: bool = True) -> Iterator[CheckResult]:
    """Run all checks of components and yield the result of each.

    A check that has not ended within 5 minutes has failed, and the component's further
    checks are skipped. Code that never returns to Python cannot be stopped.

    Parameters
    ----------
    checked : iterable of Subject
        As `components` lists them.
    slow : bool, default True
        Run scikit-learn's estimator checks too.
    """
    hung: dict[str, str] = {}
    for subject, check in _cases(checked, slow):
        if first := hung.get(str(subject)):
            yield CheckResult(subject, check.__name__, "skipped", f"{first} did not end")
            continue
        try:
            with features.limit_time(TIME_S, TimeLimitExceeded, _AGAIN_S):
                result = _result(subject, check)
        except TimeLimitExceeded:
            hung[str(subject)] = check.__name__
            result = CheckResult(
                subject, check.__name__, "failed", f"it did not end within {TIME_S:g} s"
            )
        yield result


def _cases(subjects: Iterable[Subject], slow: bool) -> Iterator[tuple[Subject, Check]]:
    """Yield each subject with each of its checks."""
    for subject in subjects:
        for check in checks_of(subject):
            if slow or check not in (_estimators.check_sklearn, _features.check_run):
                yield subject, check


def _result(subject: Subject, check: Check) -> CheckResult:
    def result(status: Status, message: str = "") -> CheckResult:
        return CheckResult(subject, check.__name__, status, message.removeprefix(f"{subject}: "))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check(subject)
        except unittest.SkipTest as error:
            return result("skipped", str(error))
        except (_subject.Nonconforming, KbenchError) as error:
            return result("failed", str(error))
        except (Exception, SystemExit) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}, line {last.lineno}"
            return result("failed", f"raised {_subject.named_error(error)} ({place})")
    missing = [str(w.message) for w in caught if w.category is _subject.ConformanceWarning]
    return result("warned", "; ".join(missing)) if missing else result("passed")
