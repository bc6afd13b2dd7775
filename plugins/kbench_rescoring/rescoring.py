"""Measures that are added to known results, from the predictions that were kept of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_

from kbench.errors import DatasetError, KbenchError, SuiteError
from kbench.features import (
    COMPUTE,
    COMPUTED,
    MEASURES,
    PLAIN,
    Assignment,
    Assignments,
    Manifest,
    PlannedCell,
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
from kbench.records import STOPPING, Added, Measure, Missing, Ref, Result

TIME_S = 60.0
"""Wall clock of a plugin's measure of one split, if the suite's limit is not shorter."""

_LACKS = {
    "probabilities": "no probabilities",
    "scores": "no scores of classes",
    "distribution": "no predictive distribution",
}


@dataclass(frozen=True)
class _Scored:
    """A measure of one split, or the reason why there is none.

    `failed` says that there should be one. `manifest` is what the measure of a plugin was computed
    from; None for built-in ones.
    """

    value: float | None = None
    reason: str = ""
    failed: bool = True
    manifest: Manifest | None = None


class Rescoring:
    """Adds measures to the known results of a run, and writes them to the journal.

    Functions of plugins run in sandboxed processes, one for each split, with limits. A
    measure that hits a limit or ends its process is not tried on further splits.

    SuiteError is raised for a measure that does not exist or is not for the task.
    """

    def __init__(self, run: Run, names: Sequence[str]) -> None:
        self._run, self._planner = run, run.plan.planner
        self._measures = {name: measure_called(name, run.registry) for name in names}
        self._cells = [cell for cell in run.cells if cell.dataset is not None]
        _refuse_other_task(self._measures, self._cells)
        self._codes = {name: self._planner.measure_code(name) for name in names}
        self._assignments = Assignments(run.session.cache)
        self._parents = WarmParents(preload_of_measures(self._measures, run.registry))
        self._stopped: dict[str, str] = {}

    def add(self) -> list[Added]:
        """Add the measures to all results that lack them; the cells have them then.

        A value is in the journal before it is used: a kill loses only the split that it
        interrupts.
        """
        by_key = {cell.key: cell for cell in self._cells}
        splits = [(cell, result) for cell in by_key.values() for result in cell.done]
        n_known = Counter(name for _, result in splits for name in result.measures)
        n_added: Counter[str] = Counter()
        missing: dict[str, dict[tuple[str, bool], list[str]]] = {name: {} for name in self._codes}
        lacking = [each for each in splits if self._measures.keys() - each[1].measures.keys()]
        with closing(self._parents):
            for (cell, result), scores in over_slots(lacking, self._scores, self._run.jobs):
                for name, scored in scores.items():
                    if scored.value is None:
                        learners = missing[name].setdefault((scored.reason, scored.failed), [])
                        learners.append(cell.cell.learner.label)
                    else:
                        self._write(cell, result, name, scored.value, scored.manifest)
                        n_added[name] += 1
        return [
            Added(
                name,
                n_added[name],
                n_known[name],
                tuple(
                    Missing(reason, len(learners), tuple(dict.fromkeys(learners)), failed)
                    for (reason, failed), learners in missing[name].items()
                ),
            )
            for name in self._measures
        ]

    def _write(
        self, split: PlannedCell, result: Result, name: str, value: float, made: Manifest | None
    ) -> None:
        """Write a measure, and before it what a plugin has computed it from."""
        journal = self._run.journal
        if made is not None:
            journal.keep_manifest(made)
        journal.append(
            "measure",
            task_key=result.task_key,
            name=name,
            value=value,
            code=self._codes[name],
            ended_ms=result.ended_ms,
            manifest="" if made is None else made.digest,
        )
        for cell in self._cells:
            if cell.key == split.key:
                cell.results[result.split] = cell.results[result.split].with_measure(name, value)

    def _scores(self, split: tuple[PlannedCell, Result], slot: int) -> dict[str, _Scored]:
        """Compute the measures that one split lacks."""
        cell, result = split
        names = [name for name in self._measures if name not in result.measures]
        assert cell.dataset is not None
        try:
            assignment = self._assignments.of(self._planner.task(cell, result.split))
            predictions = self._predictions(cell, result, assignment)
        except KbenchError as error:
            return dict.fromkeys(names, _Scored(reason=str(error)))
        n_classes = cell.dataset.n_classes
        return {
            name: self._over_seeds(name, assignment.truth, predictions, n_classes) for name in names
        }

    def _over_seeds(
        self, name: str, truth: Truth, predictions: Sequence[Predictions], n_classes: int
    ) -> _Scored:
        """Return the mean of a measure over seeds of the map; no value if one seed lacks it."""
        values: list[float] = []
        manifests: list[Manifest] = []
        for given in predictions:
            found = self._scored(name, truth, given, n_classes)
            if found.value is None:
                return found
            values.append(found.value)
            manifests += [found.manifest] if found.manifest is not None else []
        made = reduce(or_, manifests) if manifests else None
        return _Scored(sum(values) / len(values), manifest=made)

    def _predictions(
        self, cell: PlannedCell, result: Result, assignment: Assignment
    ) -> list[Predictions]:
        """Return the kept predictions of a result, for each seed of the map.

        KbenchError is raised where there are none, or where they do not belong to it.
        """
        truth = assignment.truth
        if assignment.digest != result.details.split_hash:
            raise DatasetError("the rows of the split are not those of the result")
        n_rows, n_classes = len(truth.y), len(truth.classes)
        most = most_bytes(n_rows, n_classes)
        name = PLAIN[truth.task].name
        predictions = []
        for number, known in enumerate(result.of_seeds(name)):
            data = self._run.journal.blob(result.address, blob_of_seed(number), most)
            if data is None:
                raise DatasetError("no predictions were kept")
            kept = unpacked(data, result.task_key, n_rows, n_classes)
            what = f"learner {cell.cell.learner.name!r}"
            predictions.append(kept.checked(truth.task, truth.classes, n_rows, what))
            value = COMPUTE[name](truth, predictions[-1])
            # another CPU may add up a mean in another order
            if value != known and not (
                value and known and math.isclose(value, known, rel_tol=1e-9)
            ):
                raise DatasetError(f"the kept predictions do not have the {name} of the result")
        return predictions

    def _scored(self, name: str, truth: Truth, given: Predictions, n_classes: int) -> _Scored:
        measure = self._measures[name]
        undefined = "it is not defined for the test part"
        if not applies(measure, truth.task, given):
            return _Scored(None, _LACKS.get(measure.needs, measure.needs), failed=False)
        if name in COMPUTE:
            return _Scored(COMPUTE[name](truth, given), undefined, failed=False)
        if name in self._stopped:
            return _Scored(None, self._stopped[name])
        plugins = self._run.registry.plugins_of(("measure", Ref(name)))
        with self._parents.using(plugins) as sandbox:
            outcome = sandbox.run(
                "kbench.execution.task_functions:measure_predictions",
                {
                    "measure": name,
                    "task": truth.task,
                    "n_classes": n_classes,
                    "scale": [truth.scale.mean, truth.scale.sd],
                },
                time_s=min(self._run.suite.limits.time_s, TIME_S),
                memory_mb=self._run.suite.limits.memory_mb,
                converse=partial(send_scored, truth=truth, predictions=given),
            )
        why = _last_line(outcome.error)
        if outcome.status in STOPPING:
            why = self._stopped[name] = f"the measure ended with {outcome.status}: {why}"
        if outcome.status != "ok":
            return _Scored(None, why)
        value = outcome.value.get("value") if isinstance(outcome.value, dict) else math.nan
        if value is not None and not (isinstance(value, float) and math.isfinite(value)):
            return _Scored(None, "the measure returned no finite number")
        made = self._planner.present.made(outcome.recorded)
        return _Scored(value, undefined, failed=False, manifest=made)


def add(run: Run, names: Sequence[str]) -> list[Added]:
    """Add measures to the results of a run; they are in the journal before they are used."""
    if any(name not in r.measures for cell in run.cells for r in cell.done for name in names):
        run.session.machine.acquire()
        run.plan.keep(run.location, run.cells, names, reopen=True)
    return Rescoring(run, names).add()


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
