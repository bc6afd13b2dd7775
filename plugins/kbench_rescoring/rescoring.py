"""Measures that are added to known results, from the predictions that were kept of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from kbench.errors import DatasetError, KbenchError, PluginError, SuiteError
from kbench.features import (
    COMPUTE,
    COMPUTED,
    MEASURES,
    Assignment,
    Assignments,
    DataCache,
    Journal,
    Manifest,
    PlannedCell,
    Planner,
    Predictions,
    Registry,
    Run,
    Truth,
    WarmParents,
    applies,
    blob_of_seed,
    most_bytes,
    over_slots,
    preload_of_measures,
    send_scored,
    unpacked,
)
from kbench.messages import did_you_mean
from kbench.records import STOPPING, Added, Limits, Measure, Missing, Ref, Result

TIME_S = 60.0
"""Wall clock of a plugin's measure of one split, if the suite's limit is not shorter."""

_LACKS = {
    "probabilities": "no probabilities",
    "scores": "no scores of classes",
    "distribution": "no predictive distribution",
}


@dataclass(frozen=True)
class _Split:
    """A known result that lacks measures."""

    cell: PlannedCell
    result: Result
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Scored:
    """A measure of one split, or the reason why there is none.

    `manifest` is what the measure of a plugin was computed from; None for built-in ones.
    """

    name: str
    value: float | None = None
    reason: str = ""
    failed: bool = True
    manifest: Manifest | None = None


@dataclass
class _Count:
    """Splits of one measure so far."""

    n_added: int = 0
    n_known: int = 0
    missing: Counter[tuple[str, bool]] = field(default_factory=Counter)
    learners: dict[tuple[str, bool], dict[str, None]] = field(default_factory=dict)

    def lack(self, reason: str, failed: bool, learner: str) -> None:
        self.missing[reason, failed] += 1
        self.learners.setdefault((reason, failed), {})[learner] = None

    def added(self, name: str) -> Added:
        missing = [
            Missing(reason, n_splits, tuple(self.learners[reason, failed]), failed)
            for (reason, failed), n_splits in self.missing.items()
        ]
        return Added(name, self.n_added, self.n_known, tuple(missing))


class Rescoring:
    """Adds measures to the known results of cells, and writes them to the journal.

    Functions of plugins run in sandboxed processes, one for each split, with limits. A
    measure that hits a limit or ends its process is not tried on further splits.
    """

    def __init__(
        self,
        registry: Registry,
        planner: Planner,
        cache: DataCache,
        journal: Journal,
        limits: Limits,
        jobs: int,
    ) -> None:
        self._registry, self._planner = registry, planner
        self._journal, self._limits, self._jobs = journal, limits, jobs
        self._assignments = Assignments(cache)
        self._stopped: dict[str, str] = {}

    def add(self, cells: Sequence[PlannedCell], names: Sequence[str]) -> list[Added]:
        """Add measures to all results of cells that lack them; the cells have them then.

        A value is in the journal before it is used: a kill loses only the split that it
        interrupts.

        SuiteError is raised for a measure that does not exist or is not for the task.
        """
        measures = {name: measure_called(name, self._registry) for name in names}
        known = [cell for cell in cells if cell.dataset is not None]
        _refuse_other_task(measures, known)
        codes = {name: self._planner.measure_code(name) for name in measures}
        counts = {name: _Count() for name in measures}
        splits = [*_lacking(known, counts)]
        with closing(WarmParents(preload_of_measures(measures, self._registry))) as parents:
            work = partial(self._work, measures, parents)
            for split, scored in over_slots(splits, work, self._jobs):
                for each in scored:
                    count = counts[each.name]
                    if each.value is None:
                        count.lack(each.reason, each.failed, split.cell.cell.learner.label)
                        continue
                    self._write(split, each, codes[each.name], known)
                    count.n_added += 1
        return [count.added(name) for name, count in counts.items()]

    def _write(
        self, split: _Split, scored: _Scored, code: str, cells: Sequence[PlannedCell]
    ) -> None:
        """Write a measure, and before it what a plugin has computed it from."""
        result, name, value = split.result, scored.name, scored.value
        assert value is not None
        if scored.manifest is not None:
            self._journal.keep_manifest(scored.manifest)
        self._journal.append(
            "measure",
            task_key=result.task_key,
            name=name,
            value=value,
            code=code,
            ended_ms=result.ended_ms,
            manifest="" if scored.manifest is None else scored.manifest.digest,
        )
        for cell in cells:
            if cell.key == split.cell.key:
                cell.results[result.split] = cell.results[result.split].with_measure(name, value)

    def _work(
        self, measures: Mapping[str, Measure], parents: WarmParents, split: _Split, slot: int
    ) -> list[_Scored]:
        """Compute the measures that one split lacks."""
        try:
            assignment = self._assignments.of(self._planner.task(split.cell, split.result.split))
            predictions = self._predictions(split, assignment)
        except KbenchError as error:
            return [_Scored(name, reason=str(error)) for name in split.names]
        facts = split.cell.dataset
        assert facts is not None
        given = [_Given(assignment.truth, each, facts.n_classes, parents) for each in predictions]
        return [self._over_seeds(measures[name], given) for name in split.names]

    def _over_seeds(self, measure: Measure, given: Sequence[_Given]) -> _Scored:
        """Return the mean of a measure over seeds of the map; no value if one seed lacks it."""
        values = []
        manifest: Manifest | None = None
        for of_seed in given:
            found = self._scored(measure, of_seed)
            if found.value is None:
                return found
            values.append(found.value)
            if found.manifest is not None:
                manifest = found.manifest if manifest is None else manifest | found.manifest
        return _Scored(measure.name, sum(values) / len(values), manifest=manifest)

    def _predictions(self, split: _Split, assignment: Assignment) -> list[Predictions]:
        """Return the kept predictions of a result, for each seed of the map.

        KbenchError is raised where there are none, or where they do not belong to it.
        """
        result, truth = split.result, assignment.truth
        if assignment.digest != result.details.split_hash:
            raise DatasetError("the rows of the split are not those of the result")
        n_rows, n_classes = len(truth.y), len(truth.classes)
        what = f"learner {split.cell.cell.learner.name!r}"
        name = "accuracy" if truth.task == "classification" else "rmse"
        predictions = []
        for number, known in enumerate(result.of_seeds(name)):
            most = most_bytes(n_rows, n_classes)
            data = self._journal.blob(result.address, blob_of_seed(number), most)
            if data is None:
                raise DatasetError("no predictions were kept")
            kept = unpacked(data, result.task_key, n_rows, n_classes)
            given = kept.checked(truth.task, truth.classes, n_rows, what)
            value = COMPUTE[name](truth, given)
            # another CPU may add up a mean in another order
            if value != known and not (
                value and known and math.isclose(value, known, rel_tol=1e-9)
            ):
                raise DatasetError(f"the kept predictions do not have the {name} of the result")
            predictions.append(given)
        return predictions

    def _scored(self, measure: Measure, given: _Given) -> _Scored:
        name, manifest = measure.name, None
        if not applies(measure, given.truth.task, given.predictions):
            return _Scored(name, reason=_LACKS.get(measure.needs, measure.needs), failed=False)
        if name in COMPUTE:
            value = COMPUTE[name](given.truth, given.predictions)
        elif name in self._stopped:
            return _Scored(name, reason=self._stopped[name])
        else:
            try:
                value, manifest = self._asked(measure, given)
            except PluginError as error:
                return _Scored(name, reason=str(error))
        reason = "it is not defined for the test part"
        return _Scored(name, value, reason, failed=False, manifest=manifest)

    def _asked(self, measure: Measure, given: _Given) -> tuple[float | None, Manifest | None]:
        """Compute a plugin's measure in a process of its own, and return from what it was made.

        PluginError is raised where that fails.
        """
        scale = given.truth.scale
        payload = {
            "measure": measure.name,
            "task": given.truth.task,
            "n_classes": given.n_classes,
            "scale": [scale.mean, scale.sd],
        }
        plugins = self._registry.plugins_of(("measure", Ref(measure.name)))
        with given.parents.using(plugins) as sandbox:
            outcome = sandbox.run(
                "kbench.execution.entry_points:measure_predictions",
                payload,
                time_s=min(self._limits.time_s, TIME_S),
                memory_mb=self._limits.memory_mb,
                converse=partial(send_scored, truth=given.truth, predictions=given.predictions),
            )
        if outcome.status in STOPPING:
            reason = f"the measure ended with {outcome.status}: {_last_line(outcome.error)}"
            self._stopped[measure.name] = reason
            raise PluginError(reason)
        if outcome.status != "ok":
            raise PluginError(_last_line(outcome.error))
        value = outcome.value.get("value") if isinstance(outcome.value, dict) else math.nan
        if value is not None and not (isinstance(value, float) and math.isfinite(value)):
            raise PluginError("the measure returned no finite number")
        return value, self._planner.present.made(outcome.recorded)


@dataclass(frozen=True)
class _Given:
    """What the measures of one split are computed from, and where."""

    truth: Truth
    predictions: Predictions
    n_classes: int
    parents: WarmParents


def add(run: Run, names: Sequence[str]) -> list[Added]:
    """Add measures to the results of a run; they are in the journal before they are used."""
    if any(name not in r.measures for cell in run.cells for r in cell.done for name in names):
        run.session.machine.acquire()
        run.plan.keep(run.location, run.cells, names, reopen=True)
    rescoring = Rescoring(
        run.registry,
        run.plan.planner,
        run.session.cache,
        run.journal,
        run.suite.limits,
        run.jobs,
    )
    return rescoring.add(run.cells, names)


def measure_called(name: str, registry: Registry) -> Measure:
    """Return a measure that is computed from predictions, by its name.

    SuiteError is raised where there is none.
    """
    of_plugins = registry.all("measure")
    if name in COMPUTED:
        return MEASURES[name]
    if name in of_plugins:
        measure: Measure = of_plugins[name]
        return measure
    if name in MEASURES:
        raise SuiteError(f"measure {name!r} is not computed from predictions")
    known = [*COMPUTED, *of_plugins]
    raise SuiteError(f"no measure is called {name!r}{did_you_mean(name, known)}")


def _refuse_other_task(measures: Mapping[str, Measure], cells: Sequence[PlannedCell]) -> None:
    """Raise if a measure is not for the task of a dataset."""
    for name, measure in measures.items():
        for cell in cells:
            assert cell.dataset is not None
            if measure.task not in (None, cell.dataset.task):
                raise SuiteError(
                    f"measure {name!r} is for {measure.task}, and "
                    f"{cell.cell.dataset.label!r} is {cell.dataset.task}"
                )


def _lacking(cells: Sequence[PlannedCell], counts: Mapping[str, _Count]) -> Iterator[_Split]:
    """Yield the results that lack measures, and count those that do not."""
    for cell in {cell.key: cell for cell in cells}.values():
        for result in cell.done:
            lacking = tuple(name for name in counts if name not in result.measures)
            for name in counts.keys() - set(lacking):
                counts[name].n_known += 1
            if lacking:
                yield _Split(cell, result, lacking)


def _last_line(error: str) -> str:
    """Return the last line of a traceback, without the class of kbench's own errors."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return lines[-1].removeprefix("kbench.errors.PluginError: ") if lines else "it failed"


class KnownOnly:
    """Yields no tasks; SuiteError is raised where no results are known."""

    n_tasks = 0
    cuts_off = False

    def __init__(self, run: Run) -> None:
        if not any(cell.done for cell in run.cells):
            raise SuiteError(
                f"no results of {run.suite.name!r} are known here: `kbench suite` computes them; "
                "an edit of the code makes earlier ones out of date"
            )

    def steps(self) -> Iterator[tuple[PlannedCell, int]]:
        """Yield nothing."""
        return iter(())

    def tell(self, cell: PlannedCell, result: Result) -> None:
        """Do nothing: there are no results."""

    def kept(self, cells: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Return all cells."""
        return list(cells)
