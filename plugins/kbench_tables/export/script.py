"""The command ``predict.py`` of an exported model; it leaves with a model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kbench.errors import KbenchError
from kbench_tables.export.findings import counted
from kbench_tables.export.model import Model
from kbench_tables.export.predicting import predict_file
from kbench_tables.export.rows import csv_blocks
from kbench_tables.export.values import Texts


def main(load: Callable[[], Model], arguments: Sequence[str] | None = None) -> int:
    """Predict the rows of a CSV file; return the exit code."""
    parser = argparse.ArgumentParser("predict.py", description="Predict the rows of a CSV file.")
    parser.add_argument("file", type=Path, help="a CSV file with a line of column names")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file to write")
    parser.add_argument("--id", action="append", default=[], help="copy this column; repeatable")
    parser.add_argument("--coverage", type=float, default=0.9, help="of intervals; default 0.9")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that exists")
    parser.add_argument("--delimiter", help="sign between values; default: as in training")
    parser.add_argument("--decimal", help="decimal mark; default: as in training")
    parser.add_argument("--thousands", help="sign between thousands; default: as in training")
    parser.add_argument("--encoding", help="encoding of the text; default: as in training")
    parser.add_argument("--missing", action="append", help="text of a missing value; repeatable")
    given = parser.parse_args(arguments)
    try:
        model = load()
        dialect = {**model.facts["dialect"]}
        for name in dialect:
            if (value := getattr(given, name)) is not None:
                dialect[name] = value
        delimiter, encoding = dialect.pop("delimiter"), dialect.pop("encoding")
        outcome = predict_file(
            model,
            csv_blocks(given.file, delimiter, encoding),
            given.output,
            texts=Texts(**dialect),
            ids=given.id,
            coverage=given.coverage,
            overwrite=given.overwrite,
        )
    except (ValueError, RuntimeError, OSError, KbenchError) as error:
        print(f"predict.py: {error}", file=sys.stderr)
        return 2
    for sentence in outcome.sentences:
        print(f"predict.py: {sentence}", file=sys.stderr)
    print(f"{given.output}: {counted(outcome.n_rows, 'row')}")
    return 0
