"""Descriptions of third-party plugins, made in sandboxed processes and kept by state of files.

A plugin's import may end its process, hang or change it: none of this befalls a command,
which reads a description (`kbench.registry.described`). It is made again once a file that the
import loaded has changed, or a missing module is installed.
"""

import base64
import contextlib
import hashlib
import importlib
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbench._version import __version__
from kbench.errors import PluginError
from kbench.execution import recording
from kbench.messages import last_line, printable
from kbench.planning.current_state import variable
from kbench.planning.digests import read_kept, write_kept
from kbench.registry.callables import Reference
from kbench.registry.collecting import Record, collect
from kbench.registry.dependencies import Dependencies, find_source
from kbench.registry.described import describe_records, read_records
from kbench.registry.installed import Plugin, list_plugins, packages
from kbench.registry.registry import build, explain_failure
from kbench.storage.files import State, read_state
from kbench.storage.journal import state_folder

if TYPE_CHECKING:
    from kbench.execution.sandbox import CallOutcome


IMPORT_S = 20.0
"""Wall clock that the import of a plugin may take."""

CALL_S = 120.0
"""Wall clock that one call of a plugin's function may take."""

AGAIN_S = 3600.0
"""Time after which a plugin whose import hit its limit is tried again: the machine was loaded?"""

_FORMAT = 4
_WRONG = (ValueError, TypeError, KeyError, AttributeError, OSError)
"""Errors of values that are not what was written."""


@dataclass(frozen=True)
class Description:
    """The records of a plugin as JSON, or the reason why it is left out.

    `expires` is when it is made again, in seconds since 1970, whatever the files; 0 never.
    """

    reason: str
    records: list[object]
    state: "ImportState"
    expires: float = 0.0


def describe_plugin(plugin: Plugin) -> list[Record]:
    """Return the records of a plugin without importing it; their callables are references."""
    if (description := read_description(plugin)) is not None:
        with contextlib.suppress(*_WRONG):
            return _records(description, plugin)
    try:
        return _records(_describe(plugin), plugin)
    except _WRONG as error:
        raise PluginError(f"its process gave a wrong answer: {error!r}") from error


def _records(description: Description, plugin: Plugin) -> list[Record]:
    if description.reason:
        raise PluginError(description.reason)
    return read_records(description.records, plugin, _ask)


def read_description(plugin: Plugin) -> Description | None:
    """Return the kept description of a plugin; None if it must be made."""
    try:
        values = read_kept(_path(plugin))
        if values.pop("key") != _key(plugin):
            return None
        description = Description(**values | {"state": ImportState(**values["state"])})
    except _WRONG:
        return None
    expired = description.expires and not 0 <= description.expires - time.time() <= AGAIN_S
    return description if not expired and description.state.is_current() else None


def _describe(plugin: Plugin) -> Description:
    from kbench.execution.sandbox import Sandbox  # reading descriptions needs none

    payload = {"distribution": plugin.distribution, "plugin": plugin.name}
    with Sandbox(record=packages()) as sandbox:
        outcome = sandbox.run("kbench.execution.descriptions:describe", payload, time_s=IMPORT_S)
    state = ImportState.collect(outcome.recorded)
    made = _conclude(outcome, state)
    if state.modules:  # else the process did not get as far as the plugin
        with contextlib.suppress(OSError):
            write_kept(_path(plugin), {"key": _key(plugin), **asdict(made)})
    return made


def _conclude(outcome: "CallOutcome", state: "ImportState") -> Description:
    if outcome.status == "timed_out":
        reason = f"its import takes longer than {IMPORT_S:g} s"
        return Description(reason, [], state, time.time() + AGAIN_S)
    if outcome.status != "ok":
        return Description(f"its import failed: {_reason(outcome)}", [], state)
    answer = outcome.value if isinstance(outcome.value, Mapping) else {}
    failed, records = answer.get("reason"), answer.get("records")
    if failed or not isinstance(records, list):
        return Description(printable(str(failed or "its process gave no records")), [], state)
    # a plugin may list the files of a folder: suites, dashboards
    paths = [each.get("path") for each in records if isinstance(each, dict)]
    folders = {str(Path(path).parent) for path in paths if isinstance(path, str)}
    files = {**state.files, **{folder: read_state(folder) for folder in folders}}
    return Description("", records, replace(state, files=files))


def _reason(outcome: "CallOutcome") -> str:
    line = last_line(outcome.error) if outcome.status == "error" else outcome.error
    return printable(" ".join(line.partition("\n")[0].split()))


def _key(plugin: Plugin) -> list[object]:
    return [_FORMAT, plugin.entry, plugin.version, sys.version, __version__]


def _path(plugin: Plugin) -> Path:
    # environments of Python share the folder
    whole = "\0".join((sys.prefix, plugin.distribution, plugin.name)).encode("utf-8", "replace")
    name = base64.b32encode(hashlib.sha256(whole).digest()[:15]).decode("ascii").lower()
    return state_folder() / "plugins" / f"{name}.json"


def _ask(reference: Reference, function: str, argument: object) -> Any:
    from kbench.execution.sandbox import Sandbox

    names = ("distribution", "plugin", "kind", "name", "field")
    payload = {name: getattr(reference, name) for name in names}
    with Sandbox() as sandbox:
        outcome = sandbox.run(
            "kbench.execution.descriptions:call",
            {**payload, "function": function, "argument": argument},
            time_s=CALL_S,
        )
    answer = outcome.value if isinstance(outcome.value, Mapping) else {}
    if outcome.status == "ok" and "value" in answer:
        return answer["value"]
    why = printable(str(answer["error"])) if "error" in answer else _reason(outcome)
    raise PluginError(
        f"{reference.field} of {reference.kind} {reference.name!r} "
        f"(plugin {reference.plugin!r}) failed: {why}"
    )


_LEFT_OUT = frozenset({"kbench", "__main__"}) | sys.stdlib_module_names
"""Top-level modules whose files change only with the versions of Python and kbench."""


@dataclass(frozen=True)
class ImportState:
    """Files that an import has loaded and read, with their states, and where it found modules.

    `modules` has the file of each top-level module, None for one that was not found; `variables`
    has digests of the environment variables that it read.
    """

    files: Mapping[str, State | None] = field(default_factory=dict)
    modules: Mapping[str, str | None] = field(default_factory=dict)
    variables: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def collect(cls, recorded: Iterable[Mapping[str, Any]]) -> "ImportState":
        """Collect what a process has reported (see `kbench.execution.recording`)."""
        files: dict[str, State | None] = {}
        modules: dict[str, str | None] = {}
        variables: dict[str, str | None] = {}
        for each in recorded:
            for name, (path, state) in each.get("loaded", {}).items():
                if name.partition(".")[0] not in _LEFT_OUT:
                    files[path] = state
                    modules |= {} if "." in name else {name: path}
            missing = (n for n, (sha, _) in each.get("modules", {}).items() if sha is None)
            modules |= dict.fromkeys(missing)
            files |= {path: read_state(path) for path in each.get("files", {})}
            variables |= each.get("variables", {})
        return cls(files, modules, variables)

    def is_current(self) -> bool:
        """Return whether the files are as they were, and the modules where they were."""
        sources: dict[str, Path | None] = {}
        return (
            all(read_state(file) == state for file, state in self.files.items())
            and all(variable(name) == value for name, value in self.variables.items())
            and all(
                find_source(module, sources) == (None if file is None else Path(file))
                for module, file in self.modules.items()
            )
        )


def describe(payload: Mapping[str, str]) -> dict[str, object]:
    """Describe the records of the ``plugin`` of a ``distribution``, or say why there are none.

    What is loaded and read is reported at once: the import may end this process.
    """
    plugin = _plugin(payload)
    # Python would take the bytecode of this second for that of an edit in the same second
    sys.dont_write_bytecode = True
    recording.begin(Dependencies(frozenset({plugin.module})))
    recording.audit()
    try:
        return {"reason": "", "records": describe_records(collect(plugin))}
    except (Exception, SystemExit) as error:
        return {"reason": explain_failure(error, plugin.distribution), "records": []}


def call(payload: Mapping[str, Any]) -> dict[str, object]:
    """Call a ``function`` of kbench with a callable of a plugin, and an ``argument``.

    The callable is the ``field`` of the record ``name`` of a ``kind``.
    """
    registry = build([_plugin(payload)])
    (plugin,) = registry.plugins
    if plugin.reason:
        return {"error": plugin.reason}
    make = getattr(registry.get(payload["kind"], payload["name"]), payload["field"])
    module, _, name = payload["function"].partition(":")
    try:
        return {"value": getattr(importlib.import_module(module), name)(make, payload["argument"])}
    except PluginError as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _plugin(names: Mapping[str, str]) -> Plugin:
    wanted = (names["distribution"], names["plugin"])
    return next(each for each in list_plugins() if (each.distribution, each.name) == wanted)
