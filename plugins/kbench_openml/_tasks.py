"""Supervised tasks of OpenML: a dataset, its target and the splits of its rows."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np

from kbench import Dataset, DatasetError, Split
from kbench.tables.arff import read_arff
from kbench_openml._client import ask, kept, read_xml, write_whole
from kbench_openml._datasets import load_data

TASKS = {"1": "classification", "2": "regression"}
"""OpenML's numbers of the types of tasks that kbench runs."""


def load_task(openml, task_id, ignore, what, offline) -> Dataset:
    """Return the checked dataset of a task, with the task's target and splits."""
    # the client's own functions for tasks unpickle files from its cache
    folder = Path(openml.config.get_cache_directory()) / "tasks" / str(task_id)
    description = kept(folder / "task.xml", f"task/{task_id}", what, offline)
    task, data_id, target, address = _task_facts(description, task_id, what)
    dataset = load_data(openml, data_id, target, ignore, task, what, offline)
    file = folder / "datasplits.arff"
    for trial in (1, 2):
        if not file.exists():
            if offline:
                raise DatasetError(f"{what}: its splits are not in the cache. Run again online.")
            write_whole(file, ask(address))
        try:
            splits = _splits(file, dataset, what)
            break
        except DatasetError:
            file.unlink(missing_ok=True)
            if offline or trial == 2:
                raise
    source = f"OpenML task {task_id}, {dataset.source}"
    return replace(dataset, source=source, splits=splits, checksum="")


def _task_facts(description: bytes, task_id: int, what: str) -> tuple[str, int, str, str]:
    """Return what a task is, the number of its data, its target, and where its splits are."""
    try:
        root = read_xml(description)
    except ET.ParseError as error:
        raise DatasetError(f"{what}: its description is damaged: {error}") from None
    facts: dict[str, str] = {}
    for element in root.iter():
        # of several cost matrices, data sets and the like, the first one counts
        facts.setdefault(element.tag.partition("}")[2], (element.text or "").strip())
    task = TASKS.get(facts.get("task_type_id", ""))
    if task is None:
        raise DatasetError(
            f"{what}: it is of the type {facts.get('task_type', 'unknown')!r}; kbench runs "
            "supervised classification and regression"
        )
    if facts.get("task_id") != str(task_id):
        raise DatasetError(f"{what}: the server described task {facts.get('task_id')} instead")
    try:
        data_id = int(facts["data_set_id"])
        return task, data_id, facts["target_feature"], facts["data_splits_url"]
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
