"""Options of the commands for one's own data, with the same meaning and help."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from kbench.features import Delimiter, Group, Ignore, Nominal, OrderBy, completion

Given = Mapping[str, Any]
"""Values of options by their names, None where one is not given; see `with_options`."""

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

READING = {
    "delimiter": Delimiter,
    "decimal": Decimal,
    "thousands": Thousands,
    "encoding": Encoding,
    "missing": MissingOption,
    "sheet": Sheet,
}
"""Options that say how a file is written."""

COLUMNS = {
    "ignore": Ignore,
    "nominal": Nominal,
    "keep": Keep,
    "date": Date,
    **READING,
    "group_by": Group,
    "order_by": OrderBy,
}
"""Options that say what the columns of a table are, and how its file is written."""


def with_options(options: Mapping[str, Any]) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator of commands: options replace the parameter `own`, which has their values.

    Parameters
    ----------
    options : mapping of str to annotation
        All are None where they are not given.
    """

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters: list[inspect.Parameter] = []
        for each in signature.parameters.values():
            added = [
                inspect.Parameter(name, kind, default=None, annotation=annotation)
                for name, annotation in options.items()
            ]
            parameters += added if each.name == "own" else [each.replace(kind=kind)]

        def command(**values: Any) -> None:
            function(own={name: values.pop(name) for name in options}, **values)

        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        vars(command)["__signature__"] = inspect.Signature(parameters)
        return command

    return decorated
