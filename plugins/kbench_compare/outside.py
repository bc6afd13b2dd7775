"""Imported rows: other programs may have written files and stores, so they are validated once.

Only fields that are used in computations or printed are checked; a row may hold
anything else.
"""

import math
import unicodedata
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from kbench.features import TIMES, Metric, Row, complete_metric

LONGEST = 10_000
"""Maximum number of characters of a value; MLflow's params and tags are shorter."""

LARGEST = 1e100
"""Of larger numbers, squares and ratios are not finite."""


def _short_and_printable(value: str) -> str:
    if len(value) > LONGEST:
        raise ValueError(f"has {len(value)} characters; {LONGEST} at most")
    # Cc: control characters, Cs: halves of a character, which cannot be encoded
    if not value.isprintable() and {"Cc", "Cs"} & set(map(unicodedata.category, value)):
        raise ValueError("contains control characters")
    return value


def _numbers(text: str) -> str:
    try:
        values = [float(number) for number in text.split(", ") if number]
    except ValueError:
        values = [math.nan]
    if not all(abs(value) <= LARGEST for value in values):  # NaN is rejected too
        raise ValueError("contains values other than numbers")
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
    metric: Text
    better: Literal["higher", "lower"]
    machine_speed_s: Annotated[Text, AfterValidator(_numbers)]
    contention: Text
    machine: Text
    key: Text = ""
    checksum: Text = ""
    n_train: Count | None = None
    n_test: Count | None = None
    split_hash: dict[Text, Text]
    protocol: dict[Text, Text]
    values_by_split: dict[str, dict[str, Number]]

    @field_validator("values_by_split", mode="before")
    @classmethod
    def _keep_compared(cls, values: object, info: ValidationInfo) -> object:
        if not isinstance(values, dict):
            return values
        return {name: values[name] for name in (info.data.get("metric"), *TIMES) if name in values}


def parse_outside_row(value: object) -> tuple[Row, Metric]:
    """Validate one row in the format of `Row.to_json`; return it with its suite's metric.

    The row has what a comparison uses. A `ValueError` says why it cannot be
    compared.

    >>> parse_outside_row({"dataset": 7})
    Traceback (most recent call last):
        ...
    ValueError: dataset is missing or not a string
    """
    if not isinstance(value, dict):
        raise ValueError("not an object")
    try:
        values = _OutsideRow.model_validate(value).model_dump()
    except ValidationError as error:
        raise ValueError(_explain_error(error.errors()[0])) from None
    metric = complete_metric(Metric(values.pop("metric"), values.pop("better")))
    counts = {name: values.pop(name) for name in ("n_train", "n_test")}
    metrics = {name: count for name, count in counts.items() if count is not None}
    return Row(n_splits_done=0, n_splits=0, metrics=metrics, **values), metric


def _explain_error(error: Any) -> str:
    """Describe an error of pydantic in a few words."""
    name, *inner = error["loc"]
    if name in ("split_hash", "protocol", "values_by_split") and not inner:
        return f"{name} is missing"
    if name == "values_by_split":
        return f"{name}.{inner[0]} must contain finite numbers"
    if inner:
        return f"{name} must contain strings only"
    if name in ("n_train", "n_test"):
        return f"{name} must be a number of rows"
    if error["type"] == "literal_error" and isinstance(error["input"], str):
        return "better must be higher or lower"
    if error["type"] == "value_error":
        return f"{name} {error['msg'].removeprefix('Value error, ')}"
    return f"{name} is missing or not a string"
