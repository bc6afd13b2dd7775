"""Tasks that look for the credentials of the user."""

import os
from pathlib import Path


def seen(names):
    """Return the variables that a task finds in its environment, or in that of its parent."""
    found = {name: os.environ.get(name) for name in names}
    for process in ("self", os.getppid()):
        kept = Path(f"/proc/{process}/environ")
        given = kept.read_bytes().split(b"\0") if kept.exists() else []
        lines = dict(line.decode().partition("=")[::2] for line in given if line)
        found = {name: value or lines.get(name) for name, value in found.items()}
    return found
