"""What counts as a change, and what a comparison finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kbench.records import Measure
from kbench.results.rows import TIMES

Verdict = Literal["same", "better", "worse", "unknown"]

Labels = tuple[str, str, str]

ONE_SPLIT = "one split: its noise is not known"


@dataclass(frozen=True)
class Noise:
    """What counts as a change.

    Parameters
    ----------
    alpha : float, default 0.05
        Level of the tests, over all cells together (Holm).
    time_factor : float, default 2.0
        A time has changed where, beside the test, its mean over the splits is
        this many times the other.
    time_floor_s : float, default 0.002
        And the two means differ by more than this many seconds.
    time_noise : float, default 0.1
        Relative standard deviation of a cell's mean time between runs of the
        same code on a quiet machine: what its splits share.
    """

    alpha: float = 0.05
    time_factor: float = 2.0
    time_floor_s: float = 0.002
    time_noise: float = 0.1


@dataclass(frozen=True)
class Change:
    """One measure of one cell on both sides.

    Parameters
    ----------
    a, b : float or None
        Means over the common splits; times are geometric means, and that of b
        is corrected by the calibration figures.
    change : float or None
        b - a; for times b / a.
    low, high : float or None
        Interval of level 1 - alpha for it; None where it cannot be told.
    p : float or None
        Two-sided, of "no change"; not adjusted.
    p_holm : float or None
        Adjusted for the number of cells.
    verdict : {"same", "better", "worse", "unknown"}
        "unknown" where nothing can be said, see `doubts`.
    doubts : tuple of str
        Why not.
    """

    a: float | None = None
    b: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    verdict: Verdict = "unknown"
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compared:
    """A cell that both sides have.

    Parameters
    ----------
    labels : (str, str, str)
        Of dataset, feature map, learner.
    status_a, status_b : str
        What became of it.
    n_splits : int
        Splits that both finished.
    changes : dict of str to Change
        By the measure that is compared, and `TIMES`.
    """

    labels: Labels
    status_a: str
    status_b: str
    n_splits: int
    changes: dict[str, Change]

    @property
    def broken(self) -> bool:
        """Whether it was ok and failed."""
        return self.status_a == "ok" and self.status_b not in ("ok", "unavailable")

    @property
    def unavailable(self) -> bool:
        """Whether it was ok and its data cannot be had."""
        return self.status_a == "ok" and self.status_b == "unavailable"


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Parameters
    ----------
    measure : Measure
        What is compared beside times.
    cells : list of Compared
    only_a, only_b : dict of (str, str, str) to str
        Cells that the other side does not have, and what became of them.
    notes : list of str
        What must be known to read it.
    """

    measure: Measure
    cells: list[Compared]
    only_a: dict[Labels, str] = field(default_factory=dict)
    only_b: dict[Labels, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def regressions(self, fail_on: Iterable[str]) -> list[tuple[Labels, str]]:
        """Return the cells that became worse, and in what.

        Parameters
        ----------
        fail_on : iterable of {"accuracy", "time", "missing"}
            "accuracy" means the measure that is compared; "missing", that b
            has no data for a cell that was ok in a, or does not have the cell.
            A cell that was ok and failed is in all of them.
        """
        wanted = set(fail_on)
        names = [self.measure.name] if "accuracy" in wanted else []
        names += TIMES if "time" in wanted else ()
        found = [(each.labels, each.status_b) for each in self.cells if wanted and each.broken]
        if "missing" in wanted:
            gone = [each for each in self.cells if each.unavailable]
            found += [(each.labels, each.status_b) for each in gone]
            found += [(labels, "missing") for labels, was in self.only_a.items() if was == "ok"]
        return found + [
            (each.labels, name)
            for each in self.cells
            for name in names
            if each.changes[name].verdict == "worse"
        ]

    def count(self, name: str) -> Counter[str]:
        """Count the verdicts of a measure."""
        return Counter(each.changes[name].verdict for each in self.cells)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per cell of either side, of plain values.

        Returns
        -------
        list of dict
            ``dataset, feature_map, learner, side`` (both, a, b), ``status_a,
            status_b, n_splits`` and, for the measure and `TIMES`, ``X_a, X_b,
            X_change, X_low, X_high, X_p, X_verdict``; ``doubts``.
        """
        names = (self.measure.name, *TIMES)
        found = [_as_row(each, names) for each in self.cells]
        for side, only in (("a", self.only_a), ("b", self.only_b)):
            for labels, status in only.items():
                row: dict[str, Any] = dict.fromkeys(columns(self.measure))
                row |= _labelled(labels)
                found.append(row | {"side": side, f"status_{side}": status})
        return found


def columns(measure: Measure) -> tuple[str, ...]:
    """Return the keys of `Comparison.rows`, in order."""
    parts = ("a", "b", "change", "low", "high", "p", "verdict")
    return (
        *("dataset", "feature_map", "learner", "side", "status_a", "status_b", "n_splits"),
        *(f"{name}_{part}" for name in (measure.name, *TIMES) for part in parts),
        "doubts",
    )


def _labelled(labels: Labels) -> dict[str, Any]:
    return dict(zip(("dataset", "feature_map", "learner"), labels, strict=True))


def _as_row(cell: Compared, names: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        **_labelled(cell.labels),
        "side": "both",
        "status_a": cell.status_a,
        "status_b": cell.status_b,
        "n_splits": cell.n_splits,
    }
    for name in names:
        change = cell.changes[name]
        for part in ("a", "b", "change", "low", "high"):
            row[f"{name}_{part}"] = getattr(change, part)
        row[f"{name}_p"] = change.p_holm
        row[f"{name}_verdict"] = change.verdict
    doubts = [why for name in names for why in cell.changes[name].doubts]
    return {**row, "doubts": "; ".join(dict.fromkeys(doubts))}
