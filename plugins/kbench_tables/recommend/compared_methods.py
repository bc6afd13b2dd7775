"""Compare methods on a user's file: its suite, its rows, its recommendation."""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kbench import features
from kbench.messages import format_memory, list_some, plural
from kbench.records import Cell, Metric, Protocol, Ref
from kbench_tables.recommend.advice import Advice, advise, n_train
from kbench_tables.recommend.explain import Explanation, explain, seconds_to_explain
from kbench_tables.recommend.timed_suite import Rounds, chosen_settings, scale_setting
from kbench_tables.recommend.user_data import UserData, drifting_columns
from kbench_tables.time_budget.anytime import Schedule
from kbench_tables.time_budget.sample_sizes import class_shares

# Fraction of the limit, and maximum seconds, reserved for the store and the report. On a loaded
# machine it is the time that the seconds below take there, at most the last fraction.
LAST_SHARE, LAST_S, LAST_MOST = 0.05, 5.0, 0.4

# Seconds of CPU time that the store and the end take, and those of a page.
LAST_CPU_S, PAGE_CPU_S = 1.4, 1.0

# Fraction of the limit, and maximum seconds, reserved for importances of any method, and the
# maximum fraction with the predicted time of the best method.
EXPLAIN_SHARE, EXPLAIN_S, EXPLAIN_MOST = 0.1, 3.0, 0.25

# Family of the learners that, like kernels, are not recommended beyond their training range.
LOCAL = "neighbours"

# Family of the learners that the recommended method is compared with.
BOOSTED = "trees"


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


@dataclass(frozen=True)
class Start:
    """The beginning of a command, by `time.monotonic` and in CPU time of this process."""

    wall_s: float = field(default_factory=time.monotonic)
    cpu_s: float = field(default_factory=_cpu_seconds)

    @property
    def seconds(self) -> float:
        """Seconds since then."""
        return time.monotonic() - self.wall_s

    @property
    def slowdown(self) -> float:
        """Seconds that one of CPU time has taken since then, at least 1."""
        return max(1.0, self.seconds / max(_cpu_seconds() - self.cpu_s, 1e-3))


@dataclass(frozen=True)
class ComparedMethods:
    """The outcome of a comparison."""

    report: features.Report
    """Its cells have all results."""
    rows: list[features.Row]
    """One row for each method, best first: that with the most training rows."""
    advice: Advice | None
    """None if no method was evaluated."""
    on_all_rows: tuple[Cell, ...] = ()
    """The cells of a comparison without a time limit."""
    explanation: Explanation | None = None
    """Permutation importances and errors of the recommended method."""
    explained: tuple[str, ...] = ()
    """The same in sentences, or why there is none; and the predicted cost of the recommended method
    on all rows, if it was fitted on fewer."""

    @property
    def chosen(self) -> features.PlannedCell | None:
        """The cell of the recommended method, with its results."""
        if self.advice is None:
            return None
        row = self.advice.chosen
        cells = [
            planned
            for planned in self.report.cells
            if planned.cell.method == row.method and planned.done
        ]
        return max(cells, key=lambda planned: planned.done[0].metrics["n_train"])

    @property
    def settings(self) -> dict[str, object]:
        """Options that export the recommended method as it was evaluated.

        A method of the comparison without a time limit is searched again, on all rows.
        """
        planned = self.chosen
        if planned is None:
            return {}
        if _without_rows(planned.cell) in map(_without_rows, self.on_all_rows):
            return scale_setting(planned)
        return chosen_settings(planned)


def compare(
    data: UserData,
    rounds: Rounds,
    registry: features.Registry,
    *,
    options: features.Options | None = None,
    time_limit: float | None = None,
    started: Start | None = None,
    as_json: bool = False,
    quiet: bool = False,
    explains: bool = False,
    has_page: bool = False,
    words: Callable[[str], str] = str,
) -> ComparedMethods:
    """Compare methods on a user's file, and recommend one.

    The time limit begins at `started`, or now. A page that is written afterwards (`has_page`) has a
    share of it. `words` writes the options that a notice names.
    """
    started = started or Start()
    options = options or features.Options(jobs=None)
    schedule = None
    if time_limit is not None:
        rounds = _with_shared_memory(rounds, options)
        pace, end_cpu_s = started.slowdown, LAST_CPU_S + PAGE_CPU_S * has_page
        schedule = Schedule(
            registry,
            rounds.first,
            rounds.suite.limits.task_memory_mib,
            reserve=_time_to_explain(data, time_limit) if explains else None,
            first_pace=pace,
            end_cpu_s=end_cpu_s,
        )
        last = max(min(LAST_SHARE * time_limit, LAST_S), end_cpu_s * pace)
        if explains:
            last += min(EXPLAIN_SHARE * time_limit, EXPLAIN_S)
        total_s = time_limit - started.seconds - min(last, LAST_MOST * time_limit)
        options = replace(options, total_s=total_s, given={**options.given, "schedule": schedule})
    report = features.run_shown(
        rounds.suite,
        registry,
        options,
        as_json=as_json,
        quiet=quiet,
        further_notices=data.warnings,
        words=words,
    )
    rows = _rows(report, data.ref.label)
    refs = {planned.cell.learner.label: planned.cell.learner for planned in report.cells}
    learners = {label: registry.get("learner", ref.name) for label, ref in refs.items()}
    columns = [role.name for role in data.preview.roles] if data.preview else []
    drift = drifting_columns(data.ref, data.facts, columns)
    followed = {
        planned.cell.method
        for planned in report.cells
        if planned.cell.feature_map.name == features.IDENTITY
        and not learners[planned.cell.learner.label].uses_kernel
        and learners[planned.cell.learner.label].family != LOCAL
    }
    trusted = [row for row in rows if not drift or row.method in followed]
    baselines = [label for label, learner in learners.items() if learner.baseline]
    any_follows = any(row.is_complete and row.learner not in baselines for row in trusted)
    advice = advise(
        trusted if any_follows else rows,
        baselines,
        report.suite.compared,
        data.facts.task,
        [label for label, learner in learners.items() if learner.family == BOOSTED],
        nested=time_limit is not None,
        shares=class_shares(data.facts),
    )
    ranked = advice.ranked if advice else ()
    rows = [*ranked, *(_add_reason(row, time_limit) for row in rows if row not in ranked)]
    compared = ComparedMethods(report, rows, advice, rounds.on_all_rows)
    if schedule is not None and advice is not None:
        compared = replace(compared, explained=_extrapolate_cost(compared, schedule))
    if drift:
        rule = "only linear methods without a feature map, and boosting, are recommended"
        if not any_follows:
            rule = (
                "no linear method without a feature map, and no boosting, was evaluated in full, "
                "so the recommended one may not extrapolate"
            )
        said = (
            f"In the last block, {plural(len(drift), 'column')} ({list_some(drift, 3)}) "
            f"{'leaves' if len(drift) == 1 else 'leave'} the range of the rows before: {rule}."
        )
        compared = replace(compared, explained=(*compared.explained, said))
    if not explains or advice is None:
        return compared
    remaining = math.inf
    if time_limit is not None:  # the store and the report come after it
        remaining = time_limit - started.seconds - min(LAST_SHARE * time_limit, LAST_S)
    return _add_explanation(compared, max(0.0, remaining))


def _with_shared_memory(rounds: Rounds, options: features.Options) -> Rounds:
    limits, jobs = rounds.suite.limits, options.resolve_jobs(rounds.suite).jobs or 1
    limits = replace(limits, task_memory_mib=limits.task_memory_mib / jobs)
    return replace(rounds, suite=replace(rounds.suite, limits=limits))


def _time_to_explain(data: UserData, time_limit: float) -> Callable[[features.PlannedCell], float]:
    n_columns = data.facts.n_features
    if data.preview is not None and data.preview.n_columns:
        n_columns = min(n_columns, data.preview.n_columns)

    def seconds(planned: features.PlannedCell) -> float:
        return min(seconds_to_explain(planned, n_columns), EXPLAIN_MOST * time_limit)

    return seconds


def _add_explanation(compared: ComparedMethods, seconds: float) -> ComparedMethods:

    metric = compared.report.suite.compared
    assert compared.chosen is not None
    result = explain(compared.chosen, features.import_registry(), metric, seconds)
    if isinstance(result, str):
        return replace(compared, explained=(*compared.explained, result))
    sentences = (*compared.explained, *result.sentences(metric.words))
    return replace(compared, explanation=result, explained=sentences)


def _extrapolate_cost(compared: ComparedMethods, schedule: Schedule) -> tuple[str, ...]:
    planned = compared.chosen
    assert planned is not None
    predicted = schedule.cost_on_all_rows(planned.cell.method)
    if planned.cell.protocol.max_train_rows is None or not (predicted and predicted.seconds):
        return ()
    seconds, memory = predicted.seconds.as_seconds(), format_memory(predicted.memory_mib.value)
    return (f"Predicted cost of one split on all rows: {seconds} and {memory}.",)


def _without_rows(cell: Cell) -> Cell:
    return replace(cell, dataset=Ref(""), protocol=Protocol())


# Beginning of the reason of a method that was not evaluated within the time limit.
OUT_OF_TIME = "the time limit of"


def _add_reason(row: features.Row, time_limit: float | None) -> features.Row:
    if row.status != "skipped" or row.error or time_limit is None:
        return row
    done = f"after {row.n_splits_done} of {row.n_splits} splits"
    when = done if row.n_splits_done else "before their first split"
    return replace(row, error=f"{OUT_OF_TIME} {time_limit:g} s ended {when}")


def _rows(report: features.Report, label: str) -> list[features.Row]:
    by_method: dict[tuple[str, str], features.Row] = {}
    metric = report.suite.compared
    for planned in report.cells:
        row = replace(features.make_full_row(planned, features.machine_id(), metric), dataset=label)
        earlier = by_method.get(row.method)
        if earlier is None or _order(row) >= _order(earlier):
            by_method[row.method] = row
    return sorted(by_method.values(), key=lambda row: _rank(row, metric))


def _order(row: features.Row) -> tuple[bool, float]:
    """Sort key of the rows of a method: complete rows and many training rows first."""
    return row.is_complete, n_train(row)


def _rank(row: features.Row, metric: Metric) -> tuple[bool, float]:
    value = row.metrics.get(metric.name)
    return row.status != "ok", math.inf if value is None else -metric.gain(value)
