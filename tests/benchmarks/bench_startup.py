"""CPU time from the start of Python to the end of commands that compute nothing.

Prints medians (user and system time, one thread, bytecode cached) and their
ratios to ``python -c "import typer"``. All take turns, so that a machine that is
busy slows every one of them::

    python tests/benchmarks/bench_startup.py [--rounds 15]

Goals, where ``import typer`` takes 0.08 s: ``kbench --version`` 0.15 s, ``--help``
0.30 s, ``list`` 0.45 s, which are ratios of 1.9, 3.8 and 5.6. Of help, two thirds
are the imports of typer and of its part that prints with rich; of the list, half
are typer's and pydantic's, with which typer reads arguments.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence

KBENCH = ("-m", "kbench.cli")
PROGRAMS: dict[str, tuple[Sequence[str], float | None]] = {
    "python -c pass": (("-c", "pass"), None),
    "import typer": (("-c", "import typer"), None),
    "import numpy": (("-c", "import numpy"), None),
    "import kbench": (("-c", "import kbench"), None),
    "kbench --version": ((*KBENCH, "--version"), 0.15),
    "kbench --help": ((*KBENCH, "--help"), 0.30),
    "kbench list": ((*KBENCH, "list"), 0.45),
}
"""What is run, and the goal in seconds."""

TYPER = 0.08
"""Seconds of ``import typer`` where the goals hold."""


def cpu(arguments: Sequence[str]) -> float:
    """Run Python and return the CPU seconds it took."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for turn in range(rounds + 1):
        for name, (arguments, _) in PROGRAMS.items():
            seconds = cpu(arguments)
            if turn:  # the first compiles bytecode
                times[name].append(seconds)
    medians = {name: statistics.median(each) for name, each in times.items()}
    print(f"median of {rounds}     CPU s  to typer")
    for name, (_, goal) in PROGRAMS.items():
        line = f"{name:16}  {medians[name]:6.3f}  {medians[name] / medians['import typer']:8.2f}"
        print(line + (f"   (goal {goal / TYPER:.1f})" if goal else ""))


if __name__ == "__main__":
    main()
