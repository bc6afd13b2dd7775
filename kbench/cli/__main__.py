"""``python -m kbench.cli`` is the same as ``kbench``."""

from kbench.cli import main

main()
