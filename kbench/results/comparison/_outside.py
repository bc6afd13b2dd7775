"""Rows from outside: files and stores are written by others too, so they are checked once.

What is computed with is checked, and what is printed; a row may hold anything else.
"""

from __future__ import annotations

import math
import unicodedata
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from kbench.records import Measure
from kbench.results.rows import TIMES, Row

LONGEST = 10_000
"""Characters of a text; those of MLflow's params and tags are shorter."""

LARGEST = 1e100
"""Beyond, squares and ratios of numbers are none."""


def _short_and_printable(text: str) -> str:
    if len(text) > LONGEST:
        raise ValueError(f"has {len(text)} characters; {LONGEST} at most")
    if not _can_be_printed(text):
        raise ValueError("holds control characters")
    return text


def _can_be_printed(text: str) -> bool:
    """Tell whether a terminal shows a text and does nothing else with it."""
    # Cc: control characters, Cs: halves of a character, which cannot be encoded
    return text.isprintable() or not {"Cc", "Cs"} & set(map(unicodedata.category, text))


def _numbers(text: str) -> str:
    try:
        values = [float(each) for each in text.split(", ") if each]
    except ValueError:
        values = [math.nan]
    if not all(abs(each) <= LARGEST for each in values):  # which NaN is not
        raise ValueError("holds more than numbers")
    return text


Text = Annotated[str, AfterValidator(_short_and_printable)]
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Count = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]


class _OutsideRow(BaseModel):
    """The part of a row that a comparison uses."""

    model_config = ConfigDict(strict=True)

    dataset: Text
    feature_map: Text
    learner: Text
    status: Text
    measure: Text
    better: Literal["higher", "lower"]
    calibration_s: Annotated[Text, AfterValidator(_numbers)]
    contention: Text
    machine: Text
    n_train: Count | None = None
    n_test: Count | None = None
    split_hash: dict[Text, Text]
    protocol: dict[Text, Text]
    values_by_split: dict[str, Any]

    @model_validator(mode="after")
    def _has_numbers(self) -> _OutsideRow:
        for name in (self.measure, *TIMES):
            values = self.values_by_split.get(name, {})
            if not isinstance(values, dict) or not all(map(_is_number, values.values())):
                raise ValueError(f"values_by_split.{name} are no finite numbers")
        return self


def _is_number(value: Any) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and abs(value) <= LARGEST


def from_outside(value: Any) -> tuple[Row, Measure]:
    """Read one row that `kbench.results.rows.Row.to_json` wrote, or seems to have written.

    Parameters
    ----------
    value : object
        Plain JSON values.

    Returns
    -------
    row : Row
        With what a comparison uses.
    measure : Measure
        What its suite compares.

    Raises
    ------
    ValueError
        Why it cannot be compared.

    Examples
    --------
    >>> from_outside({"dataset": 7})
    Traceback (most recent call last):
        ...
    ValueError: dataset is not there or no text
    """
    if not isinstance(value, dict):
        raise ValueError("no object")
    try:
        checked = _OutsideRow.model_validate(value)
    except ValidationError as error:
        raise ValueError(_explained(error.errors()[0])) from None
    counts = {"n_train": checked.n_train, "n_test": checked.n_test}
    row = Row(
        dataset=checked.dataset,
        feature_map=checked.feature_map,
        learner=checked.learner,
        status=checked.status,
        n_splits_done=0,
        n_splits=0,
        measures={name: count for name, count in counts.items() if count is not None},
        machine=checked.machine,
        protocol=checked.protocol,
        values_by_split={
            name: checked.values_by_split.get(name, {}) for name in (checked.measure, *TIMES)
        },
        split_hash=checked.split_hash,
        contention=checked.contention,
        calibration_s=checked.calibration_s,
    )
    return row, Measure(checked.measure, checked.better)


def _explained(error: Any) -> str:
    """Say in a few words what pydantic found."""
    message = error["msg"].removeprefix("Value error, ")
    if not error["loc"]:
        return str(message)
    name = error["loc"][0]
    if name in ("split_hash", "protocol", "values_by_split"):
        is_there = len(error["loc"]) > 1
        return f"{name} holds more than text" if is_there else f"{name} is not there"
    if name in ("n_train", "n_test"):
        return f"{name} is no number of rows"
    if error["type"] == "literal_error" and isinstance(error["input"], str):
        return "better is neither higher nor lower"
    if error["type"] == "value_error":
        return f"{name} {message}"
    return f"{name} is not there or no text"
