"""Checks of parameters: what they accept and how they word it."""

from dataclasses import dataclass

import numpy as np
import pytest

from kbench.errors import SuiteError
from kbench.parameters import (
    check_choice,
    check_integer,
    check_number,
    check_parameters,
    choice,
    integer,
    number,
)


@pytest.mark.parametrize("value", [1, 7, np.int64(3), np.uint8(1)])
def test_integers_are_accepted(value):
    check_integer(value, "n", least=1)


@pytest.mark.parametrize("value", [0, -1, True, 1.0, np.float64(2), "3", None, np.array([3])])
def test_other_values_are_not_integers(value):
    with pytest.raises(ValueError, match=r"^n must be an integer >= 1, got "):
        check_integer(value, "n", least=1)


@pytest.mark.parametrize("value", [0.5, 1, np.float32(0.25), np.int32(1)])
def test_numbers_are_accepted(value):
    check_number(value, "x", above=0, most=1)


@pytest.mark.parametrize(
    "value", [0, 1.5, True, float("nan"), float("inf"), "0.5", None, 1j, np.array([0.5])]
)
def test_other_values_are_not_numbers(value):
    with pytest.raises(ValueError, match=r"^x must be a finite number > 0 and <= 1, got "):
        check_number(value, "x", above=0, most=1)


@pytest.mark.parametrize(
    ("bounds", "inside", "outside"),
    [
        ({"above": 0}, 1e-300, 0),
        ({"least": 0}, 0, -1e-300),
        ({"below": 1}, 0.999, 1),
        ({"most": 1}, 1, 1.001),
    ],
)
def test_each_bound(bounds, inside, outside):
    check_number(inside, "x", **bounds)
    with pytest.raises(ValueError, match=r"^x must be a finite number (>|>=|<|<=) \d, got "):
        check_number(outside, "x", **bounds)


def test_choices_compare_types_too():
    check_choice(np.str_("a"), "mode", ("a", None))
    check_choice(None, "mode", ("a", None))
    for value in (True, 1.0, np.array([1, 2]), "1"):
        with pytest.raises(ValueError, match=r"^mode must be one of 1, 2, got "):
            check_choice(value, "mode", (1, 2))


def test_alternatives_and_the_kind_of_error():
    with pytest.raises(SuiteError, match=r"^jobs must be an integer >= 1, or 'auto', got 0$"):
        check_integer(0, "jobs", least=1, otherwise="'auto'", error=SuiteError)


@dataclass
class Declared:
    size: int | str | None = integer(None, least=1, otherwise=("theory", None))
    norm: str = choice("l2", ("l1", "l2"))
    free: object = None


@dataclass
class Extended(Declared):
    width: float = number(1.0, above=0)


@pytest.mark.parametrize("given", [{}, {"size": "theory"}, {"size": 3, "free": -1, "width": 2}])
def test_declared_parameters_are_accepted(given):
    check_parameters(Extended(**given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 0}, "size must be an integer >= 1, or 'theory' or None, got 0"),
        ({"norm": np.array(["l2"])}, "norm must be one of 'l1', 'l2', got array"),
        ({"width": -1, "norm": "l3"}, "norm must be one of 'l1', 'l2', got 'l3'"),
        ({"width": None}, "width must be a finite number > 0, got None"),
    ],
)
def test_the_first_declared_parameter_that_is_wrong_is_named(given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        check_parameters(Extended(**given))
