"""Whether a recomputed result is that of a bundle: equal, within noise, or different."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kbench.features import Verdict
from kbench.messages import number
from kbench.records import DEFAULT
from kbench_sharing.form import SharedResult
from kbench_sharing.rounding import of_measures

Finding = Verdict | Literal["not recomputed"]

CLOSE = 1e-6
"""Relative difference that sums in another order may make on any CPU."""

_OF_LABELS = ("accuracy", "accuracy_unseen", "expected_error")
_OF_CLASSES = ("balanced_accuracy", "f1_macro", "matthews", "roc_auc", "average_precision")
_ONE_ROW, _ONE_ROW_OF_CLASS = 1.01, 2.5
"""What one row of the test part may change, in units of 1 / rows."""

_NOT_COMPARED = ("_s", "_mb")


@dataclass(frozen=True)
class Agreement:
    """A verdict, and what differs."""

    verdict: Finding
    detail: str = ""


def agreement(
    theirs: SharedResult,
    measures: Mapping[str, float],
    details: Mapping[str, Any],
    other_cpu: bool,
    added: Collection[str] = (),
) -> Agreement:
    """Compare a result with the measures and details that were computed here.

    Times and memory are not compared. On another CPU or BLAS, a label of one row may be
    another one. `added` names measures of plugins, which are not computed with a task.
    """
    if theirs.details.split_hash != details.get("split_hash"):
        return Agreement("different", "the rows of the split are others")
    if theirs.details.chosen != details.get("chosen"):
        return Agreement("different", "the search chose other parameters")
    noise = ""
    measures = {**measures, **of_measures({n: v for n, v in measures.items() if math.isfinite(v)})}
    for name, value in theirs.measures.items():
        if name.endswith(_NOT_COMPARED) or name in added:
            continue
        here = measures.get(name, math.nan)
        if value == here:
            continue
        text = f"{name} {number(value)}, here {number(here)}"
        allowed = _allowed(name, measures.get("n_test", 0.0)) if other_cpu else 0.0
        if math.isclose(value, here, rel_tol=CLOSE, abs_tol=max(allowed, CLOSE**2)):
            noise = noise or text
        else:
            return Agreement("different", text)
    for mine, their in zip(
        _values(details.get("search", ())), _values(theirs.details.search), strict=False
    ):
        if mine != their and not (other_cpu or math.isclose(mine, their, rel_tol=CLOSE)):
            text = f"an inner score {number(their)}, here {number(mine)}"
            return Agreement("different", text)
    return Agreement("noise", noise) if noise else Agreement("equal")


def _allowed(name: str, n_test: float) -> float:
    """Return what one row with another label may change of a measure."""
    name = name.removeprefix(DEFAULT)
    rows = _ONE_ROW if name in _OF_LABELS else _ONE_ROW_OF_CLASS if name in _OF_CLASSES else 0.0
    return rows / n_test if n_test else 0.0


def _values(search: Any) -> Iterator[float]:
    """Yield the inner scores of all candidates."""
    for candidate in search:
        values = candidate.get("values", ())
        yield from (float(v) for v in values if isinstance(v, int | float))
