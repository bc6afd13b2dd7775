"""The command line: commands of the core and of features, each built when it is used.

Help pages are plain text: boxes of rich would break words in narrow terminals, and would take
what stands in brackets, such as the name of an extra, for markup.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer._click import Command as ClickCommand
from typer._click import Context, HelpFormatter
from typer._click.exceptions import NoSuchOption
from typer._click.shell_completion import CompletionItem
from typer.core import TyperCommand, TyperGroup

from kbench._version import __version__
from kbench.cli.command_options import add_options
from kbench.cli.echo import echo, put_flags
from kbench.errors import FeatureError, KbenchError
from kbench.registry.features import Command as About
from kbench.registry.features import Feature, features, get_options, read, working

# Settings of all commands: no text is wider than can be read.
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


# Commands of the core, in the order of the help page, which imports none of them.
CORE: Mapping[str, About] = read(Path(__file__).with_name("commands.toml")).commands


class Command(TyperCommand):
    """A command that says at once what it does, and whose help page ends with examples."""

    first_line = ""
    examples: Sequence[Sequence[str]] = ()

    def parse_args(self, ctx: Context, args: list[str]) -> Any:
        """Parse the arguments; an option may be missing because its feature is left out."""
        try:
            return super().parse_args(ctx, args)
        except NoSuchOption as error:
            if reasons := _left_out():
                error.message += f" (These features are left out: {reasons}.)"
            raise

    def invoke(self, ctx: Context) -> Any:
        """Run the command; a person sees a line before its imports, which take seconds."""
        if self.first_line and sys.stderr.isatty() and not ctx.params.get("quiet"):
            echo(f"{self.first_line} ...", err=True, dim=True)
        try:
            return super().invoke(ctx)
        except KbenchError as error:
            error.args = (put_flags(str(error)),)
            raise

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the examples; a command is never folded, so that it can be copied."""
        if self.examples:
            with formatter.section("Examples"):
                for meaning, command in self.examples:
                    formatter.write_text(meaning)
                    formatter.write(f"{'':{formatter.current_indent + 2}}{command}\n")


class Group(TyperGroup):
    """The commands of the core and of features, or of a group; a command imports its feature."""

    path = ""

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names: those of features stand where their metadata say."""
        commands = _commands(self.path)

        def with_followers(name: str) -> list[str]:
            after = [other for other, (_, each) in commands.items() if each.after == name]
            return [name, *(each for other in after for each in with_followers(other))]

        first = [name for name, (_, each) in commands.items() if each.after not in commands]
        names = [each for name in first for each in with_followers(name)]
        return [*names, *(name for name in commands if name not in names)]

    def resolve_command(self, ctx: Context, args: list[str]) -> Any:
        """Find the command; typer suggests a name of `commands`, and looks nothing up there."""
        self.commands = dict.fromkeys(self.list_commands(ctx), self)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Context, cmd_name: str) -> ClickCommand | None:
        """Build a command; raises FeatureError if its feature cannot be used."""
        if cmd_name not in (commands := _commands(self.path)):
            if reasons := _left_out():
                left_out = f"these features are left out: {reasons}"
                raise FeatureError(f"there is no command {cmd_name!r}; {left_out}")
            return None
        feature, about = commands[cmd_name]
        path = f"{self.path} {cmd_name}".lstrip()
        if not about.target:
            made = Group(name=cmd_name, help=about.help, context_settings=CONTEXT)
            made.no_args_is_help, made.rich_markup_mode, made.path = True, None, path
            return made
        if feature is None:
            module, _, name = about.target.partition(":")
            return _add_help(build_command(path, getattr(import_module(module), name)), about)
        target = feature.load(about.target)
        try:
            return _add_help(build_command(path, target), about)
        except Exception as error:  # of typer: an annotation that it does not understand
            problem = f"{type(error).__name__}: {error}"
            raise FeatureError(
                f"the command {path!r} of the feature {feature.name!r} cannot be used: {problem}"
            ) from error

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands; the line of a feature's command is in its metadata."""
        commands = _commands(self.path)
        with formatter.section("Commands"):
            formatter.write_dl([(name, commands[name][1].help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands without importing features."""
        commands = _commands(self.path)
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=commands[name][1].help) for name in names]
        return items or super().shell_complete(ctx, incomplete)


def _commands(group: str) -> dict[str, tuple[Feature | None, About]]:
    """Return the commands of a group, each with its metadata, and its feature if it has one."""
    by_name: dict[str, tuple[Feature | None, About]] = {n: (None, each) for n, each in CORE.items()}
    for feature in working():
        by_name |= {name: (feature, about) for name, about in feature.metadata.commands.items()}
    parts = [(*name.rpartition(" "), each) for name, each in by_name.items()]
    return {last: each for above, _, last, each in parts if above == group}


def _add_help(made: Command, about: About) -> ClickCommand:
    """Return a command with its first line and examples, and its arguments in capitals."""
    made.first_line, made.examples = about.while_loading, about.examples
    for each in (param for param in made.params if param.param_type_name == "argument"):
        each.metavar = each.metavar or (each.name or "").upper()
    return made


def build_command(name: str, function: Callable[..., Any]) -> Any:
    """Return the command of a function, with the options that features add to it."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
    # postponed annotations are strings, each of which typer would evaluate four times
    function.__annotations__ = inspect.get_annotations(function, eval_str=True)
    single.command(name.rpartition(" ")[2], cls=Command)(add_options(function, get_options(name)))
    return typer.main.get_command(single)


def _left_out() -> str:
    return ", ".join(f"{each.name!r} ({each.reason})" for each in features() if each.reason)


app = typer.Typer(
    name="kbench",
    cls=Group,
    help="Benchmark explicit feature maps and kernel methods: accuracy and cost, on the same "
    "splits of the same datasets.",
    epilog="Exit codes: 0 success (the data of cells may be unavailable), 1 a cell failed or was "
    "skipped, or the store is incomplete, 2 invalid usage or suite file, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    # kbench's errors are one line; others keep Python's plain traceback
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kbench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Define the options that precede a command."""
