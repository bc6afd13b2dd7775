"""Checks of parameters, with messages that name the parameter, its value and what is allowed."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np

FLOATS = (np.float64, np.float32)
"""The dtypes that maps work in; anything else is converted to the first."""


def check_count(estimator, *names):
    """Raise ValueError unless each named parameter is an integer >= 1."""
    for name in names:
        value = getattr(estimator, name)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be an integer >= 1, got {value!r}")


def check_positive(estimator, *names):
    """Raise ValueError unless each named parameter is a finite number > 0."""
    for name in names:
        value = getattr(estimator, name)
        if not _is_finite(value) or value <= 0:
            raise ValueError(f"{name} must be a finite number > 0, got {value!r}")


def check_nonnegative(estimator, *names):
    """Raise ValueError unless each named parameter is a finite number >= 0."""
    for name in names:
        value = getattr(estimator, name)
        if not _is_finite(value) or value < 0:
            raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")


def check_choice(estimator, name, allowed):
    """Raise ValueError unless the named parameter is one of `allowed`."""
    value = getattr(estimator, name)
    if isinstance(value, bool) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def _is_finite(value):
    return isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(value)
