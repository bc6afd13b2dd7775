"""Rows of a results table: their columns, their order, and ranks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from kbench.evaluation.definitions import METRICS as METRICS  # formats of values need it too
from kbench.records import ACCURACY, Metric, TaskType
from kbench.records.canonical import Json, JsonObject

Key = TypeVar("Key")
Value = TypeVar("Value")

# The best known metric of each task: shown for each dataset, whatever a suite compares.
PLAIN: Mapping[TaskType, Metric] = {"classification": ACCURACY, "regression": METRICS["rmse"]}

# Metrics between 0 and 1, of which 1 - value is an error.
SHARES = ("accuracy", "balanced_accuracy", "f1_macro", "roc_auc")

LABELS = ("dataset", "feature_map", "learner")

# Columns of a results table of classification, in order, where accuracy is compared.
COLUMNS = (
    *LABELS,
    *("status", "n_splits_done", "n_splits", "accuracy", "accuracy_sd"),
    *("fit_time_s", "predict_time_s", "search_time_s"),
    *("n_components", "peak_memory_mib", "converged"),
)

# Statuses of cells that were not measured; they did not fail.
NOT_MEASURED = ("skipped", "unfinished", "not_run")

# Times whose values on each split are kept in addition to their means.
TIMES = ("fit_time_s", "predict_time_s")

# Fields of a row that are tags of its run.
TEXTS = (
    *("version", "at_boundary", "notes", "contention", "timing", "machine_speed_s"),
    *("error", "equivalence", "family", "made_from"),
)

# Further fields of a row in JSON.
_IDENTITY = ("task", "dataset_family", "machine", "key", "checksum")
_DETAILS = (
    *("values_by_split", "values_by_seed", "split_hash"),
    *("protocol", "search", "budget_curve", "map_details"),
)
_STATE = ("outdated", "search_space", "start_ms", "end_ms")

# Stands for the manifest of a result that has none.
UNKNOWN = "unknown"

# Number of leading columns that are fields of a row, not metrics.
_N_FIELDS = 6

_NOT_METRICS = (
    *COLUMNS[:_N_FIELDS],
    *("converged", "n_components", "predict_time_per_row_s", "family"),
)

Method = tuple[str, str]
Labels = tuple[str, str, str]
# A metric by the number of the split.
Values = Mapping[str, float]


@dataclass(frozen=True)
class Row:
    """Results of one cell: one line of a results table.

    Parameters
    ----------
    dataset, feature_map, learner : str
        Labels of the cell.
    status : str
        The worst status of its splits.
    n_splits_done, n_splits : int
        Splits that are ok, and that are planned.
    metrics : mapping of str to float
        Means over the splits that are ok, and standard deviations of one
        split, such as ``accuracy_sd``.
    task : {"classification", "regression"}
        Task of the dataset; classification where it is unknown.
    dataset_family : str
        Datasets of one group count once in tests over datasets; the dataset's
        label by default.
    machine : str
        Identity of the machine that computed it.
    key, checksum : str
        Keys of the cell and of the dataset's content; empty if they are unknown.
    protocol : mapping of str to str
        Fields of the protocol, as text.
    values_by_split : mapping of str to mapping of str to float
        Metrics by name and number of the split.
    values_by_seed : mapping of str to mapping of str to sequence of float
        Metrics by name, number of the split and seed of the map; empty if there is one seed.
    split_hash : mapping of str to str
        Hash of the row indices, by number of the split.
    search : mapping of str to list
        Curves of the search, by parameter: points of `CURVE`.
    budget_curve : list
        Points of `kbench.results.budgets`: seconds of search, and the best validation score
        that they reach on average over orders of the candidates.
    map_details : mapping
        What the fitted map of the first finished split reports of itself, with ``split`` and the
        ``feature_names`` of the dataset; empty if it reports nothing.
    version, at_boundary, notes, contention, timing, machine_speed_s, error, equivalence : str
        See the tags of a run in the documentation; `machine_speed_s` holds
        numbers with commas between them.
    family : str
        Family of the method (`kbench.records.get_family`); empty if it is its own.
    made_from : str
        Digests of the manifests of its results, separated by spaces; "unknown" without one.
    outdated : str
        What has changed since it was computed; empty if nothing has, or if that is unknown.
    search_space : tuple of str
        Searched parameters: those of which candidates have different values.
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
    metrics: Mapping[str, float] = field(default_factory=dict)
    task: TaskType = "classification"
    dataset_family: str = ""
    machine: str = ""
    key: str = ""
    checksum: str = ""
    protocol: Mapping[str, str] = field(default_factory=dict)
    values_by_split: Mapping[str, Values] = field(default_factory=dict)
    values_by_seed: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    split_hash: Mapping[str, str] = field(default_factory=dict)
    search: Mapping[str, Sequence[Sequence[Json]]] = field(default_factory=dict)
    budget_curve: Sequence[Sequence[float]] = ()
    map_details: Mapping[str, Json] = field(default_factory=dict)
    version: str = ""
    at_boundary: str = ""
    notes: str = ""
    contention: str = ""
    timing: str = ""
    machine_speed_s: str = ""
    error: str = ""
    equivalence: str = ""
    family: str = ""
    made_from: str = ""
    outdated: str = ""
    search_space: tuple[str, ...] = ()
    start_ms: int = 0
    end_ms: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dataset_family", self.dataset_family or self.dataset)

    @property
    def method(self) -> Method:
        """Feature map and learner."""
        return self.feature_map, self.learner

    @property
    def labels(self) -> Labels:
        """Dataset, feature map and learner."""
        return self.dataset, self.feature_map, self.learner

    @property
    def is_complete(self) -> bool:
        """Whether the row may be ranked: all planned splits are done."""
        return self.status == "ok" and self.n_splits_done == self.n_splits

    @property
    def converged(self) -> bool | None:
        """Whether the fits of all splits converged; None if it is unknown."""
        share = self.metrics.get("converged")
        return None if share is None else share == 1.0

    @property
    def n_components(self) -> float | int | None:
        """Width of the embedding, an integer where all splits have the same."""
        width = self.metrics.get("n_components")
        return int(width) if width is not None and float(width).is_integer() else width

    @property
    def predict_time_per_row_s(self) -> float | None:
        """Seconds to predict one row."""
        n_test, seconds = self.metrics.get("n_test"), self.metrics.get("predict_time_s")
        return seconds / n_test if n_test and seconds is not None else None

    @property
    def searched(self) -> Metric | None:
        """The metric that the search optimised; None for a plugin's."""
        name = self.protocol.get("search_metric", "null")
        return metric_of_search(None if name == "null" else name, self.task)

    def value(self, column: str) -> Json:
        """Return a label, a count or a metric; None if the row has none."""
        return getattr(self, column) if column in _NOT_METRICS else self.metrics.get(column)

    def by_split(self, metric: str) -> Values:
        """Return a metric by the number of the split."""
        return self.values_by_split.get(metric, {})

    def by_seed(self, metric: str, split: str) -> Sequence[float]:
        """Return a metric on a split for each seed of the map; empty if it is unknown.

        A map without a seed has one value, if several seeds were asked for.
        """
        if self.metrics.get("n_map_seeds") == 1.0:
            return [self.by_split(metric)[split]]
        return self.values_by_seed.get(metric, {}).get(split, ())

    def to_json(self, metric: Metric = ACCURACY) -> JsonObject:
        """Return what `kbench results --format json` writes: columns first, then all else."""
        names = columns(metric, self.task)
        return {
            **{name: self.value(name) for name in names},
            **{name: value for name, value in self.metrics.items() if name not in names},
            **{name: getattr(self, name) for name in _IDENTITY},
            "by_split": self.by_split(PLAIN[self.task].name),
            "metric_by_split": self.by_split(metric.name),
            **{
                name: list(value) if isinstance(value := getattr(self, name), tuple) else value
                for name in (*_DETAILS, *TEXTS, *_STATE)
            },
            "metric": metric.name,
            "better": metric.better,
        }


def columns(metric: Metric = ACCURACY, task: TaskType = "classification") -> tuple[str, ...]:
    """Return the columns of a results table: the metric that is compared, then the plain one.

    >>> columns(Metric("log_loss", "lower"))[5:9]
    ('n_splits', 'log_loss', 'log_loss_sd', 'accuracy')
    >>> columns(Metric("rmse_standardized", "lower"), "regression")[6:10]
    ('rmse_standardized', 'rmse_standardized_sd', 'rmse', 'rmse_sd')
    """
    plain = PLAIN[task]
    shown = (metric.name, metric.sd, plain.name, plain.sd)
    metrics = (name for name in COLUMNS[_N_FIELDS:] if name not in (ACCURACY.name, ACCURACY.sd))
    return tuple(dict.fromkeys((*COLUMNS[:_N_FIELDS], *shown, *metrics)))


def find_row_task(rows: Iterable[Row]) -> TaskType:
    """Return the task of a suite's rows: that of rows without data is unknown."""
    return "regression" if "regression" in {row.task for row in rows} else "classification"


def is_share(metric: Metric) -> bool:
    """Whether values are between 0 and 1, and 1 - value is an error."""
    return metric.name in SHARES


def complete_metric(metric: Metric) -> Metric:
    """Return a metric of a file or a store, with its needs and units."""
    built_in = METRICS.get(metric.name)
    return built_in if built_in == metric else metric


def metric_of_search(name: str | None, task: TaskType = "classification") -> Metric | None:
    """Return the metric that a search optimises, by the protocol's `search_metric`.

    By default it is the plain one of the task. It is None for a plugin's metric, of which
    results have no direction.

    >>> metric_of_search(None).name, metric_of_search("log_loss").better
    ('accuracy', 'lower')
    """
    return METRICS.get(name) if name else PLAIN[task]


def group_values(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, in the order of their first appearance.

    >>> group_values([("iris", 1), ("wine", 2), ("iris", 3)])
    {'iris': [1, 3], 'wine': [2]}
    """
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def sort_by_dataset(rows: Sequence[Row]) -> list[Row]:
    """Sort rows by dataset, in the order of first appearance, those without data last."""
    order = {name: place for place, name in enumerate(dict.fromkeys(r.dataset for r in rows))}
    available = {row.dataset for row in rows if row.status != "unavailable"}
    return sorted(rows, key=lambda row: (row.dataset not in available, order[row.dataset]))


def unequal_splits(rows: Sequence[Row]) -> dict[str, str]:
    """Return how a dataset's rows differ in their splits, where they do.

    Only rows that may be ranked count: their means are over different splits. Blocks of
    a suite can differ in the number of splits, and in the rows that a split tests.

    >>> unequal_splits([Row("iris", "rff", "ridge", "ok", n, n) for n in (5, 2)])
    {'iris': '2 to 5 splits'}
    >>> parts = {"0": "a1"}, {"0": "b2"}
    >>> unequal_splits([Row("iris", "rff", "ridge", "ok", 1, 1, split_hash=one) for one in parts])
    {'iris': 'other test rows'}
    """
    differences = {}
    by_dataset = group_values((row.dataset, row) for row in rows if row.is_complete)
    for name, of_dataset in by_dataset.items():
        numbers = {row.n_splits for row in of_dataset}
        hashes = {each for row in of_dataset for each in row.split_hash.items()}
        if len(numbers) > 1:
            differences[name] = f"{min(numbers)} to {max(numbers)} splits"
        elif len(hashes) > len(dict(hashes)):
            differences[name] = "other test rows"
    return differences


def round_mean(value: float) -> float:
    """Round a mean to twelve digits: sums in another order must not break ties.

    >>> round_mean(0.1 + 0.2) == round_mean(0.3), round_mean(1.5e-19)
    (True, 1.5e-19)
    """
    return float(f"{value:.12g}")


def rank_with_ties(values: np.ndarray) -> np.ndarray:
    """Rank values, 1 for the smallest; ties share the mean of their ranks.

    As scipy's ``rankdata``, whose import takes longer than the rest of a command.

    >>> rank_with_ties(np.array([0.3, 0.1, 0.3])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    shared: np.ndarray = np.cumsum(counts) - (counts - 1) / 2
    return shared[number]


def ranks(rows: Sequence[Row], metric: Metric = ACCURACY) -> list[float | None]:
    """Rank each complete row among its dataset's, 1 for the best; ties share the mean rank.

    Rows that are not complete, or lack the metric, have no rank.
    """
    ranked: list[float | None] = [None] * len(rows)
    measured = group_values(
        (row.dataset, i)
        for i, row in enumerate(rows)
        if row.is_complete and row.value(metric.name) is not None
    )
    for places in measured.values():
        values = [-metric.gain(round_mean(rows[i].metrics[metric.name])) for i in places]
        for i, rank in zip(places, rank_with_ties(np.array(values)), strict=True):
            ranked[i] = float(rank)
    return ranked


def newest(rows: Sequence[Row], version: str = "", until_ms: int | None = None) -> list[Row]:
    """Keep one row per cell, the one that ended last.

    With `version` only rows that this version of kbench computed, at least in
    part; with `until_ms` (milliseconds since 1970) only rows that had ended.

    >>> old = Row("iris", "rff", "ridge", "ok", 5, 5, version="0.1", end_ms=1)
    >>> new = Row("iris", "rff", "ridge", "ok", 5, 5, version="0.2", end_ms=2)
    >>> [row.version for row in newest([old, new])], len(newest([old, new], "0.1"))
    (['0.2'], 1)
    """
    last: dict[Labels, Row] = {}
    for row in rows:
        is_other = bool(version) and version not in row.version.split(", ")
        if is_other or (until_ms is not None and row.end_ms > until_ms):
            continue
        last[row.labels] = max(last.get(row.labels, row), row, key=lambda each: each.end_ms)
    return list(last.values())
