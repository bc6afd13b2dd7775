"""The leaderboard as a table: one row per method, with columns and families to choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kbench.errors import SuiteError
from kbench.messages import counted, did_you_mean
from kbench.records import Measure
from kbench.report.axes import duration, duration_unit, number
from kbench.report.text import Column, Table, decimals, shown
from kbench.results.leaderboard import Leader, Leaderboard
from kbench.results.rows import LABELS, Method

WIDE = ("family", "low", "high", "rank", "n_components", "candidates", "finished")
"""Columns that have no room on a screen or in a paper, unless they are asked for."""

_COMBINED = {"places": ("place_low", "place_high"), "finished": ("n_failed", "n_skipped")}
"""Columns of text, with the numbers behind them in CSV and JSON."""


def table(
    board: Leaderboard,
    columns: Sequence[str] = (),
    families: Sequence[str] = (),
    digits: int | None = None,
    focus: Sequence[Method] = (),
) -> Table:
    """Return a leaderboard as a table.

    Parameters
    ----------
    board : Leaderboard
    columns : sequence of str, optional
        Names of the columns to show, in this order, behind the method; all by default.
    families : sequence of str, optional
        Families of the methods to show; places are still those among all methods.
    digits : int, optional
        Decimals of the measure.
    focus : sequence of (feature map, learner), optional
        Methods with an arrow beside their name.

    SuiteError is raised where a column or a family is not known.
    """
    if families:
        board = board.of_families(_known(families, board.families, "--family"))
    made = _columns(board, digits)
    if columns:
        by_name = {column.name: column for column in made}
        fixed = ("place", *LABELS[1:])
        names = [name for name in by_name if name not in fixed and not by_name[name].data_only]
        chosen = _known(columns, names, "--columns")
        made = [by_name[name] for name in fixed]
        for name in chosen:
            made.append(replace(by_name[name], wide=False))
            made += [by_name[other] for other in _COMBINED.get(name, ())]
    rows = [_row(line) for line in board.lines]
    notes = {
        (i, "learner"): "in focus" for i, line in enumerate(board.lines) if line.method in focus
    }
    return Table("leaderboard", _title(board), made, rows, _marks(rows, board.measure), notes)


def sentences(board: Leaderboard) -> list[str]:
    """Say over which datasets the leaderboard is, and what is missing."""
    found = []
    n = len(board.datasets)
    if not board.measure.in_units or n < 2:
        text = f"Means and ranks are over the {counted(n, 'dataset')} that all methods finished"
        text += f", which count as {board.n_groups} groups" if 0 < board.n_groups < n else ""
        left = ", ".join(board.left_out)
        found.append(text + (f"; left out: {left}." if left else "."))
    else:
        found.append(
            f"{board.measure.words} is in the units of each dataset's target, so there is no mean."
        )
    bad = [line for line in board.lines if line.n_failed]
    if bad:
        names = ", ".join(f"{line.name} on {line.n_failed}" for line in bad[:5])
        more = f" and {len(bad) - 5} more methods" if len(bad) > 5 else ""
        found.append(f"Failed: {names}{more}.")
    skipped = sum(line.n_skipped for line in board.lines)
    if skipped:
        found.append(f"{counted(skipped, 'cell')} not measured, or on fewer splits than planned.")
    equal = dict(board.same)
    for line in board.lines:
        if line.place is None and line.method in equal:
            kept = " + ".join(equal[line.method])
            found.append(f"{line.name} has no place: it equals {kept} up to a rotation.")
    return found


def _columns(board: Leaderboard, digits: int | None) -> list[Column]:
    measure = board.measure
    value = partial(shown, measure.name) if digits is None else partial(decimals, digits=digits)
    two, whole = partial(decimals, digits=2), partial(decimals, digits=0)
    made = [
        Column("place", "no.", numeric=True),
        Column("feature_map", "feature map"),
        Column("learner"),
        Column("family"),
        Column("places", numeric=True),
        Column("place_low", numeric=True, data_only=True),
        Column("place_high", numeric=True, data_only=True),
        Column("rank", "mean rank", two, True),
        Column("mean", f"mean {measure.words}", value, True),
        Column("low", "95 % from", value, True),
        Column("high", "to", value, True),
        Column("wins", "wins", whole, True),
        Column("fit_time_s", "fit time", duration, True, unit=duration_unit),
        Column("predict_row_s", "to predict a row", duration, True, unit=duration_unit),
        Column("n_components", "components", number, True),
        Column("search_s", "search, CPU", duration, True, unit=duration_unit),
        Column("candidates", "candidates", number, True),
        Column("front", "front"),
        Column("finished", "finished", numeric=True),
        Column("n_failed", numeric=True, data_only=True),
        Column("n_skipped", numeric=True, data_only=True),
    ]
    return [replace(column, wide=column.name in WIDE) for column in made]


def _row(line: Leader) -> dict[str, Any]:
    low, high = line.place_low, line.place_high
    return {
        **vars(line),
        **dict(zip(LABELS[1:], line.method, strict=True)),
        "places": None if low is None else f"{low}" if low == high else f"{low} to {high}",
        "finished": f"{line.n_finished} of {line.n_datasets}",
    }


def _marks(rows: Sequence[dict[str, Any]], measure: Measure) -> dict[tuple[int, str], str]:
    """Mark the best rank and mean; the fastest method is often trivial and has no mark."""
    if len(rows) < 2:
        return {}
    best = {}
    for name, gain in (("rank", -1), ("mean", measure.gain(1))):
        values = [row[name] for row in rows if row[name] is not None]
        if values:
            best[name] = max(values, key=lambda value: gain * value)
    return {
        (i, name): "best"
        for i, row in enumerate(rows)
        for name, value in best.items()
        if row[name] is not None and round(row[name], 12) == round(value, 12)
    }


def _title(board: Leaderboard) -> str:
    return f"Leaderboard over {counted(len(board.datasets), 'dataset')}"


def _known(names: Sequence[str], known: Sequence[str], option: str) -> list[str]:
    for name in names:
        if name not in known:
            raise SuiteError(
                f"{option}: {name!r} is not known{did_you_mean(name, known)}\n"
                f"there are: {', '.join(known)}"
            )
    return list(dict.fromkeys(names))
