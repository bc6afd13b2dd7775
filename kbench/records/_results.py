"""Cells and tasks, their costs, their results, and what features add to these."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, Self, TypeVar, get_args

from kbench.messages import format_memory, format_seconds, plural
from kbench.records._suite import Limits, Protocol, Ref
from kbench.records.canonical import AsJson

_Record = TypeVar("_Record")

# Statuses of tasks and cells, the worst first. Of a cell, unfinished and not_run say that the run
# ended before its last or its first task; skipped, that it would exceed a limit; unavailable, that
# it has no data.
Status = Literal[
    "crashed",
    "out_of_memory",
    "timed_out",
    "error",
    "unavailable",
    "skipped",
    "unfinished",
    "not_run",
    "ok",
]

WORST_FIRST: tuple[Status, ...] = get_args(Status)

# Statuses of a split after which the other splits of its cell are skipped.
STOPPING: tuple[Status, ...] = ("timed_out", "out_of_memory", "crashed")


@dataclass(frozen=True)
class Cell:
    """One dataset, map and learner under one protocol: one MLflow run."""

    dataset: Ref
    feature_map: Ref
    learner: Ref
    protocol: Protocol

    @property
    def method(self) -> tuple[str, str]:
        """Labels of the map and the learner."""
        return self.feature_map.label, self.learner.label

    @property
    def labels(self) -> tuple[str, str, str]:
        """Labels of dataset, feature map and learner."""
        return self.dataset.label, *self.method

    @property
    def name(self) -> str:
        """The name for people: ``map + learner on dataset``."""
        return f"{self.feature_map.label} + {self.learner.label} on {self.dataset.label}"


@dataclass(frozen=True)
class Estimate:
    """A predicted number, and an interval that should have it in nine cases of ten."""

    value: float
    low: float
    high: float

    def map(self, function: Callable[[float], float]) -> Self:
        """Return the estimate of an increasing function of the number."""
        return type(self)(*map(function, (self.value, self.low, self.high)))

    def as_seconds(self) -> str:
        """Write it as a time with the ends of its interval.

        >>> Estimate(41.3, 30.2, 55.9).as_seconds()
        '41 s (30 s to 56 s)'
        """
        value, low, high = map(format_seconds, (self.value, self.low, self.high))
        return f"{value} ({low} to {high})"


@dataclass(frozen=True)
class Cost:
    """Predicted cost of one task of a cell: its peak memory, in units of 2**20 bytes, and time.

    `seconds` is the CPU time on this machine, which is the wall clock of one thread on an idle
    machine; None if no trial ended in time. With `is_least`, a trial has hit the limit of memory:
    the task needs at least `memory_mib`.
    """

    memory_mib: Estimate
    seconds: Estimate | None = None
    is_least: bool = False

    def __str__(self) -> str:
        """Write the CPU time, if there is one, and the memory."""
        times = [f"{format_seconds(self.seconds.value)} of CPU time"] if self.seconds else []
        return " and ".join([*times, format_memory(self.memory_mib.value)])

    def exceeds(self, limit_mib: float) -> bool:
        """Whether the memory is larger than a limit in nine cases of ten."""
        return self.is_least or self.memory_mib.low > limit_mib


@dataclass(frozen=True)
class Task:
    """One split of a cell: one unit of work, one line of the journal.

    Parameters
    ----------
    cell : Cell
    split_index : int
        Number of the split, from 0.
    cell_key : str
        SHA-256 of what identifies the cell (`Planner.cell_key`).
    checksum : str
        Hash of the dataset's content.
    kinds : tuple of str
        Kinds of the dataset's columns; empty unless missing values are imputed by
        kind.
    records : str
        Digest of the records of the plugins of the method. A process that has other
        records computes something else than what was planned.
    plugins : tuple of str
        Third-party plugins of the cell's map and learner, the only ones that its
        process imports.
    predicted : Cost, optional
        Its predicted cost, which the process does not get.
    """

    cell: Cell
    split_index: int
    cell_key: str
    checksum: str
    kinds: tuple[str, ...] = ()
    records: str = ""
    plugins: tuple[str, ...] = ()
    predicted: Cost | None = None


@dataclass(frozen=True)
class Problem(AsJson):
    """The reason why a cell cannot be computed, or a dataset is unavailable.

    `status` is "unavailable", "error", "skipped" where it would exceed a limit, "not_run"
    or "unfinished" where the user ended the run before, or what ended the loading of the
    data; `since_ms` is the time when it was first seen, in milliseconds since 1970.
    """

    status: Status
    reason: str
    since_ms: int = 0


@dataclass(frozen=True)
class Mistake(Problem):
    """A problem that is an error of the suite: a parameter of a dataset is wrong."""


@dataclass(frozen=True)
class Details(AsJson):
    """Facts that an evaluation reports in addition to its metrics.

    `chosen` has the parameters that the search chose, such as ``learner.C``, and `search`
    all of its candidates: parameters, ``values`` by inner fold, and whether they
    ``converged``. `at_boundary` names parameters whose chosen value is an end of its grid.
    `notes` has warnings, and facts that a reader must know of the split. `split_hash` is
    that of the split's rows. `map_details` is the attribute ``details_`` of the fitted map, if
    it has one: plain values. `by_seed` has the built-in metrics of predictions for each seed of
    the map; it is empty if there is one. `contention` says why the times are not reliable; it
    is empty if they are. `search_seconds` has the wall clock of each candidate of `search`.
    `work_s` is the wall clock of all that computes a reported number: search, refit with its
    repeats and further seeds, default candidate, calibration and metrics of the model; the
    untimed pass, processes, data and the hand-over are not in it. `device` describes that of
    the protocol, with the versions of its libraries; it is empty for the host.
    """

    chosen: Mapping[str, Any] = field(default_factory=dict)
    search: Sequence[Mapping[str, Any]] = ()
    at_boundary: Sequence[str] = ()
    notes: Sequence[str] = ()
    split_hash: str = ""
    contention: Sequence[str] = ()
    search_seconds: Sequence[float] = field(default=(), compare=False)
    work_s: float = field(default=0.0, compare=False)
    device: str = field(default="", compare=False)
    map_details: Mapping[str, Any] = field(default_factory=dict)
    by_seed: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, values: object) -> Self:
        """Read what `to_json` returned, also in another version; ignore unknown fields.

        Raises ValueError if they are not a mapping, or a field is not of its type.
        """
        return _validate(cls, values, "details")


@dataclass(frozen=True)
class Trial(AsJson):
    """A task on a sample of the training rows of its split: `n_rows` of them.

    With `has_metrics`, metrics that are computed from a number of rows had all of these; else they
    had a sample. `seconds` is the CPU time of the task, `memory_mib` its peak memory; `blocks_mib`
    is what larger blocks of all rows need. With `from_sums` it was fitted from sums over blocks.
    """

    n_rows: int
    has_metrics: bool
    status: Status
    seconds: float
    memory_mib: float
    n_threads: int = 1
    blocks_mib: float = 0.0
    from_sums: bool = False


@dataclass(frozen=True)
class Result:
    """The result of a task: one line of the journal.

    Parameters
    ----------
    task_key, cell_key : str
        Keys of the task and of its cell.
    split : int
        Number of the split, from 0.
    status : str
        ok, error, timed_out, out_of_memory, crashed or skipped.
    metrics : mapping of str to float
        Measured numbers; empty unless ok.
    details : Details
        Further facts of the evaluation; empty unless ok.
    error : str
        Why it is not ok: a traceback, or the limit that was hit.
    printed : str
        Last output of the task, where it failed.
    started_ms, ended_ms : int
        When, in milliseconds since 1970, by the clock of the host.
    seconds : float
        Wall clock of the whole task.
    limits : Limits
        Those that it ran under.
    jobs : int, optional
        Tasks that ran at the same time.
    timing : {"shared", "exclusive"}
        Whether the task had the machine alone.
    version : str
        Version of kbench.
    machine, host, cpu : str
        Id of the machine that computed it, its host name, the model of its CPU.
    machine_speed_s : float
        Seconds of a small fixed computation on that machine.
    cpu_s : float
        CPU time of the whole task.
    predicted : Cost, optional
        What memory and time were predicted before it ran.
    manifest : str
        Digest of its `Manifest`; empty if that is unknown.

    Examples
    --------
    >>> result = Result("t", "c", 0, "ok", {"accuracy": 0.9}, seconds=1.5)
    >>> Result.from_json(result.to_json()) == result
    True
    """

    task_key: str
    cell_key: str
    split: int
    status: Status
    metrics: Mapping[str, float] = field(default_factory=dict)
    details: Details = Details()
    error: str = ""
    printed: str = ""
    started_ms: int = 0
    ended_ms: int = 0
    seconds: float = 0.0
    limits: Limits = field(default_factory=Limits)
    jobs: int | None = None
    timing: Literal["shared", "exclusive"] = "shared"
    version: str = ""
    machine: str = ""
    host: str = ""
    cpu: str = ""
    machine_speed_s: float = 0.0
    cpu_s: float = 0.0
    predicted: Cost | None = None
    manifest: str = ""

    def __post_init__(self) -> None:
        # features see this record, and what they do to it must not be shown as a result
        object.__setattr__(self, "metrics", MappingProxyType(dict(self.metrics)))

    @property
    def is_ok(self) -> bool:
        """Whether the task was measured to its end."""
        return self.status == "ok"

    @property
    def address(self) -> str:
        """Under which its predictions are kept: those of other code are others."""
        return f"{self.task_key}-{self.manifest}" if self.manifest else self.task_key

    def of_seeds(self, name: str) -> Sequence[float | None]:
        """Return a metric of predictions for each seed of the map."""
        return self.details.by_seed.get(name) or [self.metrics.get(name)]

    def with_metric(self, name: str, value: float) -> Self:
        """Return the result with one more metric."""
        return replace(self, metrics={**self.metrics, name: value})

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the journal's line, as plain JSON values."""
        return vars(self) | {
            "metrics": dict(self.metrics),
            "details": self.details.to_json() if self.is_ok else {},
            "predicted": asdict(self.predicted) if self.predicted else None,
            "limits": {k: v for k, v in vars(self.limits).items() if k != "n_splits"},
        }

    @classmethod
    def from_json(cls, line: Mapping[str, object]) -> Self:
        """Read what `to_json` returned, also in another version; ignore unknown fields.

        Raises ValueError if a field is missing, or is not of its type.
        """
        return _validate(cls, line, "result")


def _validate(record: type[_Record], values: object, name: str) -> _Record:
    """Make a record of plain values; a ValueError says which of them is wrong."""
    from pydantic import ValidationError

    cls: Any = record
    try:
        return _reader(cls).validate_python(values)  # type: ignore[no-any-return]
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)[0]
        place = "".join(f"[{part!r}]" for part in wrong["loc"])
        raise ValueError(f"{name}{place}: {wrong['msg']}") from None


@cache
def _reader(record: Any) -> Any:
    """Return the validator that makes a record of plain values."""
    from pydantic import TypeAdapter

    return TypeAdapter(record)


@dataclass(frozen=True)
class Delivered:
    """Result of a delivery to a tracker.

    `uri`, without credentials, and `experiment`, the name of the suite there, say where the results
    are; `experiment_id` is empty if the tracker did not answer. `written` counts the runs that were
    written this time, `stored` the runs of the planned cells that are there now. `problem` says why
    some are missing, and is empty if none are; `remedy` is the way in which these are delivered.
    `tracker` names what keeps them, for people; `commands` are those to type next, with what they
    do; `options` name the place in commands, and are empty for the default one.
    """

    uri: str
    experiment: str
    experiment_id: str = ""
    written: int = 0
    stored: int = 0
    problem: str = ""
    tracker: str = ""
    commands: tuple[tuple[str, str], ...] = ()
    remedy: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """Splits that lack a metric; `failed` says that they should have it."""

    reason: str
    n_splits: int
    learners: tuple[str, ...]
    failed: bool


@dataclass(frozen=True)
class Added:
    """The result of adding a metric to cached results.

    `n_added` splits have it now and `n_known` had it before; `missing` lack it.
    """

    metric: str
    n_added: int = 0
    n_known: int = 0
    missing: tuple[Missing, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a split lacks the metric that should have it."""
        return any(part.failed for part in self.missing)

    @property
    def sentence(self) -> str:
        """The result in one line."""
        sentence = f"{self.metric}: {plural(self.n_added, 'split')} got it"
        if self.n_known:
            sentence += f", {self.n_known:,} had it"
        for part in self.missing:
            sentence += f"; {part.n_splits:,} lack it: {part.reason} ({', '.join(part.learners)})"
        return sentence
