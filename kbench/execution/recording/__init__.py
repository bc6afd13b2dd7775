"""What a process loads and reads, recorded from its start, and reported for one task.

A static reading of imports misses what is imported by a computed name, registered or
patched, so the processes that run components record it. `builtins.__import__` is wrapped
before any component is loaded: an import from the cache raises no event, but passes there.
A module's source is hashed when it is executed. Files, folders and environment variables
count where code of a component reads them.

A warm parent records; a task reports, from `begin` on, what its components need, and what
it loads and reads later, as soon as that happens: what a killed task has reported is kept.
"""

import sys
from collections.abc import Callable, Iterable

from kbench.execution.recording.reads import Recording, state_as_read
from kbench.planning.current_state import Present, variable
from kbench.registry.dependencies import Dependencies
from kbench.registry.installed import HOST, packages

_recording: Recording | None = None


def install(single: Iterable[str], hidden: Iterable[str] = ()) -> None:
    """Record from now on in this process and its forks.

    Modules of the packages in `single` count one by one; `hidden` variables are set by a sandbox.
    """
    global _recording
    if _recording is None:
        _recording = Recording()
        _recording.wrap()
    _recording.own, _recording.hidden = frozenset(single), frozenset(hidden)
    _recording.built_in = frozenset(packages(HOST))


def begin(needed: Dependencies) -> None:
    """Report what a task needs, and what is loaded and read from now on."""
    if _recording is not None:
        _recording.begin(needed.modules)
        if needed.files or needed.variables:
            paths = map(Present().find_path, needed.files)
            files = {path: state_as_read(path) for path in map(str, paths)}
            variables = {name: variable(name) for name in needed.variables}
            _recording.report({"files": files, "variables": variables})


def audit() -> None:
    """Record also files that are opened in another way than by the functions of Python.

    Audit hooks cannot be removed, and they slow copies of objects down by 2.6 times: this is
    for a process that describes a plugin, not for tasks.
    """
    recording = _recording
    if recording is not None:
        readers = {"open": recording.read_file, "os.listdir": recording.read_folder}
        readers |= {"os.scandir": recording.read_folder, "sqlite3.connect": recording.read_file}

        def hook(event: str, args: tuple[object, ...]) -> None:
            if event in readers:
                readers[event](args[0] if args[0] is not None else ".")

        sys.addaudithook(hook)
        recording.is_audited = True
        for name, module in list(sys.modules.items()):
            recording.tell_loaded(name, getattr(module, "__spec__", None))


def report_to(report: Callable[[dict[str, object]], None]) -> None:
    """Set what takes the reports of this process."""
    if _recording is not None:
        _recording.report = report
