"""Options of the commands for one's own data, with the same meaning and help."""

from __future__ import annotations

from typing import Annotated

import typer

from kbench.features import completion

MeasureName = Annotated[
    str | None,
    typer.Option(
        "--measure",
        metavar="NAME",
        autocompletion=completion.measures,
        help="Compare methods by this measure, such as roc_auc or mae; `kbench list measures` "
        "shows all.",
    ),
]
Proba = Annotated[
    bool,
    typer.Option(
        "--proba", help="Also measure probabilities, calibrated where a learner has none."
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Keep this column, even if it holds row numbers, identifiers, text or one value; "
        "repeatable.",
    ),
]
Date = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=FORMAT",
        help="Dates of this column are written so, such as joined=%d.%m.%Y; repeatable.",
    ),
]
Decimal = Annotated[
    str | None, typer.Option(help="Decimal mark of a CSV file; by default it is guessed.")
]
Thousands = Annotated[
    str | None,
    typer.Option(help="Sign between groups of three digits in a CSV file; by default guessed."),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Encoding of a CSV file, such as cp1252; by default it is guessed."),
]
MissingOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT", help="This text of a CSV file stands for a missing value; repeatable."
    ),
]
Sheet = Annotated[
    str | None, typer.Option(metavar="NAME", help="Sheet of an Excel file; the first by default.")
]

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SIDE.NAME=VALUE",
        help="Give a parameter instead of searching for it, such as learner.C=8; repeatable.",
    ),
]
