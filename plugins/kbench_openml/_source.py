"""The source `openml`: datasets, tasks and suites of OpenML, checked.

The openml client finds and downloads (its configuration, its cache), under the
rules of `_transport`. What it keeps on disk is never trusted: each use compares
the MD5 that OpenML states and the number of rows that OpenML counted. Its
pickles are not read and none are written, its exceptions, which have no common
base, all become `DatasetError`, and the data are parsed by `_arff` from the
checked file.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kbench import Dataset, DatasetError, Ref, Split
from kbench.errors import SourceUnreachable
from kbench_openml._arff import read_arff
from kbench_openml._server import Server, configured, is_offline, is_reachable
from kbench_openml._table import to_dataset
from kbench_openml._transport import polite, printable, shortened

GROUPS = {
    28: "digits",  # optdigits, of which scikit-learn's digits is the test part
    58: "vowel",
    307: "vowel",
    61: "iris",
    1510: "wdbc",
    187: "wine",
}
"""Datasets that are versions of others: averaged before any test."""

DEVELOPMENT = {6, 15, 36, 37, 40, 41, 50, 58, 59, 61, 182, 307, 1120, 1501}
"""Datasets on which defaults are chosen: grids of bandwidths, roots, pitches and C."""

WINE = 187
"""The only dataset of which an equal copy, value by value, ships with scikit-learn."""


def load(
    data_id: int | None = None,
    dataset: str | None = None,
    version: int | None = None,
    target: str | None = None,
    task_id: int | None = None,
    openml_suite: int | str | None = None,
    ignore: Sequence[str] = (),
) -> Dataset:
    """Get a dataset from OpenML, or from the openml client's cache.

    Parameters
    ----------
    data_id : int, optional
        OpenML's number of the dataset.
    dataset : str, optional
        Its name, instead of the number; needs the network.
    version : int, optional
        Version of the dataset of that name; the oldest active one by default.
    target : str, optional
        The column to predict; OpenML's default target otherwise.
    task_id : int, optional
        OpenML's number of a classification task, instead of a dataset: its
        data, target and splits (``splits = "official"`` in the protocol).
    openml_suite : int or str, optional
        OpenML's number or alias of a suite, which stands for all its tasks and
        is no dataset: see `expand`.
    ignore : sequence of str, optional
        Columns to leave out, beside row numbers and those OpenML ignores.

    Returns
    -------
    Dataset
        In canonical form; missing values are NaN.

    Raises
    ------
    DatasetError
        The data cannot be had, or are not what OpenML says they are: which
        dataset, what happened, what to do.
    ValueError
        The parameters do not name one dataset.
    """
    if openml_suite is not None:
        tasks = expand(openml_suite)  # raises where the suite cannot be had
        raise DatasetError(f"OpenML suite {openml_suite} stands for {len(tasks)} datasets")
    _check_params(data_id, dataset, version, target, task_id)
    if isinstance(ignore, str):
        ignore = (ignore,)
    what = _what(data_id, dataset, version, task_id)
    server = configured()
    notes = server.cache / "kbench"
    offline = is_offline()
    try:
        if not offline and not is_reachable(server):
            if not _may_be_cached(server, data_id, task_id):
                raise SourceUnreachable(
                    f"{what}: {server.url.split('/')[2]} cannot be reached. Run again with a "
                    "network; what is in the cache needs none."
                )
            offline = True
        elif offline and not _may_be_cached(server, data_id, task_id):
            raise SourceUnreachable(
                f"{what}: it is not in the cache, and no server may be asked (--offline, "
                "KBENCH_OFFLINE, or none answered). Run again with a network."
            )
        with _one_process(notes), _client(what, offline) as openml:
            if task_id is not None:
                return _load_task(openml, int(task_id), tuple(ignore), what, offline)
            if data_id is None:
                data_id = _find(openml, str(dataset), version, what)
            return _load_data(openml, int(data_id), target, tuple(ignore), what, offline)
    except SourceUnreachable:
        if data_id == WINE and target in (None, "class") and not ignore:
            return _bundled_wine()
        raise


def expand(openml_suite: int | str | None = None, **params: Any) -> list[Ref]:
    """Turn a suite of OpenML into its tasks.

    Parameters
    ----------
    openml_suite : int or str, optional
        OpenML's number or alias of a suite (a study of tasks), such as 99.
    **params
        What else the line gives: nothing is allowed beside `openml_suite`.

    Returns
    -------
    list of Ref
        One line ``openml(task_id=...)`` per task; empty where the line is no
        suite. What the server said is kept: the tasks of a published suite do
        not change.

    Raises
    ------
    DatasetError
        The suite cannot be had.
    ValueError
        There are other parameters, or the alias has signs that none has.
    """
    if openml_suite is None:
        return []
    if params:
        raise ValueError(
            f"openml_suite={openml_suite!r} takes nothing beside it, but {sorted(params)} is given"
        )
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", str(openml_suite)):
        raise ValueError(f"openml_suite={openml_suite!r} must be a number or an alias")
    what = f"OpenML suite {openml_suite}"
    server = configured()
    notes = server.cache / "kbench"
    key = hashlib.sha256(f"{server.url} {openml_suite}".encode()).hexdigest()[:32]
    kept = notes / f"suite-{key}.json"
    try:
        tasks = [int(task) for task in json.loads(kept.read_text("utf-8"))["tasks"]]
    except (OSError, ValueError, KeyError, TypeError):
        if is_offline() or not is_reachable(server):
            raise SourceUnreachable(
                f"{what}: {server.url.split('/')[2]} cannot be reached, and its list of tasks is "
                "not in the cache. Run again with a network."
            ) from None
        with _one_process(notes), _client(what, False) as openml:
            with _translated(what):
                suite = openml.study.get_suite(openml_suite)
            tasks = [int(task) for task in suite.tasks or ()]
        if not tasks:
            raise DatasetError(f"{what} has no tasks") from None
        text = json.dumps({"server": server.url, "suite": openml_suite, "tasks": tasks})
        with contextlib.suppress(OSError):
            _write(kept, text.encode())
    return [Ref("openml", {"task_id": task}) for task in tasks]


# ---------------------------------------------------------------------------
# Datasets
# ---------------------------------------------------------------------------


def _load_data(openml, data_id, target, ignore, what, offline) -> Dataset:
    found, table = _checked_data(openml, data_id, what, offline)
    what = f"{what} ({printable(str(found.name), 60)})"
    target = target or found.default_target_attribute
    if not target or ("," in target and target not in [c.name for c in table.columns]):
        names = ", ".join(printable(column.name, 60) for column in table.columns[:20])
        raise DatasetError(
            f"{what}: OpenML names no single target column. Give one with target = ...: {names}"
        )
    return to_dataset(
        table,
        what,
        target,
        tuple(dict.fromkeys([*_left_out(found, table, target), *ignore])),
        name=str(found.name),
        version=str(found.version),
        source=f"OpenML data {data_id} from {openml.config.get_server_base_url()}",
        group=GROUPS.get(data_id, str(found.name)),
        role="development" if data_id in DEVELOPMENT else "evaluation",
    )


def _left_out(found, table, target) -> list[str]:
    """Row numbers and ignored attributes, which OpenML gives as lists or with commas."""
    names = {column.name for column in table.columns}
    left_out: list[str] = []
    for given in (found.row_id_attribute, found.ignore_attribute):
        for text in [given] if isinstance(given, str) else given or ():
            left_out += [text] if text in names else [part.strip() for part in text.split(",")]
    return [name for name in left_out if name in names and name != target]


def _checked_data(openml, data_id, what, offline) -> tuple[Any, Any]:
    """Return the description and the parsed file, fetched anew once if it is damaged."""
    folder = Path(openml.config.get_cache_directory()) / "datasets" / str(data_id)
    was_cached = (folder / "dataset.arff").exists()
    for trial in (1, 2):
        # a second try may help: against a damaged cache, or an answer damaged on its way
        refresh = trial == 2
        try:
            with _translated(what):
                found = openml.datasets.get_dataset(
                    data_id, download_data=True, force_refresh_cache=refresh
                )
            return found, _parsed(openml, found, data_id, folder, what, offline)
        except _DamagedError as error:
            damage = str(error)
        if offline:
            raise DatasetError(
                f"{what}: in the openml client's cache {folder}, {damage}. Run again with a "
                "network, and it is fetched anew."
            )
    with contextlib.suppress(OSError):
        for name in ("dataset.arff", "description.xml", "qualities.xml"):
            (folder / name).unlink(missing_ok=True)
    where = "also after fetching it anew" if was_cached else "twice"
    raise DatasetError(f"{what}: {damage} ({where}). Run again later, or tell OpenML.")


class _DamagedError(Exception):
    """A file is not what OpenML says it is; fetching it anew may help."""


def _parsed(openml, found, data_id, folder, what, offline) -> Any:
    if found.dataset_id != data_id:
        raise _DamagedError(f"the description is that of dataset {found.dataset_id} instead")
    if str(found.format).lower() not in ("arff", "sparse_arff"):
        raise DatasetError(
            f"{what}: it comes in the format {str(found.format)[:40]!r}; kbench reads ARFF, which "
            "has a checksum"
        )
    file = Path(found.data_file)
    checksum = found.md5_checksum
    if checksum:
        with file.open("rb") as opened:
            if hashlib.file_digest(opened, "md5").hexdigest() != str(checksum).lower():
                raise _DamagedError("the file does not have the checksum that OpenML states")
    n_rows = _counted(folder, data_id, what, offline, bool(checksum))
    try:
        table = read_arff(file, what)
    except DatasetError as error:
        if checksum:
            raise  # it is what OpenML has
        raise _DamagedError(str(error).removeprefix(f"{what}: ")) from None
    if n_rows is None and not checksum:
        raise DatasetError(
            f"{what}: OpenML states neither a checksum nor a number of rows, so that a damaged "
            "file could not be told from a right one"
        )
    if n_rows is not None and table.n_rows != n_rows:
        raise _DamagedError(f"the file has {table.n_rows:,} rows; OpenML counted {n_rows:,}")
    return table


def _counted(folder: Path, data_id: int, what: str, offline: bool, checked: bool) -> int | None:
    """Return how many rows OpenML counted, None where it does not say.

    The client's own function for this unpickles a file next to the one it is
    asked for.
    """
    file = folder / "qualities.xml"
    try:
        return _n_instances(file.read_bytes())
    except (OSError, ET.ParseError):
        pass
    if offline:
        return None
    try:
        content = _get(f"data/qualities/{data_id}", allow=(362,))
        if content is None:
            return None
        n_rows = _n_instances(content)
    except (DatasetError, ET.ParseError) as error:
        if checked:  # the checksum says enough
            return None
        raise DatasetError(f"{what}: OpenML's count of its rows cannot be had: {error}") from None
    with contextlib.suppress(OSError):
        _write(file, content)
    return n_rows


def _n_instances(content: bytes) -> int | None:
    for quality in _xml(content).iter():
        if quality.tag.endswith("}quality"):
            parts = {part.tag.partition("}")[2]: part.text for part in quality}
            if parts.get("name") == "NumberOfInstances":
                try:
                    return int(float(parts.get("value") or ""))
                except ValueError:
                    return None
    return None


def _find(openml, name, version, what) -> int:
    """Return the number of the oldest active dataset of a name, or of one version."""
    chosen = {} if version is None else {"data_version": int(version), "status": "all"}
    with _translated(what):
        found = openml.datasets.list_datasets(data_name=name, output_format="dataframe", **chosen)
    found = found[found["name"] == name] if len(found) else found
    if not len(found):
        raise DatasetError(f"{what}: OpenML has no such dataset")
    return int(found["did"].min())


# ---------------------------------------------------------------------------
# Tasks
# ---------------------------------------------------------------------------


def _load_task(openml, task_id, ignore, what, offline) -> Dataset:
    # the client's own functions for tasks unpickle files from its cache
    folder = Path(openml.config.get_cache_directory()) / "tasks" / str(task_id)
    description = _kept(folder / "task.xml", f"task/{task_id}", what, offline)
    data_id, target, address = _task_facts(description, task_id, what)
    dataset = _load_data(openml, data_id, target, ignore, what, offline)
    file = folder / "datasplits.arff"
    for trial in (1, 2):
        if not file.exists():
            if offline:
                raise DatasetError(f"{what}: its splits are not in the cache. Run again online.")
            _write(file, _get(address))
        try:
            splits = _splits(file, dataset, what)
            break
        except DatasetError:
            file.unlink(missing_ok=True)
            if offline or trial == 2:
                raise
    return Dataset(
        **{
            name: getattr(dataset, name)
            for name in (
                *("name", "version", "X", "y", "feature_names", "feature_kinds", "target_names"),
                *("row_ids", "group", "role"),
            )
        },
        source=f"OpenML task {task_id}, {dataset.source}",
        splits=splits,
    )


def _task_facts(description: bytes, task_id: int, what: str) -> tuple[int, str, str]:
    try:
        root = _xml(description)
    except ET.ParseError as error:
        raise DatasetError(f"{what}: its description is damaged: {error}") from None
    facts: dict[str, str] = {}
    for element in root.iter():
        # of several cost matrices, data sets and the like, the first one counts
        facts.setdefault(element.tag.partition("}")[2], (element.text or "").strip())
    if facts.get("task_type_id") != "1":
        raise DatasetError(
            f"{what}: it is of the type {facts.get('task_type', 'unknown')!r}; kbench runs "
            "supervised classification"
        )
    if facts.get("task_id") != str(task_id):
        raise DatasetError(f"{what}: the server described task {facts.get('task_id')} instead")
    try:
        return int(facts["data_set_id"]), facts["target_feature"], facts["data_splits_url"]
    except (KeyError, ValueError):
        raise DatasetError(f"{what}: its description names no data, target or splits") from None


def _splits(file: Path, dataset: Dataset, what: str) -> list[Split]:
    table = read_arff(file, f"{what}: its splits")
    columns = {column.name: column for column in table.columns}
    try:
        kinds = columns["type"]
        number = {
            name: columns[name].values.astype(np.int64) for name in ("rowid", "repeat", "fold")
        }
        is_test = np.array([name == "TEST" for name in kinds.categories])[kinds.values]
    except (KeyError, AttributeError, IndexError, ValueError):
        raise DatasetError(f"{what}: its splits are not in the form that OpenML uses") from None
    if not set(kinds.categories) <= {"TRAIN", "TEST"} or np.any(kinds.values < 0):
        raise DatasetError(f"{what}: its splits are not in the form that OpenML uses")
    rows = number["rowid"]
    n = len(dataset.y)
    n_source = n if dataset.row_ids is None else int(rows.max()) + 1
    position = np.arange(n_source)
    if dataset.row_ids is not None:  # rows without a target were left out
        position = np.full(max(n_source, int(dataset.row_ids.max()) + 1), -1)
        position[dataset.row_ids] = np.arange(n)
    if rows.min() < 0 or rows.max() >= len(position):
        raise DatasetError(f"{what}: its splits name rows that the data do not have")
    which = np.stack([number["repeat"], number["fold"]])
    order = np.lexsort((which[1], which[0]))
    cuts = np.flatnonzero(np.any(np.diff(which[:, order], axis=1), axis=0)) + 1
    splits = []
    for index, part in enumerate(np.split(order, cuts)):
        own = position[rows[part]]
        train, test = own[~is_test[part]], own[is_test[part]]
        train, test = np.sort(train[train >= 0]), np.sort(test[test >= 0])
        if len(np.unique(train)) != len(train) or len(np.unique(test)) != len(test):
            raise DatasetError(f"{what}: split {index} has a row twice")
        if len(train) + len(test) != n:
            raise DatasetError(
                f"{what}: split {index} has {len(train) + len(test):,} of {n:,} rows"
            )
        splits.append(Split(index, train, test))
    return splits


# ---------------------------------------------------------------------------
# The client
# ---------------------------------------------------------------------------


@contextlib.contextmanager
def _client(what: str, offline: bool) -> Iterator[Any]:
    """Import the openml client and run a block with it, politely and quietly."""
    root = logging.getLogger()
    silent = logging.NullHandler()
    root.addHandler(silent)  # else the client's warnings would set up logging to the screen
    before = os.environ.get("OPENML_SKIP_PARQUET")
    os.environ["OPENML_SKIP_PARQUET"] = "true"  # parquet copies have no checksum
    try:
        with polite(what, offline):
            import openml

            retries = openml.config.connection_n_retries
            openml.config.connection_n_retries = 1  # `polite` knows better when to try again
            try:
                yield openml
            finally:
                openml.config.connection_n_retries = retries
    finally:
        root.removeHandler(silent)
        if before is None:
            del os.environ["OPENML_SKIP_PARQUET"]
        else:
            os.environ["OPENML_SKIP_PARQUET"] = before


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turn what the client raises, which has no common base, into `DatasetError`."""
    try:
        yield
    except (DatasetError, _DamagedError):
        raise
    except Exception as error:
        if type(error).__name__ == "OpenMLHashException":
            raise _DamagedError(
                "the file that was sent does not have the checksum that OpenML states"
            ) from None
        raise DatasetError(_explained(what, error)) from error


def _explained(what: str, error: Exception) -> str:
    code = getattr(error, "code", None)
    if code in (111, 151, 372, 482, 601):
        return f"{what}: OpenML has no such thing (its code {code}). Look the number up."
    text = shortened(error)
    if type(error).__name__ in ("ExpatError", "OpenMLServerError"):
        return f"{what}: the server sent an answer that is damaged ({text}). Run again later."
    return f"{what}: {type(error).__name__}: {text}. Run again later."


@contextlib.contextmanager
def _one_process(notes: Path) -> Iterator[None]:
    """Let one process of this user at a time ask OpenML and write the client's cache."""
    try:
        notes.mkdir(parents=True, exist_ok=True)
        lock = (notes / "lock").open("a")
    except OSError:  # a read-only cache: nothing will be written either
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _get(address: str, allow: Sequence[int] = ()) -> bytes | None:
    """Ask for a page of the API, or for a file by its address; None for an allowed code."""
    import openml
    import requests

    if "://" not in address:
        address = f"{openml.config.server.rstrip('/')}/{address}"
    key = {"api_key": openml.config.apikey} if openml.config.apikey else {}
    with requests.Session() as session:
        response = session.get(address, params=key)
    if response.status_code == 200:
        return response.content
    found = re.search(rb"<oml:code>\s*(\d+)\s*</oml:code>", response.content)
    code = int(found[1]) if found else None
    if code in allow:
        return None
    message = re.search(rb"<oml:message>([^<]{0,200})", response.content)
    said = (
        printable(message[1].decode("utf-8", "replace"))
        if message
        else f"status {response.status_code}"
    )
    raise DatasetError(f"OpenML answered: {said} (code {code}, {address})")


def _kept(file: Path, address: str, what: str, offline: bool) -> bytes:
    """Read a file of the client's cache, or ask for it and keep it there."""
    try:
        content = file.read_bytes()
        _xml(content)
        return content
    except (OSError, ET.ParseError):
        pass
    if offline:
        raise DatasetError(f"{what}: it is not in the cache. Run again with a network.")
    try:
        content = _get(address) or b""
        _xml(content)
    except ET.ParseError as error:
        raise DatasetError(f"{what}: the server's answer is damaged: {error}") from None
    except DatasetError as error:
        raise DatasetError(f"{what}: {str(error).removeprefix(what + ': ')}") from None
    with contextlib.suppress(OSError):
        _write(file, content)
    return content


def _xml(content: bytes) -> ET.Element:
    if b"<!ENTITY" in content or b"<!DOCTYPE" in content:
        raise ET.ParseError("it defines entities, which OpenML's answers never do")
    return ET.fromstring(content)


def _write(file: Path, content: bytes) -> None:
    """Write as a whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


# ---------------------------------------------------------------------------
# Parameters, and what there is without a network
# ---------------------------------------------------------------------------


def _check_params(data_id, dataset, version, target, task_id) -> None:
    given = {"data_id": data_id, "dataset": dataset, "task_id": task_id}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise ValueError(
            "openml needs one of data_id, dataset, task_id and openml_suite; "
            + (f"{', '.join(named)} are given" if named else "none is given")
        )
    for name, value in (("data_id", data_id), ("task_id", task_id), ("version", version)):
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1
        ):
            raise ValueError(f"{name}={value!r} must be a whole number, at least 1")
    if version is not None and dataset is None:
        raise ValueError(f"version={version!r} goes with dataset; {named[0]} names one version")
    if task_id is not None and target is not None:
        raise ValueError(f"target={target!r}: a task has its own target")
    if dataset is not None and not re.fullmatch(r"[A-Za-z0-9_.(),+-]{1,128}", dataset):
        raise ValueError(f"dataset={dataset!r} has signs that no name on OpenML has")


def _what(data_id, dataset, version, task_id) -> str:
    if task_id is not None:
        return f"OpenML task {task_id}"
    if data_id is not None:
        return f"OpenML data {data_id}"
    return f"OpenML data {dataset!r}" + (f" version {version}" if version is not None else "")


def _may_be_cached(server: Server, data_id: int | None, task_id: int | None) -> bool:
    """Look for the client's files; a name always needs the network."""
    if task_id is not None:
        return (server.cache / "tasks" / str(task_id) / "task.xml").exists()
    if data_id is None:
        return False
    return (server.cache / "datasets" / str(data_id) / "dataset.arff").exists()


def _bundled_wine() -> Dataset:
    from sklearn.datasets import load_wine

    bunch = load_wine()
    return Dataset(
        name="wine",
        version="1",
        X=np.ascontiguousarray(bunch.data, dtype=np.float64),
        y=bunch.target.astype(np.int64),
        feature_names=[str(name) for name in bunch.feature_names],
        target_names=("1", "2", "3"),
        source="bundled with scikit-learn, equal to OpenML data 187 value by value",
        group="wine",
    )
