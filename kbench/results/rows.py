"""One row per cell: from the journal's results, or from MLflow's runs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kbench.planning.planner import PlannedCell
from kbench.records import ACCURACY, Measure, Published, Result
from kbench.records.canonical import dumps, to_json
from kbench.results.search_curves import curves_of
from kbench.tracking import StoredRun

COLUMNS = (
    "dataset",
    "feature_map",
    "learner",
    "status",
    "n_splits_done",
    "n_splits",
    "accuracy",
    "accuracy_sd",
    "fit_time_s",
    "predict_time_s",
    "search_time_s",
    "n_components",
    "peak_memory_mb",
    "converged",
)
"""Columns of a results table, in order, where accuracy is compared."""

TIMES = ("fit_time_s", "predict_time_s")
"""Times whose values on each split are kept beside their means."""

_LABELS = 6
"""Columns that no measure fills."""

_TEXTS = (
    "version",
    "at_edge",
    "notes",
    "contention",
    "timing",
    "calibration_s",
    "error",
    "equivalence",
)
"""Fields of a row that are tags of its run."""

Values = Mapping[str, float]
"""A measure by the number of the split."""


@dataclass(frozen=True)
class Row:
    """What is known of a cell: one line of a results table.

    Parameters
    ----------
    dataset, feature_map, learner : str
        Labels of the cell.
    status : str
        Its worst split's.
    n_splits_done, n_splits : int
        Splits that are ok, and that are planned.
    measures : mapping of str to float
        Means over the splits that are ok, and standard deviations of one
        split, such as ``accuracy_sd``.
    group : str
        Datasets of one group count once in tests over datasets; the dataset's
        label by default.
    machine : str
        Who computed it.
    protocol : mapping of str to str
        Fields of the protocol, as text.
    values_by_split : mapping of str to mapping of str to float
        Measures by name and number of the split.
    split_hash : mapping of str to str
        Hash of the row indices, by number of the split.
    search : mapping of str to list
        What the search saw, by parameter: points of `CURVE`.
    version, at_edge, notes, contention, timing, calibration_s, error, equivalence : str
        See the tags of a run in the documentation; `calibration_s` holds
        numbers with commas between them.
    start_ms, end_ms : int
        Milliseconds since 1970.

    Examples
    --------
    >>> row = Row("iris", "rff", "ridge", "ok", 5, 5, {"accuracy": 0.9, "converged": 0.8})
    >>> row.value("accuracy"), row.value("converged"), row.value("log_loss")
    (0.9, False, None)
    """

    dataset: str
    feature_map: str
    learner: str
    status: str
    n_splits_done: int
    n_splits: int
    measures: Mapping[str, float] = field(default_factory=dict)
    group: str = ""
    machine: str = ""
    protocol: Mapping[str, str] = field(default_factory=dict)
    values_by_split: Mapping[str, Values] = field(default_factory=dict)
    split_hash: Mapping[str, str] = field(default_factory=dict)
    search: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    version: str = ""
    at_edge: str = ""
    notes: str = ""
    contention: str = ""
    timing: str = ""
    calibration_s: str = ""
    error: str = ""
    equivalence: str = ""
    start_ms: int = 0
    end_ms: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", self.group or self.dataset)

    @property
    def method(self) -> tuple[str, str]:
        """Feature map and learner."""
        return self.feature_map, self.learner

    @property
    def labels(self) -> tuple[str, str, str]:
        """Dataset, feature map and learner."""
        return self.dataset, self.feature_map, self.learner

    @property
    def is_complete(self) -> bool:
        """Whether the row may be ranked: all planned splits are done."""
        return self.status == "ok" and self.n_splits_done == self.n_splits

    @property
    def converged(self) -> bool | None:
        """Whether all fits converged; None where it is not known."""
        share = self.measures.get("converged")
        # one split that did not converge is enough
        return None if share is None else share == 1.0

    @property
    def n_components(self) -> float | int | None:
        """Width of the embedding, a whole number where all splits have the same."""
        width = self.measures.get("n_components")
        return int(width) if width is not None and float(width).is_integer() else width

    @property
    def predict_row_s(self) -> float | None:
        """Seconds to predict one row."""
        n_test, seconds = self.measures.get("n_test"), self.measures.get("predict_time_s")
        return seconds / n_test if n_test and seconds is not None else None

    def value(self, column: str) -> Any:
        """Return a label, a count or a measure; None where the row has none."""
        return getattr(self, column) if column in _OWN else self.measures.get(column)

    def by_split(self, measure: str) -> Values:
        """Return a measure by the number of the split."""
        return self.values_by_split.get(measure, {})

    def to_json(self, measure: Measure = ACCURACY) -> dict[str, Any]:
        """Return what `kbench results --format json` writes: columns first, then all else."""
        names = columns(measure)
        return {
            **{name: self.value(name) for name in names},
            **{name: value for name, value in self.measures.items() if name not in names},
            "group": self.group,
            "machine": self.machine,
            "by_split": self.by_split(ACCURACY.name),
            "measure_by_split": self.by_split(measure.name),
            "values_by_split": self.values_by_split,
            "split_hash": self.split_hash,
            "protocol": self.protocol,
            "search": self.search,
            **{name: getattr(self, name) for name in _TEXTS},
            "start_ms": self.start_ms,
            "end_ms": self.end_ms,
            "measure": measure.name,
            "better": measure.better,
        }


_OWN = (*COLUMNS[:_LABELS], "converged", "n_components", "predict_row_s")
"""Columns that are not looked up among the measures."""


def columns(measure: Measure = ACCURACY) -> tuple[str, ...]:
    """Return the columns of a results table: the measure that is compared comes first.

    >>> columns(Measure("log_loss", "lower"))[5:9]
    ('n_splits', 'log_loss', 'log_loss_sd', 'accuracy')
    """
    compared = (*COLUMNS[:_LABELS], measure.name, measure.sd, *COLUMNS[_LABELS:])
    return tuple(dict.fromkeys(compared))


def measure_of(runs: Sequence[StoredRun]) -> Measure:
    """Return what the suite of MLflow runs compares: what most of them say."""
    told = Counter(
        (run.tags["kbench.measure"], run.tags.get("kbench.better"))
        for run in runs
        if run.tags.get("kbench.measure")
    )
    if not told:
        return ACCURACY
    name, better = told.most_common(1)[0][0]
    return Measure(name, "lower" if better == "lower" else "higher")


def means(results: Sequence[Result], measure: Measure = ACCURACY) -> dict[str, float]:
    """Average the measures of a cell's splits.

    Parameters
    ----------
    results : sequence of Result
        Those with status "ok".
    measure : Measure, optional
        What the suite compares.

    Returns
    -------
    dict of str to float
        The mean of each measure over the splits that have it; of the accuracy
        and of `measure` also the standard deviation of one split, such as
        ``accuracy_sd`` (ddof 1; absent for a single split).
    """
    collected: dict[str, list[float]] = {}
    for result in results:
        for name, value in result.measures.items():
            if math.isfinite(value):
                collected.setdefault(name, []).append(value)
    averaged = {name: float(np.mean(values)) for name, values in collected.items()}
    for each in (ACCURACY, measure):
        if len(collected.get(each.name, ())) > 1:
            averaged[each.sd] = float(np.std(collected[each.name], ddof=1))
    return averaged


def of_cell(planned: PlannedCell, measure: Measure = ACCURACY) -> Row:
    """Return the row of a planned cell, whatever became of it, without details.

    Parameters
    ----------
    planned : PlannedCell
    measure : Measure, optional
        What the suite compares.

    Returns
    -------
    Row
        Labels, status, means, and what decides how cells are compared: the
        ``group`` of the dataset and the ``equivalence`` of the method.
    """
    cell, done = planned.cell, planned.done
    return Row(
        dataset=cell.dataset.label,
        feature_map=cell.feature_map.label,
        learner=cell.learner.label,
        status=planned.status,
        n_splits_done=len(done),
        n_splits=planned.n_splits,
        measures=means(done, measure),
        group=planned.dataset.group if planned.dataset else "",
        equivalence=planned.equivalence,
    )


def of_cell_in_full(planned: PlannedCell, machine: str, measure: Measure = ACCURACY) -> Row:
    """Return the row of a planned cell with all that its run in MLflow tells.

    Parameters
    ----------
    planned : PlannedCell
    machine : str
        Identity of the machine that computed it.
    measure : Measure, optional
        What the suite compares.
    """
    results, done = planned.in_order, planned.done
    since = planned.problem.since_ms if planned.problem else 0
    failed = next((result for result in results if not result.is_ok), None)
    error = failed.error if failed else planned.problem.reason if planned.problem else ""
    doubts = {why for result in done for why in result.details.contention}
    cpus = {result.cpu for result in done if result.cpu}
    if len(cpus) > 1:
        doubts.add(f"its splits were timed on different CPUs: {', '.join(sorted(cpus))}")
    timings = {result.timing for result in done}
    return replace(
        of_cell(planned, measure),
        machine=machine,
        protocol={
            name: value if isinstance(value, str) else dumps(value)
            for name, value in to_json(planned.cell.protocol).items()
        },
        values_by_split={
            name: {str(i): value for i, value in by_split(done, name).items()}
            for name in (ACCURACY.name, measure.name, *TIMES)
        },
        split_hash={str(result.split): result.details.split_hash for result in done},
        search=curves_of({str(result.split): result.details.search for result in done}),
        version=_joined(result.version for result in results),
        at_edge=_joined(name for result in done for name in result.details.at_edge),
        notes=_joined((note for result in done for note in result.details.notes), "; "),
        contention=_joined(doubts, "; "),
        timing="" if timings <= {"shared"} else _joined(timings),
        calibration_s=_joined(f"{result.calibration_s:.4g}" for result in results),
        error=error,
        start_ms=min((result.started_ms for result in results), default=since),
        end_ms=max((result.ended_ms for result in results), default=since),
    )


def by_split(results: Iterable[Result], name: str) -> dict[int, float]:
    """Return a measure by number of the split; a split may lack it."""
    return {
        result.split: result.measures[name]
        for result in results
        if math.isfinite(result.measures.get(name, math.nan))
    }


def _joined(texts: Iterable[str], sign: str = ", ") -> str:
    """Return different texts in one, in alphabetical order."""
    return sign.join(sorted(set(texts)))


def of_run(run: StoredRun) -> Row:
    """Return the row of an MLflow run, with all that its tags and metrics tell."""
    tags = {name.removeprefix("kbench."): value for name, value in run.tags.items()}
    return Row(
        dataset=run.params.get("dataset", ""),
        feature_map=run.params.get("feature_map", ""),
        learner=run.params.get("learner", ""),
        status=run.status,
        n_splits_done=run.n_splits_done,
        n_splits=_whole(tags.get("n_splits", ""), run.n_splits_done),
        measures=run.metrics,
        group=tags.get("group", ""),
        machine=run.machine,
        protocol={
            name.removeprefix("protocol."): value
            for name, value in run.params.items()
            if name.startswith("protocol.")
        },
        values_by_split={
            name.removesuffix("_by_split"): _of_tag(value)
            for name, value in tags.items()
            if name.endswith("_by_split")
        },
        split_hash=_of_tag(tags.get("split_hash", "")),
        search=_of_tag(tags.get("search_curves", "")),
        **{name: tags.get(name, "") for name in _TEXTS},
        start_ms=run.start_ms,
        end_ms=run.end_ms,
    )


def _of_tag(text: str) -> dict[str, Any]:
    """Read an object; none where the tag was too long for MLflow, or somebody has edited it."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _whole(text: str, default: int) -> int:
    """Read a number; another where somebody has edited the tag."""
    return int(text) if text.isdecimal() and len(text) < 10 else default


def by_dataset(rows: Sequence[Row]) -> list[Row]:
    """Sort rows so that those of a dataset stand together, in the order of first sight.

    Datasets that cannot be had come last.
    """
    order = {name: place for place, name in enumerate(dict.fromkeys(r.dataset for r in rows))}
    here = {row.dataset for row in rows if row.status != "unavailable"}
    return sorted(rows, key=lambda row: (row.dataset not in here, order[row.dataset]))


def unequal_splits(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """Return the least and the largest number of splits where a dataset's rows differ in it.

    Only rows that may be ranked count: their means are over different splits.

    >>> unequal_splits([Row("iris", "rff", "ridge", "ok", n, n) for n in (5, 2)])
    {'iris': (2, 5)}
    """
    numbers: dict[str, set[int]] = {}
    for row in rows:
        if row.is_complete:
            numbers.setdefault(row.dataset, set()).add(row.n_splits)
    return {name: (min(some), max(some)) for name, some in numbers.items() if len(some) > 1}


def tied_ranks(values: np.ndarray) -> np.ndarray:
    """Rank values, 1 for the smallest; ties share the mean of their ranks.

    As scipy's ``rankdata``, whose import takes longer than the rest of a command.

    >>> tied_ranks(np.array([0.3, 0.1, 0.3])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    shared: np.ndarray = np.cumsum(counts) - (counts - 1) / 2
    return shared[number]


def ranks(rows: Sequence[Row], measure: Measure = ACCURACY) -> list[float | None]:
    """Rank each complete row among its dataset's, 1 for the best.

    Ties share the mean of their ranks; rows that are not complete, or lack
    the measure, have none.
    """
    ranked: list[float | None] = [None] * len(rows)
    for dataset in dict.fromkeys(row.dataset for row in rows):
        places = [
            i
            for i, row in enumerate(rows)
            if row.dataset == dataset and row.is_complete and row.value(measure.name) is not None
        ]
        # rounding first: sums in another order must not break ties
        values = [-measure.gain(round(rows[i].measures[measure.name], 12)) for i in places]
        for i, rank in zip(places, tied_ranks(np.array(values)), strict=True):
            ranked[i] = float(rank)
    return ranked


@dataclass(frozen=True)
class Beside:
    """Ours beside a figure that a paper prints.

    Parameters
    ----------
    published : Published
        What the paper prints.
    ours, standard_error : float or None
        Our mean, and its standard error.
    n : int
        Splits behind it.
    z : float or None
        The distance in standard errors,
        (ours - paper) / sqrt(sd^2 (1/n_ours + 1/n_paper)), where sd is that of
        one run, ours, ddof 1; None where it is not known.
    """

    published: Published
    ours: float | None
    standard_error: float | None
    n: int
    z: float | None


def beside_published(
    rows: Sequence[Row], published: Sequence[Published], measure: Measure = ACCURACY
) -> list[Beside]:
    """Put ours beside the figures that papers print.

    Parameters
    ----------
    rows : sequence of Row
    published : sequence of Published
        Figures of the suite; those of measures that rows do not have are
        left out.
    measure : Measure, optional
        What the suite compares.

    Returns
    -------
    list of Beside
        One per published figure whose cell is planned, whatever became of it.
    """
    by_labels = {row.labels: row for row in rows}
    known = {name for row in rows for name in row.measures} | set(columns(measure))
    compared = []
    for figure in published:
        row = by_labels.get((figure.dataset, figure.feature_map, figure.learner))
        if row is None or figure.measure not in known:
            continue
        ours, sd = row.value(figure.measure), row.measures.get(f"{figure.measure}_sd")
        n = row.n_splits_done
        z = None
        if sd and figure.n_runs:
            z = (ours - figure.value) / (sd * math.sqrt(1 / n + 1 / figure.n_runs))
        error = None if sd is None else sd / math.sqrt(n)
        compared.append(Beside(figure, ours, error, n, z))
    return compared
