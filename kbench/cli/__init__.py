"""The command line. Every heavy import is inside a command.

Exit codes: 0 success (the data of cells may be unavailable), 1 a cell failed or was skipped, or
the store is incomplete, 2 invalid usage or suite file, 130 interrupted.
"""

import gc
import sys

from kbench._version import __version__
from kbench.errors import JournalError, KbenchError
from kbench.messages import printable


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        if sys.argv[1:] == ["--version"]:  # without importing the commands
            print(f"kbench {__version__}")
            return
        from kbench.cli.app import app
        from kbench.cli.echo import make_streams_encode_all

        make_streams_encode_all(sys.stdout, sys.stderr)
        app()
    except KbenchError as error:
        for line in str(error).splitlines():
            print(f"kbench: {printable(line, None)}", file=sys.stderr)
        sys.exit(1 if isinstance(error, JournalError) else 2)
    except KeyboardInterrupt:
        print("kbench: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # the reader of a pipe (head, less) has closed it
        sys.stderr.close()
        sys.exit(0)
    finally:
        # all that is left ends with the process: looking through it once more takes time
        gc.freeze()
