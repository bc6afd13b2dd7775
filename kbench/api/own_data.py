"""A user's own file as a suite: the methods of `OWN_TABLES`, sized for the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kbench.api.inputs import check_limit
from kbench.api.own_measure import Comparison
from kbench.api.own_target import TargetColumn, choose
from kbench.errors import DatasetError
from kbench.execution.fetching import opened
from kbench.parameters import check_choice, is_pattern, named_files
from kbench.planning.raw import OWN_TABLES
from kbench.planning.sized import Size, chosen_cells, read_for
from kbench.planning.suite_file import find
from kbench.records import (
    TASK_TYPES,
    Block,
    DatasetFacts,
    DatasetSource,
    Make,
    Problem,
    Ref,
    Suite,
    TaskType,
)
from kbench.records.canonical import from_json, to_json
from kbench.registry.callables import resolve
from kbench.registry.outlines import parameters_of
from kbench.registry.references import Reference
from kbench.registry.registry import Registry
from kbench.storage.datacache import DataCache
from kbench.tables.dates import DateColumn
from kbench.tables.profile import BY_TARGET, LEFT_OUT, Asked, ColumnProfile, Fate, decide
from kbench.tables.reading import table_of
from kbench.tables.rows import FrameRows, Opened
from kbench.tables.table import check_columns, no_column

PACKED = (".gz", ".bz2", ".xz", ".zst")

MIN_ROWS = 20
"""With fewer rows, a split has fewer than four rows to score on."""

SHORTEST_S = 2.0
"""Least time limit of a task, however short the whole run, so that cheap methods finish."""

SHARE = 5
"""A task may take one part in this many of the whole time, so that none takes all of it."""

LOOKED_AT_MB = 256
"""A larger file whose source has no `rows` is not inspected: it would be in memory as a whole."""

COLUMN_OPTIONS = ("ignore", "nominal", "date", "by_target", "missing")
"""Parameters of a source that decide what becomes of columns."""


@dataclass(frozen=True)
class Look:
    """The user's table before it is encoded.

    Parameters
    ----------
    n_rows, n_unlabelled : int
        All rows, and those without a label.
    fates : tuple of Fate
        What becomes of each column.
    target : TargetColumn
        The column to predict.
    params : mapping
        Parameters of the source that read the file so, and encode its columns so.
    sentence : str
        How the file is written.
    doubts : tuple of str
        What stays open about that, and which option changes it.
    """

    n_rows: int
    n_unlabelled: int
    fates: tuple[Fate, ...]
    target: TargetColumn
    params: Mapping[str, Any]
    sentence: str = ""
    doubts: tuple[str, ...] = ()

    @classmethod
    def parsed(cls, given: Any) -> Look | None:
        """Parse what the process of a plugin found; ValueError where it is not a look."""
        if given is None:
            return None
        try:
            return cls(
                **{
                    **given,
                    "fates": tuple(Fate(**fate) for fate in given["fates"]),
                    "target": TargetColumn.parsed(given["target"]),
                    "params": {
                        str(name): tuple(map(str, value)) if isinstance(value, list) else str(value)
                        for name, value in given["params"].items()
                    },
                    "doubts": tuple(map(str, given["doubts"])),
                }
            )
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError("not the look at a table") from error

    def for_classes(self, n_classes: int) -> Look:
        """Return the look at a table with this number of classes, which have a mean each."""
        if n_classes <= 2:
            return self
        fates = [
            replace(fate, encoded_as=f"{BY_TARGET} and class", n_columns=n_classes)
            if fate.encoded_as == BY_TARGET
            else fate
            for fate in self.fates
        ]
        return replace(self, fates=tuple(fates))

    @property
    def n_columns(self) -> int:
        """Columns that become features."""
        return sum(fate.n_columns > 0 for fate in self.fates)

    def notices(self) -> list[str]:
        """Return what a guess leaves open, and a notice for each column that is left out."""
        left_out = [
            f"left out: {fate.name!r}, {fate.read_as}: {fate.note}"
            for fate in self.fates
            if fate.encoded_as == LEFT_OUT and fate.read_as != "not read"
        ]
        return [*self.doubts, *left_out]


@dataclass(frozen=True)
class OwnData:
    """A user's file that is loaded.

    Parameters
    ----------
    ref : Ref
        Its dataset line.
    look : Look, optional
        Its shape before it is encoded, where its source has a table.
    facts : DatasetFacts
    target : str
        The task that its target is taken for, and why, in a sentence.
    """

    ref: Ref
    look: Look | None
    facts: DatasetFacts
    target: str

    @property
    def notices(self) -> list[str]:
        """What a guess leaves open, and a notice for each column that is left out."""
        return self.look.notices() if self.look else []

    @property
    def doubts(self) -> tuple[str, ...]:
        """What the guess of how the file is written leaves open."""
        return self.look.doubts if self.look else ()


def source_of(
    path: str,
    target: str | None = None,
    ignore: Sequence[str] | None = None,
    nominal: Sequence[str] | None = None,
    delimiter: str | None = None,
    task: str | None = None,
    *,
    registry: Registry,
    **reading: str | Sequence[str] | None,
) -> Ref:
    """Return the dataset line of a suite file that reads a file.

    The file's name ends as an installed source says, perhaps with an ending of
    compression. The other parameters are those of the source; `reading` has those of the
    `DatasetSource.endings` beside these.

    Raises
    ------
    DatasetError
        There is no such file, its kind is not known or takes no such option; the task is
        none.
    """
    if task is not None:
        check_choice(task, "--task", TASK_TYPES, error=DatasetError)
    file = Path(path).expanduser()
    ending, sources = _ending(file), _sources(registry)
    if ending not in sources:
        raise DatasetError(
            f"file {path!r}: its name must end in one of {', '.join(sources)}, got {ending!r}"
        )
    files = named_files(file)
    if not (files and files[0].exists()):
        raise DatasetError(f"file {path!r}: there is no such file (looked for {file.absolute()})")
    source = sources[ending]
    # absolute: the journal and the data cache are there whatever the folder
    params: dict[str, Any] = {"path": str(file.absolute()), **source.endings[ending]}
    options: dict[str, Any] = {
        "ignore": tuple(ignore or ()) or None,
        "nominal": tuple(nominal or ()) or None,
        "delimiter": delimiter or None,
        "task": task,
        "target": target,
    }
    for name, value in reading.items():
        options[name] = value if isinstance(value, str) or not value else tuple(value)
    taken = parameters_of(source.load)
    for name, value in options.items():
        if value is not None and taken is not None and name not in taken:
            raise DatasetError(f"file {path!r}: --{name} has no meaning for {source.name} files")
        if value is not None:
            params[name] = value
    needed = taken["target"] if taken and "target" in taken else None
    if target is None and needed is not None and needed.is_required:
        raise DatasetError(f"file {path!r}: --target is missing: name the column to predict")
    named = file.parent if is_pattern(file.name) else file
    return Ref(source.name, params, label=named.name.partition(".")[0] or named.name)


def look(ref: Ref, registry: Registry, keep: Sequence[str] = ()) -> Look | None:
    """Inspect a user's own table before it is loaded.

    Columns to `keep` are not left out, whatever they hold. The result is None for files
    whose source has no table, and where something else is wrong with the file: loading it
    reports the error.

    Raises
    ------
    DatasetError
        The file cannot be read, or its columns are not what they seem.
    """
    source = registry.all("dataset").get(ref.name)
    if source is None or "target" not in ref.params:
        return None
    read = source.rows or source.table
    if read is None:
        return None
    taken = parameters_of(source.load)
    asked = {
        "dataset": to_json(ref),
        "keep": list(keep),
        "taken": list(COLUMN_OPTIONS if taken is None else set(COLUMN_OPTIONS) & set(taken)),
        "in_blocks": source.rows is not None,
    }
    try:
        files = named_files(ref.params["path"])
        size = sum(file.stat().st_size for file in files)
        if source.rows is None and size > LOOKED_AT_MB * 2**20:
            return None
        if isinstance(read, Reference):
            return Look.parsed(read.call(f"{__name__}:look_in_sandbox", asked))
        return _look(read, ref, asked)
    except DatasetError:
        if source.rows is None:
            return None
        raise
    except Exception:  # pandas' errors have no common base
        return None


def look_in_sandbox(read: Make, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """Inspect a table, where the plugin that reads it is imported."""
    found = _look(read, from_json(asked["dataset"]), asked)
    return None if found is None else asdict(found)


def _look(read: Make, ref: Ref, asked: Mapping[str, Any]) -> Look | None:
    what, target = f"file {ref.params['path']!r}", ref.params["target"]
    if asked["in_blocks"]:
        table: Opened = resolve(read)(**ref.params)
        what = table.rows.what
    else:
        table = Opened(FrameRows(table_of(read, ref), what))
    rows, ignore = table.rows, ref.params.get("ignore", ())
    if target not in rows.names and str(target).strip() in rows.names:
        target = str(target).strip()
    check_columns(list(rows.names), what, target, ignore, None)
    dates = [DateColumn.parsed(spec, what) for spec in ref.params.get("date", ())]
    given = {date.name: date for date in dates}
    for option, names in (("nominal", ref.params.get("nominal", ())), ("keep", asked["keep"])):
        for name in names:
            if name not in rows.names:
                raise DatasetError(f"{what}, --{option}: {no_column(name, rows.names)}")
    profiles = {
        name: ColumnProfile(name, given.get(name))
        for name in rows.names
        if name != target and name not in ignore
    }
    kept = _Kept()
    n_rows = rows.scan({**profiles, target: kept})
    if not n_rows:
        raise DatasetError(f"{what}: it has no rows")
    labels = kept.series()
    decided = decide(
        profiles,
        rows.names,
        Asked(
            what,
            target,
            ignore=ignore,
            nominal=ref.params.get("nominal", ()),
            keep=asked["keep"],
            date=given,
            taken=asked["taken"],
        ),
    )
    lists = {name: getattr(decided, name) for name in ("ignore", "nominal", "date", "by_target")}
    params = {
        name: tuple(dict.fromkeys((*ref.params.get(name, ()), *names)))
        for name, names in lists.items()
        if names and name in asked["taken"]
    }
    if "date" in params:  # with the parts that were found
        params["date"] = decided.date
    return Look(
        n_rows=n_rows,
        n_unlabelled=int(labels.isna().sum()),
        fates=decided.fates,
        target=TargetColumn.of(labels),
        params={"target": target, **table.params, **params},
        sentence=table.sentence,
        doubts=tuple(table.doubts),
    )


class _Kept:
    """All values of one column; a `kbench.tables.rows.Scan`."""

    def __init__(self) -> None:
        self.note = ""
        self._parts: list[Any] = []

    def wants(self, series: Any = None) -> bool:
        return True

    def restart(self) -> None:
        self._parts.clear()

    def add(self, series: Any) -> None:
        self._parts.append(series)

    def series(self) -> Any:
        import pandas

        # a block without values has no type
        typed = [part for part in self._parts if part.notna().any()] or self._parts[:1]
        dtype = typed[0].dtype if len({str(part.dtype) for part in typed}) == 1 else None
        parts = [
            part if part.notna().any() or dtype is None else part.astype(object)
            for part in self._parts
        ]
        return parts[0] if len(parts) == 1 else pandas.concat(parts, ignore_index=True)


def with_look(ref: Ref, looked: Look | None) -> Ref:
    """Return the dataset line with the parameters that a look has found."""
    if looked is None or not looked.params:
        return ref
    return Ref(ref.name, {**ref.params, **looked.params}, ref.label)


def prepared(
    path: str, registry: Registry, keep: Sequence[str] | None = None, **options: Any
) -> OwnData:
    """Load a user's file as a look at it decides, and choose the task of its target.

    The options are those of `source_of`; `keep` has columns that are not left out.

    Raises
    ------
    DatasetError
        The file cannot be read, or its target is none; see `choose`.
    """
    ref = source_of(path, **options, registry=registry)
    source = registry.get("dataset", ref.name)
    if keep and source.rows is None and source.table is None:
        raise DatasetError(f"file {path!r}: --keep has no meaning for {ref.name} files")
    looked = look(ref, registry, keep or ())
    ref = with_look(ref, looked)
    asked: TaskType | None = ref.params.get("task")
    what = f"file {path!r}"
    taken = parameters_of(registry.get("dataset", ref.name).load)
    if taken is not None and "task" not in taken:  # the source decides
        facts = fetched(ref, registry)
        return OwnData(ref, looked, facts, f"target {_name(ref)!r}: {facts.task}")
    if looked is not None:
        choice = choose(looked.target, _name(ref), what, asked)
        # labels are the source's own affair
        if looked.target.kind == "numbers" or asked:
            ref = _with_task(ref, choice.task)
        facts = fetched(ref, registry)
        return OwnData(ref, looked.for_classes(facts.n_classes), facts, choice.sentence)
    return _chosen_after_loading(ref, what, asked, registry)


def _chosen_after_loading(
    ref: Ref, what: str, asked: TaskType | None, registry: Registry
) -> OwnData:
    """Choose the task of a file whose target is not known before it is loaded."""
    try:
        facts = fetched(ref, registry)
    except DatasetError as refused:
        if asked:
            raise
        # too many whole numbers for classes, or something that is wrong with any task
        try:
            facts = fetched(_with_task(ref, "regression"), registry)
        except DatasetError:
            raise refused from None
    choice = choose(_read(facts), _name(ref), what, asked)
    if choice.task != "classification" or facts.task != "classification":
        ref = _with_task(ref, choice.task)
        facts = fetched(ref, registry)
    return OwnData(ref, None, facts, choice.sentence)


def _read(facts: DatasetFacts) -> TargetColumn:
    """Describe the target of a dataset in the cache."""
    data = DataCache().load(facts.checksum, facts.feature_kinds)
    return TargetColumn.of_labels(data.y, tuple(data.target_names))


def _name(ref: Ref) -> str:
    """Return the name of the column to predict; files without names call it so."""
    return str(ref.params.get("target", "label"))


def _with_task(ref: Ref, task: TaskType) -> Ref:
    return Ref(ref.name, {**ref.params, "task": task}, ref.label)


def is_data_file(name: str, registry: Registry) -> bool:
    """Tell whether a name is that of a file of data, not of a suite."""
    return _ending(Path(name)) in _sources(registry)


def _sources(registry: Registry) -> dict[str, DatasetSource]:
    """Return the sources of datasets by the endings of the file names that they read."""
    sources = registry.all("dataset").values()
    return {ending: source for source in sources for ending in source.endings}


def _ending(file: Path) -> str:
    endings = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in PACKED]
    return endings[-1] if endings else ""


def fetched(ref: Ref, registry: Registry) -> DatasetFacts:
    """Load a dataset into the data cache and return its facts.

    Raises
    ------
    DatasetError
        It cannot be read; the message has the reason.
    """
    registry.get("dataset", ref.name)
    with opened(registry) as fetching:
        facts = fetching.dataset(ref)
    if isinstance(facts, Problem):
        raise DatasetError(facts.reason)
    return facts


def suite_for(
    ref: Ref,
    known: DatasetFacts,
    registry: Registry,
    feature_maps: Sequence[str] = (),
    learners: Sequence[str] = (),
    total_s: float | None = None,
    by: Comparison | None = None,
) -> Suite:
    """Return the suite that compares methods on one file, the whole in `total_s` seconds.

    They are compared by the measure of `by`, or that of the suite in `OWN_TABLES`.

    Named components replace the methods of the suite in `OWN_TABLES`, as
    `kbench.planning.sized.chosen_cells` does it; methods that are not installed are
    left out. The suite is named as the file, and has one block for each method, in
    the order of that suite.

    Raises
    ------
    SuiteError
        Something of that name is not installed, or the time is not positive.
    DatasetError
        There are too few rows.
    """
    if total_s is not None:
        check_limit(total_s, "--time-limit")
    size = Size(known.n_samples, known.n_features, known.sparse)
    if size.rows < MIN_ROWS:
        raise DatasetError(
            f"{ref.label}: {size.rows} rows are too few to compare methods on; "
            f"at least {MIN_ROWS} are needed"
        )
    own_table = find(OWN_TABLES[known.task], registry)
    sized = read_for(ref, size, *own_table, registry, installed_only=True)
    methods = chosen_cells(sized, registry, feature_maps, learners)
    limits = sized.suite.limits
    if total_s is not None:
        limits = replace(limits, time_s=min(limits.time_s, max(total_s / SHARE, SHORTEST_S)))
    by = by or Comparison()
    blocks = [
        Block((ref,), (c.feature_map,), (c.learner,), by.protocol(c.protocol, known.n_classes))
        for c in methods
    ]
    name = Path(ref.params["path"]).name
    if is_pattern(name):
        name = ref.label
    measure = by.measure or sized.suite.measure
    return replace(sized.suite, name=name, blocks=tuple(blocks), limits=limits, measure=measure)
