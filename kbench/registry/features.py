"""Features that are installed: what their metadata say, read without importing them.

A feature is a package with an entry point in the group ``kbench.features`` and a file
``feature.toml`` beside its ``__init__.py``. Help pages, completion and ``kbench list`` need
that file only; the package is imported by the command or the run that uses it.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import keyword
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from kbench.errors import FeatureError
from kbench.messages import did_you_mean
from kbench.registry.installed import DISABLED, HOST, disabled, refuse_other_version

GROUP = "kbench.features"
FILE = "feature.toml"

CORE_COMMANDS = ("suite", "results")
"""Commands of the core, in the order of the help page; no feature can have one of these."""

_MOST_BYTES = 2**18
_TARGET = re.compile(r"[\w.]+:\w+")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Command:
    """A command: ``"module:function"``, its line in the list of commands, its place there.

    `while_loading` is shown while its imports run, and `examples` end its help page.
    """

    target: str
    help: str
    after: str = ""
    while_loading: str = ""
    examples: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Option:
    """An option that a feature adds to commands of the core, and to functions of Python.

    `kind` is "text", "switch" (with its `default`), or "list" (repeatable). In help it comes after
    the first of the parameters in `after` that the command has.
    """

    commands: tuple[str, ...]
    help: str
    kind: str = "text"
    metavar: str | None = None
    default: bool = False
    functions: tuple[str, ...] = ()
    after: str = ""


@dataclass(frozen=True)
class ReportTable:
    """A table of the report: that of a function of its data, or one of a section of the feature."""

    help: str
    after: str = ""
    target: str = ""


@dataclass(frozen=True)
class Metadata:
    """The content of ``feature.toml``.

    `hooks` are the names of the hooks that its module implements. `functions`, `completions`
    and `modules` are found as ``kbench.NAME``, or by the completion of the core's options.
    """

    hooks: tuple[str, ...] = ()
    commands: Mapping[str, Command] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)
    tables: Mapping[str, ReportTable] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    completions: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, content: Mapping[str, object]) -> Metadata:
        """Check the content of a file; FeatureError says what is wrong."""
        made = dict(_record(cls, content, ""))
        for key, record in (("commands", Command), ("options", Option), ("tables", ReportTable)):
            table = made.get(key, {})
            made[key] = {
                name: record(**_record(record, each, f"{key}.{name}"))
                for name, each in table.items()
            }
        if problems := list(_mistakes(made)):
            raise FeatureError(*problems)
        return cls(**made)


_WORDS = {list: "an array", dict: "a table", str: "a string", bool: "a boolean"}


def _mistakes(made: Mapping[str, Any]) -> Iterable[str]:
    """Yield what is wrong with single values."""
    targets = {
        f"{key}.{name}": value
        for key in ("functions", "completions")
        for name, value in made.get(key, {}).items()
    }
    targets |= {
        f"tables.{name}.target": each.target for name, each in made["tables"].items() if each.target
    }
    for name, command in made["commands"].items():
        targets[f"commands.{name}.target"] = command.target
        for each in command.examples:
            if not (isinstance(each, tuple) and len(each) == 2 and _all_strings(each)):
                yield f"commands.{name}.examples: must be pairs of strings, got {each!r}"
    for place, target in targets.items():
        if not (isinstance(target, str) and _TARGET.fullmatch(target)):
            yield f'{place} must be "module:name", got {target!r}'
    for name, module in made.get("modules", {}).items():
        if not isinstance(module, str):
            yield f"modules.{name} must be a string, got {module!r}"
    if not _all_strings(made.get("hooks", ())):
        yield f"hooks must be an array of strings, got {list(made['hooks'])!r}"
    for name, option in made["options"].items():
        if not name.isidentifier() or keyword.iskeyword(name):
            yield f"options.{name}: must be a name of Python, with underscores for hyphens"
        if option.kind not in ("text", "switch", "list"):
            yield f'options.{name}.kind must be "text", "switch" or "list", got {option.kind!r}'
        for key in ("commands", "functions"):
            if not _all_strings(names := getattr(option, key)):
                yield f"options.{name}.{key} must be an array of strings, got {list(names)!r}"


def _all_strings(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _record(record: type, content: object, place: str) -> dict[str, Any]:
    """Return the fields of a record from a table of TOML, with lists as tuples."""
    if not isinstance(content, Mapping):
        raise FeatureError(f"{place} must be a table, got {content!r}")
    known = {each.name: each for each in fields(record)}
    at = f"{place}." if place else ""
    problems = [
        f"{at}{key}: no such key{did_you_mean(key, known)}" for key in content if key not in known
    ]
    for key, each in known.items():
        wanted = str(each.type).partition("[")[0].partition(" ")[0]
        type_ = {"tuple": list, "Mapping": dict, "str": str, "bool": bool}[wanted]
        if key in content and not isinstance(content[key], type_):
            problems.append(f"{at}{key} must be {_WORDS[type_]}, got {content[key]!r}")
        elif place and key not in content and each.default is each.default_factory is MISSING:
            problems.append(f"{at}{key}: missing")
    if problems:
        raise FeatureError(*problems)
    return {
        key: tuple(tuple(v) if isinstance(v, list) else v for v in value)
        if isinstance(value, list)
        else value
        for key, value in content.items()
    }


@dataclass(frozen=True)
class Feature:
    """A feature that is installed; `reason` says why it is left out, and is empty otherwise."""

    name: str
    module: str
    distribution: str
    version: str = ""
    metadata: Metadata = field(default_factory=Metadata)
    reason: str = ""

    def load(self, target: str = "") -> Any:
        """Import the feature, and return its module, or the object ``"module:name"`` of it.

        FeatureError is raised where it cannot be imported, or has no such object.
        """
        module, _, name = target.partition(":")
        try:
            loaded = import_module(module or self.module)
            return getattr(loaded, name) if name else loaded
        except (Exception, SystemExit) as error:
            what = f"{type(error).__name__}: {error}".strip(": ")
            raise FeatureError(f"the feature {self.name!r} cannot be used: {what}") from error


def read(path: Path) -> Metadata:
    """Read the metadata of a feature.

    FeatureError is raised where the file is missing or has mistakes.
    """
    try:
        # a pipe, or a huge file, would keep every command waiting
        if path.stat().st_size > _MOST_BYTES or not path.is_file():
            raise FeatureError(f"is not a file of at most {_MOST_BYTES:,} bytes")
        return Metadata.of(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise FeatureError(f"cannot read {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FeatureError(f"{path} is not TOML: {error}") from error
    except FeatureError as error:
        raise FeatureError(*(f"{path}: {line}" for line in str(error).splitlines())) from error


def features() -> tuple[Feature, ...]:
    """Return the installed features, kbench's own first, and by name; none is imported.

    A feature whose metadata are wrong, or clash with those of an earlier one, has a reason.
    """
    return found_without(tuple(disabled()))


@functools.cache
def found_without(left_out: tuple[str, ...]) -> tuple[Feature, ...]:
    """Return the features, where some are disabled; read once in a process."""
    unique = {(entry.name, entry.value): entry for entry in entry_points(group=GROUP)}
    named = functools.cache(_named)
    found = [_described(entry, left_out, *named(entry.dist)) for entry in unique.values()]
    found.sort(key=lambda each: (each.distribution != HOST, each.name))
    if not any(each.distribution == HOST for each in found):
        raise FeatureError(
            "this installation of kbench has no features: it was made by an earlier version; "
            "repeat `pip install -e .` in its folder"
        )
    taken = dict.fromkeys(_names_of_core(found), "kbench itself")
    return tuple(_without_clash(each, taken) for each in found)


def _named(distribution: Distribution | None) -> tuple[str, str]:
    """Return the name and version of a distribution; each access parses its metadata anew."""
    return (distribution.name, distribution.version) if distribution else ("unknown", "")


def _described(
    entry: EntryPoint, left_out: tuple[str, ...], distribution: str, version: str
) -> Feature:
    made = Feature(entry.name, entry.module, distribution, version)
    if entry.name in left_out:
        return replace(made, reason=f"disabled by {DISABLED}")
    try:
        refuse_other_version(distribution)
        return replace(made, metadata=read(_folder(entry.module) / FILE))
    except Exception as error:
        return replace(made, reason=" ".join(str(error).split()))


def _folder(module: str) -> Path:
    """Return the folder of the top package of a module, without importing it."""
    package = module.partition(".")[0]
    found = importlib.util.find_spec(package)
    places = list(found.submodule_search_locations or ()) if found else []
    if not places:
        raise FeatureError(f"there is no package {package!r}")
    return Path(places[0])


def _names_of_core(found: Iterable[Feature]) -> Iterable[tuple[str, ...]]:
    """Yield what no feature can have: names of the core that these features want."""
    yield from (("command", name) for name in CORE_COMMANDS)
    yield from (("function", name) for name in sys.modules["kbench"].__all__)
    core = Path(__file__).parents[1]
    for name in {name for feature in found for name in feature.metadata.modules}:
        if (core / f"{name}.py").is_file() or (core / name / "__init__.py").is_file():
            yield ("module", name)


def _names(feature: Feature) -> Iterable[tuple[str, ...]]:
    """Yield what only one feature can have."""
    metadata = feature.metadata
    yield ("name", feature.name)
    yield from (("command", name) for name in metadata.commands)
    yield from (("table", name) for name in metadata.tables)
    yield from (("function", name) for name in metadata.functions)
    yield from (("module", name) for name in metadata.modules)
    for name, option in metadata.options.items():
        yield from (("option", command, name) for command in option.commands)


def _without_clash(feature: Feature, taken: dict[tuple[str, ...], str]) -> Feature:
    """Leave a feature out that has a name of an earlier one."""
    if feature.reason:
        return feature
    for name in _names(feature):
        if name in taken:
            what = f"{name[0]} {name[-1]!r}" + (f" of `kbench {name[1]}`" if name[2:] else "")
            return replace(feature, reason=f"the {what} is also one of {taken[name]}")
    owner = f"the feature {feature.name!r} of {feature.distribution}"
    taken.update(dict.fromkeys(_names(feature), owner))
    return feature


def working() -> list[Feature]:
    """Return the features that are not left out."""
    return [feature for feature in features() if not feature.reason]


def options_of(command: str) -> Mapping[str, Option]:
    """Return the options that features add to a command, by name."""
    return {
        name: option
        for feature in working()
        for name, option in feature.metadata.options.items()
        if command in option.commands
    }


def function(name: str) -> Any:
    """Return the function of a feature that is ``kbench.NAME``; None where there is none."""
    for feature in working():
        if target := feature.metadata.functions.get(name):
            return feature.load(target)
    return None


def functions() -> list[str]:
    """Return the names of all functions of features."""
    return sorted(name for feature in working() for name in feature.metadata.functions)


def module_spec(name: str) -> ModuleSpec | None:
    """Return how ``kbench.NAME``, or a module below it, is imported: under its name in a feature.

    Models that were exported, and tests of plugins, name modules that were once in the core.
    """
    try:
        found = working()
    except FeatureError:
        return None
    for feature in found:
        for alias, package in feature.metadata.modules.items():
            if name == f"kbench.{alias}" or name.startswith(f"kbench.{alias}."):
                real = package + name.removeprefix(f"kbench.{alias}")
                try:
                    exists = importlib.util.find_spec(real) is not None
                except Exception as error:
                    what = f"{type(error).__name__}: {error}"
                    raise ModuleNotFoundError(
                        f"{name} is of the feature {feature.name!r}, which cannot be used: {what}",
                        name=name,
                    ) from error
                if exists:
                    return ModuleSpec(name, _Alias(real))
    return None


class _Below:
    """Finds the modules below an alias, which other finders would load a second time."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        return module_spec(name) if name.startswith(f"{self.alias}.") else None


class _Alias(importlib.abc.Loader):
    """Loads a module by importing another one."""

    def __init__(self, real: str) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the other module itself, so that both names have the same classes."""
        module = import_module(self._real)
        self._spec = module.__spec__
        if hasattr(module, "__path__"):
            sys.meta_path.insert(0, _Below(spec.name))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore what the import system has changed: the other module is complete."""
        module.__spec__ = self._spec
