"""A run: the state that its steps and the features share, its notices, and its report."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kbench import machine
from kbench.execution.engine import Engine, EngineOffer, LocalEngine
from kbench.execution.session import Session
from kbench.planning.planned import PlannedCell, set_aside
from kbench.planning.suite_plan import Options, SuitePlan
from kbench.records import Added, Cell, Cost, Delivered, Metric, Result, Suite, Task
from kbench.registry.registry import Registry
from kbench.registry.verbs import Notifications, Verbs


@dataclass(frozen=True)
class Report:
    """The result of a run, or of a plan, which has no `deliveries`.

    In its suite, lines that mean many datasets are replaced by these datasets; its cells have the
    journal's results. `seconds` is the wall clock of the whole, and `interrupted` says that the
    user ended it. `added` are metrics of plugins that were computed from kept predictions.
    `foreign` are cells whose accuracy was imported: they were neither computed nor delivered, and
    have no times. `deliveries` are answers of trackers, `left_out` names features that failed while
    they were notified of the run, and `place` is the machine whose journal has the results.
    """

    suite: Suite
    cells: list[PlannedCell]
    seconds: float
    place: str
    deliveries: tuple[Delivered, ...] = ()
    interrupted: bool = False
    added: tuple[Added, ...] = ()
    foreign: tuple[PlannedCell, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a cell or a metric failed; unavailable data is not a failure."""
        return any(cell.status not in ("ok", "unavailable") for cell in self.cells) or any(
            added.failed for added in self.added
        )

    @property
    def undelivered(self) -> bool:
        """Whether a tracker does not have all results."""
        return bool(self.left_out) or any(each.problem for each in self.deliveries)


class Watcher:
    """Callbacks for progress; the command line draws them. Called from several threads."""

    def notice(self, message: str) -> None:
        """Show a notice to the user."""

    def on_loading(self, dataset: str) -> None:
        """Show that a dataset is being fetched."""

    def on_predicted(self, cell: PlannedCell, cost: Cost | None, n_done: int, n_cells: int) -> None:
        """Show the predicted cost of a cell, if any, which is one of those to be predicted."""

    def on_planned(self, cells: list[PlannedCell], n_tasks: int, metric: Metric) -> None:
        """Show the plan: the cells, the number of tasks to compute, and what is compared."""

    def on_started(self, cell: PlannedCell, split_index: int, slot: int) -> None:
        """Show that a slot has begun a task."""

    def on_finished(self, cell: PlannedCell, result: Result) -> None:
        """Show the result of a task, which is in the journal."""

    def on_delivering(self) -> None:
        """Show that all is computed, and that the store is brought up to date."""


class Run:
    """A run of a suite: once.

    Features may read all of it, and change only what a hook's documentation says. `plan` has
    the suite, its datasets and its planner; `cells` are computed and delivered, empty until
    they are planned, and `imported` are cells whose results are from elsewhere. `journal` is
    that of `place`: this machine, or an engine's. `session` has the warm processes, the machine
    and the data cache; `location` is where a tracker keeps the results, empty for nowhere.
    """

    def __init__(
        self,
        suite: Suite,
        registry: Registry,
        options: Options | None = None,
        watch: Watcher | None = None,
        verbs: Verbs | None = None,
    ) -> None:
        self.begun = time.monotonic()
        self.registry, self.watch = registry, watch or Watcher()
        self.verbs = verbs or Verbs(self.notice)
        self.options = options or Options()
        self.offer: EngineOffer | None = self.verbs.one("kbench_engine", options=self.options)
        self.options = self.options.resolve_jobs(suite, is_here=self.offer is None)
        self.location: str = self.verbs.one("kbench_location", options=self.options) or ""
        self.place = self.offer.place if self.offer else machine.machine_id()
        self.plan = SuitePlan(suite, registry, self.place, self.options)
        self.journal = self.plan.journal
        self.session = Session(self.plan, self.options, self.notice)
        exclusive, in_haste = self.options.exclusive, self.options.total_s < float("inf")
        self.notifications = Notifications(self.verbs, exclusive, in_haste)
        self.cells: list[PlannedCell] = []
        self.imported: list[PlannedCell] = []
        self._by_key: dict[str, list[PlannedCell]] = {}

    @property
    def suite(self) -> Suite:
        """The suite, with the facts of its datasets if they are loaded."""
        return self.plan.suite

    @property
    def until(self) -> float:
        """The end of a limited time, by `time.monotonic`."""
        return self.begun + self.options.total_s

    @property
    def jobs(self) -> int:
        """Tasks at a time on this machine."""
        return self.options.jobs or machine.physical_cores()

    def notice(self, message: str) -> None:
        """Show a notice to the user."""
        self.watch.notice(message)

    def connect(self) -> Engine:
        """Return the engine: a feature's, or that of this machine."""
        if self.offer is not None:
            return self.offer.connect(self)
        parents, cache = self.session.parents, self.session.cache.root
        return LocalEngine(parents, cache, self.jobs, self.session.machine, self.started)

    def started(self, task: Task, slot: int) -> None:
        """Show that a slot has begun a task."""
        self.watch.on_started(self.same(task)[0], task.split_index, slot)

    def same(self, task: Task) -> list[PlannedCell]:
        """Return the cells of a task: they share a key and their results."""
        return self._by_key[task.cell_key]

    def results_from_elsewhere(
        self, cells: Sequence[PlannedCell]
    ) -> Mapping[str, Mapping[int, Result]]:
        """Return what features know of cells, by key and split; the first feature counts."""
        known = [each for _, each in self.verbs.each("kbench_known_results", run=self, cells=cells)]
        return {key: results for each in reversed(known) for key, results in each.items()}

    def use(self, cells: list[PlannedCell]) -> None:
        """Take cells into the run, with results from elsewhere, and ask features about them."""
        local, imported = set_aside(cells, self.results_from_elsewhere(cells))
        self.cells += local
        self.imported += imported
        for cell in local:
            self._by_key.setdefault(cell.key, []).append(cell)
        list(self.verbs.each("kbench_cells_planned", run=self, cells=local))

    def add(self, cell: Cell) -> PlannedCell:
        """Plan a further cell while others are computed, for a strategy."""
        planned = self.plan.further(cell)
        self.use(planned)
        return planned[0]
