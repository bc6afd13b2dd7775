"""Options that several commands share, with the same meaning and help."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kbench.cli import completion


class Form(StrEnum):
    """Forms of a results table."""

    table = "table"
    csv = "csv"
    json = "json"
    latex = "latex"
    markdown = "markdown"


Format = Annotated[Form, typer.Option("--format", help="Format of the output.")]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="URI",
        help="MLflow store; default: $MLFLOW_TRACKING_URI, else mlflow.db in this folder.",
    ),
]
Outdated = Annotated[
    bool,
    typer.Option(
        "--outdated",
        help="Also results that are out of date, because what they were made from has changed; "
        "their notes say so.",
    ),
]
Open = Annotated[bool, typer.Option("--open", help="Open it in the browser.")]

# -- for commands that compute

Fresh = Annotated[bool, typer.Option("--fresh", help="Compute everything again.")]
Offline = Annotated[
    bool, typer.Option("--offline", help="Do not fetch data from servers; use the cache.")
]
JsonEvents = Annotated[
    bool, typer.Option("--json", help="Print one JSON line per event, and nothing else.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress, only the results.")]

Datasets = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        metavar="PATTERN",
        autocompletion=completion.datasets,
        help="Only the datasets whose label or name matches this pattern; repeatable. "
        "An installed dataset that the suite does not have is added.",
    ),
]
FeatureMaps = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-map",
        metavar="PATTERN",
        autocompletion=completion.components("feature map"),
        help="Only these feature maps, chosen as by --dataset.",
    ),
]
Learners = Annotated[
    list[str] | None,
    typer.Option(
        "--learner",
        metavar="PATTERN",
        autocompletion=completion.components("learner"),
        help="Only these learners, chosen as by --dataset.",
    ),
]

Data = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of the data files that the suite names by relative paths; this folder by "
        "default.",
    ),
]

# -- for a table of the user's

Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column to predict.")]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="TASK",
        help="classification or regression; by default the values of the target decide.",
    ),
]
Ignore = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Leave this column out; repeatable.")
]
Nominal = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="The numbers of this column stand for categories; repeatable."
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="Separator of values in a CSV file; by default it is guessed.")
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COLUMN",
        help="Column of groups, such as persons: no split has rows of one on both sides.",
    ),
]
OrderBy = Annotated[
    str | None,
    typer.Option(
        "--order-by",
        metavar="COLUMN",
        help="Column of times, as dates or numbers: the last rows are those to test on.",
    ),
]
