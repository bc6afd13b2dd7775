"""Runs as kbench wants them, in the form in which MLflow accepts them, and as read back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from kbench_mlflow.tracking.text import (
    DIGEST_CHARS,
    KEY_CHARS,
    NAME_CHARS,
    PARAM_CHARS,
    TAG_CHARS,
    allowed,
    cut,
    cut_all,
    inside,
    printable,
    sha,
)

_Key = TypeVar("_Key", int, str)


@dataclass(frozen=True)
class DatasetInput:
    """The data of a run, as MLflow's dataset input shows them.

    `name` is the label of the dataset, `digest` the checksum of the data (the
    first 36 characters are stored), `source` their URL or a description.
    """

    name: str
    digest: str
    source: str
    n_rows: int
    n_features: int


@dataclass(frozen=True)
class CellRun:
    """The MLflow run that a cell should have.

    Parameters
    ----------
    key : str
        The cell's key (the suite line's for cells without data): with
        `machine` and `name`, the identity of the run within its experiment.
    machine : str
        The machine that computed it.
    name : str
        Name for people: ``map + learner on dataset``, by labels. Two cells of
        one key, such as the same data under two labels, are two runs.
    status : str
        ok, error, timeout, memory, crash, unavailable or skipped; FINISHED in
        MLflow for "ok", else FAILED.
    start_ms, end_ms : int
        Milliseconds since 1970, fixed per cell. MLflow never changes the
        start of a run, so that a retried cell keeps the start of its first
        try.
    params : mapping of str to str
        Longer values than 6,000 characters are cut in the middle, visibly.
    tags : mapping of str to str
        Further tags; ``kbench.`` is put before their names. Longer values
        than 8,000 characters are cut so that the end is kept.
    metrics : mapping of str to float
        Means over splits, logged at step `n_splits_done`. Values that are not
        finite are left out: MLflow stores infinity as 1.8e308.
    n_splits_done : int
        Number of splits behind the means.
    by_split : mapping of str to mapping of int to float
        Values of each split, logged as ``{name}_by_split`` with the index of
        the split as step.
    dataset : DatasetInput, optional
    artifacts : mapping of str to str
        Relative path to text.

    Examples
    --------
    >>> run = CellRun("k1", "m1", "rff + ridge on iris", "ok", 0, 1, metrics={"accuracy": 0.5})
    >>> run.digest == CellRun("k1", "m1", "rff + ridge on iris", "ok", 0, 1).digest
    False
    """

    key: str
    machine: str
    name: str
    status: str
    start_ms: int
    end_ms: int
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    n_splits_done: int = 0
    by_split: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    dataset: DatasetInput | None = None
    artifacts: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Hash of all that is written, 32 hex digits (the tag ``kbench.digest``)."""
        return self.content.digest

    @cached_property
    def content(self) -> RunContent:
        """The run in the form in which MLflow accepts it."""
        return RunContent.of(self)


@dataclass(frozen=True)
class StoredRun:
    """A run as it is read back from a store.

    The fields are those of a `CellRun`, but `name` is what MLflow's pages show,
    tags have their full names, such as ``kbench.version``, and the identifiers
    are MLflow's.
    """

    key: str
    machine: str
    name: str
    status: str
    n_splits_done: int
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    run_id: str = ""
    experiment_id: str = ""
    start_ms: int = 0
    end_ms: int = 0


@dataclass(frozen=True)
class Experiment:
    """An experiment of a store.

    `id` is MLflow's number of it; `created`, in milliseconds since 1970,
    distinguishes a store from an earlier one in its place.
    """

    id: str
    name: str
    created: int


@dataclass(frozen=True)
class RunContent:
    """A `CellRun` in the form in which MLflow accepts it.

    Its start is missing: MLflow never changes it, so it is not a reason to write.
    """

    name: str
    status: str
    end_ms: int
    params: dict[str, str]
    tags: dict[str, str]
    metrics: dict[str, float]
    n_splits_done: int
    by_split: dict[str, dict[int, float]]
    split_hashes: dict[str, str]
    dataset: DatasetInput | None
    artifacts: dict[str, str]

    @classmethod
    def of(cls, run: CellRun) -> RunContent:
        """Shorten and rename what MLflow would cut or refuse."""
        by_split_names = {name: f"{name}_by_split" for name in run.by_split}
        names = allowed([*run.metrics, *by_split_names.values()])
        by_split = {
            names[by_split_names[name]]: _finite(values) for name, values in run.by_split.items()
        }
        split_hashes = _split_hashes(by_split)
        tags = {
            **{key if "." in key else f"kbench.{key}": value for key, value in run.tags.items()},
            "kbench.kind": "cell",
            "kbench.cell": run.name,
            "kbench.cell_key": run.key,
            "kbench.machine": run.machine,
            "kbench.status": run.status,
            "kbench.n_splits_done": str(run.n_splits_done),
            "kbench.splits": " ".join(f"{index}:{hash_}" for index, hash_ in split_hashes.items()),
        }
        return cls(
            name=cut(run.name, KEY_CHARS) or "-",
            status="FINISHED" if run.status == "ok" else "FAILED",
            end_ms=run.end_ms,
            params=cut_all(run.params, PARAM_CHARS),
            tags=cut_all(tags, TAG_CHARS),
            metrics={names[name]: value for name, value in _finite(run.metrics).items()},
            n_splits_done=run.n_splits_done,
            by_split=by_split,
            split_hashes=split_hashes,
            dataset=run.dataset and _shortened(run.dataset),
            artifacts={inside(path): printable(text) for path, text in run.artifacts.items()},
        )

    @cached_property
    def digest(self) -> str:
        """Hash of all of it, 32 hex digits."""
        return sha(json.dumps(vars(self), sort_keys=True, default=repr))[:32]


def _finite(values: Mapping[_Key, float]) -> dict[_Key, float]:
    return {key: float(value) for key, value in values.items() if math.isfinite(value)}


def _shortened(data: DatasetInput) -> DatasetInput:
    return replace(
        data,
        name=cut(data.name, NAME_CHARS),
        digest=data.digest[:DIGEST_CHARS],
        source=cut(data.source, PARAM_CHARS),
    )


def _split_hashes(by_split: Mapping[str, Mapping[int, float]]) -> dict[str, str]:
    """Hash the values of each split: a later write skips those that are stored already."""
    rows: dict[int, list[str]] = {}
    for name in sorted(by_split):
        for index, value in by_split[name].items():
            rows.setdefault(index, []).append(f"{name}={value!r}")
    hashes = {str(index): sha("\n".join(rows[index]))[:8] for index in sorted(rows)}
    if len(hashes) > 500:  # too long for a tag: one hash of all
        return {"all": sha(json.dumps(hashes))[:8]}
    return hashes
