"""A suite is run: plan, execute, store, deliver."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from kbench import machine
from kbench._version import __version__
from kbench.delivery.deliver import Delivered, Delivery, lock_name, views_of
from kbench.delivery.owed import Plans
from kbench.delivery.sync import deliver_leftovers
from kbench.errors import ClusterError, SuiteError
from kbench.execution import components
from kbench.execution.engine import (
    Answer,
    DaskEngine,
    Engine,
    LocalEngine,
    Terms,
    ThisMachine,
)
from kbench.execution.fetching import Fetching, is_offline
from kbench.execution.sandbox import Sandbox
from kbench.planning.cells import indistinct_cells
from kbench.planning.planner import (
    PlannedCell,
    Planner,
    recall,
    task_key,
    with_expanded,
)
from kbench.records import DatasetFacts, Details, Limits, Problem, Ref, Result, Suite, Task
from kbench.registry.registry import Registry
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal, state_folder
from kbench.storage.locks import Holder, named
from kbench.tracking import Store, View


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

    @property
    def exclusive(self) -> bool:
        """Whether nothing else may run while times are taken, kbench's writer included."""
        return self.timing == "exclusive"


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

    def finished(self, cell: PlannedCell, result: Result) -> None:
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
        One per planned cell, with the journal's results.
    seconds : float
        Wall clock of the whole.
    delivered : Delivered or None
        Where the runs are; None for a plan only.
    interrupted : bool
        Whether the user ended it.
    """

    suite: Suite
    cells: list[PlannedCell]
    seconds: float
    delivered: Delivered | None = None
    interrupted: bool = False

    @property
    def failed(self) -> bool:
        """Whether a cell failed; data that cannot be had are no failure."""
        return any(each.status not in ("ok", "unavailable") for each in self.cells)


def plan(
    suite: Suite,
    registry: Registry,
    options: Options,
    watcher: Watcher | None = None,
    journal: Journal | None = None,
    data_cache: DataCache | None = None,
) -> Report:
    """Say what a run would compute, without fetching or computing anything.

    Parameters
    ----------
    suite, registry, options, watcher, journal, data_cache
        As `run` takes them.
    """
    start = time.perf_counter()
    state = _State(suite, registry, options, watcher, journal, data_cache)
    with state.sandbox:
        _expand(state)
        _look_up(state)
        state.check_parameters()
    return Report(state.suite, state.cells(), time.perf_counter() - start)


def run(
    suite: Suite,
    registry: Registry,
    options: Options,
    watcher: Watcher | None = None,
    journal: Journal | None = None,
    data_cache: DataCache | None = None,
) -> Report:
    """Fetch the data, compute what is missing, deliver everything.

    Parameters
    ----------
    suite : Suite
    registry : Registry
    options : Options
    watcher : Watcher, optional
    journal : Journal, optional
        That of this machine, or of its clusters, by default.
    data_cache : DataCache, optional

    Raises
    ------
    SuiteError
        A parameter of a component does not exist; nothing has run.
    ClusterError
        The cluster cannot be used, and nothing has run; or it is gone, and
        what it computed is kept and delivered.
    """
    start = time.perf_counter()
    state = _State(suite, registry, options, watcher, journal, data_cache)
    store = Store(options.store).uri
    views = views_of(registry, state.watch.notice)
    interrupted = False
    lost: ClusterError | None = None
    cells: list[PlannedCell] | None = None
    with ExitStack() as stack:
        # what computes, this machine or a cluster, is free again before delivery
        computing = stack.enter_context(ExitStack())
        computing.callback(state.machine.release)
        computing.callback(state.sandbox.close)
        engine = state.connect()
        computing.callback(engine.close)
        stack.enter_context(
            state.journal.lock(lock_name(suite.name, store), partial(_notice_waiting, state.watch))
        )
        delivery = Delivery(
            options.store, suite.name, state.journal, state.place, suite.measure, views
        )
        try:
            _expand(state)
            _look_up(state)
            _fetch(state, delivery)
            cells = state.cells()
            lost = _compute(state, cells, engine, delivery, store)
        except KeyboardInterrupt:
            interrupted = True
        computing.close()
        # interrupted before the plan was made: what is known is shown all the same
        cells = state.cells() if cells is None else cells
        delivered = _deliver(state, cells, delivery, store, None if interrupted else views)
    if lost is not None:
        raise lost
    return Report(state.suite, cells, time.perf_counter() - start, delivered, interrupted)


class _State:
    """What the steps of a run share."""

    def __init__(
        self,
        suite: Suite,
        registry: Registry,
        options: Options,
        watcher: Watcher | None,
        journal: Journal | None,
        data_cache: DataCache | None,
    ) -> None:
        self.suite, self.registry, self.options = suite, registry, options
        self.watch = watcher or Watcher()
        self.until = time.monotonic() + options.total_s
        self.offline = options.offline or is_offline()
        self.cache = data_cache or DataCache()
        self.planner = Planner(registry, self.cache)
        self.preload = components.preload_of(suite, registry)
        self.sandbox = Sandbox(preload=self.preload)
        self.fetching = Fetching(
            registry, self.planner, self.cache, self.sandbox, offline=self.offline
        )
        self.machine = ThisMachine(options.exclusive, self.watch.notice)
        self.connect: Callable[[], Engine]
        if options.scheduler:
            self.place = machine.cluster_id()
            self.connect = partial(
                DaskEngine, options.scheduler, options.jobs, self.watch.notice, self._started
            )
        else:
            self.place = machine.machine_id()
            self.connect = partial(
                LocalEngine,
                self.sandbox,
                self.cache.root,
                options.jobs or machine.physical_cores(),
                self.machine,
                self._started,
            )
        self.journal = journal or Journal(state_folder(self.place) / "journal.jsonl")
        self.known: dict[str, DatasetFacts] = {}
        self.problems: dict[str, Problem] = {}
        self.to_fetch: list[Ref] = []
        self.by_key: dict[str, list[PlannedCell]] = {}
        self._is_checked = False

    def datasets(self) -> list[Ref]:
        """Return the datasets of the suite, each label once."""
        refs = {ref.label: ref for block in self.suite.blocks for ref in block.datasets}
        return list(refs.values())

    def check_parameters(self) -> None:
        """Check the parameters of all components, once, in a process of their own.

        Raises
        ------
        SuiteError
            With all mistakes.
        """
        if not self._is_checked:
            placed = components.placed(self.suite)
            components.check(self.sandbox, placed, self.suite.limits.memory_mb)
            self._is_checked = True

    def cells(self) -> list[PlannedCell]:
        """Plan the cells, with what the journal knows of them."""
        planned = self.planner.plan(self.suite, self.known, self.problems)
        if not self.options.fresh:
            recall(planned, self.journal, self.suite.limits, self.options.retry_failed)
        return planned

    def _started(self, task: Task, slot: int) -> None:
        self.watch.started(self.by_key[task.cell_key][0], task.split_index, slot)


# ---------------------------------------------------------------------------
# Plan
# ---------------------------------------------------------------------------


def _expand(state: _State) -> None:
    """Replace lines that mean many datasets by these datasets."""
    expanded = {ref.label: state.fetching.expanded(ref) for ref in state.datasets()}
    state.suite = with_expanded(state.suite, expanded)
    problems = indistinct_cells(state.suite, state.registry)
    if problems:
        raise SuiteError(*dict.fromkeys(problems))


def _look_up(state: _State) -> None:
    """Ask the data cache for each dataset."""
    for ref in state.datasets():
        facts = state.planner.dataset(ref)
        if facts is None:
            state.to_fetch.append(ref)
        else:
            state.known[ref.label] = facts


def _fetch(state: _State, delivery: Delivery) -> None:
    """Load what the cache lacks, one dataset after the other."""
    if not state.to_fetch:
        return
    state.check_parameters()
    state.machine.take()
    if not delivery.has_delivered() and not state.options.exclusive:
        delivery.start()  # a new store is made while the data are fetched
    for ref in state.to_fetch:
        state.watch.loading(ref.label)
        loaded = state.fetching.fetch(ref)
        if isinstance(loaded, Problem):
            state.problems[ref.label] = loaded
        else:
            state.known[ref.label] = loaded


# ---------------------------------------------------------------------------
# Execute and store
# ---------------------------------------------------------------------------


def _compute(
    state: _State, cells: list[PlannedCell], engine: Engine, delivery: Delivery, store: str
) -> ClusterError | None:
    """Compute the missing tasks; each result is in the journal before anything else is done.

    Returns
    -------
    ClusterError or None
        Why no host is left; what they computed is kept.
    """
    options, watch = state.options, state.watch
    n_tasks = len({(each.key, i) for each in cells for i in each.missing})
    if n_tasks:
        state.check_parameters()
        engine.prepare(
            Terms(
                state.planner.packages,
                state.planner.modules,
                state.preload,
                components.placed(state.suite),
                state.suite.limits,
                state.offline,
            )
        )
        if not options.exclusive:
            delivery.start()
    _note_problems(state.journal, cells)
    Plans(state.journal).keep(state.suite, store, cells)
    if options.exclusive:
        _notice_shared(state.watch, cells)
    watch.planned(cells, n_tasks)
    if not n_tasks:
        return None
    for each in cells:
        state.by_key.setdefault(each.key, []).append(each)
        if each.is_finished:
            delivery.offer(each)
    try:
        for task, answer in engine.run(state.planner.tasks(cells, state.until)):
            same = state.by_key[task.cell_key]
            planned = same[0]
            result = _kept(state, task, answer)
            planned.results[task.split_index] = result
            watch.finished(planned, result)
            if planned.is_finished:
                for each in same:
                    delivery.offer(each)
    except ClusterError as error:
        return error
    return None


def _note_problems(journal: Journal, cells: list[PlannedCell]) -> None:
    """Journal cells that cannot be computed: the time of the first sight is their run's."""
    seen = {(line["cell_key"], line["reason"]): line["at_ms"] for line in journal.read("problem")}
    for each in cells:
        problem = each.problem
        if problem is None:
            continue
        if (each.key, problem.reason) not in seen:
            seen[each.key, problem.reason] = time.time_ns() // 1_000_000
            journal.append(
                "problem",
                cell_key=each.key,
                status=problem.status,
                reason=problem.reason,
                at_ms=seen[each.key, problem.reason],
            )
        each.problem = replace(problem, since_ms=seen[each.key, problem.reason])


def _notice_shared(watch: Watcher, cells: list[PlannedCell]) -> None:
    """Say where exclusive timing was asked for, and known times are not of that kind."""
    known = [result for each in cells for result in each.done if result.timing != "exclusive"]
    if known:
        watch.notice(
            f"{len(known)} known results keep the times of an ordinary run; "
            "--fresh takes all of them again"
        )


def _kept(state: _State, task: Task, answer: Answer) -> Result:
    """Return the result of a task, which is in the journal then."""
    outcome, host, limits = answer.outcome, answer.host, state.suite.limits
    key = task_key(task.cell_key, task.split_index)
    measures, details = {}, Details()
    if outcome.status == "ok":
        value = outcome.value
        measures = {**value["measures"], "peak_memory_mb": outcome.peak_memory_mb}
        details = replace(Details(**value["details"]), contention=answer.doubts)
        state.journal.save_blob(key, "predictions", value["predictions"].encode("ascii"))
    result = Result(
        task_key=key,
        cell_key=task.cell_key,
        split=task.split_index,
        status=outcome.status,
        measures=measures,
        details=details,
        error=outcome.error,
        printed=outcome.printed,
        started_ms=answer.started_ms,
        ended_ms=answer.ended_ms,
        seconds=outcome.seconds,
        limits=Limits(time_s=limits.time_s, memory_mb=limits.memory_mb),
        jobs=state.options.jobs,
        timing=state.options.timing,
        version=__version__,
        machine=host.machine,
        host=host.name,
        cpu=host.cpu,
        calibration_s=host.calibration_s,
    )
    state.journal.append("result", **result.to_json())
    return result


# ---------------------------------------------------------------------------
# Deliver
# ---------------------------------------------------------------------------


def _deliver(
    state: _State,
    cells: list[PlannedCell],
    delivery: Delivery,
    store: str,
    views: Mapping[str, View] | None,
) -> Delivered:
    """Bring the store up to date; with views, also with what earlier runs left over."""
    state.watch.delivering()
    delivered = delivery.finish(cells)
    _notice_cpus(state.watch, cells)
    if not delivered.problem:
        Plans(state.journal).settle(state.suite.name, store)
        if views is not None:
            for each in deliver_leftovers(state.journal, state.place, store, views):
                state.watch.notice(f"left over from earlier: {each.sentence}")
    return delivered


def _notice_cpus(watch: Watcher, cells: list[PlannedCell]) -> None:
    cpus = {result.cpu for each in cells for result in each.done if result.cpu}
    if len(cpus) > 1:
        watch.notice(
            f"times were taken on different CPUs ({', '.join(sorted(cpus))}): compare those "
            "of runs with the same tag kbench.hosts only"
        )


def _notice_waiting(watch: Watcher, holder: Holder | None) -> None:
    watch.notice(f"waiting for {named(holder)}, which runs this suite with this store")
