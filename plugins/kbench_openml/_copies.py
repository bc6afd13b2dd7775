"""Copies of small datasets of OpenML that are installed with kbench.

`data/origins.toml` has the origin, the licence and the checksums of each.
"""

from __future__ import annotations

import functools
import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from kbench import DatasetError
from kbench.tables.arff import read_arff
from kbench.tables.table import Table

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


def read_copy(data_id: int, what: str) -> Table:
    """Return the rows of a copy; raises DatasetError if its file has been changed."""
    file = _FOLDER / f"{data_id}.arff.gz"
    if hashlib.sha256(file.read_bytes()).hexdigest() != read_origins()[data_id].sha256:
        raise DatasetError(f"{what}: the file {file} was changed. Install kbench again.")
    return read_arff(file, what)
