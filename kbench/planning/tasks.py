"""Tasks of datasets: which methods apply to them, and which measure a suite compares.

The task of a dataset is known once its facts are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kbench.errors import SuiteError
from kbench.evaluation.definitions import MEASURES, NEVER_RANKED, default_measure
from kbench.planning.cells import cells
from kbench.records import Cell, DatasetFacts, Measure, Problem, Protocol, Suite, TaskType
from kbench.registry.registry import Registry

_SHOWN = 10
"""Mistakes of one kind that a message lists."""

Facts = Mapping[str, DatasetFacts | Problem | None]


def with_measure(suite: Suite, datasets: Facts, registry: Registry) -> Suite:
    """Return a suite that names the measure to compare, checked against its datasets.

    `datasets` has the facts of datasets by label. Without any, the suite is returned as
    it is.

    Raises
    ------
    SuiteError
        A map or learner is not for the task of its dataset, the datasets have different
        tasks, or a measure or the calibration is not for the task.
    """
    tasks = {
        label: facts.task for label, facts in datasets.items() if isinstance(facts, DatasetFacts)
    }
    if not tasks:
        return suite
    problems = [*_mismatches(cells(suite, registry), tasks, registry)]
    kinds: dict[TaskType, str] = {}
    for label, task in tasks.items():
        kinds.setdefault(task, label)
    if len(kinds) > 1 and not problems:
        named = " and ".join(f"{label!r} is {task}" for task, label in kinds.items())
        problems.append(f"a suite compares datasets of one task by one measure, but {named}")
    task = next(iter(kinds))
    if not problems:
        refused = (calibration_problem(block.protocol, task) for block in suite.blocks)
        problems += {problem: None for problem in refused if problem}
        problems += _wrong_measures(suite, task, registry)
    if problems:
        raise SuiteError(*problems)
    return replace(suite, measure=suite.measure or default_measure(task))


def calibration_problem(protocol: Protocol, task: TaskType) -> str | None:
    """Return why the calibration of a protocol does not go with a task; None if it does."""
    if protocol.calibration == "none" or task == "classification":
        return None
    return (
        f'calibration = "{protocol.calibration}" in [protocol] is for classification, '
        f"not for {task}"
    )


def _mismatches(
    every: Iterable[Cell], tasks: Mapping[str, TaskType], registry: Registry
) -> list[str]:
    """Return one message that names all maps and learners that do not go with a dataset."""
    pairs: dict[str, None] = {}
    for cell in every:
        task = tasks.get(cell.dataset.label)
        for kind, ref in (("feature map", cell.feature_map), ("learner", cell.learner)):
            able = registry.get(kind, ref.name).tasks  # type: ignore[arg-type]
            if task is not None and task not in able:
                what = f"{kind} {ref.name!r} ({', '.join(able)})"
                pairs[f"{what} with {cell.dataset.label!r} ({task})"] = None
    if not pairs:
        return []
    listed = [*pairs][:_SHOWN]
    more = f"; and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
    return [f"these do not go together: {'; '.join(listed)}{more}"]


def _wrong_measures(suite: Suite, task: TaskType, registry: Registry) -> Iterable[str]:
    """Yield a message for each measure that is not for a task."""

    def allowed(measure: Measure | None) -> bool:
        return measure is None or measure.task in (None, task)

    known: Mapping[str, Measure] = {**MEASURES, **registry.all("measure")}
    names = [
        name for name, measure in known.items() if measure.task == task and name not in NEVER_RANKED
    ]
    if not allowed(known.get(suite.compared.name, suite.measure) if suite.measure else None):
        yield (f"measure {suite.compared.name!r} is not for {task}; there are {', '.join(names)}")
    for block in suite.blocks:
        name = block.protocol.search_measure
        if name is not None and not allowed(known.get(name)):
            yield f"search_measure {name!r} is not for {task}; there are {', '.join(names)}"
