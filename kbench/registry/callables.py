"""Callables that records give: what they are, and what their signatures and docstrings say.

They are objects, ``"module:name"``, or references to the code of third-party plugins.
"""

import copyreg
import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

from kbench.errors import PluginError
from kbench.messages import printable
from kbench.records import Make, TaskType
from kbench.registry.installed import HOST, how_to_get, list_plugins


@dataclasses.dataclass(frozen=True)
class Reference:
    """A callable of a third-party plugin: the `field` of a record of a `kind` and `name`.

    Only sandboxed processes import such a plugin, so that nothing that its code does
    befalls the command. `plugin` is its entry point, `target` the callable as ``"module:name"``;
    `summary` is the first sentence of its docstring, None if that is read from the target's source;
    `identity` enters keys. ``ask(reference, function, argument)`` returns what `call` returns.
    """

    plugin: str
    distribution: str
    kind: str
    name: str
    field: str
    target: str
    summary: str | None
    identity: "Identity"
    ask: Callable[["Reference", str, Any], Any] = dataclasses.field(compare=False, repr=False)

    def call(self, function: str, argument: object = None) -> Any:
        """Return ``function(callable, argument)``, computed in a sandboxed process.

        `function` is ``"module:name"`` of kbench. Argument and result are plain JSON
        values; what comes back is as trustworthy as the plugin.

        Raises PluginError if the plugin's code failed.
        """
        return self.ask(self, function, argument)

    def __call__(self, *args: Any, **params: Any) -> NoReturn:
        """Raise PluginError: the plugin's code must not run in this process."""
        raise PluginError(
            f"{self.field} of {self.kind} {self.name!r} runs in sandboxed processes only: "
            f"plugin {self.plugin!r} is not imported here"
        )


def resolve(make: Make) -> Callable[..., Any]:
    """Return the class or function of a record's `make`, importing its module if need be.

    Raises PluginError if the module or the name in it does not exist.

    Examples
    --------
    >>> resolve("collections:Counter")
    <class 'collections.Counter'>
    """
    if not isinstance(make, str):
        return make
    module, _, name = make.partition(":")
    try:
        target = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is not None and not module.startswith(error.name):
            raise PluginError(
                f"{make} needs the package {error.name!r}, which is not installed"
                f"{how_to_get(error.name, _find_distribution(module))}"
            ) from error
        raise PluginError(f"there is no module {module!r}") from error
    except AttributeError as error:
        raise PluginError(f"the module {module!r} has no {name!r}") from error
    if not callable(target):
        raise PluginError(f"{make} is not callable")
    return target  # type: ignore[no-any-return]


def _find_distribution(module: str) -> str:
    """Return the distribution of a module's plugin; that of kbench if none is known."""
    top = module.partition(".")[0]
    owners = [p.distribution for p in list_plugins() if p.module.partition(".")[0] == top]
    return owners[0] if owners else HOST


def get_module(make: Make) -> str:
    """Return the name of the module that defines a record's `make`, without importing it."""
    return get_target(make).partition(":")[0]


def get_target(make: Make) -> str:
    """Return a record's `make` as ``"module:name"``; a partial's is that of its function."""
    if isinstance(make, str):
        return make
    if isinstance(make, Reference):
        return make.target
    if isinstance(make, functools.partial):  # else it would be functools
        return get_target(make.func)
    return f"{make.__module__}:{getattr(make, '__qualname__', type(make).__qualname__)}"


def makes(record: object, task: TaskType | None = None) -> dict[str, Make]:
    """Return the callables of a record that decide numbers, by field.

    With a `task`, a learner's estimator of another task is left out.
    """
    names = ["make", "classifier", "regressor", "load", "kernel", "metrics", "function"]
    if task is not None and hasattr(record, "regressor"):
        names.remove("classifier" if task == "regression" else "regressor")
    fields = {name: getattr(record, name, None) for name in names}
    return {name: make for name, make in fields.items() if make is not None}


def makers(record: object, task: TaskType | None = None) -> list[Make]:
    """Return what makes a component: a loader, or the estimators of a learner's tasks.

    With a `task`, a learner's estimator of another task is left out.
    """
    further = ("kernel", "metrics")
    return [make for name, make in makes(record, task).items() if name not in further]


# Levels of nested arguments; beyond, an object is taken for one that contains itself.
_DEEPEST = 50


@dataclass(frozen=True)
class Identity:
    """What a callable is, so that two runs can compare it.

    `text` is ``"module:name"`` of a class or function, and JSON of anything else: what a
    partial calls with which arguments, or the state of a callable object. `modules` define
    it and its arguments. `is_importable` is False if some part has no name in a module,
    such as a lambda: then the module that made it decides what it does.

    Examples
    --------
    >>> identify("json:dumps") == identify(json.dumps)
    True
    >>> identify(functools.partial(int, base=2)).text
    '{"arguments":[],"call":"builtins:int","keywords":{"base":2}}'
    """

    text: str
    modules: frozenset[str]
    is_importable: bool = True


def identify(make: Make) -> Identity:
    """Return the identity of a class, function, partial, method or callable object.

    PluginError is raised for what holds a value that cannot be compared between runs.
    """
    if isinstance(make, str):
        return Identity(make, frozenset([make.partition(":")[0]]))
    described = getattr(make, "identity", None)
    if isinstance(described, Identity):  # of a reference, whose plugin is not imported here
        return described
    reader = _Reader()
    form = reader.form(make)
    if not isinstance(form, str):
        form = json.dumps(form, sort_keys=True, separators=(",", ":"))
    return Identity(form, frozenset(reader.modules), reader.is_importable)


class _Reader:
    """Writes objects as plain JSON values, and collects the modules of their code."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.is_importable = True

    def form(self, value: Any, depth: int = 0) -> Any:
        """Return the form of a callable: that of a class or function is a text."""
        is_built_in = isinstance(value, BuiltinFunctionType)
        is_of_module = is_built_in and isinstance(value.__self__, ModuleType | None)
        if isinstance(value, type | FunctionType) or is_of_module:
            return self._name(value, value.__qualname__)
        if isinstance(value, MethodType):
            # the class of the object decides, which may have inherited the method
            return {"method": value.__name__, "of": self.form(value.__self__, depth + 1)}
        if type(value) is functools.partial:
            arguments = [self._argument(each, depth + 1) for each in value.args]
            keywords = {k: self._argument(v, depth + 1) for k, v in value.keywords.items()}
            call = self.form(value.func, depth + 1)
            return {"call": call, "arguments": arguments, "keywords": keywords}
        return self._reduce(value, depth)

    def _argument(self, value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise _refusal(value, "which contains itself")
        if value is None or type(value) in (bool, int, float):
            return value
        if isinstance(value, str) and type(value) is str:
            return {"text": value}
        if type(value) in (bytes, bytearray):
            return {"bytes": hashlib.sha256(value).hexdigest()}
        if type(value) in (list, tuple):
            return {type(value).__name__: [self._argument(each, depth + 1) for each in value]}
        if type(value) is dict:
            pairs = value.items()
            return {"dict": [[self._argument(p, depth + 1) for p in pair] for pair in pairs]}
        if type(value) in (set, frozenset):
            return {"set": sorted(json.dumps(self._argument(v, depth + 1)) for v in value)}
        if isinstance(value, ModuleType):
            self.modules.add(value.__name__)
            return {"module": value.__name__}
        return self.form(value, depth + 1)

    def _reduce(self, value: object, depth: int) -> Any:
        """Return the form of an object, taken apart as pickle does it."""
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            parts = value.__reduce_ex__(4) if reduce is None else reduce(value)
            if not isinstance(parts, str):  # the items of a list or dict come as an iterator
                parts = tuple(list(p) if hasattr(p, "__next__") else p for p in parts)
        except Exception as error:
            raise _refusal(value, f"which cannot be taken apart: {error}") from None
        if isinstance(parts, str):  # the name of a function that is not a Python function
            return self._name(value, parts)
        return {"object": [self._argument(part, depth + 1) for part in parts]}

    def _name(self, value: object, name: str) -> str:
        module = getattr(value, "__module__", None) or type(value).__module__
        self.modules.add(module)
        # a class may give itself the name of the package that exports it
        functions = vars(value).values() if isinstance(value, type) else (value,)
        code = (f.__globals__.get("__name__") for f in functions if isinstance(f, FunctionType))
        self.modules.update(name for name in code if isinstance(name, str))
        target: Any = sys.modules.get(module)
        for part in name.split("."):
            target = getattr(target, part, None)
        self.is_importable = self.is_importable and target is value
        return f"{module}:{name}"


def _refusal(value: object, why: str) -> PluginError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return PluginError(
        f"holds a {kind}, {why}. The key of a result must have it: use arguments of plain "
        'values, arrays, classes, functions, and objects that pickle supports, or "module:name"'
    )


_DOC_CHARACTERS = 100_000
_DEFAULT_CHARACTERS = 1000


@dataclass(frozen=True)
class Parameter:
    """A keyword parameter; `default` is written as in Python, None if there is none."""

    name: str
    default: str | None

    @property
    def is_required(self) -> bool:
        """Whether it must be given."""
        return self.default is None

    @property
    def is_number(self) -> bool:
        """Whether its default is a number; a bool is not."""
        try:
            float(self.default or "")
        except ValueError:
            return False
        return True


@dataclass(frozen=True)
class Outline:
    """The defining ``module.name`` of a component, its docstring and its keyword parameters.

    `takes_any` says whether it has ``**params`` too.
    """

    source: str
    doc: str
    parameters: tuple[Parameter, ...]
    takes_any: bool


def outline(make: Make) -> Outline:
    """Return the outline of a class or function.

    Raises PluginError if it cannot be imported, or has no signature.
    """
    if isinstance(make, Reference):
        return _parse(make.call(f"{__name__}:outline_as_json"))
    target = resolve(make)
    # a partial's docstring would be that of functools; its signature has the preset values
    source = target.func if isinstance(target, functools.partial) else target
    try:
        parameters = inspect.signature(target).parameters.values()
    except (ValueError, TypeError) as error:
        raise PluginError(f"{get_target(make)} has no signature: {error}") from error
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return Outline(
        source=f"{source.__module__}.{getattr(source, '__qualname__', type(source).__qualname__)}",
        doc=inspect.getdoc(source) or "",
        parameters=tuple(
            Parameter(each.name, None if each.default is each.empty else repr(each.default))
            for each in parameters
            if each.kind in kinds
        ),
        takes_any=any(each.kind is each.VAR_KEYWORD for each in parameters),
    )


def outline_as_json(make: Callable[..., Any], argument: None) -> dict[str, Any]:
    """Return the outline of a callable as JSON, where its plugin is imported."""
    return asdict(outline(make))


def _parse(answer: Any) -> Outline:
    """Parse what a plugin's process answers: names and texts that a terminal can show."""
    try:
        parameters = tuple(
            Parameter(
                printable(str(each["name"])),
                None
                if each["default"] is None
                else printable(str(each["default"]), _DEFAULT_CHARACTERS),
            )
            for each in answer["parameters"]
        )
        doc = "\n".join(map(printable, str(answer["doc"])[:_DOC_CHARACTERS].splitlines()))
        return Outline(printable(str(answer["source"])), doc, parameters, bool(answer["takes_any"]))
    except (KeyError, TypeError) as error:
        raise PluginError(f"a plugin's process gave a wrong answer: {error!r}") from error


def read_parameters(make: Make) -> Mapping[str, Parameter] | None:
    """Return the keyword parameters of a component, or None if it takes any.

    Raises PluginError if it cannot be imported, or has no signature.
    """
    shape = outline(make)
    return None if shape.takes_any else {each.name: each for each in shape.parameters}
