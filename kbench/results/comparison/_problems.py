"""Whether a row of results can be compared: files and stores are written by others too.

What is computed with is looked at, and what is printed; a row may hold anything else.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from typing import Any

TIMES = ("fit_time_s", "predict_time_s")
"""Times that are compared."""

LONGEST = 10_000
"""Characters of a text; those of MLflow's params and tags are shorter."""

LARGEST = 1e100
"""Beyond, squares and ratios of numbers are none."""

_LABELS = ("dataset", "feature_map", "learner", "status", "measure", "better")
_TEXTS = (*_LABELS, "calibration_s", "contention", "machine")


def problem_of(row: Any) -> str:
    """Say why a row cannot be compared.

    Parameters
    ----------
    row : object
        One row, as `kbench.results.rows.of_run_in_full` gives it, with the name of
        the ``measure`` that is compared and whether higher or lower is
        ``better``.

    Returns
    -------
    str
        Empty where it can.

    Examples
    --------
    >>> problem_of({"dataset": 7})
    'dataset is not there or no text'
    """
    if not isinstance(row, dict):
        return "no object"
    for name in _TEXTS:
        text = row.get(name)
        if not isinstance(text, str):
            return f"{name} is not there or no text"
        if len(text) > LONGEST:
            return f"{name} has {len(text)} characters; {LONGEST} at most"
        if not _can_be_printed(text):
            return f"{name} holds control characters"
    if row["better"] not in ("higher", "lower"):
        return "better is neither higher nor lower"
    if not _are_numbers(row["calibration_s"]):
        return "calibration_s holds more than numbers"
    for name in ("n_train", "n_test"):
        if row.get(name) is not None and not (_is_number(row[name]) and row[name] >= 0):
            return f"{name} is no number of rows"
    for name in ("split_hash", "values_by_split", "protocol"):
        if not isinstance(row.get(name), dict):
            return f"{name} is not there"
    for name in ("split_hash", "protocol"):
        if not _are_texts([*row[name], *row[name].values()]):
            return f"{name} holds more than text"
    for name in (row["measure"], *TIMES):
        values = row["values_by_split"].get(name, {})
        if not isinstance(values, dict) or not all(map(_is_number, values.values())):
            return f"values_by_split.{name} are no finite numbers"
    return ""


def _is_number(value: Any) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and abs(value) <= LARGEST  # which NaN is not


def _are_numbers(text: str) -> bool:
    try:
        found = [float(each) for each in text.split(", ") if each]
    except ValueError:
        return False
    return all(math.isfinite(each) and abs(each) <= LARGEST for each in found)


def _are_texts(values: Iterable[Any]) -> bool:
    return all(
        isinstance(each, str) and len(each) <= LONGEST and _can_be_printed(each) for each in values
    )


def _can_be_printed(text: str) -> bool:
    """Tell whether a terminal shows a text and does nothing else with it."""
    # Cc: control characters, Cs: halves of a character, which cannot be encoded
    return text.isprintable() or not {"Cc", "Cs"} & set(map(unicodedata.category, text))
