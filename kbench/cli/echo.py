"""Plain lines on the terminal; names, labels and errors of others stand in them as text."""

from __future__ import annotations

import os
from typing import Any

import typer

from kbench.messages import printable_lines


def echo(text: object = "", err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a text, one line or several, in a style of `typer.style`."""
    shown = printable_lines(str(text))
    if os.environ.get("NO_COLOR"):  # rich respects it by itself
        style = {name: value for name, value in style.items() if name not in ("fg", "bg")}
    typer.echo(typer.style(shown, **style) if style else shown, err=err, nl=nl)


def make_streams_encode_all(*streams: object) -> None:
    """Have text that an encoding lacks, such as half a character, written as its escape."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
