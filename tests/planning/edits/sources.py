"""What the table of edits is made of: kinds, and files that are not plain text."""

from __future__ import annotations

import io
import json
import marshal
import pickle
import sqlite3
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import MAGIC_NUMBER
from typing import Literal

import numpy as np

Outcome = Literal["again", "kept", "either"]
AGAIN: Outcome = "again"
KEPT: Outcome = "kept"
EITHER: Outcome = "either"

ENTRY = """
from kbench import FeatureMap, hookimpl


@hookimpl
def kbench_feature_maps():
    return [FeatureMap("KIND", make="PKG._map:Map")]
"""

MAP = '''
import zlib

import numpy as np

{head}


class Map{bases}:
    """Sines of the inputs, at a frequency that depends on what the plugin has found."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def get_params(self, deep=True):
        return {{"scale": self.scale}}

    def set_params(self, **params):
        vars(self).update(params)
        return self

    def fit(self, X, y=None):
        {fit}
        return self

    def transform(self, X):
        {transform}
        return np.sin(X * (1 + zlib.crc32(repr({value}).encode()) % 97) / 7)
'''


@dataclass(frozen=True)
class Link:
    """A symbolic link to a path, which is relative to the link's folder."""

    target: str


Content = str | bytes | Link


@dataclass(frozen=True)
class Kind:
    """One kind of edit of a third-party plugin, which has the plugin for itself.

    In all texts and names of files, ``PKG`` stands for the package of the plugin, ``KIND`` for
    the name of its map, ``LEVEL`` for an environment variable of its own and ``PROJECT`` for
    the folder of the project. Names of files are relative to the project, or begin with
    ``SITE/`` for the folder of installed distributions or ``HERE/`` for the working folder.

    Attributes
    ----------
    name : str
    expected : {"again", "kept", "either"}
        What becomes of the plugin's results.
    head, fit, transform, bases, value : str
        Code of the map's module: before the class, in its methods, its bases, and the expression
        that decides the numbers.
    entry : str
        The module of the entry point.
    files, then : mapping of str to content
        Files before the edit beside those two, and those that the edit writes; None removes one.
    variables, variables_then : mapping of str to str
        Environment variables before and after the edit.
    others : sequence of str
        Names of further maps of the plugin that the suite has.
    quietly : bool
        Whether the edit sets times of modification back.
    installed : {"editable", "wheel", "path"}
        How the plugin is installed; ``"path"`` is a folder on ``PYTHONPATH``.
    quick : bool
        Whether the kind belongs to the few that each run of the tests tries.
    """

    name: str
    expected: Outcome
    head: str = ""
    value: str = "VALUE"
    fit: str = "pass"
    transform: str = "pass"
    bases: str = ""
    entry: str = ENTRY
    files: Mapping[str, Content] = field(default_factory=dict)
    then: Mapping[str, Content | None] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    variables_then: Mapping[str, str] = field(default_factory=dict)
    quietly: bool = False
    installed: Literal["editable", "wheel", "path"] = "editable"
    others: Sequence[str] = ()
    quick: bool = False

    @property
    def package(self) -> str:
        return f"edit_{self.name.replace('-', '_')}"

    @property
    def map(self) -> str:
        return f"edit-{self.name}"

    @property
    def variable(self) -> str:
        return f"LEVEL_{self.name.replace('-', '_').upper()}"

    @property
    def sources(self) -> dict[str, Content]:
        """All files before the edit."""
        code = self.map_module(self.head, self.value)
        return {"PKG/__init__.py": self.entry, "PKG/_map.py": code, **self.files}

    def map_module(self, head: str, value: str) -> str:
        """Return the module of the map."""

        def body(statements: str) -> str:
            return statements.replace("\n", "\n" + 8 * " ")

        return MAP.format(
            head=head,
            value=value,
            bases=self.bases,
            fit=body(self.fit),
            transform=body(self.transform),
        )


def zipped(files: Mapping[str, str]) -> bytes:
    """Return an archive of modules that do not depend on names of the plugin."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        for name, text in files.items():
            opened.writestr(zipfile.ZipInfo(name), text)
    return archive.getvalue()


def array(value: float) -> bytes:
    """Return an ``.npy`` file with one number."""
    file = io.BytesIO()
    np.save(file, np.array([value]))
    return file.getvalue()


def pickled(value: object) -> bytes:
    return pickle.dumps(value)


def database(value: int) -> bytes:
    """Return a SQLite database with one number, in ``values_.value``."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE values_ (value)")
    connection.execute("INSERT INTO values_ VALUES (?)", (value,))
    connection.commit()
    return connection.serialize()


def parquet(value: float) -> bytes:
    """Return a parquet file with one number, in its column ``value``."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    file = io.BytesIO()
    write_table(pa.table({"value": [value]}), file)
    return file.getvalue()


def unchecked(source: str) -> bytes:
    """Return bytecode that Python executes without a look at the source beside it."""
    code = compile(source, "<unchecked>", "exec")
    return MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)


def distribution(
    name: str,
    files: Mapping[str, Content],
    *,
    version: str = "1.0",
    entry_points: str = "",
    editable: str = "",
) -> dict[str, Content]:
    """Return the files of a distribution and its metadata, as an installer writes them.

    An editable one has its files in a folder of the project; those of others are installed. The
    digests of RECORD are left to who writes the files.
    """
    info = f"{name}-{version}.dist-info"
    there = f"PROJECT/{editable}".rstrip("/.")
    owned: dict[str, Content] = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/INSTALLER": "pip\n",
        f"{info}/entry_points.txt": entry_points,
    }
    if editable:
        origin = {"url": f"file://{there}", "dir_info": {"editable": True}}
        owned |= {
            f"{info}/direct_url.json": json.dumps(origin),
            f"__editable__.{name}-{version}.pth": f"{there}\n",
        }
    else:
        owned |= files
    owned[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*owned, f"{info}/RECORD"))
    beside = {f"{editable}/{path}".removeprefix("./"): content for path, content in files.items()}
    return {f"SITE/{path}": content for path, content in owned.items()} | (
        beside if editable else {}
    )
