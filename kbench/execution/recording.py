"""What a process loads and reads, recorded from its start, and reported for one task.

A static reading of imports misses what is imported by a computed name, registered or
patched, so the processes that run components record it. `builtins.__import__` is wrapped
before any component is loaded: an import from the cache raises no event, but passes there.
A module's source is hashed when it is executed. Files, folders and environment variables
count where code of a component reads them.

A warm parent records; a task reports, from `begin` on, what its components need, and what
it loads and reads later, as soon as that happens: what a killed task has reported is kept.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib
import importlib.util
import io
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import FrameType
from typing import Any

from kbench.planning.present import Present, names_digest, variable
from kbench.registry.dependencies import Dependencies, content_of, is_installed
from kbench.registry.installed import HOST, packages
from kbench.storage.files import state_of

DECIDES_NO_NUMBER = frozenset(
    {
        "kbench",  # public names
        "kbench._version",
        "kbench.errors",
        "kbench.hookspecs",
        "kbench.messages",
        "kbench.parameters",
        # shapes of records; their values are in the key
        "kbench.records",
        # names become code, which is recorded
        "kbench.registry",
    }
)
"""Modules, with their submodules, that no manifest has. Every component reaches them.

Code that decides a number belongs in `kbench.evaluation`; values that do, in a cell's key.
"""

NUMERIC = ("numpy", "scipy", "sklearn")
"""Packages that every manifest has; their versions stand for what they import."""

SMALL = 2**20
"""Bytes up to which a file is hashed when it is read; of a larger one the state is noted."""

_STANDARD = os.path.realpath(sysconfig.get_path("stdlib"))
_UNCOUNTED = (
    *("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/dev/random", "/etc/localtime"),
    *("/usr/share/zoneinfo/", "/usr/share/locale/", "/usr/lib/locale/"),
)
_BYTECODE = (".pyc", ".nbi", ".nbc")
_TASK = "<task>"

_recording: Recording | None = None


def install(own: Iterable[str], hidden: Iterable[str] = ()) -> None:
    """Record from now on in this process and its forks.

    `own` are the packages whose modules count one by one even where they are installed with a
    version: kbench's and the plugins'. `hidden` are environment variables that a sandbox sets.
    """
    global _recording
    if _recording is None:
        _recording = Recording()
        _recording.wrap()
    _recording.own, _recording.hidden = frozenset(own), frozenset(hidden)
    _recording.built_in = frozenset(packages(HOST))


def begin(needed: Dependencies) -> None:
    """Report what a task needs, and what is loaded and read from now on."""
    if _recording is not None:
        _recording.begin(needed.modules)
        if needed.files or needed.variables:
            paths = map(Present().path_of, needed.files)
            files = {path: _state(path) for path in map(str, paths)}
            variables = {name: variable(name) for name in needed.variables}
            _recording.report({"files": files, "variables": variables})


def audit() -> None:
    """Record also files that are opened in another way than by the functions of Python.

    Audit hooks cannot be removed, and they slow copies of objects down by 2.6 times: this is
    for a process that describes a plugin, not for tasks.
    """
    found = _recording
    if found is not None:
        readers = {"open": found.read_file, "os.listdir": found.read_folder}
        readers |= {"os.scandir": found.read_folder, "sqlite3.connect": found.read_file}

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event in readers:
                readers[event](args[0] if args[0] is not None else ".")

        sys.addaudithook(hook)
        found.is_audited = True
        for name, module in list(sys.modules.items()):
            found.tell_loaded(name, getattr(module, "__spec__", None))


def report_to(report: Callable[[dict[str, Any]], None]) -> None:
    """Set what takes the reports of this process."""
    if _recording is not None:
        _recording.report = report


class Recording:
    """The modules of a process, who imported them, and what they read."""

    def __init__(self) -> None:
        self.own, self.hidden, self.built_in = (frozenset[str](),) * 3
        self._loaded: dict[str, tuple[str | None, str]] = {}
        self._needs: dict[str, dict[str, None]] = {}
        self._later: dict[str, dict[str, None]] = {}
        self._foreign_of_plugins: set[str] = set()
        self._reads: dict[str, dict[str, dict[str, Any]]] = {}
        self._tops: dict[str, bool] = {}
        self._seen, self._own_seen, self._before = set[Any](), set[Any](), set[Any]()
        self._running = threading.local()
        self._written: set[str] = set()
        self._included: set[str] | None = None
        self._process = 0
        self.is_audited = False
        self.report: Callable[[dict[str, Any]], None] = lambda recorded: None

    # -- what a task reports

    def begin(self, modules: Iterable[str]) -> None:
        """Start a report; see the function of this name."""
        # built-in plugins load their modules when their names are first used: only what
        # this task uses counts. Another plugin may keep what it has loaded.
        self._later = {
            who: names
            for who, names in self._later.items()
            if who != _TASK and not self._is_built_in(who)
        }
        # not cleared: that would write to memory that the forks of a warm parent share
        self._before, self._own_seen = self._own_seen, set()
        self._included, self._process = set(), os.getpid()
        self._include([*NUMERIC, *modules])

    def _include(self, modules: Iterable[str]) -> None:
        if self._included is None or os.getpid() != self._process:
            return
        found: dict[str, dict[str, Any]] = {}
        waiting = list(modules)
        while waiting:
            name = waiting.pop()
            top = name.partition(".")[0]
            if ".".join(name.split(".")[:2]) in DECIDES_NO_NUMBER or top in _LEFT_OUT:
                continue
            name = name if self._is_own(name) else top
            if name in self._included:
                continue
            self._included.add(name)
            if self._is_own(name):
                parent = name.rpartition(".")[0]
                waiting += filter(None, (parent, *self._needs.get(name, ())))
                waiting += self._later.get(name, ())
                if not self._is_built_in(name):
                    self._foreign_of_plugins |= set(map(self._place, waiting))
                found.setdefault("modules", {})[name] = self._loaded_as(name)
            else:
                found.setdefault("packages", {})[top] = None
                # what a package needs that a built-in component uses goes with its version
                if top in self._foreign_of_plugins and top not in NUMERIC:
                    self._foreign_of_plugins |= self._needs.get(top, {}).keys()
                    waiting += self._needs.get(top, ())
            for part, values in self._reads.get(name, {}).items():
                found.setdefault(part, {}).update(values)
        self._tell(found)

    def _tell(self, found: dict[str, dict[str, Any]]) -> None:
        if found and self._included is not None and os.getpid() == self._process:
            self.report(found)

    def _loaded_as(self, name: str) -> tuple[str | None, str]:
        if name not in self._loaded:  # before the recording, or by a loader of its own
            spec = getattr(sys.modules.get(name), "__spec__", None)
            path = str(spec.origin) if spec is not None and spec.has_location else ""
            return _sha_of(path) if path else "", path
        return self._loaded[name]

    def _is_built_in(self, name: str) -> bool:
        return name.partition(".")[0] in self.built_in

    def _is_own(self, name: str) -> bool:
        """Tell whether a module counts by itself, not as a part of a distribution."""
        if name in self._loaded:
            return True
        top = name.partition(".")[0]
        if top not in self._tops:
            module = sys.modules.get(top)
            if module is None:
                return top in self.own
            spec = getattr(module, "__spec__", None)
            places = [spec.origin] if spec is not None and spec.has_location else []
            places += [] if places else list(getattr(module, "__path__", ()))
            working_copy = bool(places) and not any(map(is_installed, map(str, places)))
            self._tops[top] = top in self.own or (top not in _LEFT_OUT and working_copy)
        return self._tops[top]

    # -- imports

    def wrap(self) -> None:
        """Wrap the functions that import, and those that read files and variables."""
        external: Any = importlib._bootstrap_external
        plain, by_name = builtins.__import__, importlib.import_module
        find, execute = importlib.util.find_spec, external._LoaderBasics.exec_module
        seen, data_of = self._seen, external.FileLoader.get_data
        extend, code_of = ExtensionFileLoader.exec_module, external.SourceLoader.get_code

        def import_statement(
            name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
        ) -> Any:
            try:
                importer = globals["__name__"]
                key = importer, name, fromlist, level
                is_known = key in seen or key in self._own_seen
            except (TypeError, KeyError):  # called by a program, not by a statement
                importer, fromlist, is_known = None, tuple(fromlist or ()), False
            if is_known:  # a fit may pass here a hundred times
                return plain(name, globals, locals, fromlist, level)
            base = name
            if level:
                with contextlib.suppress(ImportError, ValueError, TypeError, KeyError):
                    base = importlib.util.resolve_name("." * level + name, globals["__package__"])
            try:
                module = plain(name, globals, locals, fromlist, level)
            except ModuleNotFoundError as error:
                self._missing(importer, error.name or base)
                raise
            is_own = importer is None or self._is_own(importer)
            (self._own_seen if is_own else seen).add((importer, name, fromlist, level))
            self._note(importer, self._imported(base, fromlist))
            return module

        def import_module(name: str, package: str | None = None) -> Any:
            importer = sys._getframe(1).f_globals.get("__name__")
            full = name
            if name.startswith("."):
                with contextlib.suppress(ImportError, ValueError, TypeError):
                    full = importlib.util.resolve_name(name, package)
            try:
                module = by_name(name, package)
            except ModuleNotFoundError as error:
                self._missing(importer, error.name or full)
                raise
            self._note(importer, [full])
            return module

        def find_spec(name: str, package: str | None = None) -> Any:
            importer = sys._getframe(1).f_globals.get("__name__")
            spec = find(name, package)
            if spec is None:
                self._missing(importer, name)
            else:
                self._note(importer, [spec.name])
            return spec

        def exec_module(loader: Any, module: Any) -> None:
            self._run(module, lambda: execute(loader, module))

        def exec_extension(loader: Any, module: Any) -> None:
            self._run(module, lambda: extend(loader, module))

        def get_code(loader: Any, fullname: str) -> Any:
            path = loader.get_filename(fullname)
            if self._is_foreign(fullname, path):
                return code_of(loader, fullname)
            # the bytes that are executed, whatever a file of bytecode says
            source = loader.get_data(path)
            self._loaded[fullname] = hashlib.sha256(source).hexdigest(), path
            if self._top() != fullname:  # not by an import: runpy
                self._note(self._reader(), [fullname])
            return loader.source_to_code(source, path)

        def get_data(loader: Any, path: str) -> bytes:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            # what is read to be executed counts as code
            if caller != __name__ and not caller.startswith("importlib."):
                self.read_file(path)
            return bytes(data_of(loader, path))

        builtins.__import__ = importlib.__import__ = import_statement
        importlib.import_module = import_module
        importlib.util.find_spec = find_spec
        external._LoaderBasics.exec_module = exec_module
        ExtensionFileLoader.exec_module = exec_extension  # type: ignore[assignment,method-assign]
        external.SourceLoader.get_code = get_code
        external.FileLoader.get_data = get_data
        self._wrap_files()
        self._wrap_variables()

    def _imported(self, base: str, fromlist: Any) -> list[str]:
        """Return the modules that a statement has imported."""
        found = [base]
        names = list(fromlist or ())
        if "*" in names:
            names += map(str, getattr(sys.modules.get(base), "__all__", ()))
        for name in names:
            inner = f"{base}.{name}"
            if inner in sys.modules:
                found.append(inner)
                continue
            package = sys.modules.get(base) if name != "*" and self._is_own(base) else None
            if package is not None and not hasattr(package, name):
                self._loaded.setdefault(inner, (None, ""))
                found.append(inner)
        return found

    def _missing(self, importer: str | None, name: str) -> None:
        """Note a module that was looked for by code of components and is not there."""
        if importer and self._is_own(importer) and name not in sys.modules:
            self._loaded.setdefault(name, (None, ""))
            self._note(importer, [name])

    def _note(self, importer: str | None, modules: Iterable[str]) -> None:
        """Note that a module has imported others, while it was executed or later."""
        running, who = self._top(), importer or ""
        needed = [name for name in modules if name and name.partition(".")[0] not in _LEFT_OUT]
        if not needed:
            return
        if running:
            self._add(self._needs, self._place(running), needed)
            if who == running:
                return
        if who not in self._loaded and who.partition(".")[0] != "kbench":
            if running and running not in self._loaded:
                return  # a package imports what it needs itself
            who = self._reader()
        if who:
            self._add(self._later, who, needed)
        else:
            self._add(self._later, _TASK, filter(self._is_own, needed))

    def _add(self, edges: dict[str, dict[str, None]], who: str, names: Iterable[str]) -> None:
        known = edges.setdefault(who, {})
        new = [name for name in map(self._place, names) if name not in known and name != who]
        known.update(dict.fromkeys(new))
        if self._included is None or who in NUMERIC:
            return
        if who == _TASK or who in self._included:
            self._include(new)

    def _place(self, name: str) -> str:
        """Return a module of components, or the package of any other one."""
        return name if self._is_own(name) else name.partition(".")[0]

    def _is_foreign(self, name: str, path: str) -> bool:
        top = name.partition(".")[0]
        return top not in self.own and (is_installed(path) or path.startswith(_STANDARD))

    def _top(self) -> str:
        stack = getattr(self._running, "stack", None)
        return stack[-1] if stack else ""

    def _run(self, module: Any, execute: Callable[[], None]) -> None:
        """Execute a module: what is imported meanwhile is needed by it."""
        spec = getattr(module, "__spec__", None)
        name = str(getattr(spec, "name", None) or module.__name__)
        path = str(spec.origin) if spec is not None and spec.has_location else ""
        self.tell_loaded(name, spec)
        own = bool(path) and not self._is_foreign(name, path)
        if own:
            # one that is loaded from a path is not in `sys.modules`, and counts all the same;
            # of a source, `get_code` has the bytes that are executed
            self._loaded[name] = _sha_of(path), path
            self._note(self._reader(), [name])
        stack = self._running.__dict__.setdefault("stack", [])
        stack.append(name)
        try:
            execute()
        finally:
            stack.pop()

    def tell_loaded(self, name: str, spec: Any) -> None:
        """Report the file of a module, whoever needs it, in a process that describes a plugin."""
        if self.is_audited and spec is not None and spec.has_location and spec.origin:
            self._tell({"loaded": {name: [spec.origin, state_of(spec.origin)]}})

    # -- files and variables

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

        def listdir(path: Any = ".") -> Any:
            self.read_folder(path)
            return listed(path)

        def scandir(path: Any = ".") -> Any:
            self.read_folder(path)
            return scanned(path)

        def mkdir(path: Any, *args: Any, **kwargs: Any) -> None:
            made(path, *args, **kwargs)
            self._wrote(path)

        def looking(look: Any) -> Any:
            def looked(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
                try:
                    return look(path, *args, **kwargs)  # type: ignore[no-any-return]
                except FileNotFoundError:
                    if not (args or kwargs.get("dir_fd")):
                        self.read_file(path)
                    raise

            return looked

        io.open = builtins.open = open_file
        io.open_code, os.open = open_code, open_descriptor
        os.listdir, os.scandir, os.mkdir = listdir, scandir, mkdir
        os.stat, os.lstat = looking(stated), looking(os.lstat)
        for name in {"bz2", "tokenize"} & sys.modules.keys():  # which have bound it
            sys.modules[name]._builtin_open = open_file  # type: ignore[attr-defined]
        # the standard library asks whether a function can do more
        before: list[Any] = [descriptor, listed, scanned, made, stated]
        after: list[Any] = [os.open, os.listdir, os.scandir, os.mkdir, os.stat]
        for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            able |= {new for old, new in zip(before, after, strict=True) if old in able}

    def _wrap_variables(self) -> None:
        environment: Any = type(os.environ)
        get, assign = environment.__getitem__, environment.__setitem__
        names = environment.__iter__
        copies: set[tuple[Any, int]] = set()

        def getitem(variables: Any, name: Any) -> Any:
            if isinstance(name, str | bytes) and _instruction() not in copies:
                self._read_variable(os.fsdecode(name))
            return get(variables, name)

        def setitem(variables: Any, name: Any, value: Any) -> None:
            self.hidden |= {name}
            assign(variables, name, value)

        def iterate(variables: Any) -> Iterator[Any]:
            # an instruction that takes names and values copies all variables, as for a
            # subprocess: it depends on none of them
            for name in names(variables):
                copies.add(_instruction())
                yield name

        environment.__getitem__, environment.__setitem__ = getitem, setitem
        environment.__iter__ = iterate

    def _skip(self, path: Any) -> bool:
        return not isinstance(path, str | bytes | os.PathLike)  # but a descriptor

    def _wrote(self, path: Any) -> None:
        if not self._skip(path) and self._reader():
            written = os.path.abspath(os.fsdecode(path))  # noqa: PTH100
            self._written.add(written)
            self._tell({"written": {written: None}})

    def read_file(self, path: Any) -> None:
        """Note that a file is read, if code of a component does it."""
        self._read(path, _state)

    def read_folder(self, path: Any) -> None:
        """Note that a folder is listed, if code of a component does it."""
        self._read(path, _names)

    def _read(self, path: Any, value: Callable[[str], Any]) -> None:
        if not self._skip(path) and (reader := self._reader()):
            self._count(reader, os.path.abspath(os.fsdecode(path)), value)  # noqa: PTH100

    def _count(self, reader: str, path: str, value: Callable[[str], Any]) -> None:
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
        if path.startswith(_STANDARD) and not is_installed(path):
            return
        if is_installed(path) and self.own.isdisjoint(path.split("/")):
            inside = path.replace("dist-packages", "site-packages").rpartition("/site-packages/")[2]
            first = inside.partition("/")[0]
            if first.endswith((".dist-info", ".egg-info")):  # what it says of a distribution
                name = first.partition("-")[0]
                self._reads.setdefault(reader, {}).setdefault("distributions", {})[name] = None
                self._tell_read(reader, "distributions", name)
            else:
                self._add(self._needs, reader, [first.removesuffix(".py")])
            return
        if self._is_built_in(reader) and f"/{reader.partition('.')[0]}/" not in path:
            return
        self._reads.setdefault(reader, {}).setdefault("files", {})[path] = value(path)
        self._tell_read(reader, "files", path)

    def _read_variable(self, name: str) -> None:
        reader = self._reader(directly=True)
        if not reader or name in self.hidden or self._is_built_in(reader):
            return
        known = self._reads.setdefault(reader, {}).setdefault("variables", {})
        if name not in known:
            value = os.environ._data.get(os.environ.encodekey(name))  # type: ignore[attr-defined]
            known[name] = None if value is None else hashlib.sha256(value).hexdigest()
            self._tell_read(reader, "variables", name)

    def _tell_read(self, reader: str, part: str, name: str) -> None:
        if self._included is not None and (reader in self._included or reader == _TASK):
            self._tell({part: {name: self._reads[reader][part][name]}})

    def _reader(self, directly: bool = False) -> str:
        """Return the innermost module of a component in the calls so far; empty for none.

        With `directly`, only the standard library may lie between it and the call. What other
        threads do belongs to the task.
        """
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            name = str(frame.f_globals.get("__name__") or "")
            top = name.partition(".")[0]
            if name != __name__ and top not in _LEFT_OUT:
                if top == "kbench":
                    return ""
                if name in self._loaded:
                    return name
                if directly:
                    return ""
            frame = frame.f_back
        return "" if threading.current_thread() is threading.main_thread() else _TASK


_LEFT_OUT = frozenset({"__main__", "", "<frozen importlib"}) | sys.stdlib_module_names


def _instruction() -> tuple[Any, int]:
    """Return where code uses `os.environ`, by whatever method of it."""
    frame = sys._getframe(2)
    methods = (__name__, "os", "_collections_abc", "collections.abc")
    while frame.f_back is not None and frame.f_globals.get("__name__") in methods:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def _folders(path: str) -> Iterator[str]:
    while (parent := os.path.dirname(path)) != path:  # noqa: PTH120
        yield parent
        path = parent


def _sha_of(path: str) -> str:
    try:
        return hashlib.sha256(content_of(Path(path))).hexdigest()
    except (OSError, StopIteration, KeyError):
        return ""


def _state(path: str) -> Any:
    """Return the digest of a small file, the state of a large one, None where it is not there."""
    state = state_of(path)
    if state is None or state[2] > SMALL or not os.path.isfile(path):  # noqa: PTH113
        return state
    return _sha_of(path) or None


def _names(path: str) -> Any:
    try:
        return names_digest(os.listdir(path))  # noqa: PTH208 (names only)
    except OSError:
        return None
