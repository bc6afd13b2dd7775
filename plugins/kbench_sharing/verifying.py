"""Recompute results of a bundle in the sandbox and compare them.

Its author cannot predict the sample. Nothing is written to the journal or MLflow.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kbench import features
from kbench.errors import KbenchError, SuiteError
from kbench.messages import last_line, number, printable
from kbench.records import DEFAULT, Block, Cell, DatasetFacts, Limits, Protocol, Suite, Task
from kbench.records.canonical import Json, to_json
from kbench_sharing.added_bundles import OF_A_MACHINE, other_versions
from kbench_sharing.bundle_records import Bundle, SharedCell, SharedResult
from kbench_sharing.checks import CLOSE, round_all
from kbench_sharing.dependencies import UNKNOWN, find_changes
from kbench_sharing.predictions import differing

# Key of a cell, and number of a split.
Unit = tuple[str, int]


def draw_sample(units: Iterable[Unit], bundle_id: str, nonce: str, k: int) -> list[Unit]:
    """Return a random sample of k results, by a hash of the bundle, the nonce and the result.

    The nonce is drawn after the bundle was made, so its author cannot predict the sample. The same
    nonce gives the same sample.

    >>> draw_sample([("a", 0), ("a", 1), ("b", 0)], "id", "00", 2) == draw_sample(
    ...     [("b", 0), ("a", 1), ("a", 0)], "id", "00", 2)
    True
    """

    def place(unit: Unit) -> bytes:
        key, split = unit
        return hashlib.sha256(f"{bundle_id}/{nonce}/{key}/{split}".encode()).digest()

    return sorted(units, key=place)[:k]


def p_detect(share: float, k: int) -> float:
    """Return a lower bound on the probability that a sample has a forged result.

    Sampling is without replacement, which can only increase it.

    >>> round(p_detect(0.1, 5), 4)
    0.4095
    """
    return 1.0 - (1.0 - share) ** k


Finding = features.Verdict | Literal["not recomputed"]

_OF_LABELS = ("accuracy", "accuracy_non_duplicates", "expected_error")
_OF_CLASSES = ("balanced_accuracy", "f1_macro", "mcc", "roc_auc", "average_precision")
# What one row of the test part may change, in units of 1 / rows.
_ONE_ROW, _ONE_ROW_OF_CLASS = 1.01, 2.5

# Absolute rounding of the relative errors of Gram matrices: the square root of eps.
_OF_GRAM = 1e-8


@dataclass(frozen=True)
class Agreement:
    """A verdict, and what differs."""

    verdict: Finding
    detail: str = ""


def agreement(
    theirs: SharedResult,
    metrics: Mapping[str, float],
    details: Mapping[str, Json],
    other_cpu: bool,
    added: Collection[str] = (),
) -> Agreement:
    """Compare a result with the metrics and details that were computed here.

    Times and memory are not compared. On another CPU or BLAS, a label of one row may be
    another one. `added` names metrics of plugins, which are not computed with a task.
    """
    if theirs.details.split_hash != details.get("split_hash"):
        return Agreement("different", "the rows of the split differ")
    if theirs.details.chosen != details.get("chosen"):
        return Agreement("different", "the search chose different parameters")
    noise = ""
    metrics = {**metrics, **round_all({n: v for n, v in metrics.items() if math.isfinite(v)})}
    for name, value in theirs.metrics.items():
        if name.endswith(OF_A_MACHINE) or name in added:
            continue
        computed = metrics.get(name, math.nan)
        if value == computed:
            continue
        difference = f"{name} {number(value)}, here {number(computed)}"
        allowed = _tolerance(name, metrics.get("n_test", 0.0)) if other_cpu else 0.0
        if math.isclose(value, computed, rel_tol=CLOSE, abs_tol=max(allowed, CLOSE**2)):
            noise = noise or difference
        else:
            return Agreement("different", difference)
    scores = (
        [float(v) for each in search for v in each.get("values", ()) if isinstance(v, int | float)]
        for search in (details.get("search", ()), theirs.details.search)
    )
    for mine, their in zip(*scores, strict=False):
        if mine != their and not (other_cpu or math.isclose(mine, their, rel_tol=CLOSE)):
            difference = f"a validation score {number(their)}, here {number(mine)}"
            return Agreement("different", difference)
    return Agreement("noise", noise) if noise else Agreement("equal")


def _tolerance(name: str, n_test: float) -> float:
    """Return what rounding, and one row with another label, may change of a metric."""
    name = name.removeprefix(DEFAULT)
    if name.startswith("gram_error_"):
        return _OF_GRAM
    rows = _ONE_ROW if name in _OF_LABELS else _ONE_ROW_OF_CLASS if name in _OF_CLASSES else 0.0
    return rows / n_test if n_test else 0.0


@dataclass
class Verifying:
    """Recomputes results of a bundle here.

    `data` is the folder of the files that its datasets name. `limits` are those of this
    user: those of the bundle are its author's.
    """

    bundle: Bundle
    registry: features.Registry
    limits: Limits
    jobs: int = 1
    offline: bool = False
    data: Path | None = None
    notice: Callable[[str], None] = lambda message: None

    def __post_init__(self) -> None:
        self._cache = features.DataCache()
        self._planner = features.Planner(self.registry, self._cache)
        self._cells = {cell.key: cell for cell in self.bundle.cells}
        self._options = features.Options(jobs=self.jobs)

    def units(self, outdated: bool = False) -> tuple[list[Unit], dict[str, int]]:
        """Return the results that can be recomputed here, and how many cannot, by reason.

        `outdated` includes those whose code or versions are others here.

        Only results with status "ok" can; no data are fetched for the answer. Of code, versions
        and files, only what the bundle names is looked up.
        """
        units: list[Unit] = []
        reasons: Counter[str] = Counter()
        changes = {} if outdated else find_changes(self.bundle, self._planner.present)
        for key, results in self.bundle.results.items():
            of_cell = self._reason(self._cells[key])
            for split, result in results.items():
                if result.status != "ok":
                    continue
                if reason := of_cell or changes.get(result.manifest, "" if outdated else UNKNOWN):
                    reasons[reason] += 1
                else:
                    units.append((key, split))
        return units, reasons

    def verify(self, chosen: Sequence[Unit]) -> Iterator[tuple[Unit, Agreement]]:
        """Recompute chosen results, and yield each with its agreement."""
        keys = dict.fromkeys(key for key, _ in chosen)
        suite = self._suite(keys)
        with closing(features.WarmParents(features.make_preload(suite, self.registry))) as parents:
            planned = dict(self._each_planned(suite, keys, parents))
            tasks = []
            for key, split in chosen:
                cell = planned[key]
                if isinstance(cell, str):
                    yield (key, split), Agreement("not recomputed", cell)
                else:
                    tasks.append(self._planner.task(cell, split))
            if tasks:
                yield from self._compute(parents, suite, tasks)

    def predictions(self, chosen: Iterable[Unit]) -> Iterator[tuple[Unit, Agreement]]:
        """Compute metrics from the predictions of results whose data can be had here.

        Nothing is fitted. A result is yielded without a verdict if its data differ here.
        """
        keys = dict.fromkeys(key for key, _ in chosen)
        suite = self._suite(keys)
        assignments = features.Assignments(self._cache)
        with closing(features.WarmParents(features.make_preload(suite, self.registry))) as parents:
            for key, planned in self._each_planned(suite, keys, parents):
                for unit in (unit for unit in self.bundle.predictions if unit[0] == key):
                    yield unit, self._check_predictions(unit, planned, assignments)

    def _check_predictions(
        self, unit: Unit, planned: features.PlannedCell | str, assignments: features.Assignments
    ) -> Agreement:
        if isinstance(planned, str):
            return Agreement("not recomputed", planned)
        result = self.bundle.results[unit[0]][unit[1]]
        try:
            assignment = assignments.get(self._planner.task(planned, unit[1]))
            if assignment.digest != result.details.split_hash:
                return Agreement("different", "the rows of the split differ")
            difference = differing(result, self.bundle.predictions[unit], assignment.truth)
        except KbenchError as error:
            return Agreement("different", printable(str(error).splitlines()[0], 300))
        if difference is None:
            return Agreement("equal")
        name, stored, computed = difference
        return Agreement(
            "different", f"{name} {number(stored)}, from the predictions {number(computed)}"
        )

    def _suite(self, keys: Iterable[str]) -> Suite:
        """Return a suite with a block for each cell, in the order of the keys."""
        cells = [self._cell(self._cells[key]) for key in keys]
        blocks = tuple(
            Block((cell.dataset,), (cell.feature_map,), (cell.learner,), cell.protocol)
            for cell in cells
        )
        return features.move_to_folder(
            Suite(self.bundle.manifest.suite, blocks, self.limits), self.data
        )

    def _each_planned(
        self, suite: Suite, keys: Iterable[str], parents: features.WarmParents
    ) -> Iterator[tuple[str, features.PlannedCell | str]]:
        """Yield each cell of a suite with its key, or why it cannot be recomputed."""
        fetching = features.Fetching(self._planner, parents, self.offline)
        for key, block in zip(keys, suite.blocks, strict=True):
            one = replace(suite, blocks=(block,))
            yield key, self._plan(one, self._cells[key], fetching, parents)

    def _cell(self, shared: SharedCell) -> Cell:
        return shared.cell(self.bundle.datasets[shared.dataset].ref)

    def _reason(self, shared: SharedCell) -> str:
        """Return why a cell cannot be recomputed here, as far as its key tells; empty if it can.

        Its key has what records of plugins say, and no code.
        """
        cell = self._cell(shared)
        task = self.bundle.datasets[shared.dataset].task
        try:
            self.registry.get("dataset", cell.dataset.name)
            _check_protocol(cell.protocol, self.registry)
            # raises for a device that is missing
            self._options.resolve_jobs(self._suite([shared.key]))
            code = self._planner.method_code(cell, task)
        except KbenchError as error:
            installed = {each.name for each in self.registry.plugins}
            for plugin in self.bundle.plugins:
                if plugin.name not in installed:
                    version = f"{plugin.distribution} {plugin.version}"
                    return f"the plugin {plugin.name!r} of {version} is not installed"
            return str(error).splitlines()[0]
        except RecursionError:
            return "its parameters are nested too deep"
        if to_json(code) == shared.code:
            return ""
        return other_versions(self.bundle) or "the records of its method differ here"

    def _plan(
        self,
        suite: Suite,
        shared: SharedCell,
        fetching: features.Fetching,
        parents: features.WarmParents,
    ) -> features.PlannedCell | str:
        """Return a cell that is planned here, or why it cannot be recomputed."""
        (ref,) = suite.datasets
        try:
            with parents.using(parents.every) as sandbox:
                task = self.bundle.datasets[shared.dataset].task
                placed = features.list_components(suite)
                features.check_components(sandbox, placed, self.limits.task_memory_mib, task)
            facts = fetching.dataset(ref)
            if not isinstance(facts, DatasetFacts):
                return f"its data are not available here: {printable(last_line(facts.reason), 300)}"
            if facts.checksum != self.bundle.datasets[shared.dataset].checksum:
                return "its data differ here: their checksum is not that of the bundle"
            # refuses folds that the data are too few for, and metrics of another task
            suite = features.set_metric(suite, {ref.label: facts}, self.registry)
            (cell,) = self._planner.plan(suite, {ref.label: facts})
        except KbenchError as error:
            return printable(str(error).splitlines()[0], 300)
        if cell.problem is not None:
            return printable(cell.problem.reason, 300)
        return cell if cell.key == shared.key else "its key differs here"

    def _compute(
        self, parents: features.WarmParents, suite: Suite, tasks: Sequence[Task]
    ) -> Iterator[tuple[Unit, Agreement]]:
        host = features.ThisMachine(False, self.notice)
        jobs = self._options.resolve_jobs(suite).jobs or 1
        engine = features.LocalEngine(
            parents, self._cache.root, jobs, host, started=lambda task, slot: None
        )
        preload, placed = (
            features.make_preload(suite, self.registry),
            features.list_components(suite),
        )
        engine.prepare(features.Terms(preload, placed, self.limits, self.offline))
        waiting = {(task.cell_key, task.split_index) for task in tasks}
        try:
            for task, answer in engine.run(tasks):
                unit = (task.cell_key, task.split_index)
                waiting.discard(unit)
                yield unit, self._compare(unit, answer)
        finally:
            host.release()
        for unit in sorted(waiting):
            yield unit, Agreement("not recomputed", "another split of its cell hit a limit")

    def _compare(self, unit: Unit, answer: features.Answer) -> Agreement:
        theirs = self.bundle.results[unit[0]][unit[1]]
        outcome = answer.outcome
        if outcome.status == "error":
            return Agreement("different", f"it fails here: {printable(last_line(outcome.error))}")
        if outcome.status != "ok":
            return Agreement(
                "not recomputed", f"{outcome.status}: {printable(last_line(outcome.error), 300)}"
            )
        value, versions = outcome.value, features.machine.versions()
        here = features.machine.cpu_model(), versions.get("blas"), value["details"]["device"]
        cpu = self.bundle.manifest.machines[theirs.machine].cpu
        there = cpu, self.bundle.manifest.versions.get("blas"), theirs.details.device
        added = self.registry.all("metric").keys()
        return agreement(theirs, value["metrics"], to_json(value["details"]), here != there, added)


def _check_protocol(protocol: Protocol, registry: features.Registry) -> None:
    """Raise a SuiteError if no suite file could have this protocol here."""
    table = {name: value for name, value in to_json(protocol).items() if value is not None}
    steps = table["scaling"]
    table["scaling"] = steps[0] if len(steps) == 1 else {"tune": steps}
    try:
        parsed = features.ProtocolTable.model_validate(
            table, context=features.make_context(registry)
        ).record()
    except ValidationError as error:
        mistake = next(
            features.explained_mistakes(error, table, features.ProtocolTable, "protocol")
        )
        raise SuiteError(printable(mistake, 300)) from None
    if parsed != protocol:
        raise SuiteError("its protocol is invalid here")
