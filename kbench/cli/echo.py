"""Plain lines on the terminal; foreign names, labels and errors are printed literally."""

import os
import re
import shlex
from ast import literal_eval
from typing import Any

import typer

from kbench.messages import printable_lines

# An option in a message, as `kbench.messages.option` names it.
_OPTION = re.compile(r"`(\w+)(?:=([^`]+))?`")


def put_flags(text: str) -> str:
    """Write the options that a message names as flags, if the command that runs has them."""
    if "`" not in text:
        return text
    from typer._click.globals import get_current_context

    context = get_current_context(silent=True)
    params = context.command.params if context else []
    flags = [flag for each in params for flag in each.opts if flag.startswith("--")]

    def written(match: re.Match[str]) -> str:
        flag = f"--{match[1].replace('_', '-')}"
        if flag not in flags and (flag := flag.removesuffix("s")) not in flags:
            return match[0]
        try:
            value = literal_eval(match[2] or "True")
        except (SyntaxError, ValueError):
            return match[0]
        if value is True:
            return flag
        values = value if isinstance(value, list) else [value]
        return " ".join(f"{flag} {_word(each)}" for each in values)

    return _OPTION.sub(written, text)


def _word(value: object) -> str:
    """Write a value as a word of a shell, which has an escape for a tab."""
    word = str(value)
    return shlex.quote(word) if word.isprintable() else f"${word!r}"


def echo(text: object = "", err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print one or several lines in a style of `typer.style`; messages go to `err`."""
    shown = printable_lines(put_flags(str(text)) if err else str(text))
    if os.environ.get("NO_COLOR"):  # rich respects it by itself
        style = {name: value for name, value in style.items() if name not in ("fg", "bg")}
    typer.echo(typer.style(shown, **style) if style else shown, err=err, nl=nl)


def make_streams_encode_all(*streams: object) -> None:
    """Have text that an encoding lacks, such as half a character, written as its escape."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
