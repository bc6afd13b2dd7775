"""Commands as texts: the calls of kbench in them, and whether kbench understands these."""

import contextlib
import shlex
from pathlib import PurePosixPath


def kbench_calls(command):
    """Return the arguments of each call of kbench in a command."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, "#"
    calls, current = [], []
    for word in [*words, ";"]:
        if set(word) <= set("|&;<>()"):
            if current and PurePosixPath(current[0]).name == "kbench":
                calls.append(current[1:])
            current = []
        else:
            current.append(word)
    return calls


def known_call(arguments):
    """Let the command line parse arguments without running anything."""
    from typer import Exit
    from typer.main import get_command

    from kbench.cli.app import app

    group = get_command(app)
    if not arguments or arguments[0].startswith("-"):
        assert set(arguments) <= {"--version", "--help"}
        return
    context, rest = group.make_context("kbench", list(arguments)), list(arguments)
    with contextlib.suppress(Exit):  # an option such as --list-tables does all there is to do
        while hasattr(context.command, "resolve_command"):
            name, command, rest = context.command.resolve_command(context, rest)
            context = command.make_context(name, list(rest), parent=context)


def all_commands():
    """Yield the words and the click command of each command, those of features included."""
    from typer.main import get_command

    from kbench.cli.app import app

    root = get_command(app)
    context = root.context_class(root, info_name="kbench")
    for name in root.list_commands(context):
        found = root.get_command(context, name)
        if not hasattr(found, "list_commands"):
            yield name, found
            continue
        for each in found.list_commands(context):
            yield f"{name} {each}", found.get_command(context, each)
