"""Checks of parameters, with one wording for every message.

Estimators call them in `fit`, where scikit-learn wants parameters checked::

    >>> check_integer(0, "n_components", least=1)
    Traceback (most recent call last):
    ValueError: n_components must be an integer >= 1, got 0

An estimator that is a dataclass declares the ranges next to the defaults::

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Map:
    ...     n_components: int = integer(300, least=1)
    ...     bandwidth: float | str = number("median", above=0, otherwise=("median",))
    ...     norm: str = choice("l2", ("l1", "l2"))
    >>> Map().n_components
    300
    >>> check_parameters(Map(bandwidth=0.0))
    Traceback (most recent call last):
    ValueError: bandwidth must be a finite number > 0, or 'median', got 0.0

Nothing heavy is imported here. A check returns nothing and changes nothing: no
result depends on it, so an edit of a message re-runs no cell.
"""

import glob
import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def check_integer(
    value: object,
    name: str,
    *,
    least: int | None = None,
    most: int | None = None,
    otherwise: str = "",
    error: type[Exception] = ValueError,
) -> None:
    """Raise ValueError unless a value is an integer in a range; a bool is not an integer.

    Parameters
    ----------
    value : object
        The value that was given.
    name : str
        Name of the parameter, as the user writes it.
    least, most : int or None, default None
        Smallest and largest value that is allowed.
    otherwise : str, default ""
        What else the caller allows, for the message: ``"None"``,
        ``"'theory' or None"``. The caller accepts these values itself.
    error : type, default ValueError
        The exception to raise.

    Raises
    ------
    ValueError
        Or `error`; the message has the name, what is allowed, and the value.

    Examples
    --------
    >>> check_integer(300, "n_components", least=1)
    >>> check_integer(2.5, "depth", least=0, most=8, otherwise="None")
    Traceback (most recent call last):
    ValueError: depth must be an integer >= 0 and <= 8, or None, got 2.5
    """
    integer = not isinstance(value, bool) and isinstance(value, Integral)
    if not (integer and _is_in_range(value, least=least, most=most)):
        allowed = "an integer" + _bounds(least=least, most=most)
        raise error(_message(name, allowed, otherwise, value))


def check_number(
    value: object,
    name: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    otherwise: str = "",
    error: type[Exception] = ValueError,
) -> None:
    """Raise ValueError unless a value is a finite number in a range; a bool is not a number.

    Parameters
    ----------
    value, name, otherwise, error
        As in `check_integer`.
    above, least, below, most : float or None, default None
        The range: ``value > above``, ``value >= least``, ``value < below``,
        ``value <= most``.

    Raises
    ------
    ValueError
        Or `error`; the message has the name, what is allowed, and the value.

    Examples
    --------
    >>> check_number(0.5, "nu", above=0, below=1)
    >>> check_number(float("inf"), "gamma", above=0, otherwise="'median'")
    Traceback (most recent call last):
    ValueError: gamma must be a finite number > 0, or 'median', got inf
    """
    number = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    if not (number and _is_in_range(value, above=above, least=least, below=below, most=most)):
        allowed = "a finite number" + _bounds(above=above, least=least, below=below, most=most)
        raise error(_message(name, allowed, otherwise, value))


def check_choice(
    value: object,
    name: str,
    choices: Iterable[object],
    *,
    otherwise: str = "",
    error: type[Exception] = ValueError,
) -> None:
    """Raise ValueError unless a value is one of some values.

    Parameters
    ----------
    value, name, otherwise, error
        As in `check_integer`.
    choices : iterable
        The values that are allowed.

    Raises
    ------
    ValueError
        Or `error`; the message has the name, what is allowed, and the value.

    Examples
    --------
    >>> check_choice("l2", "norm", ("l1", "l2"))
    >>> check_choice("l3", "norm", ("l1", "l2"))
    Traceback (most recent call last):
    ValueError: norm must be one of 'l1', 'l2', got 'l3'
    """
    allowed = list(choices)
    if not any(_same(value, choice) for choice in allowed):
        raise error(_message(name, "one of " + ", ".join(map(repr, allowed)), otherwise, value))


def integer(default: T, *, otherwise: tuple[object, ...] = (), **bounds: int) -> T:
    """Declare a parameter that `check_integer` checks, as a field of a dataclass.

    Parameters
    ----------
    default : object
        The default.
    otherwise : tuple, default ()
        Other values that are allowed, such as None.
    **bounds : int
        Those of `check_integer`.
    """
    return _declare(default, check_integer, otherwise, **bounds)


def number(default: T, *, otherwise: tuple[object, ...] = (), **bounds: float) -> T:
    """Declare a parameter that `check_number` checks, as `integer` does."""
    return _declare(default, check_number, otherwise, **bounds)


def choice(default: T, choices: Iterable[object], *, otherwise: tuple[object, ...] = ()) -> T:
    """Declare a parameter that `check_choice` checks, as `integer` does."""
    return _declare(default, check_choice, otherwise, choices=tuple(choices))


def _declare(
    default: T, check: Callable[..., None], otherwise: tuple[object, ...], **options: object
) -> T:
    def refuse(value: object, name: str) -> None:
        if not any(_same(value, other) for other in otherwise):
            check(value, name, otherwise=" or ".join(map(repr, otherwise)), **options)

    return field(default=default, metadata={"check": refuse})


def check_parameters(estimator: object) -> None:
    """Check what the fields of a dataclass declare with `integer`, `number` and `choice`.

    Raises ValueError for the first one that is not allowed.
    """
    for each in getattr(estimator, "__dataclass_fields__", {}).values():
        if "check" in each.metadata:
            each.metadata["check"](getattr(estimator, each.name), each.name)


_COMPARISONS = {
    "above": (">", operator.gt),
    "least": (">=", operator.ge),
    "below": ("<", operator.lt),
    "most": ("<=", operator.le),
}


def check_coefficients(shape: tuple[int, ...], n_features: int) -> None:
    """Raise ValueError unless coefficients are linear functions of `n_features` features.

    Parameters
    ----------
    shape : tuple of int
        Shape of the coefficients: of one function, or of several in rows.
    n_features : int
        Number of features.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_coefficients((2, 3), n_features=3)
    >>> check_coefficients((2,), n_features=3)
    Traceback (most recent call last):
    ValueError: coef must have shape (3,) or (n_outputs, 3), got (2,)
    """
    if len(shape) not in (1, 2) or shape[-1] != n_features:
        raise ValueError(
            f"coef must have shape ({n_features},) or (n_outputs, {n_features}), got {shape}"
        )


def _same(value: object, choice: object) -> bool:
    # types first: an array compares element by element, and True equals 1
    same_type = isinstance(value, type(choice)) and isinstance(value, bool) == isinstance(
        choice, bool
    )
    return same_type and value == choice


def _is_in_range(value: Any, **bounds: float | None) -> bool:
    limits = ((_COMPARISONS[name][1], bound) for name, bound in bounds.items() if bound is not None)
    return all(holds(value, bound) for holds, bound in limits)


def _bounds(**bounds: float | None) -> str:
    limits = [f"{_COMPARISONS[k][0]} {bound}" for k, bound in bounds.items() if bound is not None]
    return " " + " and ".join(limits) if limits else ""


def _message(name: str, allowed: str, otherwise: str, value: object) -> str:
    return f"{name} must be {allowed}{otherwise and f', or {otherwise}'}, got {value!r}"


def list_files(path: str | Path) -> list[Path]:
    """Return the files that a parameter names: a file, or all in a folder or of a pattern.

    Patterns have ``*``, ``?`` and ``[...]``. Files of which the name begins with a dot or an
    underscore are left out: other programs keep notes there. A name of which there is no
    file is returned as it is.

    >>> list_files("no/such/file.csv")
    [PosixPath('no/such/file.csv')]
    """
    path = Path(path).expanduser()
    try:
        if path.is_dir():
            paths = list(path.iterdir())
        elif is_pattern(path) and not path.exists():
            paths = list(map(Path, glob.glob(str(path))))  # noqa: PTH207 (it may be absolute)
        else:
            return [path]
    except (OSError, ValueError):
        return [path]
    return sorted(file for file in paths if file.is_file() and file.name[0] not in "._")


def is_pattern(path: str | Path) -> bool:
    """Whether a file name has wildcards."""
    return any(sign in str(path) for sign in "*?[")
