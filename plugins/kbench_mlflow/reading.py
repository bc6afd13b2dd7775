"""Rows of a suite from MLflow's runs, as they are read back."""

import base64
import contextlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlsplit

from kbench import features
from kbench.errors import StoreError, SuiteError
from kbench.messages import list_some, option, plural, similar
from kbench.records import ACCURACY, TASK_TYPES, Metric
from kbench.records.canonical import Json, dumps, encodable
from kbench_mlflow.known_stores import list_stored_suites
from kbench_mlflow.tracking.address import Address, check_store, default_uri, sqlite_uri
from kbench_mlflow.tracking.run import StoredRun
from kbench_mlflow.tracking.store import Store
from kbench_mlflow.tracking.views import WITHOUT_RUN

Value = TypeVar("Value")

_ROWS = f"mlflow.{WITHOUT_RUN}"
"""Tags with the rows of these cells, in pieces: MLflow's pages hide such names."""

_PIECE_CHARS, _MAX_BYTES = 5000, 2**26

# statuses of cells without results that have no run
LEFT_OUT = ("unavailable", "skipped")

_TYPES = {
    each.name: "str" if each.name == "task" else getattr(each.type, "__name__", "")
    for each in fields(features.Row)
}


def read_stored_results(query: features.Query) -> features.StoredResults:
    """Read the runs of a suite from the store that a query names.

    StoreError or SuiteError is raised if the suite has none.
    """
    uri = uri_of(query.given.get("store"))
    address = Address.parse(uri)
    path = address.path
    if path is not None and not path.exists():
        raise StoreError(f"there are no runs yet: {path} does not exist; run `kbench suite` first")
    name = features.get_experiment(query.suite)
    store = Store(uri)
    runs = store.read(name, query.superseded)
    if not (rows := [*map(row_of_run, runs), *rows_without_run(store.tags(name))]):
        hint = _hint(name, list_stored_suites(uri))
        raise SuiteError(f"the store {address.name} has no runs of {name!r}{hint}")
    owners = {row.machine for row in rows}
    if query.machine != "all":
        wanted = query.machine or features.machine_id()
        if wanted not in owners and query.machine:
            raise SuiteError(
                f"no runs of machine {query.machine!r}; available: {', '.join(sorted(owners))}"
            )
        if wanted not in owners:
            wanted = (runs or rows)[-1].machine
        if len(owners) > 1 or wanted not in (query.machine, features.machine_id()):
            query.notice(f"runs of machine {wanted}; {option('machine', 'all')} shows all")
        runs = [run for run in runs if run.machine == wanted]
        rows = [row for row in rows if row.machine == wanted]
    return features.StoredResults(
        features.sort_by_dataset(rows),
        name,
        metric_of(runs),
        budget_of(runs),
        address.name,
        _links(address, runs),
    )


def rows_without_run(tags: Mapping[str, str], machine: str = "") -> list[features.Row]:
    """Return the rows of cells without a run, of one or all machines, from an experiment's tags."""
    rows = []
    ours = (name for name in tags if name.startswith(f"{_ROWS}{machine}"))
    for _, pieces in groupby(sorted(ours), lambda name: name.rpartition(".")[0]):
        # empty, or a user edited it
        with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError, zlib.error):
            packed = base64.b64decode("".join(tags[name] for name in pieces))
            rows += [
                features.Row(**{k: v for k, v in each.items() if type(v).__name__ == _TYPES.get(k)})
                for each in json.loads(zlib.decompressobj().decompress(packed, _MAX_BYTES))
                if each["status"] in LEFT_OUT and each["task"] in TASK_TYPES
            ]
    return rows


def tags_without_run(
    machine: str, rows: Collection[features.Row], present: Mapping[str, str]
) -> dict[str, str]:
    """Return the tags about a machine's cells without a run that an experiment lacks.

    `present` are its tags.
    """
    prefix, number = f"{_ROWS}{machine}.", plural(len(rows), "cell")
    packed = base64.b64encode(zlib.compress(dumps(encodable([*map(vars, rows)])).encode())).decode()
    pieces = re.findall(f".{{1,{_PIECE_CHARS}}}", packed) if rows else ()
    counts = ", ".join(f"{n} {why}" for why, n in Counter(row.status for row in rows).items())
    wanted = {
        **dict.fromkeys((name for name in present if name.startswith(prefix)), ""),
        **{f"{prefix}{i:04}": piece for i, piece in enumerate(pieces)},
        WITHOUT_RUN + machine: f"{number} without a run: {counts}" if rows else "",
    }
    return {name: value for name, value in wanted.items() if present.get(name, "") != value}


def uri_of(store: str | None) -> str:
    """Return the URI of a store that a user names, or of the default one."""
    if store and "://" not in store and store.endswith(".db"):
        return sqlite_uri(Path(store).absolute())
    return store or default_uri()


def check_uri(store: str | None, folder: Path | None = None) -> str:
    """Return the URI of the store that a run writes to; StoreError if it is invalid."""
    uri = store or default_uri(folder)
    check_store(uri)
    return uri


def _links(address: Address, runs: Sequence[StoredRun]) -> dict[features.Labels, str]:
    """Return the addresses of the runs in MLflow's pages, where the store is a server."""
    server = address.server
    if urlsplit(server).scheme.lower() not in ("http", "https"):
        return {}
    return {
        row_of_run(run).labels: f"{server}/#/experiments/{quote(run.experiment_id, safe='')}"
        f"/runs/{quote(run.run_id, safe='')}"
        for run in runs
        if run.run_id and run.experiment_id
    }


def _hint(name: str, stored: Sequence[str]) -> str:
    """Say which stored suite may be meant, or how runs of an installed one are made."""
    installed = features.runnable(features.load_registry())
    command = f"; `kbench suite {name}` creates them" if name in installed else ""
    hint = command or similar(name, stored) or similar(name, installed)
    if stored and "did you mean" not in hint:
        hint += f"; it has runs of {list_some(stored)}"
    return hint


def row_of_run(run: StoredRun) -> features.Row:
    """Return the row of an MLflow run, with all that its tags and metrics say."""
    tags = {name.removeprefix("kbench."): value for name, value in run.tags.items()}
    return features.Row(
        dataset=run.params.get("dataset", ""),
        feature_map=run.params.get("feature_map", ""),
        learner=run.params.get("learner", ""),
        status=run.status,
        n_splits_done=run.n_splits_done,
        n_splits=_parse_count(tags.get("n_splits", ""), run.n_splits_done),
        metrics=run.metrics,
        task="regression" if tags.get("task") == "regression" else "classification",
        dataset_family=tags.get("dataset_family", ""),
        machine=run.machine,
        key=run.key.partition("-")[0],
        checksum=tags.get("checksum", ""),
        protocol={
            name.removeprefix("protocol."): value
            for name, value in run.params.items()
            if name.startswith("protocol.")
        },
        values_by_split=_by(tags, "_by_split", dict),
        values_by_seed=_by(tags, "_by_seed", _numbers),
        split_hash=_parse_value(tags.get("split_hash", ""), dict, {}),
        search=_parse_value(tags.get("search_curves", ""), dict, {}),
        budget_curve=_parse_value(tags.get("budget_curve", ""), _points, []),
        map_details=_parse_value(tags.get("map_details", ""), dict, {}),
        **{name: tags.get(name, "") for name in features.TEXTS},
        search_space=tuple(name for name in tags.get("search_space", "").split(", ") if name),
        start_ms=run.start_ms,
        end_ms=run.end_ms,
    )


def metric_of(runs: Sequence[StoredRun]) -> Metric:
    """Return the metric that most of a suite's MLflow runs name; accuracy by default."""
    named = Counter(
        (run.tags["kbench.metric"], run.tags.get("kbench.better"))
        for run in runs
        if run.tags.get("kbench.metric")
    )
    if not named:
        return ACCURACY
    name, better = named.most_common(1)[0][0]
    return features.complete_metric(Metric(name, "lower" if better == "lower" else "higher"))


def budget_of(runs: Sequence[StoredRun]) -> str:
    """Return the budget that the suite of most MLflow runs claims; empty for none."""
    named = Counter(run.tags.get("kbench.equal_budget", "") for run in runs)
    return named.most_common(1)[0][0] if named else ""


def _parse_value(text: str, read: Callable[[Json], Value], default: Value) -> Value:
    """Parse the JSON of a tag; the default where it was too long for MLflow, or edited."""
    try:
        return read(json.loads(text)) if text else default
    except (ValueError, TypeError, AttributeError, RecursionError):
        return default


def _by(
    tags: Mapping[str, str], suffix: str, read: Callable[[Json], dict[str, Value]]
) -> dict[str, dict[str, Value]]:
    """Parse the tags that end so, by the beginnings of their names."""
    return {
        name.removesuffix(suffix): _parse_value(text, read, {})
        for name, text in tags.items()
        if name.endswith(suffix)
    }


def _numbers(value: Mapping[str, Sequence[float]]) -> dict[str, Sequence[float]]:
    return {name: [float(each) for each in values] for name, values in value.items()}


def _points(value: Sequence[tuple[float, float]]) -> list[list[float]]:
    return [[float(x), float(y)] for x, y in value]


def _parse_count(text: str, default: int) -> int:
    """Parse a count; the default where somebody has edited the tag."""
    return int(text) if text.isdecimal() and len(text) < 10 else default
