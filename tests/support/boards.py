"""Boards of made-up rows, for the pages of a results repository."""

import dataclasses

from kbench.records import ACCURACY, Metric
from kbench.results.imported import ImportedRow
from kbench_sharing.site import Board, Published


def board_of(rows, suite="trial", author="Ada"):
    """Return a board of made-up rows."""
    found = [
        Published(
            f"results/x/y/{number}.jsonl",
            ImportedRow(
                dataclasses.replace(
                    row, machine=f"{author} on a CPU", key=f"cell {number}", checksum="0" * 64
                ),
                ACCURACY,
                author,
                "a CPU",
                versions="numpy 2",
            ),
            row.dataset,
        )
        for number, row in enumerate(rows)
    ]
    return Board(suite, Metric(), found, list(rows), f"{author} on a CPU")
