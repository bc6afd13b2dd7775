"""Records of plugins as plain JSON values, their callables as references.

A process that has imported a plugin describes its records; another reads them without
importing the plugin.
"""

import base64
import io
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from importlib.resources.abc import Traversable
from pathlib import Path
from types import NoneType
from typing import Any

from kbench.errors import PluginError
from kbench.messages import printable
from kbench.records import Ref, Tune
from kbench.records.canonical import from_json
from kbench.registry.callables import Identity, Reference, get_target, identify
from kbench.registry.collecting import HOOKS, Kind, Record, check_name
from kbench.registry.installed import Plugin
from kbench.registry.summaries import Summaries

# Types of fields by their annotations; other fields are callables or mappings.
_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "Sequence[str]": (tuple,),
    "Sequence[TaskType]": (tuple,),
    "str | None": (str, NoneType),
    'Literal["nonnegative", "unit_ball"] | None': (str, NoneType),
}

# Size of a file that exists in no folder, such as one in an archive.
_MAX_BYTES = 2**20

_HOOK_OF: Mapping[str, str] = {kind: hook for hook, (kind, _) in HOOKS.items()}


def describe_records(collected: Sequence[Record]) -> list[dict[str, Any]]:
    """Describe the records that a plugin gives, in the process that has imported it.

    PluginError is raised for a value that is not described by JSON values and `Ref`.
    """
    return [
        {"kind": kind}
        | (
            _described_file(record)
            if HOOKS[_HOOK_OF[kind]][1] is Traversable
            else {"fields": _described_fields(kind, name, record)}
        )
        for kind, name, record in collected
    ]


def read_records(
    description: Any, plugin: Plugin, ask: Callable[[Reference, str, Any], Any]
) -> list[Record]:
    """Return the records of a plugin from their description; `ask` runs its callables.

    Raises PluginError if a record breaks a rule of its hook; ValueError, TypeError, KeyError,
    AttributeError or OSError if this is not the description of a plugin with existing files.
    """
    collected: list[Record] = []
    for entry in description:
        kind: Kind = entry["kind"]
        hook = _HOOK_OF[kind]
        if (type_ := HOOKS[hook][1]) is Traversable:
            record: Any = _file(entry)
        else:
            record = type_(**dict(_fields(kind, entry["fields"], plugin, ask)))
        collected.append((kind, check_name(hook, record, type_), record))
    return collected


def _described_fields(kind: Kind, name: str, record: object) -> dict[str, Any]:
    described: dict[str, Any] = {}
    for field in fields(HOOKS[_HOOK_OF[kind]][1]):
        value = getattr(record, field.name)
        where = f"{field.name} of {kind} {name!r}"
        if _is_callable(field.type) and value is not None:
            if not (isinstance(value, str) or callable(value)):
                raise PluginError(
                    f'{where} must be a class, a function or "module:name", '
                    f"got {type(value).__name__}"
                )
            identity = identify(value)
            described[field.name] = {
                "target": get_target(value),
                "summary": None if isinstance(value, str) else Summaries().summarise(value),
                "identity": [identity.text, sorted(identity.modules), identity.is_importable],
            }
        else:
            described[field.name] = _plain(value, where)
    return described


def _fields(
    kind: Kind, description: Any, plugin: Plugin, ask: Callable[[Reference, str, Any], Any]
) -> Iterator[tuple[str, Any]]:
    name = description["name"]
    for field in fields(HOOKS[_HOOK_OF[kind]][1]):
        if field.name not in description and field.default is not MISSING:
            continue
        value = description[field.name]
        if _is_callable(field.type) and value is not None:
            summary = value["summary"]
            yield (
                field.name,
                Reference(
                    plugin.name,
                    plugin.distribution,
                    kind,
                    str(name),
                    field.name,
                    printable(str(value["target"])),
                    None if summary is None else printable(str(summary)),
                    _identity(value["identity"]),
                    ask,
                ),
            )
            continue
        value = from_json(value)
        types = _TYPES.get(str(field.type))
        if types and not isinstance(value, types):
            wanted = " or ".join(each.__name__ for each in types)
            raise PluginError(
                f"{field.name} of {kind} {name!r} must be a {wanted}, got {type(value).__name__}"
            )
        yield field.name, printable(value) if isinstance(value, str) else value


def _identity(values: Any) -> Identity:
    label, modules, is_importable = values
    return Identity(str(label), frozenset(map(str, modules)), bool(is_importable))


def _is_callable(annotation: object) -> bool:
    return str(annotation) in ("Make", "Make | None")


def _plain(value: object, where: str) -> Any:
    """Return a value of a record as JSON: mappings, refs and sequences each in their form."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # numpy's
        value = value.tolist()
    if value is None or type(value) in (str, int, float, bool):
        return value
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, os.PathLike):
        return str(Path(value).absolute())
    if isinstance(value, Traversable):
        return str(value)
    if isinstance(value, Ref):
        params = {str(name): _plain(each, where) for name, each in value.params.items()}
        return {"name": value.name, "params": params, "label": value.label}
    if isinstance(value, Tune):
        return {"tune": [_plain(each, where) for each in value.values]}
    if isinstance(value, Mapping):
        return {"mapping": [[_plain(k, where), _plain(v, where)] for k, v in value.items()]}
    if isinstance(value, Sequence):
        return [_plain(each, where) for each in value]
    raise PluginError(
        f"{where} has a {type(value).__name__}: values are numbers, strings, booleans, Refs, "
        "and sequences or Searches of them"
    )


def _described_file(file: Any) -> dict[str, Any]:
    if isinstance(file, Path):
        return {"path": str(file.absolute())}
    content = file.read_bytes()
    if len(content) > _MAX_BYTES:
        raise PluginError(f"the file {file.name!r} has {len(content):,} bytes")
    return {"file": str(file.name), "content": base64.b64encode(content).decode("ascii")}


def _file(values: Any) -> Traversable:
    if "path" not in values:
        archive, name = zipfile.ZipFile(io.BytesIO(), "w"), str(values["file"])
        archive.writestr(name, base64.b64decode(values["content"]))
        return zipfile.Path(archive, name)
    path = Path(values["path"])
    if not (path.is_absolute() and path.is_file()):  # no pipe or device, which could hang
        raise PluginError(f"gives the file {str(path)!r}, which is not there")
    return path
