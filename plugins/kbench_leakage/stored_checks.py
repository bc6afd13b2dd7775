"""The check of datasets in the data cache on the first split of a protocol, kept by its code."""

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from kbench.features import DataCache, KbenchError, read_file, state_folder, write_file
from kbench.records import DatasetFacts, Protocol
from kbench.records.canonical import dumps, to_json
from kbench_leakage.findings import Leakage
from kbench_leakage.related import Sketch, families

Kept = TypeVar("Kept", Leakage, Sketch)

FIELDS = ("cv", "n_folds", "train_size", "test_size", "unlabeled_size", "seed")
"""Fields of a protocol that decide the rows of a split."""

MAX_BYTES = 1 << 20
"""Size of a file that is read."""


def get_key(checksum: str, protocol: Mapping[str, str], names: Sequence[str] = ()) -> str:
    """Return the key of the check of a dataset; the protocol has its fields as text.

    The checksum of data is that of their numbers: another file can name its columns otherwise.
    """
    parts = [_code(), checksum, *(protocol.get(name, "") for name in FIELDS), *names]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@cache
def _code() -> str:
    """Return a hash of the code of this package: other code metrics again."""
    sha = hashlib.sha256()
    for each in sorted(files(__package__).iterdir(), key=lambda each: each.name):
        if each.name.endswith(".py"):
            sha.update(each.read_bytes())
    return sha.hexdigest()


def recall(kind: type[Kept], key: str) -> Kept | None:
    """Return what was kept, or None; a damaged file is as none."""
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(kind).validate_json(read_file(_path(key), MAX_BYTES))
    except (OSError, ValueError):
        return None


def keep(key: str, result: Leakage | Sketch) -> None:
    """Store a check; if the disk is full, the next command repeats the check."""
    with contextlib.suppress(OSError):
        write_file(_path(key), json.dumps(asdict(result)).encode(), flush=False)


def _path(key: str) -> Path:
    return state_folder() / "leakage" / f"{key}.json"


def find_related(
    groups: Mapping[str, str], checksums: Mapping[str, str]
) -> list[tuple[tuple[str, ...], str]]:
    """Return families of datasets by the sketches of their data; see `families`."""
    sketches = {name: recall(Sketch, get_key(each, {})) for name, each in checksums.items()}
    return families(groups, {name: each for name, each in sketches.items() if each is not None})


def protocol_fields(protocol: Protocol) -> Mapping[str, str]:
    """Return the fields of a protocol as the rows of results have them."""
    return {
        name: value if isinstance(value, str) else dumps(value)
        for name, value in to_json(protocol).items()
    }


def read_leakage(facts: DatasetFacts, protocol: Protocol) -> Leakage:
    """Return what was measured on a dataset in the cache, now or before."""
    # reports know the checksum only, and show the names that were seen last
    last = get_key(facts.checksum, protocol_fields(protocol))
    key = get_key(facts.checksum, protocol_fields(protocol), ["", *facts.feature_names])
    leakage = recall(Leakage, key)
    if leakage is None:
        try:
            leakage = _check_dataset(facts, protocol)
        except KbenchError as error:  # the cells say why they cannot be computed
            return Leakage(notes=(f"not checked: {error}",))
        keep(key, leakage)
    if recall(Leakage, last) != leakage:
        keep(last, leakage)
    return leakage


def _check_dataset(facts: DatasetFacts, protocol: Protocol) -> Leakage:
    if facts.pairwise:
        return Leakage(notes=("not checked: a Gram matrix has no columns",))
    import numpy as np

    from kbench.features import assign, derive_seed
    from kbench_leakage.check import run_split
    from kbench_leakage.related import sketch

    data = DataCache().load_for(facts)
    made = sketch(data.X, np.asarray(data.y), tuple(facts.feature_names))
    keep(get_key(facts.checksum, {}), made)
    # all training rows, with missing values as they are; nobody asks here which rows are equal
    whole = replace(protocol, max_train_rows=None, unlabeled_size=0, missing="impute")
    visible = assign(data, whole, 0, np.zeros(len(data.y), dtype=np.intp)).visible
    return run_split(
        data.X,
        np.asarray(data.y),
        visible.train,
        visible.test,
        data.task == "regression",
        facts.feature_names,
        facts.feature_kinds,
        derive_seed(protocol.seed, "leakage", facts.checksum),
    )
