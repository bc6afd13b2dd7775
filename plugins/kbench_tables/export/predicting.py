"""Predictions of a model for a table, written to a CSV file; it leaves with a model.

Cells that a spreadsheet program would take for a formula get an apostrophe in front.
"""

from __future__ import annotations

import contextlib
import csv
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kbench_tables.export.findings import Finding, counted, merged
from kbench_tables.export.model import Model
from kbench_tables.export.values import Texts

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First signs of cells that spreadsheet programs take for formulas, unless they are numbers."""

NAMES = 8
"""Columns that a sentence names."""


@dataclass
class Outcome:
    """What became of a table.

    Parameters
    ----------
    n_rows : int
        Rows with a prediction.
    sentences : list of str
        What is unusual about the table, or to know of the file that was written.
    """

    n_rows: int = 0
    sentences: list[str] = field(default_factory=list)


def predict_file(
    model: Model,
    blocks: Iterable[Mapping[str, Any]],
    out: Path,
    *,
    texts: Texts | None = None,
    ids: Sequence[str] = (),
    coverage: float = 0.9,
    overwrite: bool = False,
) -> Outcome:
    """Write a line with the prediction for each row, in the order of the rows.

    The file is written under another name and renamed: it is never there in part.

    Parameters
    ----------
    model : Model
    blocks : iterable
        Columns by name, for consecutive rows.
    out : Path
        The CSV file to write, in UTF-8.
    texts : Texts, optional
        How texts are read, if not as in training.
    ids : sequence of str
        Columns of the table to copy.
    coverage : float, default 0.9
        Share of numbers that intervals are to contain.
    overwrite : bool, default False
        Replace a file that exists.

    Raises
    ------
    ValueError
        The file exists, columns are missing, or a cell is not what its column holds.
    """
    refuse_existing(out, overwrite)
    if model.encoder is None:
        raise ValueError("this model takes a sparse matrix, not a table")
    if texts is not None:
        model.encoder.read_as(texts)
    outcome, guard = Outcome(), _Guard()
    findings: list[Finding] = []
    temporary = out.absolute().with_name(f".{out.name}-{secrets.token_hex(4)}")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            for block in blocks:
                if not outcome.n_rows:
                    outcome.sentences += _about_columns(model, block, ids)
                    writer.writerow([guard(name) for name in _header(model, ids, coverage)])
                n_rows = len(next(iter(block.values()), ()))
                if n_rows:
                    first = outcome.n_rows + 1
                    columns, found = _predicted(model, block, ids, coverage, first, guard)
                    writer.writerows(zip(*columns, strict=True))
                    findings = merged([*findings, *found])
                    outcome.n_rows += n_rows
            file.flush()
            os.fsync(file.fileno())
        _move(temporary, out.absolute(), overwrite)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
    outcome.sentences += map(str, findings)
    if guard.n_cells:
        outcome.sentences.append(
            f"{counted(guard.n_cells, 'cell')} that a spreadsheet program would run as a formula "
            "now begin with an apostrophe"
        )
    return outcome


def refuse_existing(out: Path, overwrite: bool) -> None:
    """Refuse a file that exists, and a folder that does not."""
    if out.is_dir() or (out.exists() and not overwrite):
        raise ValueError(f"-o {out}: it exists; name another file, or pass --overwrite")
    if not out.absolute().parent.is_dir():
        raise ValueError(f"-o {out}: there is no folder {out.absolute().parent}")


def _move(temporary: Path, out: Path, overwrite: bool) -> None:
    if not overwrite:
        try:
            os.link(temporary, out)  # unlike a renaming, it replaces nothing
        except FileExistsError:
            raise ValueError(f"-o {out}: it exists now; name another file") from None
        except OSError:  # a file system without links
            refuse_existing(out, overwrite)
        else:
            return
    temporary.replace(out)


def _about_columns(model: Model, block: Mapping[str, Any], ids: Sequence[str]) -> list[str]:
    """Return sentences about the columns of a table; `ValueError` where some are missing."""
    names = [str(name).strip() for name in block]
    missing = [name for name in model.columns if name not in names]
    if missing:
        shown = ", ".join(map(repr, missing[:NAMES]))
        more = f" and {len(missing) - NAMES} more" if len(missing) > NAMES else ""
        has = ", ".join(map(repr, names[:NAMES]))
        raise ValueError(
            f"the table has no column {shown}{more}; it has {has}"
            f"{f' and {len(names) - NAMES} more' if len(names) > NAMES else ''}"
        )
    for name in ids:
        if name not in names:
            raise ValueError(f"--id {name}: the table has no such column")
    sentences = []
    used = [name for name in names if name in model.columns]
    if used != list(model.columns):
        sentences.append("columns stand in another order than in training: they go by their names")
    target = model.facts.get("target_column")
    if target in names:
        sentences.append(f"column {target!r} is the target: it is not used")
    known = {*model.columns, *model.facts.get("left_out", ()), target, *ids}
    if others := [name for name in names if name not in known]:
        more = f" and {len(others) - NAMES} more" if len(others) > NAMES else ""
        sentences.append(
            f"columns that training did not have are not used: "
            f"{', '.join(map(repr, others[:NAMES]))}{more}"
        )
    return sentences


def _header(model: Model, ids: Sequence[str], coverage: float) -> list[str]:
    if model.has_probabilities:
        added = [f"probability_{label}" for label in model.classes]
    elif model.intervals is not None:
        added = [f"lower_{100 * coverage:g}", f"upper_{100 * coverage:g}"]
    else:
        added = []
    if clash := {"prediction", *added}.intersection(ids):
        raise ValueError(f"--id {min(clash)}: the file has a column of this name already")
    return [*ids, "prediction", *added]


def _predicted(
    model: Model,
    block: Mapping[str, Any],
    ids: Sequence[str],
    coverage: float,
    first_row: int,
    guard: _Guard,
) -> tuple[list[Iterable[str]], list[Finding]]:
    """Return the columns to write for a block of rows, and what is unusual about these."""
    try:
        encoded = model.encode(block)
    except ValueError as error:
        # rows of messages count from the beginning of the block
        raise ValueError(_with_row(str(error), first_row)) from None
    found = model.check_encoded(model.encoder.chosen(block), encoded, first_row)
    predicted = model.of_encoded(encoded, "predict")
    place = {str(name).strip(): name for name in block}
    columns: list[Iterable[str]] = [[guard(value) for value in block[place[name]]] for name in ids]
    if model.classes:
        columns.append([guard(label) for label in predicted.tolist()])
    else:
        columns.append(_numbers(predicted, "%.10g"))
    if model.has_probabilities:
        columns += [_numbers(p, "%.6f") for p in model.of_encoded(encoded, "predict_proba").T]
    elif model.intervals is not None:
        ends = model.interval_around(predicted, encoded, coverage)
        columns += [_numbers(end, "%.10g") for end in ends]
    return columns, found


def _numbers(values: np.ndarray, form: str) -> Iterator[str]:
    return (form % value for value in values.tolist())


def _with_row(message: str, first_row: int) -> str:
    """Return a message with the number of the row in the whole table."""
    start, row, number = message.rpartition(" in row ")
    digits = number.replace(",", "")
    if not row or not digits.isdigit():
        return message
    return f"{start}{row}{int(digits) + first_row - 1:,}"


class _Guard:
    """Writes a cell so that spreadsheet programs take it for a text or a number."""

    def __init__(self) -> None:
        self.n_cells = 0

    def __call__(self, value: Any) -> str:
        text = "" if value is None else str(value)
        if not text.startswith(FORMULA):
            return text
        with contextlib.suppress(ValueError):
            float(text)
            return text
        self.n_cells += 1
        return f"'{text}"
