"""Whether a supervisor still works, judged by its client without its help.

A task may stop the supervisor, or occupy it for ever. Its time counts only while the
client runs too: a machine that was suspended, or a client that was stopped, finds
its supervisor as it was.
"""

from __future__ import annotations

from collections.abc import Callable

from kbench.execution.sandbox import processes

TICK_S = 0.5
"""Seconds between two looks."""

STOPPED_S = 10.0
"""Seconds without a sign of life after which a supervisor is given up."""

MARGIN_S = 60.0
"""Seconds beyond the limit of a task that its end and its answer may take."""

WARM_UP_S = 600.0
"""Seconds that imports may take, beyond those of trial imports."""


class HungError(Exception):
    """A supervisor does not work any longer although its process lives."""


class Liveness:
    """Looks at the supervisor `pid` while a client waits for it.

    It is ready once it has imported everything, which may take `warm_up_s` seconds, and
    should enforce the task's limit of `time_s`.
    """

    def __init__(
        self, pid: int, is_ready: Callable[[], bool], warm_up_s: float, time_s: float | None
    ) -> None:
        self._pid, self._is_ready = pid, is_ready
        self._warm_up_s, self._time_s = warm_up_s, time_s
        self._pulse: object = None
        self._still_s = self._waited_s = 0.0
        self._ready = False

    def look(self) -> None:
        """Raise HungError if the supervisor hangs; to be called every `TICK_S`.

        Looks are counted, and no clock is read.
        """
        pulse = processes.pulse(self._pid)
        still = pulse is not None and pulse == self._pulse
        self._still_s = self._still_s + TICK_S if still else 0.0
        self._pulse = pulse
        if self._still_s >= STOPPED_S:
            raise HungError(f"it has not run for {STOPPED_S:g} s (was it stopped?)")
        if not self._ready and self._is_ready():
            self._ready, self._waited_s = True, 0.0
        self._waited_s += TICK_S
        if not self._ready and self._waited_s > self._warm_up_s:
            raise HungError(f"its imports took more than {self._warm_up_s:g} s")
        if self._ready and self._time_s is not None and self._waited_s > self._time_s + MARGIN_S:
            raise HungError(f"it did not end a task with a limit of {self._time_s:g} s")
