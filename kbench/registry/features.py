"""Features that are installed: what their metadata say, read without importing them.

A feature is a package with an entry point in the group ``kbench.features`` and a file
``feature.toml`` next to its ``__init__.py``. Help pages, completion and ``kbench list`` need
that file only; the package is imported by the command or the run that uses it.
"""

import contextlib
import functools
import importlib.abc
import keyword
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args, get_origin, get_type_hints

from kbench.errors import FeatureError
from kbench.messages import did_you_mean
from kbench.registry import installed
from kbench.registry.dependencies import find_folders

GROUP = "kbench.features"
FILE = "feature.toml"

# Commands of the core, in the order of the help page; no feature can have one of these.
CORE_COMMANDS = ("suite", "results")

_MAX_BYTES = 2**18
_TARGET = re.compile(r"[\w.]+:\w+")
# What a feature provides: an object of one of its modules.
Target: TypeAlias = Annotated[str, '"module:name"']


@dataclass(frozen=True)
class Command:
    """A command: ``"module:function"``, its line in the list of commands, its place there.

    `while_loading` is shown while its imports run, and `examples` end its help page. One without a
    target is a group: the command ``"GROUP NAME"`` of any feature is ``kbench GROUP NAME``.
    """

    help: str
    target: Target = ""
    after: str = ""
    while_loading: str = ""
    examples: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Option:
    """An option that a feature adds to commands of the core, and to functions of Python.

    `kind` is "text", "switch" (with its `default`), or "list": repeatable, with a flag that lacks
    the last "s" of the name. In help it comes after the first of the parameters in `after` that the
    command has.
    """

    commands: tuple[str, ...]
    help: str
    kind: Literal["text", "switch", "list"] = "text"
    metavar: str | None = None
    default: bool = False
    functions: tuple[str, ...] = ()
    after: str = ""


@dataclass(frozen=True)
class ReportTable:
    """A table of the report: that of a function of its data, or one of a section of the feature."""

    help: str
    after: str = ""
    target: Target = ""


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
    functions: Mapping[str, Target] = field(default_factory=dict)
    completions: Mapping[str, Target] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, content: Mapping[str, object]) -> Self:
        """Check the content of a file; FeatureError says what is wrong."""
        made: Self = _record(cls, content, "")
        for name in made.options:
            if not name.isidentifier() or keyword.iskeyword(name):
                raise FeatureError(
                    f"options.{name}: must be a name of Python, with underscores for hyphens"
                )
        for name, command in made.commands.items():
            if not command.target and not any(f"{name} " in each for each in made.commands):
                raise FeatureError(f"commands.{name}.target: missing")
        return made


def _record(record: Any, table: Mapping[str, Any], at: str) -> Any:
    """Make a record of a table of TOML; FeatureError says all that is wrong with it."""
    types = get_type_hints(record, include_extras=True)
    problems = [
        f"{at}{key}: no such key{did_you_mean(key, types)}" for key in table if key not in types
    ]
    made = {}
    for each in fields(record):
        if each.name in table:
            try:
                made[each.name] = _convert(types[each.name], table[each.name], at + each.name)
            except FeatureError as error:
                problems += str(error).splitlines()
        elif each.default is each.default_factory is MISSING:
            problems.append(f"{at}{each.name}: missing")
    if problems:
        raise FeatureError(*problems)
    return record(**made)


_OF_TOML: Mapping[Any, tuple[type, str]] = {
    tuple: (list, "an array"),
    Mapping: (dict, "a table"),
    str: (str, "a string"),
    bool: (bool, "a boolean"),
}


def _convert(wanted: Any, value: Any, place: str) -> Any:
    """Convert a TOML value to the type of a field; raises FeatureError if it is another."""
    kind, inner = get_origin(wanted) or wanted, get_args(wanted)
    if kind is UnionType:  # TOML has no value for None
        return _convert(inner[0], value, place)
    if kind is Annotated:
        words, fits = inner[1], isinstance(value, str) and bool(_TARGET.fullmatch(value))
    elif kind is Literal:
        words, fits = " or ".join(map(repr, inner)), value in inner
    else:
        type_, words = _OF_TOML[Mapping if is_dataclass(kind) else kind]
        fits = isinstance(value, type_)
    if kind is tuple and inner[-1] is not ...:
        words, fits = f"an array of {len(inner)}", fits and len(value) == len(inner)
    if not fits:
        raise FeatureError(f"{place} must be {words}, got {value!r}")
    if is_dataclass(kind):
        return _record(kind, value, f"{place}.")
    if kind is Mapping:
        return {name: _convert(inner[1], each, f"{place}.{name}") for name, each in value.items()}
    if kind is tuple:
        return tuple(_convert(inner[0], each, f"{place}[{i}]") for i, each in enumerate(value))
    return value


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

        Raises FeatureError if it cannot be imported, or has no such object.
        """
        module, _, name = target.partition(":")
        try:
            loaded = import_module(module or self.module)
            return getattr(loaded, name) if name else loaded
        except (Exception, SystemExit) as error:
            problem = f"{type(error).__name__}: {error}".strip(": ")
            raise FeatureError(f"the feature {self.name!r} cannot be used: {problem}") from error


def read(path: Path) -> Metadata:
    """Read the metadata of a feature.

    Raises FeatureError if the file is missing or has errors.
    """
    try:
        # a pipe, or a huge file, would keep every command waiting
        if path.stat().st_size > _MAX_BYTES or not path.is_file():
            raise FeatureError(f"is not a file of at most {_MAX_BYTES:,} bytes")
        return Metadata.parse(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise FeatureError(f"cannot read {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FeatureError(f"{path} is not TOML: {error}") from error
    except FeatureError as error:
        raise FeatureError(*(f"{path}: {line}" for line in str(error).splitlines())) from error


def features() -> tuple[Feature, ...]:
    """Return the installed features, kbench's first, and by name; none is imported.

    A feature whose metadata are wrong, or clash with those of an earlier one, has a reason.
    """
    return find_features(tuple(installed.list_disabled()))


@functools.cache
def find_features(left_out: tuple[str, ...]) -> tuple[Feature, ...]:
    """Return the features, where some are disabled; read once in a process."""
    unique = {(entry.name, entry.value): entry for entry in entry_points(group=GROUP)}
    named = functools.cache(installed.name_and_version)
    features = [_describe(entry, left_out, *named(entry.dist)) for entry in unique.values()]
    features.sort(key=lambda each: (each.distribution != installed.HOST, each.name))
    if not any(each.distribution == installed.HOST for each in features):
        raise FeatureError(
            "this installation of kbench has no features: it was made by an earlier version; "
            "repeat `pip install -e .` in its folder"
        )
    taken = dict.fromkeys(_names_of_core(features), "kbench itself")
    return tuple(_refuse_clash(each, taken) for each in features)


def _describe(
    entry: EntryPoint, left_out: tuple[str, ...], distribution: str, version: str
) -> Feature:
    made = Feature(entry.name, entry.module, distribution, version)
    if entry.name in left_out:
        return replace(made, reason=f"disabled by {installed.DISABLED}")
    try:
        installed.refuse_other_version(distribution)
        return replace(made, metadata=read(_folder(entry.module) / FILE))
    except Exception as error:
        return replace(made, reason=" ".join(str(error).split()))


def _folder(module: str) -> Path:
    """Return the folder of the top package of a module, without importing it."""
    package = module.partition(".")[0]
    if not (places := find_folders(package, {})):
        raise FeatureError(f"there is no package {package!r}")
    return Path(places[0])


def _names_of_core(features: Iterable[Feature]) -> Iterable[tuple[str, ...]]:
    """Yield what no feature can have: names of the core that these features want."""
    yield from (("command", name) for name in CORE_COMMANDS)
    yield from (("function", name) for name in sys.modules["kbench"].__all__)
    core = Path(__file__).parents[1]
    for name in {name for feature in features for name in feature.metadata.modules}:
        if (core / f"{name}.py").is_file() or (core / name / "__init__.py").is_file():
            yield ("module", name)


def _names(feature: Feature) -> Iterable[tuple[str, ...]]:
    """Yield what only one feature can have."""
    metadata = feature.metadata
    yield ("name", feature.name)
    yield from (("command", name) for name in metadata.commands)
    yield from (("group", name) for name, each in metadata.commands.items() if not each.target)
    yield from (("table", name) for name in metadata.tables)
    yield from (("function", name) for name in metadata.functions)
    yield from (("module", name) for name in metadata.modules)
    for name, option in metadata.options.items():
        yield from (("option", command, name) for command in option.commands)


def _refuse_clash(feature: Feature, taken: dict[tuple[str, ...], str]) -> Feature:
    """Leave a feature out that has a name of an earlier one."""
    if feature.reason:
        return feature
    for name in _names(feature):
        if name in taken:
            label = f"{name[0]} {name[-1]!r}" + (f" of `kbench {name[1]}`" if name[2:] else "")
            return replace(feature, reason=f"the {label} is also one of {taken[name]}")
    groups = {"", *(name[1] for name in (*taken, *_names(feature)) if name[0] == "group")}
    for command in feature.metadata.commands:
        if (group := command.rpartition(" ")[0]) not in groups:
            return replace(feature, reason=f"the command {command!r}: there is no group {group!r}")
    owner = f"the feature {feature.name!r} of {feature.distribution}"
    taken.update(dict.fromkeys(_names(feature), owner))
    return feature


def working() -> list[Feature]:
    """Return the features that are not left out."""
    return [feature for feature in features() if not feature.reason]


def get_options(command: str) -> Mapping[str, Option]:
    """Return the options that features add to a command, by name."""
    return {
        name: option
        for feature in working()
        for name, option in feature.metadata.options.items()
        if command in option.commands
    }


def function(name: str) -> Any:
    """Return the function of a feature that is ``kbench.NAME``; None if there is none."""
    for feature in working():
        if target := feature.metadata.functions.get(name):
            return feature.load(target)
    return None


def functions() -> list[str]:
    """Return the names of all functions of features."""
    return sorted(name for feature in working() for name in feature.metadata.functions)


def module_spec(name: str) -> ModuleSpec | None:
    """Return how ``kbench.NAME`` is imported in a feature: as a module of its own."""
    with contextlib.suppress(FeatureError):
        for feature in working():
            if (real := feature.metadata.modules.get(name.removeprefix("kbench."))) is not None:
                return ModuleSpec(name, _Alias(feature, real))
    return None


class _Alias(importlib.abc.Loader):
    """Loads a module by importing another one of a feature."""

    def __init__(self, feature: Feature, real: str) -> None:
        self._feature, self._real = feature, real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the other module itself, so that both names have the same classes."""
        try:
            module = import_module(self._real)
        except Exception as error:
            name, problem = self._feature.name, f"{type(error).__name__}: {error}"
            raise ModuleNotFoundError(
                f"{spec.name} is of the feature {name!r}, which cannot be used: {problem}"
            ) from error
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore what the import system has changed: the other module is complete."""
        module.__spec__ = self._spec
