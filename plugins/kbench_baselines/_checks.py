"""Checks of parameters, with messages that name the parameter, its value and what is allowed."""

from __future__ import annotations

from kbench.parameters import check_integer


def check_count(estimator, *names):
    """Raise ValueError unless each named parameter is an integer >= 1."""
    for name in names:
        check_integer(getattr(estimator, name), name, least=1)
