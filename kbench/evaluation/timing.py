"""Wall-clock and CPU seconds of the steps of a fit."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T", covariant=True)
S = TypeVar("S")

SHORT_S = 0.05
"""Seconds below which a step is repeated, and the median reported."""

REPEATS = 5

AGREEING = 3
"""Repeats after which a step is not repeated again if they took the same time."""

SAME = 0.05
"""Range of times that count as the same, relative to their median."""


@dataclass(frozen=True)
class Timed(Generic[T]):
    """Result of a step, with its wall-clock and CPU seconds."""

    value: T
    wall: float
    cpu: float


def once(step: Callable[[], S]) -> Timed[S]:
    """Run a step once, without a clock."""
    return Timed(step(), 0.0, 0.0)


class Stopwatch:
    """Wall-clock and CPU seconds of all blocks of code that ran under it.

    `synchronise` waits for a device. `apart` are seconds of transfers to it, in none of the others.

    >>> clock = Stopwatch()
    >>> with clock:
    ...     pass
    >>> clock.wall >= 0 and clock.cpu >= 0
    True
    """

    def __init__(self, synchronise: Callable[[], None] = lambda: None) -> None:
        self.wall = self.cpu = self.apart = 0.0
        self._synchronise = synchronise

    def __enter__(self) -> "Stopwatch":
        self._synchronise()
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exception: object) -> None:
        self._synchronise()
        self.wall += time.perf_counter() - self._start[0]
        self.cpu += time.process_time() - self._start[1]


def time_step(step: Callable[[], S]) -> Timed[S]:
    """Run a step and measure its time; a short step is repeated.

    A step under 50 ms is run up to 5 times, until 50 ms are spent, or until the first 3 times
    differ by at most 5 %. The medians are reported, with the value of the first run: the number of
    repeats must not decide a result. The garbage collector is off meanwhile.
    """
    walls: list[float] = []
    cpus: list[float] = []
    values: list[S] = []
    gc.collect(0)
    with no_collection():
        while True:
            wall, cpu = time.perf_counter(), time.process_time()
            result = step()
            cpus.append(time.process_time() - cpu)
            walls.append(time.perf_counter() - wall)
            values = values or [result]
            if sum(walls) >= SHORT_S or len(walls) >= REPEATS or _agree(walls):
                break
    return Timed(values[0], statistics.median(walls), statistics.median(cpus))


@contextmanager
def no_collection() -> Iterator[None]:
    """Disable the garbage collector in the block."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Run(Protocol):
    """The function that runs a step: `once` or `time_step`."""

    def __call__(self, step: Callable[[], S]) -> Timed[S]:
        """Run a step, and say how long it took."""


def _agree(walls: list[float]) -> bool:
    """Whether further repeats would not change the median by much."""
    return len(walls) == AGREEING and max(walls) - min(walls) <= SAME * statistics.median(walls)


Clock = Timed[object] | Stopwatch


def times(
    map_: Clock, Z: Clock, learner: Clock, Z_test: Clock, predicted: Clock
) -> dict[str, float]:
    """Return the wall-clock and CPU seconds of all steps, by the names of metrics."""
    times: dict[str, float] = {}
    for clock, suffix in (("wall", "_s"), ("cpu", "_cpu_s")):
        fits = [getattr(step, clock) for step in (map_, Z, learner)]
        names = ("map_fit_time", "map_transform_time", "learner_fit_time")
        times |= {name + suffix: value for name, value in zip(names, fits, strict=True)}
        times["fit_time" + suffix] = sum(fits)
        times["predict_time" + suffix] = getattr(Z_test, clock) + getattr(predicted, clock)
    return times
