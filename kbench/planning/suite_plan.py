"""The plan of a run: its options, its suite, data and cells, and their results in the journal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from kbench import machine
from kbench.errors import SuiteError
from kbench.evaluation.device import Device
from kbench.messages import option, plural
from kbench.parameters import check_choice, check_integer
from kbench.planning.cached_results import Validity, recall, recall_added
from kbench.planning.cells import cell_problems
from kbench.planning.current_state import Present
from kbench.planning.planned import PlannedCell, out_of_date
from kbench.planning.planner import Planner, expand_datasets
from kbench.planning.plans import Plans
from kbench.planning.tasks import find_task, set_metric
from kbench.records import Block, Cell, DatasetFacts, Mistake, Problem, Ref, Suite, TaskType
from kbench.registry.registry import Registry
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal, state_folder


class SuitePlan:
    """Turns a suite into cells, step by step; nothing is fetched or computed.

    The journal of a `place` has the results: none is used with the option `recompute`, and no
    failure with `retry_failed`.
    """

    def __init__(
        self, suite: Suite, registry: Registry, place: str, options: Options | None = None
    ) -> None:
        self.suite, self.registry = suite, registry
        self.journal = Journal(state_folder(place) / "journal.jsonl")
        self.cache = DataCache()
        self._options = options or Options()
        self.planner = Planner(registry, self.cache)
        self.validity = Validity(self.journal, self.planner.present)
        self.datasets: dict[str, DatasetFacts | Problem] = {}
        self.codes: dict[str, str] = {}

    def expand(self, expanded: Mapping[str, Sequence[Ref]]) -> None:
        """Replace lines that mean many datasets by these, and look all of them up in the cache."""
        self.suite = expand_datasets(self.suite, expanded)
        if problems := cell_problems(self.suite, self.registry):
            raise SuiteError(*dict.fromkeys(problems))
        found = {ref.label: self.planner.dataset(ref) for ref in self.suite.datasets}
        self.datasets |= {label: facts for label, facts in found.items() if facts is not None}

    @property
    def missing(self) -> list[Ref]:
        """The datasets that are to be fetched."""
        return [ref for ref in self.suite.datasets if ref.label not in self.datasets]

    def refuse_mistakes(self) -> None:
        """Raise a SuiteError with the errors that fetching has found."""
        facts = self.datasets.items()
        if wrong := [f"{name}: {each.reason}" for name, each in facts if isinstance(each, Mistake)]:
            raise SuiteError(*wrong)

    @property
    def task(self) -> TaskType | None:
        """The task of the datasets, once one of them is loaded."""
        return find_task(self.datasets)

    def settle_metric(self) -> None:
        """Check the tasks of the datasets, which decide the metric that is compared."""
        self.suite = set_metric(self.suite, self.datasets, self.registry)

    def cells(self) -> tuple[list[PlannedCell], str]:
        """Return the cells with their results in the journal, and a notice; empty for none."""
        planned = self.planner.plan(self.suite, self.datasets)
        self.codes = self.planner.metric_codes()
        notices = []
        if not self._options.recompute:
            if unreadable := self._recall(planned):
                again = "its result is" if unreadable == 1 else "their results are"
                notices.append(
                    f"{plural(unreadable, 'line')} of the journal could not be read; "
                    f"{again} computed again"
                )
            recall_added(planned, self.validity, self.codes)
            if changed := out_of_date(planned):
                notices.append(f"out of date, and computed again: {changed}")
        self.planner.present.save()
        return planned, "\n".join(notices)

    def recheck(self, cells: Iterable[PlannedCell]) -> str:
        """Mark cells of which something was edited while they were computed; return a notice."""
        validity = Validity(self.journal, Present())
        for cell in cells:
            whys = [validity.explain(each) for each in {r.manifest for r in cell.results.values()}]
            cell.outdated = "; ".join(filter(None, whys))
        changed = out_of_date(cell for cell in cells if cell.outdated)
        return f"out of date already, run the suite again: {changed}" if changed else ""

    def further(self, cell: Cell) -> list[PlannedCell]:
        """Plan one more cell."""
        block = Block((cell.dataset,), (cell.feature_map,), (cell.learner,), cell.protocol)
        planned = self.planner.plan(replace(self.suite, blocks=(block,)), self.datasets)
        if not self._options.recompute:
            self._recall(planned)
        return planned

    # -- the metrics of plugins, which are added to results

    @property
    def late(self) -> tuple[str, ...]:
        """The metric that the suite compares, if a plugin computes it from predictions."""
        name = self.suite.compared.name
        return (name,) if name in self.registry.all("metric") else ()

    def keep(
        self,
        location: str,
        cells: Sequence[PlannedCell],
        names: Sequence[str] = (),
        **options: bool,
    ) -> None:
        """Write the plan into the journal, with the fingerprints of the metrics of plugins."""
        had = {name for cell in cells for result in cell.done for name in result.metrics}
        wanted = {*names, *self.late, *had}
        codes = {name: code for name, code in self.codes.items() if code and name in wanted}
        Plans(self.journal).keep(self.suite, location, cells, codes, **options)

    def _recall(self, planned: list[PlannedCell]) -> int:
        return recall(planned, self.validity, self.suite.limits, self._options.retry_failed)


@dataclass(frozen=True)
class Options:
    """Options of a run; none of them decides a number.

    They are those of `kbench.run_suite`. If `jobs` is None, it is 1 with exclusive timing,
    else as many tasks as the physical cores have the threads for; with an engine of a feature
    it stays None, for all that the engine has.

    `total_s` is the wall clock of the whole run, which the strategy of a feature spends.
    `given` are the options of features, by name, and their files are in `folder` by default, or
    in the current one.

    Raises SuiteError if `jobs` is not positive, `timing` is unknown, or exclusive timing is
    asked for with several tasks at a time.
    """

    jobs: int | None = 1
    recompute: bool = False
    retry_failed: bool = False
    offline: bool = False
    timing: Literal["shared", "exclusive"] = "shared"
    total_s: float = math.inf
    given: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_integer(self.jobs, option("jobs"), least=1, otherwise="None", error=SuiteError)
        check_choice(self.timing, option("timing"), ("shared", "exclusive"), error=SuiteError)
        if self.exclusive and self.jobs not in (None, 1):
            raise SuiteError(
                f"{option('jobs')} must be 1 with {option('timing', 'exclusive')}: one task at a "
                f"time, got {self.jobs}"
            )

    def resolve_jobs(self, suite: Suite, is_here: bool = True) -> Options:
        """Return the options with the number of tasks at a time, if they are on this machine.

        SuiteError is raised if it lacks the suite's device, or if they are elsewhere.
        """
        device = suite.protocols[0].device  # all blocks have one
        if not is_here and device != "cpu":
            raise SuiteError(f'device = "{device}" needs tasks on this machine')
        if not is_here:
            return self
        most = Device.of(device).n_slots
        threads = max(protocol.threads for protocol in suite.protocols)
        jobs = self.jobs or (1 if self.exclusive else max(1, machine.physical_cores() // threads))
        return replace(self, jobs=jobs if most is None else min(jobs, most))

    @property
    def exclusive(self) -> bool:
        """Whether nothing else may run while times are taken, features included."""
        return self.timing == "exclusive"
