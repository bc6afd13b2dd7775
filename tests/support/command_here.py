"""The command line in this process: a tenth of the time that one of its own takes."""

import sys
from unittest import mock

from kbench.cli import main


def command(*arguments, capfd):
    """Run `kbench` and return exit code, output and errors."""
    capfd.readouterr()
    code = 0
    with mock.patch.object(sys, "argv", ["kbench", *map(str, arguments)]):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    out, err = capfd.readouterr()
    return code, out, err
