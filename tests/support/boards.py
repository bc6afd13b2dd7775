"""Boards of made-up rows, for the pages of a results repository."""

import dataclasses

from kbench.records import Measure
from kbench.sharing.board import Board, Published


def board_of(rows, suite="trial", author="Ada"):
    """Return a board of made-up rows."""
    found = [
        Published(
            f"results/x/y/{number}.jsonl",
            dataclasses.replace(row, machine=f"{author} on a CPU"),
            author,
            "a CPU",
            "numpy 2",
            f"cell {number}",
            "0" * 64,
            row.dataset,
            row.measures.get("accuracy"),
        )
        for number, row in enumerate(rows)
    ]
    return Board(suite, Measure(), found, list(rows), f"{author} on a CPU")
