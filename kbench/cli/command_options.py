"""Options of commands: those that several share, and those that features add."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from enum import StrEnum
from typing import Annotated, Any

import typer

from kbench.cli import completion
from kbench.cli.echo import echo
from kbench.registry.features import Option, working


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


# -- options that features add: parsed by the core, used by the feature


_given: ContextVar[Mapping[str, Any] | None] = ContextVar("given", default=None)


def given() -> dict[str, Any]:
    """Return the options of features that the user has given to this command, by name."""
    return dict(_given.get() or {})


def as_words() -> list[str]:
    """Return them as words of a command that repeats them."""
    words = []
    for name, value in given().items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
            continue
        for each in [value] if isinstance(value, str) else list(value):
            words += [flag, each]
    return words


def with_options(function: Callable[..., Any], options: Mapping[str, Option]) -> Callable[..., Any]:
    """Return a function with further parameters, whose values `given` returns."""
    parameters = list(inspect.signature(function).parameters.values())
    taken = {"help", "-h", "--help"}
    taken |= {word for each in parameters for word in (each.name, *_flags(each))}
    added: dict[str, Option] = {}
    for name, option in options.items():
        new = _parameter(name, option)
        if clash := sorted(taken & {name, *_flags(new)}):
            (owner,) = (each for each in working() if each.metadata.options.get(name) is option)
            flag = next((word for word in clash if word.startswith("-")), clash[0])
            echo(
                f"the option {flag} of the feature {owner.name!r} is left out: "
                "the command has one of this name",
                err=True,
            )
            continue
        names = [each.name for each in parameters]
        after = next((each for each in option.after.split() if each in names), names[-1])
        parameters.insert(names.index(after) + 1, new)
        added[name] = option

    def call(**values: Any) -> Any:
        found = {name: values.pop(name) for name in added}
        defaults = {name: option.default for name, option in added.items()}
        _given.set({n: v for n, v in found.items() if v not in (None, []) and v != defaults[n]})
        return function(**values)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _flags(parameter: inspect.Parameter) -> list[str]:
    """Return the flags of a parameter, such as ``--jobs`` and ``-j``."""
    about = next(iter(getattr(parameter.annotation, "__metadata__", ())), None)
    if isinstance(about, typer.models.ArgumentInfo):
        return []
    # typer takes the first flag in an annotation for the default
    words = (getattr(about, "default", None), *(getattr(about, "param_decls", None) or ()))
    given = [flag for each in words if isinstance(each, str) for flag in each.split("/")]
    return given or [f"--{parameter.name.replace('_', '-')}"]


def _parameter(name: str, option: Option) -> inspect.Parameter:
    flag = f"--{name.replace('_', '-')}"
    type_: Any = {"text": str | None, "switch": bool, "list": list[str] | None}[option.kind]
    default: Any = option.default if option.kind == "switch" else None
    if option.kind == "switch" and option.default:
        flag = f"{flag}/--no-{flag[2:]}"
    about = typer.Option(flag, metavar=option.metavar, help=option.help)
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=default,
        annotation=Annotated[type_, about],
    )
