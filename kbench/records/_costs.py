"""Costs of tasks before they run."""

from __future__ import annotations

from dataclasses import dataclass

from kbench.messages import of_seconds
from kbench.records._json import AsJson
from kbench.records._status import Status


@dataclass(frozen=True)
class Estimate:
    """A predicted number, and an interval that should have it in nine cases of ten."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate in another unit."""
        return Estimate(factor * self.value, factor * self.low, factor * self.high)

    def less(self, known: float) -> Estimate:
        """Return the estimate of a number without a part that is known."""
        return Estimate(self.value - known, self.low - known, self.high - known)

    def at_least(self, least: float) -> Estimate:
        """Return the estimate where the number is known not to be smaller than another."""
        return Estimate(max(self.value, least), max(self.low, least), max(self.high, least))

    def as_seconds(self) -> str:
        """Write it as a time with the ends of its interval.

        >>> Estimate(41.3, 30.2, 55.9).as_seconds()
        '41 s (30 s to 56 s)'
        """
        return f"{of_seconds(self.value)} ({of_seconds(self.low)} to {of_seconds(self.high)})"


@dataclass(frozen=True)
class Trial(AsJson):
    """A task on a sample of the training rows of its split.

    Parameters
    ----------
    n_rows : int
        Training rows.
    is_whole : bool
        The search had all of its candidates. Else it had the first two, and measures that
        are computed from a number of rows had a sample of them too.
    status : str
        That of a task.
    seconds : float
        CPU time of the task; with several threads, its wall clock.
    memory_mb : float
        Its peak memory.
    n_threads : int, default 1
        Threads that it had.
    """

    n_rows: int
    is_whole: bool
    status: Status
    seconds: float
    memory_mb: float
    n_threads: int = 1


@dataclass(frozen=True)
class Cost:
    """Predicted cost of one task of a cell.

    Parameters
    ----------
    memory_mb : Estimate
        Peak memory, in units of 2**20 bytes.
    seconds : Estimate, optional
        CPU time on this machine, which is the wall clock where nothing else runs; wall
        clock, where the protocol has several threads. None where no trial of the whole
        search ended in time.
    is_least : bool
        A trial has hit the limit of memory: the task needs at least `memory_mb`.
    """

    memory_mb: Estimate
    seconds: Estimate | None = None
    is_least: bool = False

    def exceeds(self, limit_mb: float) -> bool:
        """Whether the memory is larger than a limit in nine cases of ten."""
        return self.memory_mb.low > limit_mb
