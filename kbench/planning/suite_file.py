"""Suite files: TOML text becomes a `Suite`, or all its errors at once; published results."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from kbench.errors import SuiteError
from kbench.messages import option, plural, similar
from kbench.parameters import list_files
from kbench.planning import component_refs
from kbench.planning.cells import cell_problems, check_map_seeds
from kbench.planning.schema import (
    BlockTable,
    LimitsTable,
    ProtocolChanges,
    ProtocolTable,
    PublishedTable,
    SuiteFile,
    explain_errors,
)
from kbench.records import Block, Limits, Protocol, Published, Ref, Suite
from kbench.registry.collecting import Kind
from kbench.registry.registry import Registry
from kbench.storage.datacache import FILE_PARAMETERS

File = TypeVar("File", bound=SuiteFile)

_FOLDS = ("cv", ("stratified", "group_duplicates"))
_HOLDOUT = ("cv", ("holdout", "ordered"))

_NEEDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "n_candidates": ("search_method", ("random", "racing")),
    "n_folds": _FOLDS,
    "train_size": _HOLDOUT,
    "test_size": _HOLDOUT,
}
"""Keys that need one of some values of another key."""


# the table of a block or a dataset that changes no key
NONE = ProtocolTable()

# tables by place that give the keys of a protocol, the last of which counts; and the protocol
_Use = tuple[Mapping[str, ProtocolTable], ProtocolTable]


def read(text: str, name: str, registry: Registry, device: str | None = None) -> Suite:
    """Read the TOML text of a suite file; `name` is used if the file gives none.

    A `device` replaces that of all protocols. Raises SuiteError with every error of the file,
    parameters of components included; a TOML syntax error and rules on size stand alone.
    """
    raw = component_refs.parse_toml(text, name)
    if component_refs.has_rules(raw):
        raise SuiteError(
            f"the suite {name!r} has rules on the size of data and cannot be run by itself: "
            "`kbench recommend FILE --target COLUMN` compares the methods of such suites on a file"
        )
    file, lines = check_suite(raw, SuiteFile, component_refs.LISTS, registry)
    context = make_context(registry)
    forced = NONE if device is None else ProtocolChanges.model_construct(device=device)
    blocks: list[Block] = []
    uses: list[_Use] = []
    for number, table in enumerate(file.block or [BlockTable()]):
        lists = {
            key: read_block_list(lines, f"block[{number}].", key) for key in component_refs.LISTS
        }
        shared = read_block_protocol(file.protocol, table, number, context)
        shared = shared.update(option("device"), forced, context=context)
        given = {"protocol": file.protocol, f"block[{number}].protocol": table.protocol or NONE}
        own: dict[str, Protocol] = {}
        for label in (ref.label for ref in lists["datasets"]):
            place, changes = f"dataset_protocols.{label}", file.dataset_protocols.get(label, NONE)
            protocol = shared.update(place, changes, forced, context=context)
            uses.append(({**given, place: changes}, protocol))
            if changes is not NONE:
                own[label] = protocol.record()
        blocks.append(Block(**lists, protocol=shared.record(), dataset_protocols=own))
    labels = {ref.label for block in blocks for ref in block.datasets}
    unknown = [
        f"dataset_protocols.{label}: no dataset of the suite has this label{similar(label, labels)}"
        for label in file.dataset_protocols
        if label not in labels
    ]
    if problems := [*unknown, *_unused_keys(uses, file.limits)]:
        raise SuiteError(*problems)
    return make_suite(file, name, tuple(blocks), registry)


def check_suite(
    raw: dict[str, Any],
    model: type[File],
    lists: Mapping[str, Kind],
    registry: Registry,
    problems: Sequence[str] = (),
    installed_only: bool = False,
) -> tuple[File, dict[str, component_refs.Lines]]:
    """Check the tables of a suite file and the lines of its lists.

    `lists` names the lists that the file has, of those in `LISTS`; `problems` were
    found before. The lines that are returned are by place.

    Raises SuiteError with every error.
    """
    problems = list(problems)
    file = None
    try:
        file = model.model_validate(raw, context=make_context(registry))
    except ValidationError as error:
        problems += explain_errors(error, raw, model)
    problems += _missing_lists(raw, lists)
    lines = {
        place: component_refs.Lines(place, (key, entries), registry, installed_only)
        for place, key, entries in component_refs.iterate_lists(raw, lists)
    }
    problems += [problem for part in lines.values() for problem in part.problems]
    if problems:
        # Names are known now, so parameters can be checked at the same time;
        # this imports the components, which a right file does much later.
        for part in lines.values():
            problems += component_refs.parameter_problems(part.placed, part.kind, registry)
    if problems or file is None:
        raise SuiteError(*problems)
    return file, lines


def make_context(registry: Registry) -> dict[str, Any]:
    """Return what the validation of a suite file must know: the metrics of plugins."""
    return {"metrics": registry.all("metric")}


def make_suite(file: SuiteFile, name: str, blocks: tuple[Block, ...], registry: Registry) -> Suite:
    """Return the suite of a file, given its blocks.

    Raises SuiteError if two cells or datasets have the same labels, or a protocol is not for a map.
    """
    suite = Suite(
        name=file.name or name,
        blocks=blocks,
        limits=Limits(**file.limits.model_dump()),
        published=tuple(Published(**table.model_dump()) for table in file.published),
        published_file=file.published_file,
        metric=file.compared,
        data_source_hint=file.data_source_hint,
        equal_budget=file.equal_budget or "",
    )
    problems = [*cell_problems(suite, registry), *check_map_seeds(suite, registry)]
    for name, noun in (("threads", "numbers of threads"), ("device", "devices")):
        values = sorted({getattr(protocol, name) for protocol in suite.protocols})
        if len(values) > 1:
            problems.append(
                f"protocol.{name} must be the same in all blocks, got "
                f"{', '.join(map(str, values))}: times of different {noun} are not comparable"
            )
    if problems:
        raise SuiteError(*problems)
    return suite


def find(name: str, registry: Registry) -> tuple[str, str]:
    """Return text and name of a suite, given the name of an installed one or a path.

    Raises SuiteError if there is neither.
    """
    suites = registry.all("suite")
    if name in suites:
        return suites[name].read_text(encoding="utf-8"), name
    path = Path(name)
    if path.suffix == ".toml" or len(path.parts) > 1:
        return _read_text(path, f"cannot read the suite file {name}"), path.stem
    hint = similar(name, component_refs.runnable(registry)) or (
        f"; a suite that is a file is named by its path, such as {name}.toml. "
        f"Installed are: {', '.join(component_refs.runnable(registry))}"
    )
    raise SuiteError(f"no suite is named {name!r}{hint}")


def read_block_protocol(
    shared: ProtocolTable, block: BlockTable, number: int, context: object
) -> ProtocolTable:
    """Return a block's protocol: that at the top of the file with the block's changes."""
    if block.protocol is None:
        return shared
    return shared.update(f"block[{number}].protocol", block.protocol, context=context)


def read_block_list(
    lines: Mapping[str, component_refs.Lines], place: str, key: str
) -> tuple[Ref, ...]:
    """Return a block's list; a block without one takes that at the top of the file."""
    return (lines.get(f"{place}{key}") or lines[key]).refs


def _missing_lists(raw: Mapping[str, object], lists: Mapping[str, Kind]) -> list[str]:
    missing = [key for key in lists if key not in raw]
    if "block" not in raw:
        return [f"{key}: missing; a list of {key} is needed" for key in missing]
    blocks = raw["block"] if isinstance(raw["block"], list) else []
    return [
        f"block[{number}].{key}: missing, and there is none at the top of the file either"
        for number, block in enumerate(blocks)
        for key in missing
        if isinstance(block, dict) and key not in block
    ]


def _unused_keys(uses: Sequence[_Use], limits: LimitsTable) -> list[str]:
    found: dict[tuple[str, str], set[str]] = {}
    for tables, protocol in uses:
        for key, (other, _) in _NEEDS.items():
            if places := [name for name, each in tables.items() if key in each.model_fields_set]:
                found.setdefault((places[-1], key), set()).add(getattr(protocol, other))
    problems = []
    for (place, key), values in found.items():
        other, allowed = _NEEDS[key]
        if not values & set(allowed):
            needed = " or ".join(f'{other} = "{value}"' for value in allowed)
            has = " and ".join(f'"{value}"' for value in sorted(values))
            problems.append(f"{place}.{key} has an effect only with {needed}; {other} is {has}")
    n_splits = limits.n_splits or 1
    if n_splits > 1 and all(protocol.cv == "ordered" for _, protocol in uses):
        problems.append(f'limits.n_splits must be 1 with cv = "ordered", got {n_splits}')
    return problems


def move_to_folder(suite: Suite, folder: Path | None) -> Suite:
    """Return a suite whose relative names of files are those in a folder.

    Labels stay as they are. Without a folder, names are relative to the current one.

    Raises SuiteError if the folder is not there; or all datasets of the suite are files
    with relative names, none of which exists.
    """
    if folder is None:
        _refuse_empty_folder(suite, Path.cwd())
        return suite
    folder = folder.expanduser().absolute()
    if not folder.is_dir():
        raise SuiteError(f"{option('data', str(folder))}: the folder does not exist")
    _refuse_empty_folder(suite, folder)

    def move(ref: Ref) -> Ref:
        moved = {key: str(folder / name) for key, name in _relative(ref)}
        return replace(ref, params={**ref.params, **moved})

    blocks = [replace(each, datasets=tuple(map(move, each.datasets))) for each in suite.blocks]
    return replace(suite, blocks=tuple(blocks))


def _relative(ref: Ref) -> Iterator[tuple[str, Path]]:
    for key in FILE_PARAMETERS:
        name = ref.params.get(key)
        if isinstance(name, str) and not Path(name).expanduser().is_absolute():
            yield key, Path(name)


def _refuse_empty_folder(suite: Suite, folder: Path) -> None:
    names = [dict(_relative(ref)).get("path") for ref in suite.datasets]
    files = [folder / name for name in names if name is not None]
    if (
        not files
        or (len(files) < len(names) and not suite.data_source_hint)
        or any(match.exists() for file in files for match in list_files(file))
    ):
        return
    source = f" {suite.data_source_hint}" if suite.data_source_hint else ""
    raise SuiteError(
        f"the suite {suite.name!r} reads {plural(len(files), 'file')}, and none of them exists: "
        f"looked for {files[0]}{' and more' if len(files) > 1 else ''}. "
        f"Name their folder with {option('data', 'FOLDER')}.{source}"
    )


_COLUMNS = {field.name: field.default is MISSING for field in fields(Published)}
"""The columns of a file, and whether it must have them."""

_SHOWN = 10
"""Errors of figures that are named."""


def add_published(suite: Suite, name: str, registry: Registry) -> Suite:
    """Return a suite with the figures of its file; `name` is its name or path, as for `find`."""
    if not suite.published_file:
        return suite
    file, figures = registry.all("suite").get(name) or Path(name), suite.published_file
    if (folder := getattr(file, "parent", None)) is None:
        raise SuiteError(f"published: {figures!r} cannot be read: the suite is not in a folder")
    text = _read_text(folder / figures, f"published: cannot read {folder / figures}")
    return replace(suite, published=read_published(text, figures))


def _read_text(file: Traversable, problem: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SuiteError(f"{problem}: {reason}") from error


def read_published(text: str, name: str) -> tuple[Published, ...]:
    r"""Read published results from the content of a CSV file; `name` is for messages.

    Columns are the fields of `Published`: ``dataset``, ``feature_map``, ``learner``, ``metric``
    and ``value``, optionally ``sd``, ``n_runs`` and ``source``. Lines starting with # are comments.

    Raises SuiteError with every error, up to ten.

    Examples
    --------
    >>> text = "dataset,feature_map,learner,metric,value\niris,rff,ridge,accuracy,0.95\n"
    >>> read_published(text, "figures.csv")[0].value
    0.95
    """
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.startswith("#")
    ]
    reader = csv.DictReader(io.StringIO("\n".join(line for _, line in lines)), strict=True)
    columns = [column.strip() for column in reader.fieldnames or ()]
    reader.fieldnames = columns
    problems = [
        f"{name}: there is no column {column!r}"
        for column, is_needed in _COLUMNS.items()
        if is_needed and column not in columns
    ]
    problems += [
        f"{name}: unknown column {column!r}{similar(column, _COLUMNS)}"
        for column in columns
        if column not in _COLUMNS
    ]
    if problems:
        raise SuiteError(*problems)
    figures: list[Published] = []
    try:
        # a quoted text with a line break would shift the numbers: they are those of its end
        for number, row in zip((number for number, _ in lines[1:]), reader, strict=False):
            figures += _figure(row, f"{name}, line {number}", problems)
    except csv.Error as error:
        problems.append(f"{name}, line {lines[reader.reader.line_num - 1][0]}: {error}")
    places = Counter(
        (each.dataset, each.feature_map, each.learner, each.metric) for each in figures
    )
    problems += [
        f"{name}: {count} figures of {', '.join(place)}"
        for place, count in places.items()
        if count > 1
    ]
    if problems:
        n_more = len(problems) - _SHOWN
        raise SuiteError(*problems[:_SHOWN], *([f"{name}: {n_more} more"] if n_more > 0 else []))
    return tuple(figures)


def _figure(row: dict[str, str | None], place: str, problems: list[str]) -> list[Published]:
    """Return the figure of a row; none, and its errors among the problems, where it has any."""
    if None in row or None in row.values():
        problems.append(f"{place}: the line has another number of fields than the first")
        return []
    texts = {column: (cell or "").strip() for column, cell in row.items()}
    values = {column: cell for column, cell in texts.items() if cell or _COLUMNS[column]}
    try:
        return [Published(**PublishedTable.model_validate(values, strict=False).model_dump())]
    except ValidationError as error:
        problems += [f"{place}: {each}" for each in explain_errors(error, values, PublishedTable)]
        return []
