"""Fitted objects as JSON and arrays, without pickle.

An object is taken apart as `pickle` would do it, by ``__reduce_ex__``, and written as JSON;
arrays are kept apart. Loading calls classes of numpy, scipy, scikit-learn, of the bundled package
and of the packages that it names, and a few constructors that numpy and scikit-learn need. It calls
no other function. This module is bundled with an exported model.
"""

import base64
import copyreg
import functools
import importlib
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

# A value of JSON.
Json: TypeAlias = Any

# Packages whose classes may be created.
BASE = ("numpy", "scipy", "sklearn")

_OTHERS: Mapping[str, Any] = {
    "builtins": ("complex", "object", "range", "slice", "bytearray"),
    "collections": ("OrderedDict", "defaultdict", "deque"),
    "copyreg": ("_reconstructor",),
    "functools": ("partial",),
}
# Functions that create objects of compiled classes of numpy and scikit-learn.
_CONSTRUCTORS = ("__bit_generator_ctor", "__generator_ctor", "__randomstate_ctor", "newObj")

_PLAIN = (bool, int, float, str)


class NotPlainError(TypeError):
    """An object cannot be written without pickle."""


def dump(value: Any, bundled: Callable[[str], str | None]) -> tuple[Json, dict[str, np.ndarray]]:
    """Return an object as JSON, and its arrays by name.

    ``own(module)`` is the name, beginning with a dot, of a module that leaves with the model;
    None for other modules. `NotPlainError` names what cannot be written.
    """
    writer = _Writer(bundled)
    return writer.dump(value), writer.arrays


class _Writer:
    def __init__(self, bundled: Callable[[str], str | None]) -> None:
        self._own = bundled
        self.arrays: dict[str, np.ndarray] = {}
        self._known: dict[int, tuple[int, Any]] = {}  # objects are kept, or ids would be reused

    def dump(self, value: Any) -> Json:
        if value is None or type(value) in _PLAIN:
            return value
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            return {"objects": [self.dump(v) for v in value.ravel().tolist()], "shape": value.shape}
        if isinstance(value, np.generic) and not isinstance(value, np.object_):
            return {"scalar": self._array(np.asarray(value))}
        if isinstance(value, np.dtype):
            return {"dtype": self._array(np.empty(0, value))}
        kind = type(value)
        if kind is list:
            return [self.dump(v) for v in value]
        if kind in (tuple, set, frozenset):
            return {kind.__name__: [self.dump(v) for v in value]}
        if kind is dict:
            return {"dict": [[self.dump(k), self.dump(v)] for k, v in value.items()]}
        if kind is bytes:
            return {"bytes": base64.b64encode(value).decode()}
        if isinstance(value, type) or _is_function(value):
            return {"name": self._name(value)}
        if id(value) in self._known:
            return {"same": self._known[id(value)][0]}
        number = len(self._known)
        self._known[id(value)] = (number, value)
        if kind is np.ndarray:
            return {"array": self._array(value), "id": number}
        return {"id": number, **self._object(value)}

    def _array(self, array: np.ndarray) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def _object(self, value: Any) -> dict[str, Json]:
        try:
            reduced = value.__reduce_ex__(2)
        except Exception as error:  # whatever an object's own method raises
            raise NotPlainError(f"{type(value).__name__}: {error}") from error
        if isinstance(reduced, str):
            raise NotPlainError(f"{type(value).__name__} is a global object")
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        written: dict[str, Json] = {}
        if make is copyreg.__newobj__:  # type: ignore[attr-defined]
            written["new"] = self._name(arguments[0])
            arguments = arguments[1:]
        else:
            written["call"] = self._name(make)
            if not _may_be_called(written["call"], make):
                raise NotPlainError(f"{type(value).__name__} is made by {written['call']}")
        self._keep(arguments, state)
        written["arguments"] = [self.dump(a) for a in arguments]
        if state is not None:
            written["state"] = self.dump(state)
        if items is not None:
            written["items"] = [self.dump(item) for item in items]
        if pairs is not None:
            written["pairs"] = [[self.dump(k), self.dump(v)] for k, v in pairs]
        return written

    def _keep(self, *temporary: Any) -> None:
        """Keep objects that only `__reduce_ex__` made, so that no other gets their id."""
        self._known.setdefault(id(temporary), (-1, temporary))

    def _name(self, value: Any) -> str:
        module = getattr(value, "__module__", None) or "numpy"  # some ufuncs have none
        name = getattr(value, "__qualname__", None) or value.__name__
        if "<" in name:
            raise NotPlainError(f"{module}.{name}: functions must have a name at the top level")
        bundled = self._own(module)
        written = f"{module if bundled is None else bundled}:{name}"
        if bundled is None and _get_attribute(importlib.import_module(module), name) is not value:
            raise NotPlainError(f"{module}.{name} is not the object of that name")
        return written


def _is_function(value: Any) -> bool:
    owner = getattr(value, "__self__", None)  # of a built-in function, its module
    is_bound = owner is not None and not isinstance(owner, ModuleType)
    named = isinstance(value, np.ufunc) or hasattr(value, "__qualname__")
    return callable(value) and named and not is_bound


def _may_be_called(name: str, value: Any) -> bool:
    """Whether an object may be made by a callable: a class, a constructor, or the model's own."""
    last = name.rpartition(":")[2]
    is_ok = last in _CONSTRUCTORS or last.startswith("__pyx_unpickle_")
    return (
        name.startswith(".") or isinstance(value, type) or is_ok or name == "copyreg:_reconstructor"
    )


def _get_attribute(module: Any, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), module)


def load(
    written: Json, arrays: Mapping[str, np.ndarray], package: str, further: Collection[str] = ()
) -> Any:
    """Return the object that `dump` has written.

    `package` is that of the bundled modules, `further` names packages in addition to `BASE`.
    ValueError is raised for anything that is not allowed.
    """
    return _Reader(arrays, package, (*BASE, *further)).read(written)


class _Reader:
    def __init__(
        self, arrays: Mapping[str, np.ndarray], package: str, allowed: Collection[str]
    ) -> None:
        self._arrays, self._package, self._allowed = arrays, package, allowed
        self._known: dict[int, Any] = {}

    def read(self, written: Json) -> Any:
        if written is None or type(written) in _PLAIN:
            return written
        if isinstance(written, list):
            return [self.read(each) for each in written]
        if not isinstance(written, dict) or not written:
            raise ValueError("not an object of a model")
        if "id" in written:
            return self._object(written)
        ((kind, value),) = [item for item in written.items() if item[0] != "shape"]
        if kind == "objects":
            array = np.empty(len(value), dtype=object)
            array[:] = [self.read(each) for each in value]
            return array.reshape(written["shape"])
        return self._known[value] if kind == "same" else self._read_kind(kind, value)

    def _read_kind(self, kind: str, value: Any) -> Any:
        if kind == "scalar":
            return self._arrays[value][()]
        if kind == "dtype":
            return self._arrays[value].dtype
        if kind == "name":
            return self._import(value)
        if kind == "bytes":
            return base64.b64decode(value)
        if kind == "dict":
            return {self.read(k): self.read(v) for k, v in value}
        if kind in ("tuple", "set", "frozenset"):
            make = {"tuple": tuple, "set": set, "frozenset": frozenset}[kind]
            return make(self.read(each) for each in value)
        raise ValueError(f"not an object of a model: {kind!r}")

    def _object(self, written: dict[str, Json]) -> Any:
        number = written["id"]
        if "array" in written:
            self._known[number] = self._arrays[written["array"]]
            return self._known[number]
        arguments = [self.read(each) for each in written["arguments"]]
        if "new" in written:
            kind = self._import(written["new"])
            if not isinstance(kind, type):
                raise ValueError(f"{written['new']} is not a class")
            made = kind.__new__(kind, *arguments)
        else:
            made = self._callable(written["call"])(*arguments)
        self._known[number] = made
        if "state" in written:
            _set_state(made, self.read(written["state"]))
        for item in written.get("items", ()):
            made.append(self.read(item))
        for key, value in written.get("pairs", ()):
            made[self.read(key)] = self.read(value)
        return made

    def _callable(self, name: str) -> Any:
        value = self._import(name)
        if not _may_be_called(name, value):
            raise ValueError(f"{name} is not a class")
        return value

    def _import(self, name: str) -> Any:
        module, _, last = name.partition(":")
        if module.startswith("."):
            imported = importlib.import_module(module, self._package)
        elif module.partition(".")[0] in self._allowed or last in _OTHERS.get(module, ()):
            imported = importlib.import_module(module)
        else:
            raise ValueError(f"a model may not name {name!r}")
        target = _get_attribute(imported, last)
        origin = (getattr(target, "__module__", None) or "numpy").partition(".")[0]
        if not module.startswith(".") and origin not in (*self._allowed, *_OTHERS):
            # a package's own imports of os, for example
            raise ValueError(f"a model may not name {name!r}")
        return target


def _set_state(made: Any, state: Any) -> None:
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return
    slots: Any = {}
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        made.__dict__.update(state)
    for name, value in (slots or {}).items():
        object.__setattr__(made, name, value)
