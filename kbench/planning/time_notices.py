"""What a user should know of times that are reused, or compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbench.planning.planned import PlannedCell


def of_reuse(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Warn that reused results were not timed exclusively."""
    known = [result for cell in cells for result in cell.done if result.timing != "exclusive"]
    if known:
        yield (
            f"{len(known)} known results keep the times of an ordinary run; "
            "--fresh takes all of them again"
        )


def of_cpus(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Warn that times were taken on several CPUs."""
    cpus = {result.cpu for cell in cells for result in cell.done if result.cpu}
    if len(cpus) > 1:
        yield (
            f"times were taken on different CPUs ({', '.join(sorted(cpus))}): compare those "
            "of runs with the same tag kbench.hosts only"
        )
