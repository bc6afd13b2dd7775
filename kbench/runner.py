"""A suite is run: data, plan, tasks, journal, delivery. Knows all the parts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import kbench
from kbench import engine, machine
from kbench.canonical import to_json
from kbench.datacache import DataCache
from kbench.delivery import Delivered, Delivery, is_finished
from kbench.errors import SuiteError
from kbench.fetching import Fetching, is_offline
from kbench.journal import Holder, Journal
from kbench.plan import STOPPING, PlannedCell, Planner, recall, task_key, with_expanded
from kbench.records import Ref, Status, Suite
from kbench.registry import Registry, module_of
from kbench.sandbox import Outcome, Sandbox
from kbench.suite import indistinct_cells

CHECK_TIME_S = 120.0
CPU_CLOCK_S = 0.05
"""Wall clock from which a share of CPU time can be told."""


@dataclass(frozen=True)
class Options:
    """How to run; nothing here decides a number.

    Parameters
    ----------
    store : str
        URI of the MLflow store.
    jobs : int, default 1
        Tasks at a time.
    fresh : bool, default False
        Compute everything again.
    retry_failed : bool, default False
        Compute again what failed.
    offline : bool, default False
        Ask no server.
    """

    store: str
    jobs: int = 1
    fresh: bool = False
    retry_failed: bool = False
    offline: bool = False


class Watcher:
    """Is told what happens; the command line draws it. Called from several threads."""

    def notice(self, text: str) -> None:
        """Something the user should know."""

    def loading(self, dataset: str) -> None:
        """A dataset is being fetched."""

    def planned(self, cells: list[PlannedCell], n_tasks: int) -> None:
        """The plan is made; this many tasks are to be computed."""

    def started(self, cell: PlannedCell, split_index: int, slot: int) -> None:
        """A slot has begun a task."""

    def finished(self, cell: PlannedCell, line: Mapping[str, Any]) -> None:
        """A task is in the journal."""

    def delivering(self) -> None:
        """All is computed; the store is brought up to date."""


@dataclass(frozen=True)
class Report:
    """What became of a suite.

    Parameters
    ----------
    suite : Suite
        As it was run, with lines that mean many datasets replaced by these.
    cells : list of PlannedCell
        One per planned cell, with the journal's lines.
    delivered : Delivered or None
        Where the runs are; None for a plan only.
    seconds : float
        Wall clock of the whole.
    interrupted : bool
        Whether the user ended it.
    """

    suite: Suite
    cells: list[PlannedCell]
    delivered: Delivered | None
    seconds: float
    interrupted: bool = False

    @property
    def failed(self) -> bool:
        """Whether a cell failed; data that cannot be had are no failure."""
        return any(each.status not in ("ok", "unavailable") for each in self.cells)


@dataclass
class _Data:
    """What is known of the datasets of a suite, by label."""

    known: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: dict[str, tuple[Status, str]] = field(default_factory=dict)
    to_fetch: list[Ref] = field(default_factory=list)


class Run:
    """One run of a suite, step by step.

    Parameters
    ----------
    suite : Suite
    registry : Registry
    options : Options
    watcher : Watcher, optional
    journal : Journal, optional
    data_cache : DataCache, optional
    """

    def __init__(
        self,
        suite: Suite,
        registry: Registry,
        options: Options,
        watcher: Watcher | None = None,
        journal: Journal | None = None,
        data_cache: DataCache | None = None,
    ) -> None:
        self._suite, self._registry, self._options = suite, registry, options
        self._watch = watcher or Watcher()
        self._journal = journal or Journal()
        self._cache = data_cache or DataCache()
        self._planner = Planner(registry, self._cache)
        self._machine = machine.machine_id()
        records = [
            *(
                registry.get("feature map", ref.name)
                for b in suite.blocks
                for ref in b.feature_maps
            ),
            *(registry.get("learner", ref.name) for b in suite.blocks for ref in b.learners),
        ]
        modules = {module_of(record.make) for record in records}
        self._sandbox = Sandbox(preload=("kbench.task:warm", *sorted(modules)))
        self._fetching = Fetching(
            registry,
            self._planner,
            self._cache,
            self._sandbox,
            offline=options.offline or is_offline(),
        )
        self._checked = False
        self._calibration_s = 0.0
        self._stopped: set[str] = set()

    def plan(self) -> Report:
        """Say what a run would compute, without fetching or computing anything."""
        start = time.perf_counter()
        with self._sandbox:
            self._expand()
            data = self._look_up()
            self._check_parameters()
        return Report(self._suite, self._plan(data), None, time.perf_counter() - start)

    def run(self) -> Report:
        """Fetch the data, compute what is missing, deliver everything.

        Raises
        ------
        SuiteError
            A parameter of a component does not exist; nothing has run.
        """
        start = time.perf_counter()
        name = f"{self._suite.name} in {self._options.store}"
        with ExitStack() as stack:
            stack.enter_context(self._journal.lock(name, self._tell_waiting))
            stack.callback(self._sandbox.close)
            cells: list[PlannedCell] = []
            data = _Data()
            interrupted = False
            delivery = Delivery(self._options.store, self._suite.name, self._journal, self._machine)
            try:
                self._expand()
                data = self._look_up()
                if data.to_fetch:
                    self._check_parameters()
                    if not delivery.has_delivered():
                        delivery.start()  # a new store is made while the data are fetched
                    self._fetch(data)
                cells = self._plan(data)
                n_tasks = sum(len(each.missing) for each in cells)
                if n_tasks:
                    self._check_parameters()
                    delivery.start()
                self._note_problems(cells)
                if n_tasks:
                    self._calibration_s = machine.calibrate()
                self._watch.planned(cells, n_tasks)
                if n_tasks:
                    self._compute(cells, delivery)
            except KeyboardInterrupt:
                interrupted = True
                self._sandbox.close()
                # interrupted before the plan was made: what is known is shown all the same
                cells = cells or self._plan(data)
            self._watch.delivering()
            delivered = delivery.finish(cells)
        return Report(self._suite, cells, delivered, time.perf_counter() - start, interrupted)

    # -- data

    def _expand(self) -> None:
        """Replace lines that mean many datasets by these datasets."""
        expanded = {ref.label: self._fetching.expanded(ref) for ref in self._datasets()}
        self._suite = with_expanded(self._suite, expanded)
        problems = indistinct_cells(self._suite, self._registry)
        if problems:
            raise SuiteError(*dict.fromkeys(problems))

    def _datasets(self) -> list[Ref]:
        """Return the datasets of the suite, each label once."""
        found = {ref.label: ref for block in self._suite.blocks for ref in block.datasets}
        return list(found.values())

    def _look_up(self) -> _Data:
        data = _Data()
        for ref in self._datasets():
            known = self._planner.dataset(ref)
            if known is None:
                data.to_fetch.append(ref)
            else:
                data.known[ref.label] = known
        return data

    def _fetch(self, data: _Data) -> None:
        """Load what the cache lacks, one dataset after the other."""
        for ref in data.to_fetch:
            self._watch.loading(ref.label)
            known, problem = self._fetching.fetch(ref)
            if known is None:
                data.problems[ref.label] = problem
            else:
                data.known[ref.label] = known
        data.to_fetch = []

    # -- the plan

    def _check_parameters(self) -> None:
        """Check the parameters of all components, in a process of their own.

        Raises
        ------
        SuiteError
            With all mistakes.
        """
        if self._checked:
            return
        places: dict[str, list[Any]] = {"dataset": [], "feature map": [], "learner": []}
        for number, block in enumerate(self._suite.blocks):
            at = f"block[{number}]." if len(self._suite.blocks) > 1 else ""
            for kind, key in (
                ("dataset", "datasets"),
                ("feature map", "feature_maps"),
                ("learner", "learners"),
            ):
                places[kind] += [
                    (f"{at}{key}[{i}]", to_json(ref)) for i, ref in enumerate(getattr(block, key))
                ]
        outcome = self._sandbox.run(
            "kbench.task:check", {"components": places}, time_s=CHECK_TIME_S
        )
        if outcome.status != "ok":
            raise SuiteError(f"the components cannot be checked: {outcome.error}")
        if outcome.value:
            raise SuiteError(*dict.fromkeys(outcome.value))
        self._checked = True

    def _plan(self, data: _Data) -> list[PlannedCell]:
        planned = self._planner.plan(self._suite, data.known, data.problems)
        if not self._options.fresh:
            recall(planned, self._journal, self._suite.limits, self._options.retry_failed)
        return planned

    def _note_problems(self, cells: list[PlannedCell]) -> None:
        """Journal cells that cannot be computed: the time of the first sight is their run's."""
        seen = {
            (line["cell_key"], line["reason"]): line["at_ms"]
            for line in self._journal.read("problem")
        }
        for each in cells:
            if each.problem is None:
                continue
            status, reason = each.problem
            if (each.key, reason) not in seen:
                seen[each.key, reason] = _now_ms()
                self._journal.append(
                    "problem",
                    cell_key=each.key,
                    status=status,
                    reason=reason,
                    at_ms=seen[each.key, reason],
                )
            each.dataset = {**each.dataset, "since_ms": seen[each.key, reason]}

    # -- tasks

    def _compute(self, cells: list[PlannedCell], delivery: Delivery) -> None:
        for each in cells:
            if is_finished(each):
                delivery.offer(each)
        tasks = self._tasks(cells)
        for (planned, index), line in engine.run(tasks, self._work, self._options.jobs):
            self._watch.finished(planned, self._keep(planned, index, line))
            if is_finished(planned):
                delivery.offer(planned)

    def _tasks(self, cells: list[PlannedCell]) -> Iterator[tuple[PlannedCell, int]]:
        for planned in cells:
            for index in list(planned.missing):
                if planned.key not in self._stopped:
                    yield planned, index

    def _work(self, task: tuple[PlannedCell, int], slot: int) -> dict[str, Any]:
        """Compute one task and return its line of the journal."""
        planned, index = task
        cell, limits = planned.cell, self._suite.limits
        self._watch.started(planned, index, slot)
        before, started_ms = machine.snapshot(), _now_ms()
        outcome = self._sandbox.run(
            "kbench.task:evaluate",
            {
                "checksum": planned.dataset["checksum"],
                "cache": str(self._cache.root),
                "feature_map": to_json(cell.feature_map),
                "learner": to_json(cell.learner),
                "protocol": to_json(cell.protocol),
                "split": index,
            },
            time_s=limits.time_s,
            memory_mb=limits.memory_mb,
        )
        if outcome.status in STOPPING:
            # noted here, before this slot takes its next task
            self._stopped.add(planned.key)
        after = machine.snapshot()
        doubts = machine.contention(before, after, self._options.jobs, _waited(outcome)).reasons
        return {
            "status": outcome.status,
            **_found(outcome, doubts),
            "error": outcome.error,
            "printed": outcome.printed,
            "started_ms": started_ms,
            "ended_ms": _now_ms(),
            "seconds": outcome.seconds,
            "limits": {"time_s": limits.time_s, "memory_mb": limits.memory_mb},
            "jobs": self._options.jobs,
            "version": kbench.__version__,
            "calibration_s": self._calibration_s,
        }

    def _keep(self, planned: PlannedCell, index: int, line: dict[str, Any]) -> dict[str, Any]:
        """Write a task's line, before anything else is done with it."""
        key = task_key(planned.key, index)
        line = {"task_key": key, "cell_key": planned.key, "split": index, **line}
        predictions = line.pop("predictions", None)
        if predictions is not None:
            self._journal.save_blob(key, "predictions", predictions.encode("ascii"))
        self._journal.append("result", **line)
        planned.lines[index] = line
        return line

    def _tell_waiting(self, holder: Holder | None) -> None:
        who = f"{holder.command} (process {holder.pid} on {holder.host})" if holder else "another"
        self._watch.notice(f"waiting for {who}, which runs this suite with this store")


def _waited(outcome: Outcome) -> float | None:
    """Return the share of its timed steps that a task spent off the CPU."""
    if outcome.status != "ok":
        return None
    measures = outcome.value["measures"]
    wall = measures["fit_time_s"] + measures["predict_time_s"]
    cpu = measures["fit_time_cpu_s"] + measures["predict_time_cpu_s"]
    # Clocks of CPU time may tick every few milliseconds, so that they say nothing of
    # short steps; those were repeated, and their median stands a wait or two.
    return max(0.0, 1.0 - cpu / wall) if wall >= CPU_CLOCK_S else 0.0


def _found(outcome: Outcome, doubts: Sequence[str]) -> dict[str, Any]:
    """Return what an outcome measured."""
    if outcome.status != "ok":
        return {"measures": {}, "details": {}}
    value = outcome.value
    return {
        "measures": {**value["measures"], "peak_memory_mb": outcome.peak_memory_mb},
        "details": {**value["details"], "contention": list(doubts)},
        "predictions": value["predictions"],
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
