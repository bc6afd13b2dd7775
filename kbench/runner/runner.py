"""The steps of a run: plan, execute, store, deliver."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import count

from kbench import machine
from kbench.delivery.deliver import Delivered, Delivery, lock_name, views_of
from kbench.delivery.owed import Plans
from kbench.delivery.sync import deliver_leftovers
from kbench.errors import ClusterError, SuiteError
from kbench.execution import components
from kbench.execution.costs import CELL_S, Costs
from kbench.execution.engine import DaskEngine, Engine, LocalEngine, Terms, ThisMachine
from kbench.execution.fetching import Fetching, is_offline
from kbench.execution.rescoring import Added, Rescoring, measure_called
from kbench.execution.warm_parents import WarmParents, preload_of
from kbench.messages import counted
from kbench.planning.cells import cell_problems
from kbench.planning.order import longest_first
from kbench.planning.planned import PlannedCell
from kbench.planning.planner import Planner, with_expanded
from kbench.planning.recall import recall, recall_added, set_aside
from kbench.planning.schedule import Schedule
from kbench.planning.tasks import task_of, with_measure
from kbench.records import (
    Block,
    Cell,
    Cost,
    DatasetFacts,
    Mistake,
    Problem,
    Result,
    Status,
    Suite,
    Task,
    TaskType,
)
from kbench.registry.registry import Registry
from kbench.runner.options import Options
from kbench.runner.report import Report
from kbench.runner.watcher import Watcher
from kbench.runner.writing import note_problems, write_result
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal, state_folder
from kbench.storage.locks import Holder, named
from kbench.tracking import Store, View


class Runner:
    """Runs a suite, or only plans it: once.

    The journal is that of this machine, or of its clusters, if none is given. A `schedule`
    decides which tasks a limited time is for; cells that it leaves out are not reported.
    Cells of which `foreign` has all splits, by key, are not computed and not delivered.
    """

    def __init__(
        self,
        suite: Suite,
        registry: Registry,
        options: Options | None = None,
        watcher: Watcher | None = None,
        journal: Journal | None = None,
        data_cache: DataCache | None = None,
        schedule: Schedule | None = None,
        foreign: Mapping[str, Mapping[int, Result]] | None = None,
    ) -> None:
        self._start = time.monotonic()
        self._suite, self._registry, self._schedule = suite, registry, schedule
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
        self._foreign, self._set_aside = foreign or {}, list[PlannedCell]()

    def _computing(self, cache: DataCache) -> tuple[str, Callable[[], Engine]]:
        """Return the place whose journal is written, and a function that makes the engine."""
        scheduler, jobs = self._options.scheduler, self._options.jobs
        if scheduler:
            connect = partial(DaskEngine, scheduler, jobs, self._watch.notice, self._started)
            return machine.cluster_id(), connect
        assert jobs is not None
        return machine.machine_id(), partial(
            LocalEngine,
            self._parents,
            cache.root,
            jobs,
            self._machine,
            self._started,
            until=self._start + self._options.total_s if self._schedule else math.inf,
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
        seconds = time.monotonic() - self._start
        return Report(self._suite, cells, seconds, foreign=tuple(self._set_aside))

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
            if self._schedule is not None:
                cells = self._schedule.kept(cells)
            delivered = self._deliver(cells, delivery, store)
            if not (interrupted or delivered.problem):
                self._deliver_leftovers(views)
        if lost is not None:
            raise lost
        seconds = time.monotonic() - self._start
        if interrupted:
            # after delivery, which leaves out what is to come
            for cell in cells:
                if cell.missing:
                    status: Status = "unfinished" if cell.results else "not run"
                    cell.problem = Problem(status, "the run was interrupted before")
        foreign = tuple(self._set_aside)
        return Report(self._suite, cells, seconds, delivered, interrupted, tuple(added), foreign)

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
        own, self._set_aside = set_aside(planned, self._foreign)
        return own

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
                f"trying {counted(n, 'cell')} on samples of the rows, at most {CELL_S:.0f} s each, "
                "to predict memory and time"
            )
        done = count(1)

        def predicted(cell: PlannedCell, cost: Cost | None) -> None:
            if n:
                self._watch.predicted(cell, cost, next(done), len(chosen))

        found = costs.predict(chosen, options.jobs or machine.physical_cores(), predicted)
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
        note_problems(self._journal, cells)
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
        until = self._start + self._options.total_s
        if self._schedule is None:
            tasks = self._planner.tasks(waiting, until)
        else:
            plan = partial(self._plan_further, cells)
            steps = self._schedule.steps(cells, self._suite.compared, until, plan)
            tasks = (self._planner.task(cell, index) for cell, index in steps)
        try:
            for task, answer in engine.run(tasks):
                if answer.is_cut_off:
                    continue
                same = self._by_key[task.cell_key]
                result = write_result(
                    self._journal, task, answer, self._suite.limits, self._options, same[0].cost
                )
                same[0].results[task.split_index] = result  # cells of one key share them
                self._watch.finished(same[0], result)
                if same[0].is_finished and not self._of_plugin:
                    for cell in same:
                        delivery.offer(cell)
        except ClusterError as error:
            return error
        return None

    def _plan_further(self, cells: list[PlannedCell], cell: Cell) -> PlannedCell:
        """Plan a cell while others are computed, and add it to them."""
        block = Block((cell.dataset,), (cell.feature_map,), (cell.learner,), cell.protocol)
        planned = self._planner.plan(replace(self._suite, blocks=(block,)), self._datasets)
        if not self._options.fresh:
            recall(planned, self._journal, self._suite.limits, self._options.retry_failed)
        self._by_key.setdefault(planned[0].key, []).extend(planned)
        cells += planned
        return planned[0]

    def _started(self, task: Task, slot: int) -> None:
        self._watch.started(self._by_key[task.cell_key][0], task.split_index, slot)

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
