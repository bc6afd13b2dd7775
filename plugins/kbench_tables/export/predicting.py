"""Write the predictions of a model for a table to a CSV file; bundled with each model.

Cells that a spreadsheet program would run as a formula get an apostrophe in front.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import re
import secrets
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kbench.errors import KbenchError
from kbench.messages import list_some, plural
from kbench_tables.export.model import Finding, Model, describe, merge_findings

# First characters of cells that spreadsheet programs run as formulas, unless they are numbers.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass
class Outcome:
    """The outcome of predicting a table."""

    n_rows: int = 0
    sentences: list[str] = field(default_factory=list)


def predict_file(
    model: Model,
    blocks: Iterable[Mapping[str, Any]],
    out: Path,
    *,
    texts: Mapping[str, Any] | None = None,
    ids: Sequence[str] = (),
    coverage: float = 0.9,
    overwrite: bool = False,
) -> Outcome:
    """Write a line with the prediction for each row, in the order of the rows.

    `blocks` have columns by name, for consecutive rows; `texts` has the encoder's parameters for
    parsing strings, if they differ from training; columns in `ids` are copied. The file is written
    under another name and renamed: it is never there in part. ValueError is raised if the file
    exists, if columns are missing, or if a cell does not have the type of its column.
    """
    refuse_existing(out, overwrite)
    if model.encoder is None:
        raise ValueError("this model takes a sparse matrix, not a table")
    if texts is not None:
        model.encoder.read_as(**texts)
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
                    columns, new = _predict_block(model, block, ids, coverage, first, guard)
                    writer.writerows(zip(*columns, strict=True))
                    findings = merge_findings([*findings, *new])
                    outcome.n_rows += n_rows
            file.flush()
            os.fsync(file.fileno())
        _move(temporary, out.absolute(), overwrite)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
    outcome.sentences += describe(findings)
    if guard.n_cells:
        outcome.sentences.append(
            f"{plural(guard.n_cells, 'cell')} that a spreadsheet program would run as a formula "
            "now begin with an apostrophe"
        )
    return outcome


def refuse_existing(out: Path, overwrite: bool) -> None:
    """Raise ValueError if the file exists, or its folder does not."""
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
    names = [str(name).strip() for name in block]
    missing = [name for name in model.columns if name not in names]
    if missing:
        raise ValueError(f"the table has no column {list_some(missing)}; it has {list_some(names)}")
    for name in ids:
        if name not in names:
            raise ValueError(f"--id {name}: the table has no such column")
    sentences = []
    if [name for name in names if name in model.columns] != list(model.columns):
        sentences.append("the columns are matched by name: their order differs from training")
    target = model.facts.get("target_column")
    if target in names:
        sentences.append(f"column {target!r} is the target and is not used")
    expected = {*model.columns, *model.facts.get("left_out", ()), target, *ids}
    if unused := [name for name in names if name not in expected]:
        sentences.append(f"columns that the training data lack are not used: {list_some(unused)}")
    return sentences


def _header(model: Model, ids: Sequence[str], coverage: float) -> list[str]:
    added = []
    if model.has_probabilities:
        added = [f"probability_{label}" for label in model.classes]
    elif model.intervals is not None:
        added = [f"lower_{100 * coverage:g}", f"upper_{100 * coverage:g}"]
    if clash := {"prediction", *added}.intersection(ids):
        raise ValueError(f"--id {min(clash)}: the file has a column of this name already")
    return [*ids, "prediction", *added]


def _predict_block(
    model: Model,
    block: Mapping[str, Any],
    ids: Sequence[str],
    coverage: float,
    first_row: int,
    guard: _Guard,
) -> tuple[list[Iterable[str]], list[Finding]]:
    """Return the columns to write for a block of rows, and its findings."""
    encoded = model.encoder.encode(block, first_row)
    findings = model.check_encoded(model.encoder.select(block), encoded, first_row)
    predicted = model.predict_encoded(encoded, "predict")
    place = {str(name).strip(): name for name in block}
    columns: list[Iterable[str]] = [[guard(value) for value in block[place[name]]] for name in ids]
    if model.classes:
        columns.append([guard(label) for label in predicted.tolist()])
    else:
        columns.append(_numbers(predicted, "%.10g"))
    if model.has_probabilities:
        columns += [_numbers(p, "%.6f") for p in model.predict_encoded(encoded, "predict_proba").T]
    elif model.intervals is not None:
        ends = model.interval_around(predicted, encoded, coverage)
        columns += [_numbers(end, "%.10g") for end in ends]
    return columns, findings


def _numbers(values: np.ndarray, form: str) -> Iterator[str]:
    return (form % value for value in values.tolist())


class _Guard:
    """Writes a cell so that spreadsheet programs read it as a string or a number."""

    def __init__(self) -> None:
        self.n_cells = 0

    def __call__(self, value: Any) -> str:
        cell = "" if value is None else str(value)
        if not cell.startswith(FORMULA):
            return cell
        with contextlib.suppress(ValueError):
            float(cell)
            return cell
        self.n_cells += 1
        return f"'{cell}"


def _put_flags(text: str, names: Iterable[str]) -> str:
    """Write the options that a message names as flags, if they are among `names`."""

    def written(match: re.Match[str]) -> str:
        if match[1] not in names:
            return match[0]
        flag = f"--{match[1].replace('_', '-').replace('values', 'value')}"
        return f"{flag} {shlex.quote(match[2])}" if match[2] is not None else flag

    return re.sub(r"`(\w+)(?:='([^'`\\]*)')?`", written, text)


def main(
    load: Callable[[], Model], read: Callable[..., Any], arguments: Sequence[str] | None = None
) -> int:
    """Predict the rows of a CSV file, which `read` reads in blocks; return the exit code."""
    parser = argparse.ArgumentParser("predict.py", description="Predict the rows of a CSV file.")
    parser.add_argument("file", type=Path, help="a CSV file with a header line")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file to write")
    parser.add_argument("--id", action="append", default=[], help="copy this column; repeatable")
    parser.add_argument("--coverage", type=float, default=0.9, help="nominal coverage; default 0.9")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that exists")
    parser.add_argument("--delimiter", help="separator of values; default: as in training")
    parser.add_argument("--decimal", help="decimal mark; default: as in training")
    parser.add_argument("--thousands", help="thousands separator; default: as in training")
    parser.add_argument("--encoding", help="encoding of the file; default: as in training")
    parser.add_argument("--header-row", default="", help="row of the names, such as 4 or 2-3")
    totals = "read rows of totals below a title; default: as in training"
    parser.add_argument("--keep-totals", action="store_true", default=None, help=totals)
    parser.add_argument(
        "--na-value",
        dest="na_values",
        action="append",
        help="string to read as missing (NA), instead of those of training; repeatable",
    )
    options = parser.parse_args(arguments)
    try:
        model = load()
        dialect = {**model.facts["dialect"]}
        for name in dialect:
            if (value := getattr(options, name)) is not None:
                dialect[name] = value
        delimiter, encoding, keep = map(dialect.pop, ("delimiter", "encoding", "keep_totals"))
        blocks = read(options.file, delimiter, encoding, options.header_row, keep)
        outcome = predict_file(
            model,
            blocks,
            options.output,
            texts=dialect,
            ids=options.id,
            coverage=options.coverage,
            overwrite=options.overwrite,
        )
    except (ValueError, RuntimeError, OSError, KbenchError) as error:
        print(f"predict.py: {_put_flags(str(error), vars(options))}", file=sys.stderr)
        return 2
    for sentence in (*blocks.notices, *outcome.sentences):
        print(f"predict.py: {_put_flags(sentence, vars(options))}", file=sys.stderr)
    print(f"{options.output}: {plural(outcome.n_rows, 'row')}")
    return 0
