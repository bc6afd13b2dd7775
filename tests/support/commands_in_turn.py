"""Several commands in one further process: starting one takes most of their time."""

import re
import subprocess
import sys

CODE = """
import os, sys
from kbench.cli import main
for arguments, variables in {commands!r}:
    sys.argv = ["kbench", *arguments]
    os.environ.update(variables)
    try:
        main()
    except SystemExit:
        pass
    print("\\nLOADED", *sys.modules)
"""


def in_turn(*commands):
    """Run commands, each with environment variables.

    Returns what each has printed, and the modules that were loaded after it.
    """
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(commands=commands)],
        capture_output=True,
        text=True,
        check=True,
    )
    parts = re.split(r"\nLOADED (.*)\n", done.stdout)
    assert len(parts) == 2 * len(commands) + 1, done.stderr
    return [
        (printed, set(names.split()))
        for printed, names in zip(parts[:-1:2], parts[1::2], strict=True)
    ]


def completed(*lines):
    """Return what bash would complete each line's last word with, and the modules as above."""
    commands = []
    for line in lines:
        place = str(len(line.split()) - 1)
        variables = {"_KBENCH_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": place}
        commands.append(([], variables))
    return [(printed.split(), loaded) for printed, loaded in in_turn(*commands)]
