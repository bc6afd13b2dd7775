"""Options that features add to commands: parsed by the core, used by the feature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Annotated, Any

import typer

from kbench.cli.echo import echo
from kbench.registry.features import Option, working

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
        for each in [value] if isinstance(value, str) else value:
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
