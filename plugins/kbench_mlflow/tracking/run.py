"""Runs as kbench wants them, in the form in which MLflow accepts them, and as the store has them.

Names and values of any kind are put into MLflow's alphabet and lengths: it cuts longer values at
their end, silently, and rejects other names.
"""

import hashlib
import json
import math
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeVar

PARAM_CHARS, TAG_CHARS, NAME_CHARS, KEY_CHARS, DIGEST_CHARS = 6000, 8000, 500, 250, 36


def sha(text: str) -> str:
    """Return the SHA-256 of `text` in hex digits."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def printable(value: object) -> str:
    """Return text that every database and JSON can hold."""
    return re.sub("[\x00\ud800-\udfff]", "\ufffd", str(value))


def cut(value: object, limit: int) -> str:
    """Return text of at most `limit` characters; the end matters more than the beginning."""
    text = printable(value)
    if len(text) <= limit:
        return text
    mark = f" [... {len(text) - limit} or more characters cut ...] "
    head = (limit - len(mark)) // 8
    return text[:head] + mark + text[len(text) - (limit - len(mark) - head) :]


def cut_all(values: Mapping[str, str], limit: int) -> dict[str, str]:
    """Return `values` under allowed names, each of at most `limit` characters."""
    names = escape_name(values)
    return {names[name]: cut(value, limit) for name, value in values.items()}


def escape_name(names: Collection[str]) -> dict[str, str]:
    """Map names into MLflow's alphabet, distinct ones staying distinct.

    >>> escape_name(["a b", "ä", "../x", "..0"])
    {'a b': 'a b', 'ä': '_', '../x': '_/x', '..0': '_0'}
    >>> len(set(escape_name(["ä", "ö", "_"]).values()))
    3
    """
    clean = {}
    for name in names:
        parts = re.sub(r"[^A-Za-z0-9_.\-/ :]", "_", name).split("/")
        # MLflow allows no path that is shorter when normalised, and none that begins with ".."
        kept = "/".join(re.sub(r"^\.$|^\.\.", "_", part) for part in parts if part)
        clean[name] = (kept if len(kept) <= KEY_CHARS else kept[:KEY_CHARS].rstrip("/.")) or "_"
    counts = Counter(clean.values())
    return {
        old: new if counts[new] == 1 or new == old else f"{new[: KEY_CHARS - 7]}_{sha(old)[:6]}"
        for old, new in clean.items()
    }


def inside(path: str) -> str:
    """Return an artifact's path, kept inside its run."""
    parts = [part for part in posixpath.normpath(printable(path)).split("/") if part]
    return "/".join(part for part in parts if part not in (".", "..")) or "artifact"


FORMAT = "2"
"""Version of the tags, params and metrics of a run, the only one that is read."""

_Key = TypeVar("_Key", int, str)

Point = tuple[str, float, int]
"""Name, value and step of a metric."""


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

    @property
    def columns(self) -> dict[str, str]:
        """Source and profile as MLflow stores them."""
        online = self.source.startswith(("http://", "https://"))
        return {
            "source_type": "http" if online else "local",
            "source": json.dumps({"url" if online else "uri": self.source}),
            "profile": json.dumps({"num_rows": self.n_rows, "num_features": self.n_features}),
        }


@dataclass(frozen=True)
class CellRun:
    """The MLflow run that a cell should have.

    Examples
    --------
    >>> run = CellRun("k1", "m1", "rff + ridge on iris", "ok", 0, 1, metrics={"accuracy": 0.5})
    >>> run.digest == CellRun("k1", "m1", "rff + ridge on iris", "ok", 0, 1).digest
    False
    """

    key: str
    """The cell's key (the suite line's for cells without data): with `machine` and `name`, the
    identity of the run within its experiment.
    """
    machine: str
    """The machine that computed it."""
    name: str
    """For people: ``map + learner on dataset``, by labels. Two cells of one key, such as the same
    data under two labels, are two runs.
    """
    status: str
    """One of `kbench.records.Status`; FINISHED in MLflow for "ok", else FAILED."""
    start_ms: int
    end_ms: int
    """Milliseconds since 1970, fixed per cell. MLflow never changes the start of a run, so that a
    retried cell keeps the start of its first try.
    """
    params: Mapping[str, str] = field(default_factory=dict)
    """Longer values than 6,000 characters are cut in the middle, visibly."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """``kbench.`` is put before their names. Longer values than 8,000 characters are cut so that
    the end is kept.
    """
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Means over splits, logged at step `n_splits_done`. Values that are not finite are left out:
    MLflow stores infinity as 1.8e308.
    """
    n_splits_done: int = 0
    by_split: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """Values of each split, logged as ``{name}_by_split`` with the index of the split as step."""
    dataset: DatasetInput | None = None
    artifacts: Mapping[str, str] = field(default_factory=dict)
    """Contents of text files by relative path."""

    @cached_property
    def content(self) -> "CellRun":
        """The run in the form in which MLflow accepts it: shortened and renamed.

        Its tags have their full names, as have its values by split.
        """
        names = escape_name([*self.metrics, *(f"{name}_by_split" for name in self.by_split)])
        by_split = {
            names[f"{name}_by_split"]: _finite(values) for name, values in self.by_split.items()
        }
        hashes = _split_hashes(by_split)
        tags = {
            **{key if "." in key else f"kbench.{key}": value for key, value in self.tags.items()},
            "kbench.kind": "cell",
            "kbench.format": FORMAT,
            "kbench.cell": self.name,
            "kbench.cell_key": self.key,
            "kbench.machine": self.machine,
            "kbench.status": self.status,
            "kbench.n_splits_done": str(self.n_splits_done),
            "kbench.splits": " ".join(f"{index}:{hash_}" for index, hash_ in hashes.items()),
        }
        return replace(
            self,
            name=cut(self.name, KEY_CHARS) or "-",
            status="FINISHED" if self.status == "ok" else "FAILED",
            params=cut_all(self.params, PARAM_CHARS),
            tags=cut_all(tags, TAG_CHARS),
            metrics={names[name]: value for name, value in _finite(self.metrics).items()},
            by_split=by_split,
            dataset=self.dataset and _shorten(self.dataset),
            artifacts={inside(path): printable(text) for path, text in self.artifacts.items()},
        )

    @property
    def points(self) -> list[Point]:
        """Its numbers; those of one metric are in the order of their steps."""
        points = [(name, value, self.n_splits_done) for name, value in self.metrics.items()]
        for name, values in self.by_split.items():
            points += [(name, value, index) for index, value in sorted(values.items())]
        return points

    @cached_property
    def digest(self) -> str:
        """Hash of all content, 32 hex digits (the tag ``kbench.digest``).

        MLflow never changes the start of a run, so that it is not a reason to write.
        """
        content = {name: getattr(self.content, name) for name in _CONTENT}
        content["split_hashes"] = _split_hashes(self.content.by_split)
        return sha(json.dumps(content, sort_keys=True, default=repr))[:32]


_CONTENT = {each.name for each in fields(CellRun)} - {"key", "machine", "start_ms"}


@dataclass(frozen=True)
class Experiment:
    """An experiment of a store.

    `id` is MLflow's number of it; `created`, in milliseconds since 1970,
    distinguishes a store from an earlier one in its place.
    """

    id: str
    name: str
    created: int


def _finite(values: Mapping[_Key, float]) -> dict[_Key, float]:
    return {key: float(value) for key, value in values.items() if math.isfinite(value)}


def _shorten(data: DatasetInput) -> DatasetInput:
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
    # more would be too long for a tag: one hash of all
    return {"all": sha(json.dumps(hashes))[:8]} if len(hashes) > 500 else hashes


BOOKKEEPING = {f"kbench.{name}" for name in ("host", "pid", "pid_start", "writing", "digest")}
"""Tags that are not content: the writing process, and its progress."""

CHOSEN = "chosen."
"""Metrics of what searches chose begin with it: for MLflow's pages, not for results."""


Client = Any
"""MLflow's client, without types: MLflow is imported only when a store is opened."""

Entity = Any
"""A record of MLflow's client."""

CONTEXT = "mlflow.data.context", "evaluation"
"""The tag of the data of a run."""

Identity = tuple[str, str, str]
"""Key, machine and name of a cell: one run each within an experiment."""

_RUNS_A_PAGE = 500


def identity(run: CellRun) -> Identity:
    """Return the identity of a run that is to be written."""
    return run.key, run.machine, run.content.tags["kbench.cell"]


@dataclass
class StoredRun:
    """A run as the store has it, without the values of each split."""

    run_id: str
    experiment_id: str
    state: str
    """MLflow's status: RUNNING until the run is complete."""
    start_ms: int
    end_ms: int
    params: dict[str, str]
    tags: dict[str, str]
    """With their full names, such as ``kbench.version``."""
    latest: dict[str, float]
    """The last value of each metric, of values by split too."""
    dataset: tuple[str, str] | None = None

    @classmethod
    def of(cls, run: Entity) -> "StoredRun":
        """Convert MLflow's entity."""
        datasets = [given.dataset for given in run.inputs.dataset_inputs] if run.inputs else []
        return cls(
            run_id=run.info.run_id,
            experiment_id=run.info.experiment_id,
            state=run.info.status,
            start_ms=run.info.start_time or 0,
            end_ms=run.info.end_time or 0,
            params=dict(run.data.params),
            tags=dict(run.data.tags),
            latest=dict(run.data.metrics),
            dataset=(datasets[0].name, datasets[0].digest) if datasets else None,
        )

    @property
    def identity(self) -> Identity:
        """Key, machine and name as written, though a user may have renamed the run."""
        return self.key, self.machine, self.tags.get("kbench.cell") or self.name

    @property
    def key(self) -> str:
        """The cell's key, as in `CellRun`."""
        return self.tags["kbench.cell_key"]

    @property
    def machine(self) -> str:
        """The machine that computed it."""
        return self.tags.get("kbench.machine", "")

    @property
    def name(self) -> str:
        """What MLflow's pages show."""
        return self.tags.get("mlflow.runName", "")

    @property
    def status(self) -> str:
        """The status of the cell, as in `CellRun`."""
        return self.tags.get("kbench.status", "")

    @property
    def digest(self) -> str:
        """The digest of the content; empty from the first write until the last."""
        return self.tags.get("kbench.digest", "")

    @property
    def complete(self) -> bool:
        """Whether all its content is stored."""
        return bool(self.digest) and self.state in ("FINISHED", "FAILED")

    @property
    def superseded(self) -> bool:
        """Whether its cell is planned under another key now."""
        return "kbench.superseded" in self.tags

    @property
    def n_splits_done(self) -> int:
        """Number of splits behind the means; 0 if a user has edited the tag."""
        text = self.tags.get("kbench.n_splits_done", "")
        return int(text) if text.isdecimal() else 0

    @property
    def split_hashes(self) -> dict[str, str]:
        """The hash of the values of each split, read back from their tag."""
        pairs = (pair.partition(":") for pair in self.tags.get("kbench.splits", "").split())
        return {index: sha for index, _, sha in pairs}

    @property
    def metrics(self) -> dict[str, float]:
        """The means over splits that are results."""
        return {name: value for name, value in self.means.items() if not name.startswith(CHOSEN)}

    @property
    def means(self) -> dict[str, float]:
        """All metrics that are means over splits."""
        return {
            name: value for name, value in self.latest.items() if not name.endswith("_by_split")
        }

    @property
    def preference(self) -> tuple[bool, bool, int, int, str]:
        """Sort key: of several runs of one identity the greatest is kept."""
        return self.complete, not self.superseded, self.end_ms, self.start_ms, self.run_id

    def is_written_as(self, run: CellRun) -> bool:
        """Return whether nothing has to be written."""
        is_complete = self.state == run.content.status and not self.superseded
        return is_complete and self.digest == run.digest

    def can_become(self, run: CellRun) -> bool:
        """Return whether additions make it a run: MLflow changes no param and no point."""
        if not self.digest:
            # begun and not finished: all steps for the same content can be repeated
            return self.tags.get("kbench.writing") == run.digest
        content, before, after = run.content, self.n_splits_done, run.n_splits_done
        means = {name: value for name, value in self.latest.items() if name not in content.by_split}
        data = content.dataset
        return (
            self.params.items() <= content.params.items()
            and self.split_hashes.items() <= _split_hashes(content.by_split).items()
            and self.latest.keys() <= content.metrics.keys() | content.by_split.keys()
            and (before < after or means.items() <= content.metrics.items())
            and (before <= after or not means)
            and self.dataset in (None, data and (data.name, data.digest))
        )


def find_runs(client: Client, experiment_id: str, where: str = "") -> Iterator[Entity]:
    """Yield MLflow's entities of an experiment's runs that are not deleted, page by page."""
    token = None
    while True:
        page = client.search_runs(
            [experiment_id], filter_string=where, max_results=_RUNS_A_PAGE, page_token=token
        )
        yield from page
        if not (token := page.token):
            return
