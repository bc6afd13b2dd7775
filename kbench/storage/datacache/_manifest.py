"""Origins of datasets: one small file for each source, parameters and code."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kbench.parameters import named_files
from kbench.records import Ref
from kbench.storage.datacache._entry import FORMAT

FILE_PARAMETERS = ("path", "splits")
"""Parameters that are names of files."""


def manifest_file(root: Path, source: str, params: Mapping[str, Any], code: str) -> Path:
    """Return the file that names the dataset of an origin.

    A file named by one of the parameters `FILE_PARAMETERS` counts with its size, the times of its
    last modification and change, and its inode: a tool may set the time of modification
    back, which changes the other. So does each file of a folder or a pattern.
    """
    key = {"source": source, "params": plain(params), "code": code, "format": FORMAT}
    key["files"] = {
        name: _file_state(Path(params[name]))
        for name in FILE_PARAMETERS
        if isinstance(params.get(name), str | os.PathLike)
    }
    text = json.dumps(key, sort_keys=True, allow_nan=True)
    return root / "manifest" / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def plain(value: Any) -> Any:
    """Parameters as JSON values, equal for equal parameters."""
    if isinstance(value, Ref):
        return {"name": value.name, "params": plain(value.params)}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list | np.ndarray):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _file_state(path: Path) -> list[Any]:
    """Return the state of a file, or of all files of a folder or a pattern."""
    path = path.expanduser().absolute()
    files = named_files(path)
    state: list[Any] = [str(path)]
    for file in files:
        name = [] if file == path else [str(file)]
        with contextlib.suppress(OSError):
            stat = file.stat()
            state += [*name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
    return state
