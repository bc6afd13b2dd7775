"""A run of a suite: plan, execute, store, deliver."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
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
from kbench.execution.costs import Costs
from kbench.execution.engine import Answer, DaskEngine, Engine, LocalEngine, Terms, ThisMachine
from kbench.execution.fetching import Fetching, is_offline
from kbench.execution.rescoring import Added, Rescoring, measure_called
from kbench.execution.warm_parents import WarmParents, preload_of
from kbench.messages import counted
from kbench.parameters import check_choice, check_integer
from kbench.planning.cells import cell_problems
from kbench.planning.order import longest_first
from kbench.planning.planner import (
    PlannedCell,
    Planner,
    recall,
    recall_added,
    task_key,
    with_expanded,
)
from kbench.planning.tasks import task_of, with_measure
from kbench.records import (
    Cost,
    DatasetFacts,
    Details,
    Measure,
    Mistake,
    Problem,
    Result,
    Suite,
    Task,
    TaskType,
)
from kbench.registry.registry import Registry
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal, state_folder
from kbench.storage.locks import Holder, named
from kbench.storage.predictions import BLOB
from kbench.tracking import Store, View, check_store, default_uri


@dataclass(frozen=True)
class Options:
    """Options of a run; none of them decides a number.

    They are those of `kbench.run_suite`. If `jobs` is None, it is 1 with exclusive timing,
    else as many tasks as the physical cores have the threads for; on a cluster it stays
    None, for the threads of all workers.

    `total_s` is the wall clock of the whole run: no task begins that would not end by
    then, judged by the longest of its cell. The first of a cell may overrun, and the
    first of all begins in any case.

    Raises
    ------
    SuiteError
        `jobs` is not positive, `timing` is unknown, or exclusive timing is asked for
        with several tasks at a time or on a cluster.
    """

    store: str | None = None
    jobs: int | None = 1
    scheduler: str = ""
    fresh: bool = False
    retry_failed: bool = False
    offline: bool = False
    timing: Literal["shared", "exclusive"] = "shared"
    total_s: float = math.inf

    def __post_init__(self) -> None:
        check_store(self.uri)
        if self.jobs is not None:
            check_integer(self.jobs, "jobs", least=1, otherwise="None", error=SuiteError)
        check_choice(self.timing, "timing", ("shared", "exclusive"), error=SuiteError)
        if self.exclusive and self.scheduler:
            raise SuiteError("--timing exclusive is for this machine; leave out --scheduler")
        if self.exclusive and self.jobs not in (None, 1):
            raise SuiteError(
                f"--jobs must be 1 with --timing exclusive: one task at a time, got {self.jobs}"
            )

    def of_suite(self, suite: Suite) -> Options:
        """Return the options with the number of tasks at a time."""
        if self.jobs is not None or self.scheduler:
            return self
        threads = max(block.protocol.threads for block in suite.blocks)
        jobs = 1 if self.exclusive else max(1, machine.physical_cores() // threads)
        return replace(self, jobs=jobs)

    @property
    def uri(self) -> str:
        """URI of the MLflow store."""
        return self.store or default_uri()

    @property
    def exclusive(self) -> bool:
        """Whether nothing else may run while times are taken, kbench's writer included."""
        return self.timing == "exclusive"


class Watcher:
    """Callbacks for progress; the command line draws them. Called from several threads."""

    def notice(self, text: str) -> None:
        """Show a notice to the user."""

    def loading(self, dataset: str) -> None:
        """Show that a dataset is being fetched."""

    def planned(self, cells: list[PlannedCell], n_tasks: int, measure: Measure) -> None:
        """Show the plan: the cells, the number of tasks to compute, and what is compared."""

    def started(self, cell: PlannedCell, split_index: int, slot: int) -> None:
        """Show that a slot has begun a task."""

    def finished(self, cell: PlannedCell, result: Result) -> None:
        """Show the result of a task, which is in the journal."""

    def delivering(self) -> None:
        """Show that all is computed, and that the store is brought up to date."""


@dataclass(frozen=True)
class Report:
    """The result of a run, or of a plan, which has no `delivered`.

    In its suite, lines that mean many datasets are replaced by these datasets; its
    cells have the journal's results. `seconds` is the wall clock of the whole, and
    `interrupted` says that the user ended it. `added` are measures of plugins that were
    computed from kept predictions.
    """

    suite: Suite
    cells: list[PlannedCell]
    seconds: float
    delivered: Delivered | None = None
    interrupted: bool = False
    added: tuple[Added, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a cell or a measure failed; unavailable data is not a failure."""
        return any(cell.status not in ("ok", "unavailable") for cell in self.cells) or any(
            added.failed for added in self.added
        )


class Runner:
    """Runs a suite, or only plans it: once.

    The journal is that of this machine, or of its clusters, if none is given.
    """

    def __init__(
        self,
        suite: Suite,
        registry: Registry,
        options: Options | None = None,
        watcher: Watcher | None = None,
        journal: Journal | None = None,
        data_cache: DataCache | None = None,
    ) -> None:
        self._start = time.monotonic()
        self._suite, self._registry = suite, registry
        self._options = (options or Options()).of_suite(suite)
        self._watch = watcher or Watcher()
        self._offline = self._options.offline or is_offline()
        cache = self._cache = data_cache or DataCache()
        self._planner = Planner(registry, cache)
        self._parents = WarmParents(preload_of(suite, registry))
        self._fetching = Fetching(registry, self._planner, cache, self._parents, self._offline)
        self._machine = ThisMachine(self._options.exclusive, self._watch.notice)
        self._place, self._connect = self._computing(cache)
        self._journal = journal or Journal(state_folder(self._place) / "journal.jsonl")
        self._datasets: dict[str, DatasetFacts | Problem] = {}
        self._by_key: dict[str, list[PlannedCell]] = {}
        self._checked: set[TaskType | None] = set()
        self._codes: dict[str, str] = {}

    def _computing(self, cache: DataCache) -> tuple[str, Callable[[], Engine]]:
        """Return the place whose journal is written, and a function that makes the engine."""
        scheduler, jobs = self._options.scheduler, self._options.jobs
        if scheduler:
            connect = partial(DaskEngine, scheduler, jobs, self._watch.notice, self._started)
            return machine.cluster_id(), connect
        assert jobs is not None
        return machine.machine_id(), partial(
            LocalEngine, self._parents, cache.root, jobs, self._machine, self._started
        )

    def plan(self) -> Report:
        """Report the tasks of a run and their predicted costs, without fetching any data."""
        with closing(self._parents):
            self._parents.warm()
            self._expand()
            self._look_up()
            self._check_parameters()
            self._settle_measure()
            cells = self._cells()
            try:
                self._predict(cells)
            finally:
                self._machine.release()
        return Report(self._suite, cells, time.monotonic() - self._start)

    def run(self) -> Report:
        """Fetch the data, compute what is missing, deliver everything.

        Raises
        ------
        SuiteError
            A parameter of a component does not exist; nothing has run.
        ClusterError
            The cluster cannot be used, and nothing has run; or all of its hosts were
            lost, and earlier results are kept and delivered.
        """
        return self._run(())

    def rescore(self, measures: Sequence[str]) -> Report:
        """Add measures to the known results, from kept predictions; compute no task.

        Raises
        ------
        SuiteError
            A measure does not exist or is not for the task, or no results are known.
        """
        for name in measures:
            measure_called(name, self._registry)
        return self._run(tuple(dict.fromkeys(measures)))

    def _run(self, rescored: tuple[str, ...]) -> Report:
        """Run the suite; with measures to add to known results, compute no task."""
        store = Store(self._options.uri).name
        views = views_of(self._registry, self._watch.notice)
        interrupted = False
        lost: ClusterError | None = None
        cells: list[PlannedCell] | None = None
        added: list[Added] = []
        with ExitStack() as stack:
            # release this machine or the cluster before delivery
            computing = stack.enter_context(ExitStack())
            computing.callback(self._machine.release)
            computing.callback(self._parents.close)
            engine = None if rescored else self._connect()
            if engine is not None:
                computing.callback(engine.close)
            lock = lock_name(self._suite.name, store)
            stack.enter_context(self._journal.lock(lock, self._notice_waiting))
            delivery = Delivery(
                self._options.uri,
                self._suite.name,
                self._journal,
                self._place,
                views,
            )
            delivery.budget = self._suite.budget
            try:
                self._expand()
                self._look_up()
                self._fetch(delivery)
                self._settle_measure()
                delivery.measure = self._suite.compared
                cells = self._cells()
                if engine is None:
                    _refuse_unknown(self._suite.name, cells)
                else:
                    self._predict(cells)
                    lost = self._compute(cells, engine, delivery, store)
                added = self._add(cells, rescored or self._of_plugin, store)
                for each in added:
                    if each.missing and not rescored:
                        self._watch.notice(each.sentence)
            except KeyboardInterrupt:
                interrupted = True
            computing.close()
            # interrupted before the plan was made: known results are shown all the same
            cells = self._cells() if cells is None else cells
            delivered = self._deliver(cells, delivery, store)
            if not (interrupted or delivered.problem):
                self._deliver_leftovers(views)
        if lost is not None:
            raise lost
        seconds = time.monotonic() - self._start
        return Report(self._suite, cells, seconds, delivered, interrupted, tuple(added))

    # -----------------------------------------------------------------------
    # Plan
    # -----------------------------------------------------------------------

    def _expand(self) -> None:
        """Replace lines that mean many datasets by these datasets."""
        expanded = {ref.label: self._fetching.expanded(ref) for ref in self._suite.datasets}
        self._suite = with_expanded(self._suite, expanded)
        problems = cell_problems(self._suite, self._registry)
        if problems:
            raise SuiteError(*dict.fromkeys(problems))

    def _look_up(self) -> None:
        """Ask the data cache for each dataset."""
        for ref in self._suite.datasets:
            facts = self._planner.dataset(ref)
            if facts is not None:
                self._datasets[ref.label] = facts

    def _fetch(self, delivery: Delivery) -> None:
        """Load the datasets that the cache lacks, one after the other."""
        missing = [ref for ref in self._suite.datasets if ref.label not in self._datasets]
        if not missing:
            return
        if not self._options.exclusive:
            delivery.warm()
        self._check_parameters()
        self._machine.acquire()
        if not delivery.has_delivered() and not self._options.exclusive:
            delivery.start()  # a new store is made while the data are fetched
        for ref in missing:
            self._watch.loading(ref.label)
            self._datasets[ref.label] = self._fetching.fetch(ref)
        found = self._datasets.items()
        if wrong := [f"{name}: {each.reason}" for name, each in found if isinstance(each, Mistake)]:
            raise SuiteError(*wrong)

    def _check_parameters(self) -> None:
        """Check the parameters of all components, in a separate process.

        Those of learners are checked for the task, and once more if it was not known before.

        Raises
        ------
        SuiteError
            With all mistakes.
        """
        task = task_of(self._datasets)
        if task not in self._checked:
            placed = components.placed(self._suite)
            with self._parents.using(self._parents.every) as sandbox:
                components.check(sandbox, placed, self._suite.limits.memory_mb, task)
            self._checked |= {None, task}

    def _settle_measure(self) -> None:
        """Check the tasks of the datasets, which decide the measure that is compared."""
        self._suite = with_measure(self._suite, self._datasets, self._registry)

    def _cells(self) -> list[PlannedCell]:
        """Plan the cells, with their results in the journal."""
        planned = self._planner.plan(self._suite, self._datasets)
        self._codes = self._planner.measure_codes()
        if not self._options.fresh:
            limits, retry_failed = self._suite.limits, self._options.retry_failed
            if unreadable := recall(planned, self._journal, limits, retry_failed):
                again = "its result is" if unreadable == 1 else "their results are"
                self._watch.notice(
                    f"{counted(unreadable, 'line')} of the journal could not be read; "
                    f"{again} computed again"
                )
            recall_added(planned, self._journal, self._codes)
        return planned

    def _predict(self, cells: list[PlannedCell]) -> None:
        """Predict the costs of large cells; those that cannot fit into memory are skipped.

        A run with a limited time does not spend it on that.
        """
        options, limits = self._options, self._suite.limits
        costs = Costs(
            self._registry, self._planner, self._cache, self._journal, self._parents, limits
        )
        chosen = costs.worth_trials(cells) if options.total_s == math.inf else []
        if not chosen:
            return
        self._machine.acquire()
        if n := costs.n_unknown(chosen):
            self._watch.notice(
                f"trying {counted(n, 'cell')} on samples of the rows, a few seconds each, to "
                "predict memory and time"
            )
        found = costs.predict(chosen, options.jobs or machine.physical_cores())
        for cell in cells:
            if (prediction := found.get(cell.key)) is None:
                continue
            # times of workers are not those of this machine
            cost = prediction.cost
            cell.cost = replace(cost, seconds=None) if options.scheduler else cost
            if prediction.refusal:
                cell.problem = Problem("skipped", prediction.refusal)

    # -----------------------------------------------------------------------
    # Execute and store
    # -----------------------------------------------------------------------

    def _compute(
        self, cells: list[PlannedCell], engine: Engine, delivery: Delivery, store: str
    ) -> ClusterError | None:
        """Compute the missing tasks; each result goes to the journal before anything else.

        Returns
        -------
        ClusterError or None
            The error that ended the run, if all hosts were lost; earlier results
            are kept.
        """
        n_tasks = len({(cell.key, i) for cell in cells for i in cell.missing})
        if n_tasks:
            if not self._options.exclusive:
                delivery.warm()
            self._check_parameters()
            needed = self._planner.dependencies
            engine.prepare(
                Terms(
                    self._planner.packages,
                    sorted(needed.modules),
                    preload_of(self._suite, self._registry),
                    components.placed(self._suite),
                    self._suite.limits,
                    self._offline,
                    sorted(needed.files),
                    sorted(needed.variables),
                )
            )
            if not self._options.exclusive:
                delivery.start()
        _note_problems(self._journal, cells)
        Plans(self._journal).keep(self._suite, store, cells, self._kept_codes(cells))
        if self._options.exclusive:
            self._notice_shared(cells)
        self._watch.planned(cells, n_tasks, self._suite.compared)
        if not n_tasks:
            return None
        for cell in cells:
            self._by_key.setdefault(cell.key, []).append(cell)
            if cell.is_finished and not self._of_plugin:
                delivery.offer(cell)
        # a limited time is for the first methods of the suite; one slot is never idle
        ordered = self._options.total_s == math.inf and self._options.jobs != 1
        waiting = longest_first(cells, self._registry) if ordered else cells
        tasks = self._planner.tasks(waiting, until=self._start + self._options.total_s)
        try:
            for task, answer in engine.run(tasks):
                same = self._by_key[task.cell_key]
                result = self._write(task, answer, same[0].cost)
                same[0].results[task.split_index] = result  # cells of one key share them
                self._watch.finished(same[0], result)
                if same[0].is_finished and not self._of_plugin:
                    for cell in same:
                        delivery.offer(cell)
        except ClusterError as error:
            return error
        return None

    def _started(self, task: Task, slot: int) -> None:
        self._watch.started(self._by_key[task.cell_key][0], task.split_index, slot)

    def _write(self, task: Task, answer: Answer, cost: Cost | None) -> Result:
        """Write the result of a task to the journal and return it."""
        outcome, host = answer.outcome, answer.host
        key = task_key(task.cell_key, task.split_index)
        measures, details = {}, Details()
        if outcome.status == "ok":
            value = outcome.value
            measures = {**value["measures"], "peak_memory_mb": outcome.peak_memory_mb}
            details = replace(Details.from_json(value["details"]), contention=answer.doubts)
            self._journal.save_blob(key, BLOB, value["predictions"])
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
            limits=replace(self._suite.limits, n_splits=None),
            jobs=self._options.jobs,
            timing=self._options.timing,
            version=__version__,
            machine=host.machine,
            host=host.name,
            cpu=host.cpu,
            calibration_s=host.calibration_s,
            cpu_s=outcome.cpu_s,
            predicted=cost,
        )
        self._journal.append("result", **result.to_json())
        return result

    # -----------------------------------------------------------------------
    # Measures of plugins
    # -----------------------------------------------------------------------

    @property
    def _of_plugin(self) -> tuple[str, ...]:
        """The measure that the suite compares, if a plugin computes it from predictions."""
        name = self._suite.compared.name
        return (name,) if name in self._registry.all("measure") else ()

    def _kept_codes(
        self, cells: Sequence[PlannedCell], names: Sequence[str] = ()
    ) -> dict[str, str]:
        """Return the fingerprints of the measures of plugins that the cells have or get."""
        had = {name for cell in cells for result in cell.done for name in result.measures}
        wanted = {*names, *self._of_plugin, *had}
        return {name: code for name, code in self._codes.items() if code and name in wanted}

    def _add(self, cells: list[PlannedCell], names: Sequence[str], store: str) -> list[Added]:
        """Add measures to the results of cells; they are in the journal before they are used."""
        if not names:
            return []
        if any(name not in r.measures for cell in cells for r in cell.done for name in names):
            self._machine.acquire()
            codes = self._kept_codes(cells, names)
            Plans(self._journal).keep(self._suite, store, cells, codes, reopen=True)
        rescoring = Rescoring(
            self._registry,
            self._planner,
            self._cache,
            self._journal,
            self._suite.limits,
            self._options.jobs or machine.physical_cores(),
        )
        return rescoring.add(cells, names)

    def _notice_shared(self, cells: list[PlannedCell]) -> None:
        """Warn that reused results were not timed exclusively."""
        known = [result for cell in cells for result in cell.done if result.timing != "exclusive"]
        if known:
            self._watch.notice(
                f"{len(known)} known results keep the times of an ordinary run; "
                "--fresh takes all of them again"
            )

    # -----------------------------------------------------------------------
    # Deliver
    # -----------------------------------------------------------------------

    def _deliver(self, cells: list[PlannedCell], delivery: Delivery, store: str) -> Delivered:
        """Bring the store up to date."""
        self._watch.delivering()
        delivered = delivery.finish(cells)
        cpus = {result.cpu for cell in cells for result in cell.done if result.cpu}
        if len(cpus) > 1:
            self._watch.notice(
                f"times were taken on different CPUs ({', '.join(sorted(cpus))}): compare those "
                "of runs with the same tag kbench.hosts only"
            )
        if not delivered.problem:
            Plans(self._journal).settle(self._suite.name, store)
        return delivered

    def _deliver_leftovers(self, views: Mapping[str, View]) -> None:
        """Write results of earlier runs that could not be delivered then."""
        for leftover in deliver_leftovers(self._journal, self._place, self._options.uri, views):
            self._watch.notice(f"left over from earlier: {leftover.sentence}")

    def _notice_waiting(self, holder: Holder | None) -> None:
        self._watch.notice(f"waiting for {named(holder)}, which runs this suite with this store")


def _refuse_unknown(suite: str, cells: Sequence[PlannedCell]) -> None:
    """Raise if no results of a suite are known."""
    if not any(cell.done for cell in cells):
        raise SuiteError(
            f"no results of {suite!r} are known here: `kbench suite` computes them; an edit of "
            "the code makes earlier ones out of date"
        )


def _note_problems(journal: Journal, cells: list[PlannedCell]) -> None:
    """Journal cells that cannot be computed; their runs have the time of the first line."""
    seen = {(line["cell_key"], line["reason"]): line["at_ms"] for line in journal.read("problem")}
    for cell in cells:
        problem = cell.problem
        if problem is None:
            continue
        key = (cell.key, problem.reason)
        if key not in seen:
            seen[key] = time.time_ns() // 1_000_000
            journal.append(
                "problem",
                cell_key=cell.key,
                status=problem.status,
                reason=problem.reason,
                at_ms=seen[key],
            )
        cell.problem = replace(problem, since_ms=seen[key])
