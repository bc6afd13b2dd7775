"""Options of commands: those that several share, and those that features add."""

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from enum import StrEnum
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, get_origin

import typer

from kbench.cli import completion
from kbench.cli.echo import echo
from kbench.registry.dependencies import find_source, read_source
from kbench.registry.features import Option, find_features, working

if TYPE_CHECKING:
    from docstring_parser import DocstringParam


# Forms of a results table.
Form = StrEnum("Form", ["table", "csv", "json", "latex", "markdown"])

Format = Annotated[Form, typer.Option("--format", help="Format of the output.")]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="URI",
        help="MLflow store; default: $MLFLOW_TRACKING_URI, else mlflow.db in this folder.",
    ),
]
Open = Annotated[bool, typer.Option("--open", help="Open it in a browser.")]

# The argument of a command that names a suite with results.
stored_suite = partial(typer.Argument, autocompletion=completion.complete_stored_suites)

# The option of a command that names what it writes.
output_option = partial(typer.Option, "--output", "-o", metavar="FILE")

Datasets = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        metavar="PATTERN",
        autocompletion=completion.components("dataset"),
        help="Use only the datasets with this label, or that match this pattern; repeatable.",
    ),
]
Highlight = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METHOD",
        help="Compare this method with every other method: `map + learner`, a map or a pattern; "
        "repeatable.",
    ),
]

JsonEvents = Annotated[
    bool, typer.Option("--json", help="Print one JSON line per event, and nothing else.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the results, no progress.")]

_METAVARS = {
    **dict.fromkeys(("target", "drop", "categorical", "keep", "group", "time_column"), "COLUMN"),
    **dict.fromkeys(("dataset", "feature_map", "learner", "metric", "sheet"), "NAME"),
    **dict.fromkeys(("add_datasets", "add_feature_maps", "add_learners"), "NAME"),
    "data": "FOLDER",
    "date": "COLUMN=FORMAT",
    "memory_limit": "MIB",
    "na_values": "STRING",
    "task": "TASK",
    **dict.fromkeys(("time_limit", "task_timeout"), "SECONDS"),
}
_COMPLETIONS: Mapping[str, Callable[..., list[str]]] = {
    "dataset": completion.datasets,
    **dict.fromkeys(("feature_map", "add_feature_maps"), completion.components("feature map")),
    **dict.fromkeys(("learner", "add_learners"), completion.components("learner")),
    "add_datasets": completion.components("dataset"),
    "metric": completion.metrics,
    "suite": completion.suites,
}
_SHORT = {"jobs": "-j"}


def options_from(function: str, own: Sequence[str] = ()) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator of commands, whose options are parameters of ``kbench.FUNCTION``.

    A parameter without a `typer.Option` has the help that the docstring of the function has. The
    parameter `own` of the command becomes an option for each name in `own`, and has their values.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        docs = _read_docs(function)
        parameters: list[inspect.Parameter] = []
        for each in inspect.signature(command, eval_str=True).parameters.values():
            if own and each.name == "own":
                optional = each.replace(default=None)
                parameters += [_make_option(optional.replace(name=name), docs) for name in own]
            else:
                parameters.append(_make_option(each, docs))

        def call(**values: Any) -> None:
            options = {"own": {name: values.pop(name) for name in own}} if own else {}
            command(**values, **options)

        return _set_signature(call, command, parameters)

    return decorated


@cache
def _read_docs(function: str) -> "dict[str, DocstringParam]":
    """Return what a docstring says of parameters, read without importing the function."""
    from docstring_parser import parse

    targets = {
        name: at for each in find_features(()) for name, at in each.metadata.functions.items()
    }
    module, _, name = targets.get(function, f"kbench.api.functions:{function}").partition(":")
    path = find_source(module, {})
    body = ast.parse(read_source(path)).body if path else []
    functions = (each for each in body if isinstance(each, ast.FunctionDef) and each.name == name)
    doc = next(map(ast.get_docstring, functions), None) or ""
    return {each: param for param in parse(doc).params for each in param.arg_name.split(", ")}


def _make_option(
    parameter: inspect.Parameter, docs: "Mapping[str, DocstringParam]"
) -> inspect.Parameter:
    """Return a parameter as an option, or an argument if it is required, if it is in `docs`.

    One of `own` has its type in the docstring.
    """
    name, type_ = parameter.name, parameter.annotation
    if name not in docs or get_origin(type_) is Annotated:
        return parameter
    help_ = " ".join((docs[name].description or "").split()).replace("``", "")
    if get_origin(type_) is Mapping:
        kind = str(docs[name].type_name)
        type_ = list[str] | None if "sequence" in kind else bool if kind == "bool" else str | None
    is_list = "list" in str(type_)
    help_ = f"{help_.removesuffix('.')}; repeatable." if is_list else help_
    complete = _COMPLETIONS.get(name)
    if parameter.default is parameter.empty:
        argument = typer.Argument(help=help_, autocompletion=complete)
        return parameter.replace(annotation=Annotated[type_, argument])
    flags = [_flag(name, is_list), *filter(None, [_SHORT.get(name)])]
    metavar = "PATTERN" if "pattern" in help_ else _METAVARS.get(name)
    made = typer.Option(*flags, metavar=metavar, autocompletion=complete, help=help_)
    return parameter.replace(annotation=Annotated[type_, made])


def _flag(name: str, is_list: bool = False) -> str:
    """Return the flag of a parameter; that of a list takes one value at a time.

    >>> _flag("n_splits"), _flag("na_values", is_list=True)
    ('--n-splits', '--na-value')
    """
    return f"--{name.replace('_', '-')}".removesuffix("s" if is_list else "")


def _set_signature(
    call: Callable[..., Any], function: Callable[..., Any], parameters: list[inspect.Parameter]
) -> Callable[..., Any]:
    """Return a function that typer takes for another one with these parameters."""
    call.__name__, call.__doc__ = function.__name__, function.__doc__
    by_name = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    call.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def format_options(options: Mapping[str, object]) -> list[str]:
    """Return options that are given as words of a command that repeats them.

    >>> format_options({"jobs": 2, "params": ["a", "b"], "views": False, "data": None})
    ['--jobs', '2', '--param', 'a', '--param', 'b', '--no-views']
    """
    words = []
    for name, value in options.items():
        flag = _flag(name, isinstance(value, list | tuple))
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
        elif value is not None:
            values = value if isinstance(value, list | tuple) else [value]
            words += [word for each in values for word in (flag, str(each))]
    return words


_given: ContextVar[Mapping[str, Any] | None] = ContextVar("given", default=None)


def get_given() -> dict[str, Any]:
    """Return the options of features that the user has given to this command, by name."""
    return dict(_given.get() or {})


def add_options(function: Callable[..., Any], options: Mapping[str, Option]) -> Callable[..., Any]:
    """Return a function with further parameters, whose values `get_given` returns."""
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
        chosen = {name: values.pop(name) for name in added}
        defaults = {name: option.default for name, option in added.items()}
        _given.set({n: v for n, v in chosen.items() if v not in (None, []) and v != defaults[n]})
        return function(**values)

    return _set_signature(call, function, parameters)


def _flags(parameter: inspect.Parameter) -> list[str]:
    """Return the flags of a parameter, such as ``--jobs`` and ``-j``."""
    about = next(iter(getattr(parameter.annotation, "__metadata__", ())), None)
    if isinstance(about, typer.models.ArgumentInfo):
        return []
    # typer takes the first flag in an annotation for the default
    words = (getattr(about, "default", None), *(getattr(about, "param_decls", None) or ()))
    flags = [flag for each in words if isinstance(each, str) for flag in each.split("/")]
    return flags or [_flag(parameter.name)]


def _parameter(name: str, option: Option) -> inspect.Parameter:
    flag = _flag(name, option.kind == "list")
    type_: Any = {"text": str | None, "switch": bool, "list": list[str] | None}[option.kind]
    flag += f"/--no-{flag[2:]}" if option.kind == "switch" and option.default else ""
    about = Annotated[type_, typer.Option(flag, metavar=option.metavar, help=option.help)]
    default = option.default if option.kind == "switch" else None
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=about
    )
