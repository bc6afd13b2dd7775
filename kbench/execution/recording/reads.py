"""What modules of a process read: files, folders, distributions and environment variables."""

import builtins
import hashlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from kbench.execution.recording.imports import HERE, STANDARD, TASK, Imports, hash_file
from kbench.planning.current_state import folder_digest
from kbench.registry.dependencies import is_installed
from kbench.storage.files import read_state

SMALL = 2**20
"""Bytes up to which a file is hashed when it is read; of a larger one the state is noted."""

_UNCOUNTED = (
    *("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/dev/random", "/etc/localtime"),
    *("/usr/share/zoneinfo/", "/usr/share/locale/", "/usr/lib/locale/"),
)
_BYTECODE = (".pyc", ".nbi", ".nbc")
_SEARCHING = ("importlib.metadata", "importlib._bootstrap_external")


class Recording(Imports):
    """The modules of a process, who imported them, and what they read."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = frozenset[str]()
        self._written: set[str] = set()

    def wrap(self) -> None:
        """Wrap the functions that import, and those that read files and variables."""
        super().wrap()
        self._wrap_files()
        self._wrap_variables()

    def _wrap_files(self) -> None:
        opened, code, descriptor = io.open, io.open_code, os.open
        listed, scanned, made, stated = os.listdir, os.scandir, os.mkdir, os.stat

        def open_file(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if self._skip(file):
                return opened(file, mode, *args, **kwargs)
            if "r+" in mode.replace("b", "") or not {"w", "x", "a", "+"} & {*mode}:
                self.read_file(file)  # `r+` is how numpy maps files by default
            else:
                self._wrote(file)
            return opened(file, mode, *args, **kwargs)

        def open_code(path: Any) -> Any:
            self.read_file(path)
            return code(path)

        def open_descriptor(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            if not self._skip(path):
                if flags & (os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND):
                    self._wrote(path)
                else:
                    self.read_file(path)
            return descriptor(path, flags, *args, **kwargs)

        def listing(look: Any) -> Any:
            def listed(path: Any = ".") -> Any:
                self.read_folder(path)
                return look(path)

            return listed

        def mkdir(path: Any, *args: Any, **kwargs: Any) -> None:
            made(path, *args, **kwargs)
            self._wrote(path)

        def looking(look: Any) -> Any:
            def looked(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
                try:
                    return look(path, *args, **kwargs)  # type: ignore[no-any-return]
                except FileNotFoundError:
                    if not (args or kwargs.get("dir_fd") or _is_search()):
                        self.read_file(path)
                    raise

            return looked

        io.open = builtins.open = open_file
        io.open_code, os.open = open_code, open_descriptor
        os.listdir, os.scandir, os.mkdir = listing(listed), listing(scanned), mkdir
        os.stat, os.lstat = looking(stated), looking(os.lstat)
        for name in {"bz2", "tokenize"} & sys.modules.keys():  # which have bound it
            sys.modules[name]._builtin_open = open_file  # type: ignore[attr-defined]
        # the standard library asks whether a function can do more
        before: list[object] = [descriptor, listed, scanned, made, stated]
        after: list[Any] = [os.open, os.listdir, os.scandir, os.mkdir, os.stat]
        for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            able |= {new for old, new in zip(before, after, strict=True) if old in able}

    def _wrap_variables(self) -> None:
        environment: Any = type(os.environ)
        get, assign = environment.__getitem__, environment.__setitem__
        names = environment.__iter__
        copies: set[tuple[Any, int]] = set()

        def getitem(variables: object, name: object) -> Any:
            if isinstance(name, str | bytes) and _instruction() not in copies:
                self._read_variable(os.fsdecode(name))
            return get(variables, name)

        def setitem(variables: object, name: Any, value: object) -> None:
            self.hidden |= {name}
            assign(variables, name, value)

        def iterate(variables: object) -> Iterator[Any]:
            # an instruction that takes names and values copies all variables, as for a
            # subprocess: it depends on none of them
            for name in names(variables):
                copies.add(_instruction())
                yield name

        environment.__getitem__, environment.__setitem__ = getitem, setitem
        environment.__iter__ = iterate

    def _skip(self, path: object) -> bool:
        return not isinstance(path, str | bytes | os.PathLike)  # but a descriptor

    def _wrote(self, path: Any) -> None:
        if not self._skip(path) and self._reader():
            written = os.path.abspath(os.fsdecode(path))  # noqa: PTH100
            self._written.add(written)
            self._tell({"written": {written: None}})

    def read_file(self, path: object) -> None:
        """Note that a file is read, if code of a component does it."""
        self._read(path, state_as_read)

    def read_folder(self, path: object) -> None:
        """Note that a folder is listed, if code of a component does it."""
        if not _is_search():
            self._read(path, folder_digest)

    def _read(self, path: Any, value: Callable[[str], object]) -> None:
        if not self._skip(path) and (reader := self._reader()):
            self._count(reader, os.path.abspath(os.fsdecode(path)), value)  # noqa: PTH100

    def _count(self, reader: str, path: str, value: Callable[[str], object]) -> None:
        key = (reader, path)
        if key in self._own_seen:
            return
        self._own_seen.add(key)
        is_uncounted = path.startswith(_UNCOUNTED) or path.endswith(_BYTECODE)
        is_source = any(path == file for _, file in self._loaded.values())
        if is_source and not self._reader(directly=True):
            return  # the source of a module, which a compiler reads: it counts as code
        if is_uncounted or not self._written.isdisjoint((path, *_folders(path))):
            return
        if path.startswith(STANDARD) and not is_installed(path):
            return
        if is_installed(path) and self.own.isdisjoint(path.split("/")):
            inside = path.replace("dist-packages", "site-packages").rpartition("/site-packages/")[2]
            first = inside.partition("/")[0]
            if not first.endswith((".dist-info", ".egg-info")):
                self._add(self._needs, reader, [first.removesuffix(".py")])
            elif not self._is_built_in(reader) or self._reader(directly=True):
                # numba asks all distributions for extensions: its version stands for that
                self._keep(reader, "distributions", first.partition("-")[0], None)
            return
        if self._is_built_in(reader) and f"/{reader.partition('.')[0]}/" not in path:
            return
        self._keep(reader, "files", path, value(path))

    def _read_variable(self, name: str) -> None:
        reader = self._reader(directly=True)
        if not reader or name in self.hidden or self._is_built_in(reader):
            return
        if name not in self._reads.get(reader, {}).get("variables", {}):
            value = os.environ._data.get(os.environ.encodekey(name))  # type: ignore[attr-defined]
            digest = None if value is None else hashlib.sha256(value).hexdigest()
            self._keep(reader, "variables", name, digest)

    def _keep(self, reader: str, part: str, name: str, value: object) -> None:
        self._reads.setdefault(reader, {}).setdefault(part, {})[name] = value
        if self._included is not None and (reader in self._included or reader == TASK):
            self._tell({part: {name: value}})


def _outside(modules: tuple[str, ...]) -> FrameType:
    """Return the innermost call that is not of code of these modules."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") in modules:
        frame = frame.f_back
    return frame


def _is_search() -> bool:
    """Return whether Python looks through its path: what it finds counts, not the folders."""
    # the current folder is on the path of a notebook, and each run writes files there
    return _outside(HERE).f_globals.get("__name__") in _SEARCHING


def _instruction() -> tuple[Any, int]:
    """Return where code uses `os.environ`, by whatever method of it."""
    frame = _outside((__name__, "os", "_collections_abc", "collections.abc"))
    return frame.f_code, frame.f_lasti


def _folders(path: str) -> Iterator[str]:
    while (parent := os.path.dirname(path)) != path:  # noqa: PTH120
        yield parent
        path = parent


def state_as_read(path: str) -> object:
    """Return the digest of a small file, the state of a large one, None if it does not exist."""
    state = read_state(path)
    if state is None or state[2] > SMALL or not os.path.isfile(path):  # noqa: PTH113
        return state
    return hash_file(path) or None
