"""Identity of a callable that a record names: a text for keys, and the modules that define it."""

from __future__ import annotations

import copyreg
import functools
import hashlib
import json
import sys
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from kbench.errors import PluginError
from kbench.records import Make

_DEEPEST = 50
"""Levels of nested arguments; beyond, an object is taken for one that contains itself."""


@dataclass(frozen=True)
class Identity:
    """What a callable is, so that two runs can compare it.

    `text` is ``"module:name"`` of a class or function, and JSON of anything else: what a
    partial calls with which arguments, or the state of a callable object. `modules` define
    it and its arguments. `is_importable` is False if some part has no name in a module,
    such as a lambda: then the module that made it decides what it does.

    Examples
    --------
    >>> identity_of("json:dumps") == identity_of(json.dumps)
    True
    >>> identity_of(functools.partial(int, base=2)).text
    '{"arguments":[],"call":"builtins:int","keywords":{"base":2}}'
    """

    text: str
    modules: frozenset[str]
    is_importable: bool = True


def identity_of(make: Make) -> Identity:
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
        if isinstance(value, type | FunctionType) or _is_function_of_module(value):
            return self._named(value, value.__qualname__)
        if isinstance(value, MethodType):
            # the class of the object decides, which may have inherited the method
            return {"method": value.__name__, "of": self.form(value.__self__, depth + 1)}
        if type(value) is functools.partial:
            arguments = [self._argument(each, depth + 1) for each in value.args]
            keywords = {k: self._argument(v, depth + 1) for k, v in value.keywords.items()}
            call = self.form(value.func, depth + 1)
            return {"call": call, "arguments": arguments, "keywords": keywords}
        return self._reduced(value, depth)

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

    def _reduced(self, value: Any, depth: int) -> Any:
        """Return the form of an object, taken apart as pickle does it."""
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            reduced = value.__reduce_ex__(4) if reduce is None else reduce(value)
            parts = reduced if isinstance(reduced, str) else [*map(_listed, reduced)]
        except Exception as error:
            raise _refusal(value, f"which cannot be taken apart: {error}") from None
        if isinstance(parts, str):  # the name of a function that is not a Python function
            return self._named(value, parts)
        return {"object": [self._argument(part, depth + 1) for part in parts]}

    def _named(self, value: Any, name: str) -> str:
        module = getattr(value, "__module__", None) or type(value).__module__
        self.modules.add(module)
        # a class may give itself the name of the package that exports it
        functions = vars(value).values() if isinstance(value, type) else (value,)
        code = (f.__globals__.get("__name__") for f in functions if isinstance(f, FunctionType))
        self.modules.update(name for name in code if isinstance(name, str))
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        self.is_importable = self.is_importable and found is value
        return f"{module}:{name}"


def _is_function_of_module(value: Any) -> bool:
    if not isinstance(value, BuiltinFunctionType):
        return False
    return value.__self__ is None or isinstance(value.__self__, ModuleType)


def _listed(part: Any) -> Any:
    """Return a part of a reduced object; the items of a list or dict come as an iterator."""
    return list(part) if hasattr(part, "__next__") else part


def _refusal(value: Any, why: str) -> PluginError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return PluginError(
        f"holds a {kind}, {why}. The key of a result must have it: use arguments of plain "
        'values, arrays, classes, functions, and objects that pickle supports, or "module:name"'
    )
