"""The table of rows that others computed, beside one's own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kbench.records import Measure
from kbench.report.text import Column, Table, heading, shown, signed
from kbench.results.imported import BesideOwn

SENTENCE = (
    "Rows of others are in no mean, rank, test or front, and their times are not shown: they "
    "were taken on other machines. A difference is theirs minus ours, on the splits of both."
)
"""What a reader must know of the table."""


def table(beside: Sequence[BesideOwn], measure: Measure) -> Table:
    """Return rows of others, each beside the own row that it may be compared with."""
    written = partial(shown, measure.name)
    columns = [
        Column("dataset"),
        Column("feature_map", "feature map"),
        Column("learner"),
        Column("by"),
        Column("splits"),
        Column("measure", heading(measure), written, True),
        Column("here", "here", written, True),
        Column("difference", "difference", partial(signed, written=written), True),
        Column("compared"),
        Column("state"),
    ]
    lines = [each.to_line() for each in beside]
    return Table("others", "Rows of others", columns, lines, by="dataset")
