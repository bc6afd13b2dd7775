"""The records of a bundle: the schema of each line of its files."""

import marshal
import math
import re
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    TypeAdapter,
    ValidationError,
)

from kbench import features, records
from kbench.errors import BundleError
from kbench.messages import printable
from kbench.records import Cell, Details, Limits, Protocol, Ref, Result, TaskType, Tune
from kbench.records.canonical import Json, JsonObject, digest, from_json
from kbench_sharing.untrusted_text import (
    check_author,
    check_component,
    check_digest,
    check_label,
    check_versions,
)

# Version of the format, the only one that is read. Adding a field to a record below needs a new
# version.
FORMAT = 6

MANIFEST, SUITE, LOCK = "manifest.json", "suite.toml", "requirements.txt"
DATASETS, CELLS, RESULTS = "datasets.jsonl", "cells.jsonl", "results.jsonl"
DEPENDENCIES, PLUGINS, SOURCES = "dependencies.jsonl", "plugins.jsonl", "sources/"

# Name of a rows file among the files that were read.
ROWS_FILE = "rows.jsonl"

# The optional predictions of the splits.
PREDICTIONS = "predictions.jsonl"

# Files of each bundle, in addition to its manifest.
FILES = (SUITE, LOCK, DATASETS, CELLS, RESULTS, DEPENDENCIES, PLUGINS)

MAX_SPLITS = 100_000

_PROTOCOL = TypeAdapter(Protocol)


class Line(BaseModel):
    """A line of JSON; unknown fields, other types, NaN and infinities are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    @classmethod
    def read(cls, value: Json, place: str) -> Self:
        """Return the record of a value; raise BundleError with the place of an error."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = "".join(f"[{part!r}]" for part in wrong["loc"])
            message = printable(f"{where[:200]}: {wrong['msg']}", 400)
            raise BundleError(f"{place}{message}") from None


def _format(value: Json) -> Json:
    if type(value) is not int or value != FORMAT:
        raise BundleError(
            f"it has the format {printable(repr(value), 60)}, but this version of kbench reads "
            f"format {FORMAT}: update kbench, or ask the author for a new file"
        )
    return value


def validate_with(check: Callable[[str, str], str], label: str) -> AfterValidator:
    """Return a validator of a field, which raises a BundleError that names `label`."""
    return AfterValidator(lambda value: check(value, label))


Label = Annotated[str, validate_with(check_label, "label")]
Version = Annotated[str, validate_with(check_label, "version")]
CPU = Annotated[str, validate_with(check_label, "CPU")]
Author = Annotated[str, AfterValidator(check_author)]
Versions = Annotated[dict[str, str], AfterValidator(check_versions)]
CellKey = Annotated[str, validate_with(check_digest, "the key of a cell")]


class SharedFile(Line):
    """Size and SHA-256 of a file."""

    n_bytes: NonNegativeInt
    sha256: str


class SharedMachine(Line):
    """A machine without its name; `cores` are those that kbench could use, if known."""

    cpu: CPU
    cores: NonNegativeInt | None


class Origin(Line):
    """The suite, its author, and the versions that computed it."""

    format: Annotated[int, BeforeValidator(_format)]
    suite: Annotated[str, validate_with(check_label, "suite")]
    author: Author
    metric: Annotated[str, validate_with(check_component, "metric")]
    better: Literal["higher", "lower"]
    versions: Versions
    machines: list[SharedMachine]


class Manifest(Origin):
    """The metadata of a bundle, and its files."""

    files: dict[str, SharedFile]


class SharedRef(Line):
    """An entry of a suite file."""

    name: Annotated[str, validate_with(check_component, "component")]
    params: JsonObject
    label: Label

    def ref(self, searched: Sequence[Json] = ()) -> Ref:
        """Return the record; KeyError, TypeError or ValueError for parameters of no form.

        The parameters are in the order of the `searched` ones: lines are written in another, and
        of two candidates with equal scores the first is chosen.
        """
        params = {name: from_json(value) for name, value in self.params.items()}
        tree: dict[str, Json] = {}
        for path in searched:
            node = tree
            for part in re.findall(r"[^.\[\]]+", str(path)):
                node = node.setdefault(part, {})
        ordered: Ref = _in_order(Ref(self.name, params, self.label), tree)
        return ordered


def _in_order(value: Json, tree: Mapping[str, Json]) -> Json:
    """Return a value whose components have their parameters in the order of a tree of names."""
    if isinstance(value, Tune):
        return Tune(_in_order(value.values, tree))
    if isinstance(value, tuple):
        return tuple(_in_order(each, tree.get(str(i), {})) for i, each in enumerate(value))
    if not isinstance(value, Ref):
        return value
    places = {name: place for place, name in enumerate(tree)}
    names = sorted(value.params, key=lambda name: places.get(name, len(places)))
    params = {name: _in_order(value.params[name], tree.get(name, {})) for name in names}
    return replace(value, params=params)


class SharedDataset(Line):
    """A dataset: facts and origin, without data and names of columns."""

    ref: SharedRef
    checksum: Annotated[str, validate_with(check_digest, "the checksum of a dataset")]
    name: Label
    task: TaskType
    version: Label
    source: Label
    dataset_family: Label
    is_weighted: bool
    n_samples: NonNegativeInt
    n_features: NonNegativeInt
    n_classes: NonNegativeInt
    n_missing: NonNegativeInt


class SharedCell(Line):
    """A cell. With the dataset's checksum and task, `kinds` and `code` give its key.

    `dataset` is the dataset's label, `kinds` are the column kinds that affect results, and `code`
    is the method as declared by records of plugins (`Planner.method_code`).
    """

    key: CellKey
    dataset: str
    feature_map: SharedRef
    learner: SharedRef
    protocol: JsonObject
    kinds: list[str]
    code: list[Json]
    n_splits: Annotated[int, Field(gt=0, le=MAX_SPLITS)]
    family: Label
    equivalence: Label

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"{self.feature_map.label} + {self.learner.label} on {self.dataset}"

    def cell(self, dataset: SharedRef) -> Cell:
        """Return the record; KeyError, TypeError or ValueError for parameters of no form."""
        (_, of_map), (_, of_learner) = self.code[:2]  # paths of the searched parameters
        sides = self.feature_map.ref(of_map), self.learner.ref(of_learner)
        return Cell(dataset.ref(), *sides, self.protocol_record)

    @cached_property
    def protocol_record(self) -> Protocol:
        """The protocol as a record; raises TypeError or ValueError for invalid fields."""
        return _PROTOCOL.validate_python(self.protocol)

    @cached_property
    def task_digest(self) -> str:
        """SHA-256 of the fields of the protocol that define the task (`divide_protocol`)."""
        return digest(records.divide_protocol(self.protocol)[0])


class SharedLimits(Line):
    """Limits of a task; None means no limit."""

    task_timeout_s: float | None
    task_memory_mib: float | None


class SharedDetails(Line):
    """The fields of `kbench.records.Details`."""

    chosen: JsonObject = {}
    search: list[JsonObject] = []
    at_boundary: list[str] = []
    notes: list[str] = []
    split_hash: str = ""
    contention: list[str] = []
    search_seconds: list[NonNegativeFloat] = []
    work_s: NonNegativeFloat = 0.0
    device: str = ""
    map_details: JsonObject = {}
    by_seed: dict[str, list[float]] = {}


class SharedResult(Line):
    """The result of one split, without host; `machine` counts those of the manifest.

    Its keys follow from its cell and split, and are not stored. `error` and `printed` are empty
    unless the author included them. `manifest` is the digest of the dependencies of the result, if
    these are recorded.
    """

    cell: str
    split: NonNegativeInt
    status: Literal["ok", "error", "timed_out", "out_of_memory", "crashed"]
    metrics: dict[str, float]
    details: SharedDetails
    error: str = ""
    printed: str = ""
    started_ms: NonNegativeInt
    ended_ms: NonNegativeInt
    seconds: NonNegativeFloat
    limits: SharedLimits
    jobs: int | None
    timing: Literal["shared", "exclusive"]
    version: Version
    machine: NonNegativeInt
    machine_speed_s: NonNegativeFloat
    cpu_s: NonNegativeFloat
    manifest: str = ""

    def result(self, machine: str, cpu: str) -> Result:
        """Return the record; `machine` is the local name of its machine."""
        limits: JsonObject = {n: math.inf if v is None else v for n, v in self.limits}
        of_task = {
            "task_key": features.task_key(self.cell, self.split),
            "cell_key": self.cell,
            "details": Details(**dict(self.details)),
            "limits": Limits(**limits),
            "machine": machine,
            "cpu": cpu,
        }
        return Result(**{name: value for name, value in self if name != "cell"} | of_task)


class SharedDependencies(Line):
    """The dependencies of results, without paths and values (`kbench.records.Manifest`)."""

    digest: str
    modules: dict[str, str | None] = {}
    files: dict[str, str | None] = {}
    variables: dict[str, str | None] = {}
    distributions: dict[str, str | None] = {}

    def manifest(self) -> records.Manifest:
        """Return the record."""
        return records.Manifest(**self.model_dump(exclude={"digest"}))


class SharedPredictions(Line):
    """Predictions of one split and one seed of the map; `cell` is the index of the cell.

    `data` is the output of `kbench.storage.predictions.pack`, in base64.
    """

    cell: NonNegativeInt
    split: NonNegativeInt
    seed: NonNegativeInt
    data: str


class SharedPlugin(Line):
    """A third-party plugin of cells: its distribution, and a hash of its modules."""

    name: Label
    distribution: Label
    version: Version
    fingerprint: Annotated[str, validate_with(check_digest, "the fingerprint of a plugin")]


class Head(Origin):
    """First line of a rows file: the metadata of a bundle, plugins and dependencies."""

    plugins: list[SharedPlugin]
    dependencies: list[SharedDependencies]


class PackedResults(UserDict[str, dict[int, SharedResult]]):
    """Results by key of the cell and number of the split, packed: records take much memory."""

    _latest: tuple[str, dict[int, SharedResult]] = ("", {})
    n_results = 0

    def add(self, key: str, of_cell: dict[int, SharedResult], values: list[JsonObject]) -> None:
        """Add all results of a cell, and the JSON values from which they were read."""
        self.data[key] = marshal.dumps(values)  # type: ignore[assignment]
        self._latest = key, of_cell
        self.n_results += len(of_cell)

    def __getitem__(self, key: str) -> dict[int, SharedResult]:
        """Return the results of a cell by split."""
        latest = self._latest  # another thread may read those of another cell
        if key != latest[0]:
            values = marshal.loads(self.data[key])  # type: ignore[arg-type]
            latest = key, {v["split"]: SharedResult.model_validate(v) for v in values}
            self._latest = latest
        return latest[1]


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read and validated.

    `id` is the SHA-256 of the manifest, which has those of all other files, or of the rows
    file that was read. `results` are by key of the cell and number of the split, and so are
    `predictions`, with one for each seed of the map; most bundles have none. `dependencies` are
    by the digests that results name.
    """

    id: str
    manifest: Origin
    datasets: dict[str, SharedDataset]
    cells: list[SharedCell]
    results: PackedResults
    plugins: list[SharedPlugin]
    files: Mapping[str, bytes]
    dependencies: Mapping[str, records.Manifest] = field(default_factory=dict)
    predictions: Mapping[tuple[str, int], Sequence[features.Predictions]] = field(
        default_factory=dict
    )

    @property
    def n_results(self) -> int:
        """Number of splits."""
        return self.results.n_results

    @property
    def author(self) -> str:
        """The author's name, or a placeholder."""
        return self.manifest.author or f"bundle {self.id[:12]}"
