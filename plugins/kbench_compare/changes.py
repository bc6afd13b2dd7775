"""Records of a comparison: the thresholds of a change, changes, cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kbench.features import LABELS, TIMES, Labels, Metric

Verdict = Literal["same", "better", "worse", "unknown"]

_OF_CELL = ("status_a", "status_b", "n_splits")
_PARTS = ("a", "b", "change", "low", "high", "p", "verdict")

ONE_SPLIT = "one split: its noise cannot be estimated"


@dataclass(frozen=True)
class Noise:
    """Thresholds of a change."""

    alpha: float = 0.05
    """Level of the tests, over all cells together (Holm)."""
    time_factor: float = 2.0
    """A time has changed if the test is significant and the means over the splits differ by
    more than this factor.
    """
    time_floor_s: float = 0.002
    """And the two means differ by more than this many seconds."""
    time_noise: float = 0.1
    """Relative standard deviation of a cell's mean time between runs of the same code on an idle
    machine: the part that its splits share.
    """


@dataclass(frozen=True)
class Change:
    """One metric of one cell on both sides."""

    a: float | None = None
    b: float | None = None
    """`a` and `b` are means over the common splits; times are geometric means, and that of `b` is
    corrected for the machine speed.
    """
    change: float | None = None
    """b - a; for times b / a."""
    low: float | None = None
    high: float | None = None
    """`low` to `high` is its confidence interval of level 1 - alpha; None if there is none."""
    p: float | None = None
    """Two-sided, of "no change"; not adjusted."""
    p_holm: float | None = None
    """Adjusted for the number of cells."""
    verdict: Verdict = "unknown"
    """It is "unknown" if there is no answer, for the reasons in `doubts`."""
    doubts: tuple[str, ...] = ()
    untested: str = ""
    """Why there is no p although both sides have values; empty if there is one."""


@dataclass(frozen=True)
class Compared:
    """A cell that both sides have."""

    labels: Labels
    """Of dataset, feature map, learner."""
    status_a: str
    status_b: str
    n_splits: int
    """Splits that both finished."""
    changes: dict[str, Change]
    """By the metric that is compared, and `TIMES`."""

    @property
    def broken(self) -> bool:
        """Whether it was ok and failed."""
        return self.status_a == "ok" and self.status_b not in ("ok", "unavailable")

    @property
    def unavailable(self) -> bool:
        """Whether it was ok and its data are unavailable now."""
        return self.status_a == "ok" and self.status_b == "unavailable"


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`: its `metric` is compared in addition to times.

    `only_a` and `only_b` have the status of the cells that the other side does
    not have; `notes` are differences between the sides as a whole.
    """

    metric: Metric
    cells: list[Compared]
    only_a: dict[Labels, str] = field(default_factory=dict)
    only_b: dict[Labels, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def regressions(self, fail_on: Iterable[str]) -> list[tuple[Labels, str]]:
        """Return the cells that became worse, each with the metric that did.

        `fail_on` has some of "metric" (the one that is compared), "time"
        and "missing" (b has no data for a cell that was ok in a, or does not
        have the cell). A cell that was ok and failed is in all of them.
        """
        wanted = set(fail_on)
        names = [self.metric.name] if "metric" in wanted else []
        names += TIMES if "time" in wanted else ()
        worse = [(cell.labels, cell.status_b) for cell in self.cells if wanted and cell.broken]
        if "missing" in wanted:
            worse += [(cell.labels, cell.status_b) for cell in self.cells if cell.unavailable]
            worse += [(labels, "missing") for labels, was in self.only_a.items() if was == "ok"]
        return worse + [
            (cell.labels, name)
            for cell in self.cells
            for name in names
            if cell.changes[name].verdict == "worse"
        ]

    def count(self, name: str) -> Counter[str]:
        """Count the verdicts of a metric."""
        return Counter(cell.changes[name].verdict for cell in self.cells)

    def rows(self) -> list[dict[str, object]]:
        """Return one row of plain values per cell of either side, with the keys of `columns`.

        ``side`` is "both", "a" or "b".
        """
        names = (self.metric.name, *TIMES)
        rows = [_to_row(cell, names) for cell in self.cells]
        for side, only in (("a", self.only_a), ("b", self.only_b)):
            for labels, status in only.items():
                row: dict[str, object] = dict.fromkeys(columns(self.metric))
                row |= zip(LABELS, labels, strict=True)
                rows.append(row | {"side": side, f"status_{side}": status})
        return rows


def columns(metric: Metric) -> tuple[str, ...]:
    """Return the keys of `Comparison.rows`, in order."""
    return (
        *(*LABELS, "side", *_OF_CELL),
        *(f"{name}_{part}" for name in (metric.name, *TIMES) for part in _PARTS),
        "warnings",
    )


def _to_row(cell: Compared, names: Sequence[str]) -> dict[str, object]:
    row: dict[str, object] = dict(zip(LABELS, cell.labels, strict=True))
    row |= {"side": "both"} | {name: getattr(cell, name) for name in _OF_CELL}
    changes = [cell.changes[name] for name in names]
    for name, change in zip(names, changes, strict=True):
        values = vars(change) | {"p": change.p_holm}
        row |= {f"{name}_{part}": values[part] for part in _PARTS}
    doubts = [why for change in changes for why in (*change.doubts, change.untested) if why]
    return {**row, "warnings": "; ".join(dict.fromkeys(doubts))}
