"""Global state of a process that decides numbers, and its changes.

A plugin that patches scikit-learn or calls ``numpy.seterr`` would alter the numbers of everything
computed in its process, in no key. A snapshot before its code runs and one after show it.
"""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

WATCHED = ("builtins", "math", "numpy", "scipy", "sklearn", "threadpoolctl", "kbench")
"""Packages, with their modules, whose functions and classes nothing may replace."""


def settings() -> dict[str, object]:
    """Return the settings of numeric libraries that are loaded; a few microseconds.

    Examples
    --------
    >>> import numpy as np
    >>> before = settings()
    >>> with np.errstate(divide="raise"):
    ...     find_changed_settings(before)
    ["numpy.geterr()['divide'] is 'raise', was 'warn'"]
    """
    import numpy as np

    values: dict[str, object] = {f"numpy.geterr()[{k!r}]": v for k, v in np.geterr().items()}
    # a library built with -ffast-math switches this off for its whole process
    values["denormal numbers"] = bool(np.float64(1e-310) * np.float64(0.5) > 0.0)
    if sklearn := sys.modules.get("sklearn"):
        values |= {f"sklearn.get_config()[{k!r}]": v for k, v in sklearn.get_config().items()}
    if torch := sys.modules.get("torch"):
        values |= {f"torch.{name}()": str(getattr(torch, name)()) for name in _TORCH}
    return values


_TORCH = (
    "get_default_dtype",
    "get_default_device",
    "are_deterministic_algorithms_enabled",
    "get_float32_matmul_precision",
)


def find_changed_settings(before: Mapping[str, object]) -> list[str]:
    """Name the settings that differ from a snapshot, with both values."""
    now = settings()
    return [
        f"{name} is {now[name]!r}, was {value!r}"
        for name, value in before.items()
        if name in now and now[name] != value
    ]


def watch() -> None:
    """Record the state of this process, in which third-party plugins are imported next."""
    global _watched
    for name in _OFTEN_PATCHED:
        importlib.import_module(name)
    _watched = settings(), members()


def changes(before: Mapping[str, object]) -> list[str]:
    """Name what has changed since `watch`, if it was called, else since settings `before`."""
    if _watched is None:
        return find_changed_settings(before)
    return [*find_changed_settings(_watched[0]), *find_replaced_members(_watched[1])]


_OFTEN_PATCHED = (
    "sklearn.ensemble",
    "sklearn.kernel_approximation",
    "sklearn.linear_model",
    "sklearn.metrics.pairwise",
    "sklearn.neighbors",
    "sklearn.svm",
)
"""Modules that are loaded, so that a plugin which replaces something in them is noticed."""

Members = Mapping[tuple[str, str, str], Any]
"""Functions and classes by (module, class or "", name)."""

_watched: tuple[Mapping[str, object], Members] | None = None


def find_replaced_members(before: Members) -> list[str]:
    """Name the functions and classes that are not those of a snapshot.

    Examples
    --------
    >>> import math
    >>> before, exact = members(), math.sqrt
    >>> math.sqrt = lambda x: 1.0
    >>> find_replaced_members(before)
    ['math.sqrt was replaced']
    >>> math.sqrt = exact
    """
    now = members()
    return [
        f"{'.'.join(filter(None, place))} was replaced"
        for place, member in before.items()
        if (current := now.get(place, member)) is not member and not _is_autologging(current)
    ]


def _is_autologging(member: object) -> bool:
    """Whether MLflow's autologging wraps a function: it is disabled while a task measures."""
    wrapper = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
    code = getattr(wrapper, "__code__", None)
    return code is not None and str(Path("mlflow", "utils")) in code.co_filename


def members() -> Members:
    """Return the functions and classes of the watched modules that are loaded."""
    found: dict[tuple[str, str, str], object] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in WATCHED or not isinstance(module, ModuleType):
            continue
        for attribute, value in list(vars(module).items()):
            if callable(value):
                found[name, "", attribute] = value
            if isinstance(value, type) and value.__module__ == name:
                inner = list(vars(value).items())
                found |= {(name, attribute, key): m for key, m in inner if isinstance(m, _METHODS)}
    return found


_METHODS = (FunctionType, staticmethod, classmethod, property)
