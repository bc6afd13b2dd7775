"""Tasks of datasets: which methods apply to them, and which metric a suite compares.

The task of a dataset is one of its facts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from kbench.errors import SuiteError
from kbench.evaluation.definitions import METRICS, NEVER_RANKED, SEARCHED, default_metric
from kbench.evaluation.sizes import check_split_size, holdout_sizes
from kbench.messages import similar
from kbench.planning.cells import cell_problems, cells
from kbench.planning.component_refs import relabel_for_task
from kbench.records import Cell, DatasetFacts, Metric, Problem, Protocol, Suite, TaskType
from kbench.registry.registry import Registry

_SHOWN = 10
"""Errors of one kind that a message lists."""

Facts = Mapping[str, DatasetFacts | Problem | None]


def find_task(datasets: Facts) -> TaskType | None:
    """Return the task of the first dataset with facts; None if there is none."""
    tasks = (facts.task for facts in datasets.values() if isinstance(facts, DatasetFacts))
    return next(tasks, None)


def task_rows(n_samples: int, protocol: Protocol) -> tuple[int, int]:
    """Return the training and test rows of a task on `n_samples` rows.

    Only the data have the sizes of official splits, which count as folds here.

    >>> task_rows(1000, Protocol(max_train_rows=500)), task_rows(1000, Protocol(cv="holdout"))
    ((500, 200), (700, 300))
    """
    n_train = n_samples * (protocol.n_folds - 1) // protocol.n_folds
    n_test = n_samples - n_train
    if protocol.cv in ("holdout", "ordered"):
        n_train, n_test = holdout_sizes(n_samples, protocol)
    return min(n_train, protocol.max_train_rows or n_samples), n_test


def set_metric(suite: Suite, datasets: Facts, registry: Registry) -> Suite:
    """Return a suite that names the metric to compare, checked against its datasets.

    `datasets` has the facts of datasets by label. Without any, the suite is returned as
    it is. Default labels of learners become those of the task.

    Raises SuiteError if a map or learner is not for the task of its dataset, the datasets
    have different tasks, a metric or the calibration is not for the task, two learners have the
    same label, or a dataset has too few rows for its splits.
    """
    tasks = {
        label: facts.task for label, facts in datasets.items() if isinstance(facts, DatasetFacts)
    }
    if not tasks:
        return suite
    problems = [*_mismatches(cells(suite, registry), tasks, registry)]
    sizes = (
        check_split_size(facts.n_samples, block.protocol_of(ref), ref.label)
        for block in suite.blocks
        for ref in block.datasets
        if isinstance(facts := datasets.get(ref.label), DatasetFacts) and facts.n_samples
    )
    too_small = dict.fromkeys(filter(None, sizes))
    kinds: dict[TaskType, str] = {}
    for label, task in tasks.items():
        kinds.setdefault(task, label)
    if len(kinds) > 1 and not problems:
        named = " and ".join(f"{label!r} is {task}" for task, label in kinds.items())
        problems.append(f"a suite compares datasets of one task by one metric, but {named}")
    task = next(iter(kinds))
    if not problems:
        refused = (protocol_problem(protocol, task) for protocol in suite.protocols)
        problems += {problem: None for problem in refused if problem}
        problems += _wrong_metric(suite, task, registry)
        searched = (search_problem(protocol, task, registry) for protocol in suite.protocols)
        problems += {problem: None for problem in searched if problem}
    relabel = partial(relabel_for_task, task=task, registry=registry)
    blocks = [replace(each, learners=tuple(map(relabel, each.learners))) for each in suite.blocks]
    suite = replace(suite, blocks=tuple(blocks))
    if problems := [*(problems or cell_problems(suite, registry)), *too_small]:
        raise SuiteError(*problems)
    return replace(suite, metric=suite.metric or default_metric(task))


def protocol_problem(protocol: Protocol, task: TaskType) -> str | None:
    """Return which setting does not go with a task; None if all do."""
    names, other = ["target_scale"], "regression"
    if task == "regression":
        names, other = ["calibration", "threshold_metric"], "classification"
    for name in names:
        if (value := getattr(protocol, name)) != getattr(Protocol(), name):
            return f'{name} = "{value}" in [protocol] is for {other}, not for {task}'
    return None


def search_problem(protocol: Protocol, task: TaskType, registry: Registry) -> str | None:
    """Return why no search of a task can optimise a protocol's metric; None if one can."""
    name = protocol.search_metric
    metrics, searched = _list_metrics(registry), (*SEARCHED, *registry.all("metric"))
    allowed = [each for each in searched if metrics[each].task in (None, task)]
    if name is None or name in allowed:
        return None
    if name in NEVER_RANKED:
        return NEVER_RANKED[name]
    available = f"available: {', '.join(allowed)}"
    if name in searched:
        return f"search_metric {name!r} is not for {task}; {available}"
    return f"no search can optimise {name!r}; {available}{similar(name, allowed)}"


def _list_metrics(registry: Registry) -> dict[str, Metric]:
    return {**METRICS, **registry.all("metric")}


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
                component = f"{kind} {ref.name!r} ({', '.join(able)})"
                pairs[f"{component} with {cell.dataset.label!r} ({task})"] = None
    more = f"; and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
    return [f"these do not go together: {'; '.join([*pairs][:_SHOWN])}{more}"] if pairs else []


def _wrong_metric(suite: Suite, task: TaskType, registry: Registry) -> list[str]:
    metrics = _list_metrics(registry)
    metric = suite.metric and metrics.get(suite.metric.name, suite.metric)
    if metric is None or metric.task in (None, task):
        return []
    names = [
        name for name, other in metrics.items() if other.task == task and name not in NEVER_RANKED
    ]
    return [f"metric {metric.name!r} is not for {task}; available: {', '.join(names)}"]
