"""The modules of a process: who imported them, and what a task needs of them."""

import builtins
import contextlib
import hashlib
import importlib
import importlib.util
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import FrameType
from typing import Any

from kbench.registry.dependencies import is_installed, read_source
from kbench.storage.files import read_state

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

STANDARD = os.path.realpath(sysconfig.get_path("stdlib"))
TASK = "<task>"
HERE = (__package__, __name__, f"{__package__}.reads")
_LEFT_OUT = frozenset({"__main__", "", "<frozen importlib"}) | sys.stdlib_module_names


class Imports:
    """The modules of a process, and who imported them; what they read is noted by `Recording`."""

    def __init__(self) -> None:
        self.own, self.built_in = frozenset[str](), frozenset[str]()
        self._loaded: dict[str, tuple[str | None, str]] = {}
        self._needs: dict[str, dict[str, None]] = {}
        self._later: dict[str, dict[str, None]] = {}
        self._foreign_of_plugins: set[str] = set()
        self._reads: dict[str, dict[str, dict[str, object]]] = {}
        self._tops: dict[str, bool] = {}
        self._seen, self._own_seen, self._before = set[Any](), set[Any](), set[Any]()
        self._running = threading.local()
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
            if who != TASK and not self._is_built_in(who)
        }
        # not cleared: that would write to memory that the forks of a warm parent share
        self._before, self._own_seen = self._own_seen, set()
        self._included, self._process = set(), os.getpid()
        self._include([*NUMERIC, *modules])

    def _include(self, modules: Iterable[str]) -> None:
        if self._included is None or os.getpid() != self._process:
            return
        needs: dict[str, dict[str, object]] = {}
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
                waiting += filter(None, (name.rpartition(".")[0], *self._needs.get(name, ())))
                waiting += self._later.get(name, ())
                if not self._is_built_in(name):
                    self._foreign_of_plugins |= set(map(self._place, waiting))
                needs.setdefault("modules", {})[name] = self._loaded_as(name)
            else:
                needs.setdefault("packages", {})[top] = None
                # what a package needs that a built-in component uses goes with its version
                if top in self._foreign_of_plugins and top not in NUMERIC:
                    self._foreign_of_plugins |= self._needs.get(top, {}).keys()
                    waiting += self._needs.get(top, ())
            for part, values in self._reads.get(name, {}).items():
                needs.setdefault(part, {}).update(values)
        self._tell(needs)

    def _tell(self, needs: dict[str, dict[str, object]]) -> None:
        if needs and self._included is not None and os.getpid() == self._process:
            self.report(needs)

    def _loaded_as(self, name: str) -> tuple[str | None, str]:
        if name not in self._loaded:  # before the recording, or by a loader of its own
            spec = getattr(sys.modules.get(name), "__spec__", None)
            path = str(spec.origin) if spec is not None and spec.has_location else ""
            return hash_file(path) if path else "", path
        return self._loaded[name]

    def _is_built_in(self, name: str) -> bool:
        return name.partition(".")[0] in self.built_in

    def _is_own(self, name: str) -> bool:
        """Return whether a module counts by itself, not as a part of a distribution."""
        if name in self._loaded:
            return True
        if (top := name.partition(".")[0]) not in self._tops:
            if (module := sys.modules.get(top)) is None:
                return top in self.own
            spec = getattr(module, "__spec__", None)
            places = [spec.origin] if spec is not None and spec.has_location else []
            places += [] if places else list(getattr(module, "__path__", ()))
            working_copy = bool(places) and not any(map(is_installed, map(str, places)))
            self._tops[top] = top in self.own or (top not in _LEFT_OUT and working_copy)
        return self._tops[top]

    # -- imports

    def wrap(self) -> None:
        """Wrap the functions that import."""
        external: Any = importlib._bootstrap_external
        plain, by_name = builtins.__import__, importlib.import_module
        find, seen = importlib.util.find_spec, self._seen
        data_of, code_of = external.FileLoader.get_data, external.SourceLoader.get_code

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
            base = _absolute("." * level + name, globals) if level else name
            try:
                module = plain(name, globals, locals, fromlist, level)
            except ModuleNotFoundError as error:
                self._missing(importer, error.name or base)
                raise
            is_own = importer is None or self._is_own(importer)
            (self._own_seen if is_own else seen).add((importer, name, fromlist, level))
            self._note(importer, self._list_imported(base, fromlist))
            return module

        def import_module(name: str, package: str | None = None) -> Any:
            importer = sys._getframe(1).f_globals.get("__name__")
            full = _absolute(name, {"__package__": package})
            try:
                module = by_name(name, package)
            except ModuleNotFoundError as error:
                self._missing(importer, error.name or full)
                raise
            self._note(importer, [full])
            return module

        def find_spec(name: str, package: str | None = None) -> Any:
            importer = sys._getframe(1).f_globals.get("__name__")
            if (spec := find(name, package)) is None:
                self._missing(importer, name)
            else:
                self._note(importer, [spec.name])
            return spec

        def running(execute: Any) -> Any:
            return lambda loader, module: self._run(module, lambda: execute(loader, module))

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

        def get_data(loader: object, path: str) -> bytes:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            # what is read to be executed counts as code
            if caller != __name__ and not caller.startswith("importlib."):
                self.read_file(path)
            return bytes(data_of(loader, path))

        builtins.__import__ = importlib.__import__ = import_statement
        importlib.import_module = import_module
        importlib.util.find_spec = find_spec
        running_modules: tuple[Any, ...] = (external._LoaderBasics, ExtensionFileLoader)
        for loaders in running_modules:
            loaders.exec_module = running(loaders.exec_module)
        external.SourceLoader.get_code = get_code
        external.FileLoader.get_data = get_data

    def read_file(self, path: object) -> None:
        """Note that a file is read, if code of a component does it."""

    def _list_imported(self, base: str, fromlist: Any) -> list[str]:
        modules = [base]
        names = list(fromlist or ())
        if "*" in names:
            names += map(str, getattr(sys.modules.get(base), "__all__", ()))
        for name in names:
            if (inner := f"{base}.{name}") in sys.modules:
                modules.append(inner)
                continue
            package = sys.modules.get(base) if name != "*" and self._is_own(base) else None
            if package is not None and not hasattr(package, name):
                self._loaded.setdefault(inner, (None, ""))
                modules.append(inner)
        return modules

    def _missing(self, importer: str | None, name: str) -> None:
        """Note a module that was looked for by code of components and is not there."""
        if importer and self._is_own(importer) and name not in sys.modules:
            self._loaded.setdefault(name, (None, ""))
            self._note(importer, [name])

    def _note(self, importer: str | None, modules: Iterable[str]) -> None:
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
        self._add(self._later, who or TASK, needed if who else filter(self._is_own, needed))

    def _add(self, edges: dict[str, dict[str, None]], who: str, names: Iterable[str]) -> None:
        edges_of = edges.setdefault(who, {})
        new = [name for name in map(self._place, names) if name not in edges_of and name != who]
        edges_of.update(dict.fromkeys(new))
        if self._included is None or who in NUMERIC:
            return
        if who == TASK or who in self._included:
            self._include(new)

    def _place(self, name: str) -> str:
        """Return a module of components, or the package of any other one."""
        return name if self._is_own(name) else name.partition(".")[0]

    def _is_foreign(self, name: str, path: str) -> bool:
        top = name.partition(".")[0]
        return top not in self.own and (is_installed(path) or path.startswith(STANDARD))

    def _top(self) -> str:
        stack = getattr(self._running, "stack", None)
        return stack[-1] if stack else ""

    def _run(self, module: Any, execute: Callable[[], None]) -> None:
        """Execute a module: what is imported meanwhile is needed by it."""
        spec = getattr(module, "__spec__", None)
        name = str(getattr(spec, "name", None) or module.__name__)
        path = str(spec.origin) if spec is not None and spec.has_location else ""
        self.tell_loaded(name, spec)
        if path and not self._is_foreign(name, path):
            # one that is loaded from a path is not in `sys.modules`, and counts all the same;
            # of a source, `get_code` has the bytes that are executed
            self._loaded[name] = hash_file(path), path
            self._note(self._reader(), [name])
        stack = self._running.__dict__.setdefault("stack", [])
        stack.append(name)
        try:
            execute()
        finally:
            stack.pop()

    def tell_loaded(self, name: str, spec: Any) -> None:
        """Report the file of every module, in a process that describes a plugin."""
        if self.is_audited and spec is not None and spec.has_location and spec.origin:
            self._tell({"loaded": {name: [spec.origin, read_state(spec.origin)]}})

    def _reader(self, directly: bool = False) -> str:
        """Return the innermost module of a component in the calls so far; empty for none.

        With `directly`, only the standard library may lie between it and the call. What other
        threads do belongs to the task.
        """
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            name = str(frame.f_globals.get("__name__") or "")
            top = name.partition(".")[0]
            if name not in HERE and top not in _LEFT_OUT:
                if top == "kbench":
                    return ""
                if name in self._loaded:
                    return name
                if directly:
                    return ""
            frame = frame.f_back
        return "" if threading.current_thread() is threading.main_thread() else TASK


def _absolute(name: str, globals: Any) -> str:
    """Return the full name of a module; as it is where the import system will refuse it."""
    with contextlib.suppress(ImportError, ValueError, TypeError, KeyError):
        return importlib.util.resolve_name(name, globals["__package__"])
    return name


def hash_file(path: str) -> str:
    """Return the digest of a file; empty if it cannot be read."""
    try:
        return hashlib.sha256(read_source(Path(path))).hexdigest()
    except (OSError, StopIteration, KeyError):
        return ""
