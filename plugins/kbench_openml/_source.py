"""The source `openml`: names in a suite, and data without a network.

The openml client finds and downloads (with its configuration and cache), under the
rules of `_transport` and `_client`; `_datasets` checks the results.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Sequence

from kbench import Dataset, DatasetError, DatasetParameterError, Ref
from kbench.errors import SourceUnreachableError
from kbench.parameters import check_choice, check_integer
from kbench.records import TASK_TYPES
from kbench_openml._client import client, one_process, translate, write_whole
from kbench_openml._datasets import Wanted, find, load_copy, load_data, load_task, read_origins
from kbench_openml._transport import (
    DEFAULT,
    Server,
    configured,
    host,
    is_offline,
    is_reachable,
    not_cached_error,
)


def load(
    data_id: int | None = None,
    dataset: str | None = None,
    version: int | None = None,
    target: str | None = None,
    task_id: int | None = None,
    openml_suite: int | str | None = None,
    drop: Sequence[str] = (),
    task: str | None = None,
    groups: str | None = None,
) -> Dataset:
    """Load a dataset from OpenML, the local cache of its client, or a copy in kbench.

    Parameters
    ----------
    data_id : int, optional
        OpenML's id of the dataset.
    dataset : str, optional
        Its name, instead of the number; needs the network.
    version : int, optional
        Version of the dataset of that name; the oldest active one by default.
    target : str, optional
        The column to predict; OpenML's default target otherwise.
    task_id : int, optional
        OpenML's id of a supervised task, instead of a dataset: its data, target,
        splits (``cv = "official"`` in the protocol), and whether it is
        classification or regression.
    openml_suite : int or str, optional
        OpenML's id or alias of a suite, which stands for all its tasks and
        is not a dataset: see `expand`.
    drop : sequence of str, optional
        Columns to leave out, in addition to row numbers and those OpenML ignores.
    task : {"classification", "regression"}, optional
        By default regression if the target has a non-integer number.
    groups : str, optional
        Column of groups, which is not an input: for ``cv = "official"`` there are five
        splits that keep the rows of a group together, stratified by class.

    Returns
    -------
    Dataset
        In canonical form; missing values are NaN.

    Raises
    ------
    DatasetError
        The data are not available, or differ from OpenML's description: the
        message names the dataset, the problem and a remedy.
    DatasetParameterError
        The parameters do not name one dataset.
    """
    if openml_suite is not None:
        tasks = expand(openml_suite)  # raises where the suite is not available
        raise DatasetError(f"OpenML suite {openml_suite} expands to {len(tasks)} datasets")
    _check_params(data_id, dataset, version, target, task_id, task, groups)
    label = _what(data_id, dataset, version, task_id)
    wanted = Wanted(target, (drop,) if isinstance(drop, str) else tuple(drop), task, groups)
    server = configured()
    # another server may have other data of this number
    has_copy = server.url == DEFAULT and data_id is not None and int(data_id) in read_origins()
    offline = is_offline() or has_copy
    try:
        if not offline and not is_reachable(server):
            if not _may_be_cached(server, data_id, task_id):
                raise SourceUnreachableError(
                    f"{label}: {host(server.url)} cannot be reached. Run again with network "
                    "access; cached datasets need none."
                )
            offline = True
        elif offline and not _may_be_cached(server, data_id, task_id):
            raise not_cached_error(label)
        with one_process(server.cache / "kbench"), client(label, offline) as openml:
            if task_id is not None:
                return load_task(openml, int(task_id), wanted.drop, label, offline)
            if data_id is None:
                data_id = find(openml, str(dataset), version, label)
            return load_data(openml, int(data_id), wanted, label, offline)
    except DatasetError:
        if data_id is None or not has_copy:
            raise
        return load_copy(int(data_id), wanted, label)  # no cache, or a damaged one


def expand(openml_suite: int | str | None = None, **params: object) -> list[Ref]:
    """Turn a suite of OpenML into its tasks.

    Parameters
    ----------
    openml_suite : int or str, optional
        OpenML's id or alias of a suite (a study of tasks), such as 99.
    **params
        Other parameters of the entry; none is allowed together with `openml_suite`.

    Returns
    -------
    list of Ref
        One entry ``openml(task_id=...)`` per task; empty if the entry is not a
        suite. The server's answer is kept: the tasks of a published suite do
        not change.

    Raises
    ------
    DatasetError
        The suite is not available.
    DatasetParameterError
        There are other parameters, or the alias has characters that are not allowed.
    """
    if openml_suite is None:
        return []
    if params:
        raise DatasetParameterError(
            f"openml_suite={openml_suite!r} cannot be combined with {sorted(params)}"
        )
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", str(openml_suite)):
        raise DatasetParameterError(
            f"openml_suite must be a number or an alias, got {openml_suite!r}"
        )
    label = f"OpenML suite {openml_suite}"
    server = configured()
    notes = server.cache / "kbench"
    key = hashlib.sha256(f"{server.url} {openml_suite}".encode()).hexdigest()[:32]
    kept = notes / f"suite-{key}.json"
    try:
        tasks = [int(task) for task in json.loads(kept.read_text("utf-8"))["tasks"]]
    except (OSError, ValueError, KeyError, TypeError):
        if is_offline() or not is_reachable(server):
            raise SourceUnreachableError(
                f"{label}: {host(server.url)} cannot be reached, and its list of tasks is not in "
                "the cache. Run again with network access."
            ) from None
        with one_process(notes), client(label, False) as openml:
            with translate(label):
                suite = openml.study.get_suite(openml_suite)
            tasks = [int(task) for task in suite.tasks or ()]
        if not tasks:
            raise DatasetError(f"{label} has no tasks") from None
        text = json.dumps({"server": server.url, "suite": openml_suite, "tasks": tasks})
        with contextlib.suppress(OSError):
            write_whole(kept, text.encode())
    return [Ref("openml", {"task_id": task}) for task in tasks]


def _check_params(data_id, dataset, version, target, task_id, task, groups) -> None:
    given = {"data_id": data_id, "dataset": dataset, "task_id": task_id}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise DatasetParameterError(
            "openml needs one of data_id, dataset, task_id and openml_suite; "
            + (f"{', '.join(named)} are given" if named else "none is given")
        )
    for name, value in (("data_id", data_id), ("task_id", task_id), ("version", version)):
        if value is not None:
            check_integer(value, name, least=1, error=DatasetParameterError)
    if version is not None and dataset is None:
        raise DatasetParameterError(
            f"version={version!r} goes with dataset; {named[0]} names one version"
        )
    for name, value, defined in (
        ("target", target, "a task defines its target"),
        ("task", task, f"OpenML defines the type of task {task_id}"),
        ("groups", groups, "OpenML defines the splits of a task"),
    ):
        if task_id is not None and value is not None:
            raise DatasetParameterError(f"{name}={value!r}: {defined}")
    if task is not None:
        check_choice(task, "task", TASK_TYPES, error=DatasetParameterError)
    if dataset is not None and not re.fullmatch(r"[A-Za-z0-9_.(),+-]{1,128}", dataset):
        raise DatasetParameterError(
            f"dataset must be 1 to 128 letters, digits and characters of '_.(),+-', got {dataset!r}"
        )


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
