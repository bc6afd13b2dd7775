"""Commands and their help pages: plain text in the width of the terminal, examples at the end.

Boxes of rich would break words in narrow terminals, and would take what stands in brackets,
such as the name of an extra, for markup.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from kbench.cli.echo import echo
from kbench.cli.examples import EXAMPLES
from kbench.cli.feature_options import with_options
from kbench.errors import FeatureError
from kbench.registry.features import Feature, features, options_of

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Settings of all commands: no text is wider than can be read."""


class CoreCommand(NamedTuple):
    """A command of the core: where it is, its line in the list, and what it does at first."""

    target: str
    help: str
    first_line: str = ""


CORE: Mapping[str, CoreCommand] = {
    "suite": CoreCommand(
        "kbench.cli.suite:suite",
        "Run a suite: measure every cell and log it to MLflow.",
        "reading the suite",
    ),
    "results": CoreCommand(
        "kbench.cli.results:results",
        "Print the results of a suite, read back from MLflow: one row per cell.",
        "reading results",
    ),
}
"""Commands of the core, in the order of the help page, which imports none of them."""


class Command(TyperCommand):
    """A command that says at once what it does, and whose help page ends with examples."""

    first_line = ""
    examples: Sequence[Sequence[str]] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments; an option may be missing because its feature is left out."""
        from typer._click.exceptions import NoSuchOption

        try:
            return super().parse_args(ctx, args)
        except NoSuchOption as error:
            if reasons := _left_out():
                error.message += f" (These features are left out: {reasons}.)"
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a person sees a line before its imports, which take seconds."""
        if self.first_line and sys.stderr.isatty() and not ctx.params.get("quiet"):
            echo(f"{self.first_line} ...", err=True, dim=True)
        return super().invoke(ctx)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples; a command is never folded, so that it can be copied."""
        if not self.examples:
            return
        with formatter.section("Examples"):
            for meaning, command in self.examples:
                formatter.write_text(meaning)
                formatter.write(f"{'':{formatter.current_indent + 2}}{command}\n")


class Group(TyperGroup):
    """The commands of the core and of features; a feature is imported by its command only."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names: those of features stand where their metadata say."""
        names = list(CORE)
        waiting = [(each.after, name) for name, (_, each) in _of_features().items()]
        while waiting:
            placed = [(after, name) for after, name in waiting if after in names]
            for after, name in reversed(placed):
                names.insert(names.index(after) + 1, name)
            waiting = [each for each in waiting if each not in placed]
            if not placed:
                names += [name for _, name in waiting]
                break
        return names

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; typer suggests a name of `commands`, and looks nothing up there."""
        self.commands = dict.fromkeys(self.list_commands(ctx), self)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Build a command; FeatureError is raised where its feature cannot be used."""
        if cmd_name in CORE:
            return _of_core(cmd_name)
        if cmd_name not in _of_features():
            _refuse_left_out(cmd_name)
            return None
        feature, about = _of_features()[cmd_name]
        target = feature.load(about.target)
        try:
            made = command_of(cmd_name, target)
        except Exception as error:  # of typer: an annotation that it does not understand
            what = f"{type(error).__name__}: {error}"
            raise FeatureError(
                f"the command {cmd_name!r} of the feature {feature.name!r} cannot be used: {what}"
            ) from error
        return _described(made, about.while_loading, about.examples)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands; the line of a feature's command is in its metadata."""
        lines = []
        for name in self.list_commands(ctx):
            about = CORE.get(name) or _of_features()[name][1]
            lines.append((name, about.help))
        with formatter.section("Commands"):
            formatter.write_dl(lines)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete names of commands without importing features."""
        from typer._click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        known = _of_features()
        found = [
            CompletionItem(name, help=(CORE.get(name) or known[name][1]).help) for name in names
        ]
        return found or super().shell_complete(ctx, incomplete)


class PlainGroup(TyperGroup):
    """Commands below another one; the page shows the whole summary of each."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, in the order in which they were added."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.get_short_help_str(limit=1000)) for name, each in commands if each]
            )


def _of_features() -> dict[str, tuple[Feature, Any]]:
    """Return the commands of features, with their metadata."""
    return {
        name: (feature, about)
        for feature in features()
        if not feature.reason
        for name, about in feature.metadata.commands.items()
    }


def _of_core(name: str) -> Any:
    module, _, attribute = CORE[name].target.partition(":")
    made = command_of(name, getattr(import_module(module), attribute))
    return _described(made, CORE[name].first_line, EXAMPLES[name])


def _described(made: Any, first_line: str, examples: Sequence[Sequence[str]]) -> Any:
    """Return a command with its first line and examples; those below it have their own ones."""
    made.first_line, made.examples = first_line, examples
    for name, below in getattr(made, "commands", {}).items():
        words = ["kbench", made.name, name]
        below.examples = [each for each in examples if each[1].split()[:3] == words]
    return made


def command_of(name: str, function: Callable[..., Any] | typer.Typer) -> Any:
    """Return the command of a function, with the options that features add to it.

    An application of typer becomes commands below this one, such as ``kbench data list``.
    """
    if isinstance(function, typer.Typer):
        function.info.name, function.info.cls = name, PlainGroup
        function.info.context_settings = CONTEXT
        for each in function.registered_commands:
            assert each.callback is not None
            each.cls, each.callback = Command, _evaluated(each.callback)
        return typer.main.get_command(function)
    single = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
    single.command(name, cls=Command)(with_options(_evaluated(function), options_of(name)))
    return typer.main.get_command(single)


def _evaluated(function: Callable[..., Any]) -> Callable[..., Any]:
    # postponed annotations are strings, each of which typer would evaluate four times
    function.__annotations__ = inspect.get_annotations(function, eval_str=True)
    return function


def _refuse_left_out(name: str) -> None:
    """Say which features are left out, where a command is not known."""
    if reasons := _left_out():
        raise FeatureError(f"there is no command {name!r}; these features are left out: {reasons}")


def _left_out() -> str:
    return ", ".join(f"{each.name!r} ({each.reason})" for each in features() if each.reason)
