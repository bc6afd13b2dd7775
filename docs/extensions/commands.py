"""The reference of commands: ``.. commands::`` writes the help page of each."""

from __future__ import annotations

from collections.abc import Iterator

from components import Lines
from typer.main import get_command

from kbench.cli.app import app as kbench

WIDTH = 88


def pages() -> Iterator[tuple[str, str]]:
    """Yield the words of each command, groups first, and its help page."""
    root = get_command(kbench)
    settings = {"terminal_width": WIDTH, "max_content_width": WIDTH}
    contexts = [root.context_class(root, info_name="kbench", **settings)]
    for context in contexts:  # grows by the commands of groups, which are built when asked for
        command = context.command
        names = command.list_commands(context) if hasattr(command, "list_commands") else ()
        contexts += [
            root.context_class(
                command.get_command(context, name), parent=context, info_name=name, **settings
            )
            for name in names
        ]
        yield context.command_path, command.get_help(context)


class Commands(Lines):
    """A section for each command."""

    def lines(self) -> Iterator[str]:
        """Yield headings and help pages."""
        for name, page in pages():
            yield f".. _command-{name.replace(' ', '-')}:"
            yield ""
            yield name
            yield "-" * len(name)
            yield ""
            yield ".. code-block:: text"
            yield ""
            yield from (f"   {line}".rstrip() for line in page.splitlines())
            yield ""


def setup(app):
    """Add the directive."""
    app.add_directive("commands", Commands)
    return {"version": "1", "parallel_read_safe": True}
