"""A user's own file as a suite: the methods of `OWN_TABLES`, sized for the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kbench.api.inputs import check_limit
from kbench.api.own_target import TargetColumn, choose
from kbench.errors import DatasetError
from kbench.execution.fetching import opened
from kbench.messages import counted
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
from kbench.registry.outlines import parameters_of
from kbench.registry.references import Reference
from kbench.registry.registry import Registry
from kbench.storage.datacache import DataCache
from kbench.tables.columns import is_free_text
from kbench.tables.reading import table_of

PACKED = (".gz", ".bz2", ".xz", ".zst")

MIN_ROWS = 20
"""With fewer rows, a split has fewer than four rows to score on."""

SHORTEST_S = 2.0
"""Least time limit of a task, however short the whole run, so that cheap methods finish."""

SHARE = 5
"""A task may take one part in this many of the whole time, so that none takes all of it."""

LOOKED_AT_MB = 256
"""A larger file is not inspected before it is loaded: it would be in memory as a whole."""


@dataclass(frozen=True)
class Look:
    """Shape of the user's table before it is encoded.

    `n_unlabelled` rows have no label; `n_columns` columns become features. `texts` has the
    columns of text or dates, which cannot be features, with their numbers of different
    values. `target` describes the column to predict.
    """

    n_rows: int
    n_unlabelled: int
    n_columns: int
    texts: Mapping[str, int]
    target: TargetColumn

    @classmethod
    def parsed(cls, given: Any) -> Look | None:
        """Parse what the process of a plugin found; ValueError where it is not a look."""
        match given:
            case None:
                return None
            case {
                "n_rows": int(n_rows),
                "n_unlabelled": int(n_unlabelled),
                "n_columns": int(n_columns),
                "texts": dict(texts),
                "target": dict(target),
            } if all(isinstance(n, int) for n in texts.values()):
                return cls(n_rows, n_unlabelled, n_columns, texts, TargetColumn.parsed(target))
        raise ValueError("not the look at a table")

    def notices(self) -> list[str]:
        """Return a notice for each column that is left out."""
        return [
            f"left out: {name!r} ({counted(n, 'different text')}); name it with --nominal to "
            "keep it"
            for name, n in self.texts.items()
        ]


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
        """A notice for each column that is left out."""
        return self.look.notices() if self.look else []


def source_of(
    path: str,
    target: str | None = None,
    ignore: Sequence[str] | None = None,
    nominal: Sequence[str] | None = None,
    delimiter: str | None = None,
    task: str | None = None,
    *,
    registry: Registry,
) -> Ref:
    """Return the dataset line of a suite file that reads a file.

    The file's name ends as an installed source says, perhaps with an ending of
    compression. The other parameters are those of the source.

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
    options = {
        "ignore": tuple(ignore or ()) or None,
        "nominal": tuple(nominal or ()) or None,
        "delimiter": delimiter or None,
        "task": task,
        "target": target,
    }
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


def look(ref: Ref, registry: Registry) -> Look | None:
    """Inspect a user's own table before it is loaded.

    None for files whose source has no `table`, and where there is something wrong
    with the file: loading it reports the error.
    """
    source = registry.all("dataset").get(ref.name)
    if source is None or source.table is None or "target" not in ref.params:
        return None
    taken = parameters_of(source.load)
    may_ignore = taken is None or "ignore" in taken
    try:
        files = named_files(ref.params["path"])
        if sum(file.stat().st_size for file in files) > LOOKED_AT_MB * 2**20:
            return None
        if isinstance(source.table, Reference):
            asked = {"dataset": to_json(ref), "may_ignore": may_ignore}
            return Look.parsed(source.table.call(f"{__name__}:look_in_sandbox", asked))
        return _look(table_of(source.table, ref), ref, may_ignore)
    except Exception:  # pandas' errors have no common base
        return None


def look_in_sandbox(table: Make, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """Inspect a table, where the plugin that reads it is imported."""
    ref = from_json(asked["dataset"])
    found = _look(table_of(table, ref), ref, asked["may_ignore"])
    return None if found is None else asdict(found)


def _look(frame: Any, ref: Ref, may_ignore: bool) -> Look | None:
    import pandas

    if ref.params["target"] not in frame or not frame.columns.is_unique:
        return None
    target = ref.params["target"]
    left_out = {target, *ref.params.get("ignore", ())}
    kept = set(ref.params.get("nominal", ()))
    texts = {}
    for name in frame.columns if may_ignore else ():
        column = frame[name]
        plain = pandas.api.types.is_numeric_dtype(column) or isinstance(
            column.dtype, pandas.CategoricalDtype
        )
        if plain or name in left_out | kept:
            continue
        values = column.dropna().unique()
        if is_free_text(values, len(column)):
            texts[name] = len(values)
    return Look(
        n_rows=len(frame),
        n_unlabelled=int(frame[target].isna().sum()),
        n_columns=len([name for name in frame.columns if name not in left_out | set(texts)]),
        texts=texts,
        target=TargetColumn.of(frame[target]),
    )


def without_texts(ref: Ref, looked: Look | None) -> Ref:
    """Return the dataset line with the columns of text left out."""
    if looked is None or not looked.texts:
        return ref
    ignore = (*ref.params.get("ignore", ()), *looked.texts)
    return Ref(ref.name, {**ref.params, "ignore": ignore}, ref.label)


def prepared(path: str, registry: Registry, **options: Any) -> OwnData:
    """Load a user's file, with columns of text left out, and choose the task of its target.

    The options are those of `source_of`.

    Raises
    ------
    DatasetError
        The file cannot be read, or its target is none; see `choose`.
    """
    ref = source_of(path, **options, registry=registry)
    looked = look(ref, registry)
    ref = without_texts(ref, looked)
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
        return OwnData(ref, looked, fetched(ref, registry), choice.sentence)
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
) -> Suite:
    """Return the suite that compares methods on one file, the whole in `total_s` seconds.

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
    blocks = [Block((ref,), (c.feature_map,), (c.learner,), c.protocol) for c in methods]
    name = Path(ref.params["path"]).name
    if is_pattern(name):
        name = ref.label
    return replace(sized.suite, name=name, blocks=tuple(blocks), limits=limits)
