"""Wall-clock and CPU seconds of the steps of a fit."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

SHORT_S = 0.05
"""Seconds below which a step is repeated, and the median reported."""

REPEATS = 5


@dataclass(frozen=True)
class Timed:
    """Result of a step, with its wall-clock and CPU seconds."""

    value: Any
    wall: float
    cpu: float


def timed(step: Callable[[], Any]) -> Timed:
    """Run a step and measure its time; a short step is repeated.

    A step under 50 ms is run up to 5 times, or until 50 ms are spent, and the
    medians are reported, with the value of the first run: the number of repeats
    must not decide a result. The garbage collector is off meanwhile.
    """
    walls: list[float] = []
    cpus: list[float] = []
    value: Any = None
    was_enabled = gc.isenabled()
    gc.collect(0)
    gc.disable()
    try:
        while True:
            wall, cpu = time.perf_counter(), time.process_time()
            result = step()
            cpus.append(time.process_time() - cpu)
            walls.append(time.perf_counter() - wall)
            value = result if len(walls) == 1 else value
            if sum(walls) >= SHORT_S or len(walls) >= REPEATS:
                break
    finally:
        if was_enabled:
            gc.enable()
    return Timed(value, float(np.median(walls)), float(np.median(cpus)))


def times(
    map_: Timed, Z: Timed, learner: Timed, Z_test: Timed, predicted: Timed
) -> dict[str, float]:
    """Return the wall-clock and CPU seconds of all steps, by the names of measures."""
    times: dict[str, float] = {}
    for clock, suffix in (("wall", "_s"), ("cpu", "_cpu_s")):
        fits = [getattr(step, clock) for step in (map_, Z, learner)]
        names = ("map_fit_time", "map_transform_time", "learner_fit_time")
        times |= {name + suffix: value for name, value in zip(names, fits, strict=True)}
        times["fit_time" + suffix] = sum(fits)
        times["predict_time" + suffix] = getattr(Z_test, clock) + getattr(predicted, clock)
    return times
