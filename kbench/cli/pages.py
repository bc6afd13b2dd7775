"""Help pages: plain text in the width of the terminal, with examples at the end.

Boxes of rich would break words in narrow terminals, and would take what stands in brackets,
such as the name of an extra, for markup.
"""

from __future__ import annotations

import sys
from typing import Any

from typer.core import TyperCommand, TyperGroup

from kbench.cli.echo import echo
from kbench.cli.examples import EXAMPLES

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Settings of all commands: no text is wider than can be read."""


class Group(TyperGroup):
    """A group of commands that shows the whole summary of each."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, in the order in which they were added."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.get_short_help_str(limit=1000)) for name, each in commands if each]
            )


FIRST_LINES = {
    **dict.fromkeys(("results", "report", "plot", "compare", "ui"), "reading results"),
    **dict.fromkeys(("suite", "rescore", "export"), "reading the suite"),
    "run": "reading the table",
    "predict": "reading the model",
    "sync": "reading the journal",
    **dict.fromkeys(("bundle", "verify"), "reading the results"),
}
"""What a command does while it loads what it needs."""


class Command(TyperCommand):
    """A command that says at once what it does, and whose help page ends with examples."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a person sees a line before its imports, which take seconds."""
        line = FIRST_LINES.get(ctx.info_name)
        if line and sys.stderr.isatty() and not ctx.params.get("quiet"):
            echo(f"{line} ...", err=True, dim=True)
        return super().invoke(ctx)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples; a command is never folded, so that it can be copied."""
        words = ctx.command_path.partition(" ")[2]
        if words not in EXAMPLES:
            return
        with formatter.section("Examples"):
            for meaning, command in EXAMPLES[words]:
                formatter.write_text(meaning)
                formatter.write(f"{'':{formatter.current_indent + 2}}{command}\n")
