"""Metrics that are added to existing results, from the predictions that were kept of them."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_

from kbench import features
from kbench.errors import DatasetError, KbenchError, SuiteError
from kbench.messages import did_you_mean, last_line
from kbench.records import STOPPING, Added, Metric, Missing, Ref, Result

TIME_S = 60.0
"""Wall clock of a plugin's metric of one split, if the suite's limit is not shorter."""

_LACKS = {
    "probabilities": "no probabilities",
    "scores": "no scores of classes",
    "distribution": "no predictive distribution",
}


@dataclass(frozen=True)
class _Scored:
    """A metric of one split, or the reason why there is none.

    `failed` says that there should be one. `manifest` is what the metric of a plugin was computed
    from; None for built-in ones.
    """

    value: float | None = None
    reason: str = ""
    failed: bool = True
    manifest: features.Manifest | None = None


class Rescoring:
    """Adds metrics to the existing results of a run, and writes them to the journal.

    Functions of plugins run in sandboxed processes, one for each split, with limits. A
    metric that hits a limit or ends its process is not tried on further splits.

    SuiteError is raised for a metric that does not exist or is not for the task.
    """

    def __init__(self, run: features.Run, names: Sequence[str]) -> None:
        self._run, self._planner = run, run.plan.planner
        self._metrics = {name: find_metric(name, run.registry) for name in names}
        self._cells = [cell for cell in run.cells if cell.dataset is not None]
        for name, metric in self._metrics.items():
            for cell in self._cells:
                if cell.dataset and metric.task not in (None, cell.dataset.task):
                    raise SuiteError(
                        f"metric {name!r} is for {metric.task}, and "
                        f"{cell.cell.dataset.label!r} is {cell.dataset.task}"
                    )
        self._codes = {name: self._planner.metric_code(name) for name in names}
        self._assignments = features.Assignments(run.session.cache)
        self._parents = features.WarmParents(
            features.preload_of_metrics(self._metrics, run.registry)
        )
        self._stopped: dict[str, str] = {}

    def add(self) -> list[Added]:
        """Add the metrics to all results that lack them; the cells have them then.

        A value is in the journal before it is used: a kill loses only the split that it
        interrupts.
        """
        by_key = {cell.key: cell for cell in self._cells}
        splits = [(cell, result) for cell in by_key.values() for result in cell.done]
        n_known = Counter(name for _, result in splits for name in result.metrics)
        n_added: Counter[str] = Counter()
        missing: dict[str, dict[tuple[str, bool], list[str]]] = {name: {} for name in self._codes}
        lacking = [each for each in splits if self._metrics.keys() - each[1].metrics.keys()]
        with closing(self._parents):
            for (cell, result), scores in features.over_slots(
                lacking, self._scores, self._run.jobs
            ):
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
            for name in self._metrics
        ]

    def _write(
        self,
        split: features.PlannedCell,
        result: Result,
        name: str,
        value: float,
        made: features.Manifest | None,
    ) -> None:
        """Write a metric, and before it what a plugin has computed it from."""
        journal = self._run.journal
        if made is not None:
            journal.keep_manifest(made)
        journal.append(
            "metric",
            task_key=result.task_key,
            name=name,
            value=value,
            code=self._codes[name],
            ended_ms=result.ended_ms,
            manifest="" if made is None else made.digest,
        )
        for cell in self._cells:
            if cell.key == split.key:
                cell.results[result.split] = cell.results[result.split].with_metric(name, value)

    def _scores(self, split: tuple[features.PlannedCell, Result], slot: int) -> dict[str, _Scored]:
        """Compute the metrics that one split lacks."""
        cell, result = split
        names = [name for name in self._metrics if name not in result.metrics]
        assert cell.dataset is not None
        try:
            assignment = self._assignments.get(self._planner.task(cell, result.split))
            predictions = self._predictions(cell, result, assignment)
        except KbenchError as error:
            return dict.fromkeys(names, _Scored(reason=str(error)))
        n_classes = cell.dataset.n_classes
        return {
            name: self._over_seeds(name, assignment.truth, predictions, n_classes) for name in names
        }

    def _over_seeds(
        self,
        name: str,
        truth: features.Truth,
        predictions: Sequence[features.Predictions],
        n_classes: int,
    ) -> _Scored:
        """Return the mean of a metric over seeds of the map; no value if one seed lacks it."""
        values: list[float] = []
        manifests: list[features.Manifest] = []
        for each in predictions:
            scored = self._score(name, truth, each, n_classes)
            if scored.value is None:
                return scored
            values.append(scored.value)
            manifests += [scored.manifest] if scored.manifest is not None else []
        made = reduce(or_, manifests) if manifests else None
        return _Scored(sum(values) / len(values), manifest=made)

    def _predictions(
        self, cell: features.PlannedCell, result: Result, assignment: features.Assignment
    ) -> list[features.Predictions]:
        """Return the kept predictions of a result, for each seed of the map.

        KbenchError is raised where there are none, or where they do not belong to it.
        """
        truth = assignment.truth
        if assignment.digest != result.details.split_hash:
            raise DatasetError("the rows of the split differ from those of the result")
        n_rows, n_classes = len(truth.y), len(truth.classes)
        most = features.most_bytes(n_rows, n_classes)
        name = features.PLAIN[truth.task].name
        predictions = []
        for number, stored in enumerate(result.of_seeds(name)):
            if (
                data := self._run.journal.blob(result.address, features.blob_of_seed(number), most)
            ) is None:
                raise DatasetError("no predictions are stored")
            unpacked = features.unpack(data, result.task_key, n_rows, n_classes)
            label = f"learner {cell.cell.learner.name!r}"
            predictions.append(unpacked.validate(truth.task, truth.classes, n_rows, label))
            value = features.COMPUTE[name](truth, predictions[-1])
            # another CPU may add up a mean in another order
            if value != stored and not (
                value and stored and math.isclose(value, stored, rel_tol=1e-9)
            ):
                raise DatasetError(f"the stored predictions yield another {name}")
        return predictions

    def _score(
        self, name: str, truth: features.Truth, predictions: features.Predictions, n_classes: int
    ) -> _Scored:
        metric = self._metrics[name]
        undefined = "it is not defined for the test set"
        if not features.applies(metric, truth.task, predictions):
            return _Scored(None, _LACKS.get(metric.needs, metric.needs), failed=False)
        if name in features.COMPUTE:
            return _Scored(features.COMPUTE[name](truth, predictions), undefined, failed=False)
        if name in self._stopped:
            return _Scored(None, self._stopped[name])
        with self._parents.using(self._run.registry.list_plugins(("metric", Ref(name)))) as sandbox:
            outcome = sandbox.run(
                "kbench.execution.task_functions:score_predictions",
                {
                    "metric": name,
                    "task": truth.task,
                    "n_classes": n_classes,
                    "scale": [truth.scale.mean, truth.scale.sd],
                },
                time_s=min(self._run.suite.limits.task_timeout_s, TIME_S),
                memory_mib=self._run.suite.limits.task_memory_mib,
                converse=partial(features.send_scored, truth=truth, predictions=predictions),
            )
        why = last_line(outcome.error).removeprefix("kbench.errors.PluginError: ") or "it failed"
        if outcome.status in STOPPING:
            why = self._stopped[name] = f"the metric ended with status {outcome.status}: {why}"
        if outcome.status != "ok":
            return _Scored(None, why)
        value = outcome.value.get("value") if isinstance(outcome.value, dict) else math.nan
        if value is not None and not (isinstance(value, float) and math.isfinite(value)):
            return _Scored(None, "the metric returned no finite number")
        made = self._planner.present.build(outcome.recorded)
        return _Scored(value, undefined, failed=False, manifest=made)


def add(run: features.Run, names: Sequence[str]) -> list[Added]:
    """Add metrics to the results of a run; they are in the journal before they are used."""
    if any(name not in r.metrics for cell in run.cells for r in cell.done for name in names):
        run.session.machine.acquire()
        run.plan.keep(run.location, run.cells, names, reopen=True)
    return Rescoring(run, names).add()


def find_metric(name: str, registry: features.Registry) -> Metric:
    """Return a metric that is computed from predictions, by its name.

    SuiteError is raised if none has the name.
    """
    of_plugins = registry.all("metric")
    if name in features.COMPUTED:
        return features.METRICS[name]
    if name in of_plugins:
        metric: Metric = of_plugins[name]
        return metric
    if name in features.METRICS:
        raise SuiteError(f"metric {name!r} is not computed from predictions")
    metrics = [*features.COMPUTED, *of_plugins]
    raise SuiteError(f"no metric is named {name!r}{did_you_mean(name, metrics)}")


class KnownOnly(features.Strategy):
    """Yields no tasks; SuiteError is raised without existing results."""

    def __init__(self, run: features.Run) -> None:
        if not any(cell.done for cell in run.cells):
            raise SuiteError(
                f"no results of {run.suite.name!r} are stored here: `kbench suite` computes "
                "them; results of changed code are out of date"
            )

    def steps(self) -> Iterator[tuple[features.PlannedCell, int]]:
        """Yield nothing."""
        return iter(())
