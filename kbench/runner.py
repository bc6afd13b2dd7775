"""A suite is run: data, plan, tasks, journal, delivery. Knows all the parts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal

from kbench import machine
from kbench._version import __version__
from kbench.delivery.deliver import Delivered, Delivery, is_finished, lock_name, views_of
from kbench.delivery.owed import Plans
from kbench.delivery.sync import deliver_leftovers
from kbench.errors import ClusterError, SuiteError
from kbench.execution import engine
from kbench.execution.fetching import LOAD_TIME_S, Fetching, is_offline
from kbench.execution.sandbox import Outcome, Sandbox
from kbench.planning.cells import indistinct_cells
from kbench.planning.planner import (
    STOPPING,
    PlannedCell,
    Planner,
    recall,
    task_key,
    with_expanded,
)
from kbench.records import Ref, Status, Suite
from kbench.records.canonical import to_json
from kbench.registry.registry import Registry, makes, module_of
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal, state_folder
from kbench.storage.locks import Holder
from kbench.tracking import Store

CHECK_TIME_S = 120.0
TRIALS_TIME_S = 30.0

_Split = tuple[PlannedCell, int]
"""A task: a planned cell and the number of its split."""


@dataclass(frozen=True)
class Options:
    """How to run; nothing here decides a number.

    Parameters
    ----------
    store : str
        URI of the MLflow store.
    jobs : int or None, default 1
        Tasks at a time; None for as many as there are: physical cores here,
        threads of a cluster's workers.
    scheduler : str, default ""
        Address of the scheduler of a Dask cluster that computes the tasks;
        this machine does where it is empty.
    fresh : bool, default False
        Compute everything again.
    retry_failed : bool, default False
        Compute again what failed.
    offline : bool, default False
        Ask no server.
    timing : {"shared", "exclusive"}, default "shared"
        "exclusive": one task at a time, and no other kbench of this user
        computes on this machine meanwhile.
    total_s : float, default inf
        Wall clock of the whole run: no task begins that would not end by then, as
        far as earlier ones of its cell tell; the first of a cell may overrun, and
        the first of all begins in any case.
    """

    store: str
    jobs: int | None = 1
    scheduler: str = ""
    fresh: bool = False
    retry_failed: bool = False
    offline: bool = False
    timing: Literal["shared", "exclusive"] = "shared"
    total_s: float = math.inf


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
        self._place = machine.cluster_id() if options.scheduler else machine.machine_id()
        self._journal = journal or Journal(state_folder(self._place) / "journal.jsonl")
        self._cache = data_cache or DataCache()
        self._planner = Planner(registry, self._cache)
        records = [
            *(
                registry.get("feature map", ref.name)
                for b in suite.blocks
                for ref in b.feature_maps
            ),
            *(registry.get("learner", ref.name) for b in suite.blocks for ref in b.learners),
        ]
        modules = {module_of(make) for record in records for make in makes(record)}
        # scikit-learn first: each trial of a plugin's module would load it anew
        ordered = sorted(modules, key=lambda name: (not name.startswith("sklearn."), name))
        self._preload = (
            "kbench.execution.entry_points:warm",
            *ordered,
            "kbench.execution.entry_points:thread_pools",
        )
        self._sandbox = Sandbox(preload=self._preload)
        self._offline = options.offline or is_offline()
        self._fetching = Fetching(
            registry, self._planner, self._cache, self._sandbox, offline=self._offline
        )
        self._checked = False
        self._has_machine = False
        self._until = math.inf
        self._jobs = options.jobs or machine.physical_cores()
        self._cluster: engine.Cluster | None = None
        self._host: engine.Host | None = None
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
        ClusterError
            The cluster cannot be used, and nothing has run; or it is gone, and
            what it computed is kept and delivered.
        """
        start = time.perf_counter()
        self._until = time.monotonic() + self._options.total_s
        store = Store(self._options.store).uri
        plans = Plans(self._journal)
        with ExitStack() as stack:
            # what is computed with, this machine or a cluster, is free again before delivery
            computing = stack.enter_context(ExitStack())
            if self._options.scheduler:
                self._cluster = engine.Cluster(
                    self._options.scheduler, self._options.jobs, self._watch.notice
                )
                computing.callback(self._cluster.close)
            name = lock_name(self._suite.name, store)
            stack.enter_context(self._journal.lock(name, self._tell_waiting))
            stack.callback(self._sandbox.close)
            cells: list[PlannedCell] = []
            data = _Data()
            interrupted = False
            lost: ClusterError | None = None
            views = views_of(self._registry, self._watch.notice)
            delivery = Delivery(
                self._options.store,
                self._suite.name,
                self._journal,
                self._place,
                self._suite.measure,
                views,
            )
            try:
                self._expand()
                data = self._look_up()
                if data.to_fetch:
                    self._check_parameters()
                    self._take_machine(computing)
                    if not delivery.has_delivered() and not self._exclusive:
                        delivery.start()  # a new store is made while the data are fetched
                    self._fetch(data)
                cells = self._plan(data)
                n_tasks = len({(each.key, i) for each in cells for i in each.missing})
                if n_tasks:
                    self._check_parameters()
                    if self._cluster is None:
                        self._take_machine(computing)
                    self._get_ready()
                    if not self._exclusive:
                        delivery.start()
                self._note_problems(cells)
                plans.keep(self._suite, store, cells)
                self._tell_shared(cells)
                self._watch.planned(cells, n_tasks)
                try:
                    if n_tasks:
                        self._compute(cells, delivery)
                except ClusterError as error:
                    lost = error
            except KeyboardInterrupt:
                interrupted = True
                self._sandbox.close()
                if self._cluster is not None:
                    self._cluster.close()
                # interrupted before the plan was made: what is known is shown all the same
                cells = cells or self._plan(data)
            computing.close()
            self._watch.delivering()
            delivered = delivery.finish(cells)
            self._tell_cpus(cells)
            if not delivered.problem:
                plans.settle(self._suite.name, store)
                if not interrupted:
                    for each in deliver_leftovers(self._journal, self._place, store, views):
                        self._watch.notice(f"left over from earlier: {each.sentence}")
            if lost is not None:
                raise lost
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
        outcome = self._sandbox.run(
            "kbench.execution.entry_points:check",
            {"components": self._components()},
            time_s=CHECK_TIME_S,
        )
        if outcome.status != "ok":
            raise SuiteError(f"the components cannot be checked: {outcome.error}")
        problems = outcome.value
        if not problems:
            trials = self._sandbox.run(
                "kbench.execution.entry_points:check_values",
                {"components": self._components()},
                time_s=TRIALS_TIME_S,
                memory_mb=self._suite.limits.memory_mb,
            )
            # where a trial does harm, the tasks will tell what and whose
            problems = trials.value if trials.status == "ok" else []
        if problems:
            raise SuiteError(*dict.fromkeys(problems))
        self._checked = True

    def _components(self) -> dict[str, list[Any]]:
        """Return every component with its place in the suite, by kind, as JSON."""
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
        return places

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

    @property
    def _exclusive(self) -> bool:
        """Whether nothing else may run while times are taken, kbench's writer included."""
        return self._options.timing == "exclusive"

    def _tell_shared(self, cells: list[PlannedCell]) -> None:
        """Say where exclusive timing was asked for, and known times are not of that kind."""
        known = [line for each in cells for line in each.done if line.get("timing") != "exclusive"]
        if self._exclusive and known:
            self._watch.notice(
                f"{len(known)} known results keep the times of an ordinary run; "
                "--fresh takes all of them again"
            )

    def _take_machine(self, computing: ExitStack) -> None:
        """Wait until this machine may be computed on: beside others who share it, or alone."""
        if self._has_machine:
            return
        lock = Journal().lock("computing", self._tell_taken, shared=not self._exclusive)
        computing.enter_context(lock)
        self._has_machine = True

    def _tell_taken(self, holder: Holder | None) -> None:
        why = (
            "which computes on this machine: exclusive timing wants it alone"
            if self._exclusive
            else "which has this machine alone (--timing exclusive)"
        )
        self._watch.notice(f"waiting for {_who(holder)}, {why}")

    def _get_ready(self) -> None:
        """Take the measure of the machine, or of the cluster's, before the first task."""
        if self._cluster is None:
            self._host = engine.Host.here()
            return
        self._cluster.admit(
            engine.Terms(
                self._planner.packages, self._planner.modules, self._preload, self._components()
            )
        )

    def _compute(self, cells: list[PlannedCell], delivery: Delivery) -> None:
        same: dict[str, list[PlannedCell]] = {}
        for each in cells:
            same.setdefault(each.key, []).append(each)
            if is_finished(each):
                delivery.offer(each)
        for (planned, index), answer in self._answers(self._tasks(cells)):
            if answer.outcome.status in STOPPING:
                self._stopped.add(planned.key)
            self._watch.finished(planned, self._keep(planned, index, self._line(answer)))
            if is_finished(planned):
                for each in same[planned.key]:
                    delivery.offer(each)

    def _tasks(self, cells: list[PlannedCell]) -> Iterator[tuple[PlannedCell, int]]:
        begun: set[tuple[str, int]] = set()  # cells of one key share their splits
        for planned in cells:
            for index in list(planned.missing):
                if (planned.key, index) in begun or planned.key in self._stopped:
                    continue
                # the first begins however late it is: each run brings at least one split
                if not begun or self._has_time_for(planned):
                    begun.add((planned.key, index))
                    yield planned, index

    def _has_time_for(self, planned: PlannedCell) -> bool:
        """Tell whether another split may begin: as long as the longest so far takes."""
        longest = max((line["seconds"] for line in planned.lines.values()), default=0.0)
        return time.monotonic() + longest < self._until

    def _answers(self, tasks: Iterator[_Split]) -> Iterator[tuple[_Split, engine.Answer]]:
        if self._cluster is None:
            return engine.run(tasks, self._work, self._jobs)
        return self._cluster.run(tasks, self._request, self._tell_started)

    def _work(self, task: _Split, slot: int) -> engine.Answer:
        """Compute one task on this machine."""
        self._tell_started(task, slot)
        assert self._host is not None
        answer = engine.measure(
            self._request(task), self._sandbox, self._cache.root, self._host, self._jobs
        )
        if answer.outcome.status in STOPPING:
            # noted here, before this slot takes its next task
            self._stopped.add(task[0].key)
        return answer

    def _request(self, task: _Split) -> engine.Request:
        planned, index = task
        cell, limits = planned.cell, self._suite.limits
        return engine.Request(
            checksum=planned.dataset["checksum"],
            arguments={
                "feature_map": to_json(cell.feature_map),
                "learner": to_json(cell.learner),
                "protocol": to_json(cell.protocol),
                "split": index,
            },
            time_s=limits.time_s,
            memory_mb=limits.memory_mb,
            dataset=to_json(cell.dataset),
            source_code=self._planner.source_code(cell.dataset),
            offline=self._offline,
            load_time_s=LOAD_TIME_S,
        )

    def _tell_started(self, task: _Split, slot: int) -> None:
        self._watch.started(*task, slot)

    def _line(self, answer: engine.Answer) -> dict[str, Any]:
        """Return the line of the journal that tells of an answer."""
        outcome, host, limits = answer.outcome, answer.host, self._suite.limits
        return {
            "status": outcome.status,
            **_found(outcome, answer.doubts),
            "error": outcome.error,
            "printed": outcome.printed,
            "started_ms": answer.started_ms,
            "ended_ms": answer.ended_ms,
            "seconds": outcome.seconds,
            "limits": {"time_s": limits.time_s, "memory_mb": limits.memory_mb},
            "jobs": self._options.jobs,
            "timing": self._options.timing,
            "version": __version__,
            "machine": host.machine,
            "host": host.name,
            "cpu": host.cpu,
            "calibration_s": host.calibration_s,
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

    def _tell_cpus(self, cells: list[PlannedCell]) -> None:
        cpus = {line["cpu"] for each in cells for line in each.done if "cpu" in line}
        if len(cpus) > 1:
            self._watch.notice(
                f"times were taken on different CPUs ({', '.join(sorted(cpus))}): compare those "
                "of runs with the same tag kbench.hosts only"
            )

    def _tell_waiting(self, holder: Holder | None) -> None:
        self._watch.notice(f"waiting for {_who(holder)}, which runs this suite with this store")


def _who(holder: Holder | None) -> str:
    if holder is None:
        return "another kbench"
    return f"{holder.command} (process {holder.pid} on {holder.host})"


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
