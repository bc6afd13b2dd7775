"""Datasets of OpenML: looked up, fetched, and compared with OpenML's description.

The client's cache is not trusted: each use compares the MD5 that OpenML states and
the number of rows that OpenML counted, and parses the data from the checked file.
"""

import contextlib
import functools
import hashlib
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from kbench import Dataset, DatasetError, DatasetParameterError, Split
from kbench.messages import printable
from kbench.tables.arff import read_arff
from kbench.tables.table import Column, Table, column_values, split_by_group, to_dataset
from kbench_openml._client import DamagedError, ask, read_back, read_xml, translate, write_whole

GROUPS = {
    28: "digits",  # optdigits, of which scikit-learn's digits is the test part
    58: "vowel",
    307: "vowel",
    61: "iris",
    1510: "wdbc",
    187: "wine",
}
"""Families of datasets: the versions of one dataset are averaged before any test."""

DEVELOPMENT = {6, 15, 36, 37, 40, 41, 50, 58, 59, 61, 182, 307, 1120, 1501}
"""Datasets on which defaults are chosen: grids of bandwidths, roots, pitches and C."""


def find(openml, name, version, label) -> int:
    """Return the number of the oldest active dataset of a name, or of one version."""
    chosen = {} if version is None else {"data_version": int(version), "status": "all"}
    with translate(label):
        rows = openml.datasets.list_datasets(data_name=name, output_format="dataframe", **chosen)
    rows = rows[rows["name"] == name] if len(rows) else rows
    if not len(rows):
        raise DatasetParameterError(f"{label}: OpenML has no such dataset")
    return int(rows["did"].min())


@dataclass(frozen=True)
class Wanted:
    """What the parameters of the source ask of a dataset."""

    target: str | None = None
    drop: tuple[str, ...] = ()
    task: str | None = None
    groups: str | None = None


def load_data(
    openml: ModuleType, data_id: int, wanted: Wanted, label: str, offline: bool
) -> Dataset:
    """Return the checked dataset of a number, in canonical form."""
    described, table = _check_data(openml, data_id, label, offline)
    return _build(
        data_id,
        table,
        replace(wanted, target=wanted.target or described.default_target_attribute),
        _ignored(described),
        label,
        name=str(described.name),
        version=str(described.version),
        source=f"OpenML data {data_id} from {openml.config.get_server_base_url()}",
    )


# -- copies of small datasets that are installed with kbench

_FOLDER = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Copy:
    """What `origins.toml` says of a dataset; `md5` is that of the file it was made from."""

    name: str
    version: int
    target: str
    title: str
    creator: str
    url: str
    licence: str
    changes: str
    md5: str
    sha256: str


@functools.cache
def read_origins() -> dict[int, Copy]:
    """Return the copies by OpenML's id."""
    tables = tomllib.loads((_FOLDER / "origins.toml").read_text("utf-8"))
    return {int(data_id): Copy(**table) for data_id, table in tables.items()}


def load_copy(data_id: int, wanted: Wanted, label: str) -> Dataset:
    """Return the dataset of an installed copy, equal to that of OpenML's file.

    Raises DatasetError if the file of the copy has been changed.
    """
    copy, file = read_origins()[data_id], _FOLDER / f"{data_id}.arff.gz"
    if hashlib.sha256(file.read_bytes()).hexdigest() != copy.sha256:
        raise DatasetError(f"{label}: the file {file} was changed. Install kbench again.")
    return _build(
        data_id,
        read_arff(file, label),
        replace(wanted, target=wanted.target or copy.target),
        (),
        label,
        name=copy.name,
        version=str(copy.version),
        source=f"OpenML data {data_id}, the copy that kbench installs: {copy.title}, "
        f"{copy.creator}, {copy.url} ({copy.licence})",
    )


def _build(
    data_id: int, table: Table, wanted: Wanted, ignored: Sequence[str], label: str, **facts: str
) -> Dataset:
    """Bring a table to canonical form; `wanted` has a target, `facts` fields of the dataset."""
    label = f"{label} ({printable(facts['name'], 60)})"
    columns = {column.name: column for column in table.columns}
    target = wanted.target
    if not target or ("," in target and target not in columns):
        raise DatasetError(
            f"{label}: OpenML has no single target column. Give one with target = ...: "
            + ", ".join(printable(name, 60) for name in list(columns)[:20])
        )
    drop = [name for name in ignored if name in columns and name != target] + list(wanted.drop)
    drop += [] if wanted.groups is None else [wanted.groups]
    dataset = to_dataset(
        table,
        label,
        target,
        tuple(dict.fromkeys(drop)),
        wanted.task,
        dataset_family=GROUPS.get(data_id, facts["name"]),
        role="development" if data_id in DEVELOPMENT else "evaluation",
        **facts,
    )
    if wanted.groups is None:
        return dataset
    label = f"{label}, groups: column {wanted.groups!r}"
    values = _labels(column_values(table, [*columns].index(wanted.groups)))
    if dataset.row_ids is not None:  # rows without a target were left out
        values = values[dataset.row_ids]
    if any(value is None for value in values):
        raise DatasetError(f"{label} has missing values")
    return split_by_group(dataset, np.unique(values.astype(str), return_inverse=True)[1], label)


def _labels(column: Column) -> np.ndarray:
    """Return the values of a column as objects, None if a value is missing."""
    values = column.values
    if column.kind == "nominal":
        return np.array([*column.categories, None], dtype=object)[values]
    return np.array([None if value != value else value for value in values], dtype=object)


def _ignored(described: Any) -> list[str]:
    """Return row numbers and ignored attributes, which OpenML gives as lists or with commas."""
    given = (described.row_id_attribute, described.ignore_attribute)
    texts = [t for each in given for t in ([each] if isinstance(each, str) else each or ())]
    return [name for text in texts for name in (text, *map(str.strip, text.split(",")))]


def _check_data(openml, data_id, label, offline) -> tuple[Any, Table]:
    """Return the description and the parsed file, fetched again once if it is damaged."""
    folder = Path(openml.config.get_cache_directory()) / "datasets" / str(data_id)
    was_cached = (folder / "dataset.arff").exists()
    # a second attempt may help: the cache, or an answer on its way, was damaged
    for refresh in (False, True):
        try:
            with translate(label):
                described = openml.datasets.get_dataset(
                    data_id, download_data=True, force_refresh_cache=refresh
                )
            return described, _parse_splits(described, data_id, folder, label, offline)
        except DamagedError as error:
            damage = str(error)
        if offline:
            raise DatasetError(
                f"{label}: in the openml client's cache {folder}, {damage}. Run again with "
                "network access to download it again."
            )
    with contextlib.suppress(OSError):
        for name in ("dataset.arff", "description.xml", "qualities.xml"):
            (folder / name).unlink(missing_ok=True)
    where = "also after downloading it again" if was_cached else "twice"
    raise DatasetError(f"{label}: {damage} ({where}). Try again later, or report it to OpenML.")


def _parse_splits(described, data_id, folder, label, offline) -> Table:
    if described.dataset_id != data_id:
        raise DamagedError(f"the description is that of dataset {described.dataset_id} instead")
    if str(described.format).lower() not in ("arff", "sparse_arff"):
        raise DatasetError(
            f"{label}: it comes in the format {str(described.format)[:40]!r}; kbench reads ARFF, "
            "which has a checksum"
        )
    file = Path(described.data_file)
    if checksum := described.md5_checksum:
        with file.open("rb") as opened:
            if hashlib.file_digest(opened, "md5").hexdigest() != str(checksum).lower():
                raise DamagedError("the file does not have the checksum of OpenML")
    n_rows = _count_rows(folder, data_id, label, offline, bool(checksum))
    try:
        table = read_arff(file, label)
    except DatasetError as error:
        if checksum:
            raise  # OpenML's own file is wrong
        raise DamagedError(str(error).removeprefix(f"{label}: ")) from None
    if n_rows is None and not checksum:
        raise DatasetError(
            f"{label}: OpenML has neither a checksum nor a number of rows, so a damaged file "
            "could not be detected"
        )
    if n_rows is not None and table.n_rows != n_rows:
        raise DamagedError(f"the file has {table.n_rows:,} rows; OpenML counted {n_rows:,}")
    return table


def _count_rows(folder: Path, data_id: int, label: str, offline: bool, checked: bool) -> int | None:
    """Return the number of rows that OpenML counted; None where it does not state one.

    The client's function for this unpickles a file next to the requested one.
    """
    file = folder / "qualities.xml"
    with contextlib.suppress(OSError, ET.ParseError):
        return _n_instances(file.read_bytes())
    if offline:
        return None
    try:
        if (content := ask(f"data/qualities/{data_id}", allow=(362,))) is None:
            return None
        n_rows = _n_instances(content)
    except (DatasetError, ET.ParseError) as error:
        if checked:  # the checksum is enough
            return None
        raise DatasetError(
            f"{label}: OpenML's count of its rows is not available: {error}"
        ) from None
    with contextlib.suppress(OSError):
        write_whole(file, content)
    return n_rows


def _n_instances(content: bytes) -> int | None:
    for quality in read_xml(content).iter():
        if quality.tag.endswith("}quality"):
            parts = {part.tag.partition("}")[2]: part.text for part in quality}
            if parts.get("name") == "NumberOfInstances":
                with contextlib.suppress(ValueError):
                    return int(float(parts.get("value") or ""))
                break
    return None


TASKS = {"1": "classification", "2": "regression"}
"""OpenML's ids of the types of tasks that kbench runs."""


def load_task(
    openml: ModuleType, task_id: int, drop: tuple[str, ...], label: str, offline: bool
) -> Dataset:
    """Return the checked dataset of a task, with the task's target and splits."""
    # the client's own functions for tasks unpickle files from its cache
    folder = Path(openml.config.get_cache_directory()) / "tasks" / str(task_id)
    description = read_back(folder / "task.xml", f"task/{task_id}", label, offline)
    task, data_id, target, address = _task_facts(description, task_id, label)
    dataset = load_data(openml, data_id, Wanted(target, drop, task), label, offline)
    file = folder / "datasplits.arff"
    for trial in (1, 2):
        if not file.exists():
            if offline:
                raise DatasetError(f"{label}: its splits are not in the cache. Run again online.")
            write_whole(file, ask(address))
        try:
            splits = _splits(file, dataset, label)
            break
        except DatasetError:
            file.unlink(missing_ok=True)
            if offline or trial == 2:
                raise
    source = f"OpenML task {task_id}, {dataset.source}"
    return replace(dataset, source=source, splits=splits, checksum="")


def _task_facts(description: bytes, task_id: int, label: str) -> tuple[str, int, str, str]:
    """Return what a task is, the number of its data, its target, and where its splits are."""
    try:
        root = read_xml(description)
    except ET.ParseError as error:
        raise DatasetError(f"{label}: its description is damaged: {error}") from None
    facts: dict[str, str] = {}
    for element in root.iter():
        # of several cost matrices, data sets and the like, the first one counts
        facts.setdefault(element.tag.partition("}")[2], (element.text or "").strip())
    if (task := TASKS.get(facts.get("task_type_id", ""))) is None:
        raise DatasetError(
            f"{label}: it is of the type {facts.get('task_type', 'unknown')!r}; kbench runs "
            "supervised classification and regression"
        )
    if facts.get("task_id") != str(task_id):
        raise DatasetError(f"{label}: the server described task {facts.get('task_id')} instead")
    try:
        return task, int(facts["data_set_id"]), facts["target_feature"], facts["data_splits_url"]
    except (KeyError, ValueError):
        raise DatasetError(f"{label}: its description lacks data, target or splits") from None


def _splits(file: Path, dataset: Dataset, label: str) -> list[Split]:
    columns = {column.name: column for column in read_arff(file, f"{label}: its splits").columns}
    names = ("rowid", "repeat", "fold")
    try:
        kinds = columns["type"]
        rows, repeat, fold = (columns[name].values.astype(np.int64) for name in names)
        is_test = np.array([name == "TEST" for name in kinds.categories])[kinds.values]
    except (KeyError, AttributeError, IndexError, ValueError):
        raise DatasetError(f"{label}: its splits are not in the form that OpenML uses") from None
    if not set(kinds.categories) <= {"TRAIN", "TEST"} or np.any(kinds.values < 0):
        raise DatasetError(f"{label}: its splits are not in the form that OpenML uses")
    n = len(dataset.y)
    n_source = n if dataset.row_ids is None else int(rows.max()) + 1
    position = np.arange(n_source)
    if dataset.row_ids is not None:  # rows without a target were left out
        position = np.full(max(n_source, int(dataset.row_ids.max()) + 1), -1)
        position[dataset.row_ids] = np.arange(n)
    if rows.min() < 0 or rows.max() >= len(position):
        raise DatasetError(f"{label}: its splits refer to rows that the data lack")
    order = np.lexsort((fold, repeat))
    cuts = np.flatnonzero(np.any(np.diff(np.stack([repeat, fold])[:, order], axis=1), axis=0)) + 1
    splits = []
    for index, part in enumerate(np.split(order, cuts)):
        own = position[rows[part]]
        train, test = own[~is_test[part]], own[is_test[part]]
        train, test = np.sort(train[train >= 0]), np.sort(test[test >= 0])
        if len(np.unique(train)) != len(train) or len(np.unique(test)) != len(test):
            raise DatasetError(f"{label}: split {index} has a row twice")
        if len(train) + len(test) != n:
            raise DatasetError(
                f"{label}: split {index} has {len(train) + len(test):,} of {n:,} rows"
            )
        splits.append(Split(index, train, test))
    return splits
