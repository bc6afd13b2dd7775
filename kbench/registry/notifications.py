"""Notifications of features: a queue and a thread for each, so that none delays a run.

What a feature is told is in the journal already. A feature that falls behind misses results,
and is given all of them at the end of the run; one that hangs is left behind at the deadline.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from kbench.records import Delivered
from kbench.registry.features import Feature
from kbench.registry.verbs import Verbs

_Call = tuple[Callable[..., Any], dict[str, Any]]

MOST = 10_000
"""Notifications that wait for a feature at most; further ones are dropped, but for the last."""

DEADLINE_S = 40.0
"""Seconds without a sign of life after which a feature is left behind, at the end of a run."""

SWITCH_S = 0.0005
"""Longest time for which a thread of a feature keeps the interpreter while others wait."""

HOOKS = ("kbench_run_started", "kbench_result", "kbench_cell_finished", "kbench_run_finished")

_here = threading.local()


def still_working() -> None:
    """Tell kbench that the feature of this thread goes on: its deadline begins again."""
    if (told := getattr(_here, "told", None)) is not None:
        told.last_sign = time.monotonic()


class _Told:
    """A feature that is told of a run: calls in their order, in a thread of low priority."""

    def __init__(self, feature: Feature, verbs: Verbs) -> None:
        self.feature, self._verbs = feature, verbs
        self.last_sign = time.monotonic()
        self.n_dropped = 0
        self.answer: Any = None
        self._waiting: deque[_Call] = deque()
        self._last: _Call | None = None
        self._changed = threading.Condition()
        self._is_over = False
        self._thread = threading.Thread(target=self._work, name=feature.name, daemon=True)

    def start(self) -> None:
        """Begin to make the calls."""
        if not self._thread.ident:
            self._thread.start()

    def put(self, function: Callable[..., Any], context: dict[str, Any]) -> None:
        """Add a call, unless too many are waiting."""
        with self._changed:
            if len(self._waiting) < MOST:
                self._waiting.append((function, context))
                self._changed.notify()
            else:
                self.n_dropped += 1

    def end(self, last: _Call | None) -> None:
        """Add the last call, if there is one; it is never dropped."""
        with self._changed:
            self._last, self._is_over = last, True
            self.last_sign = time.monotonic()
            self._changed.notify()
        self.start()

    def wait(self, deadline_s: float) -> bool:
        """Wait until all calls are made, as long as there are signs of life."""
        while self._thread.is_alive() and time.monotonic() < self.last_sign + deadline_s:
            self._thread.join(0.02)
        return not self._thread.is_alive()

    def _next(self) -> _Call | None:
        with self._changed:
            while not self._waiting and not self._is_over:
                self._changed.wait()
            return self._waiting.popleft() if self._waiting else None

    def _work(self) -> None:
        _here.told = self
        with in_background():
            try:
                while (call := self._next()) is not None:
                    function, context = call
                    function(**context)
                    self.last_sign = time.monotonic()
                if self._last is not None:
                    function, context = self._last
                    self.answer = function(**context)
            except BaseException as error:  # SystemExit would end the thread without a word
                self._verbs.fail(self.feature.name, f"{type(error).__name__}: {error}")


class Notifications:
    """Tells features of a run; where `deferred`, at its end: nothing else runs beside the times."""

    def __init__(self, verbs: Verbs, deferred: bool = False) -> None:
        self._verbs, self._deferred = verbs, deferred
        self._is_started = False
        self._told: dict[str, _Told] = {}

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the features that were told of the run, and failed or hang."""
        return tuple(name for name in self._told if name in self._verbs.failed)

    def send(self, hook: str, **context: Any) -> None:
        """Tell each feature that implements a hook; returns at once."""
        if hook == "kbench_run_started" and self._is_started:
            return  # a run that has fetched data begins to compute
        if not self._is_started:  # features are imported before the first task, not beside it
            self._is_started = True
            for each in HOOKS:
                self._verbs.implementing(each)
        for feature, function in self._verbs.implementing(hook):
            told = self._told.setdefault(feature.name, _Told(feature, self._verbs))
            told.put(function, context)
            if not self._deferred:
                told.start()

    def finish(self, deadline_s: float | None = None, **context: Any) -> list[tuple[Feature, Any]]:
        """Tell that the run is over; return the answers once all features have ended."""
        last = {
            feature.name: (feature, function)
            for feature, function in self._verbs.implementing("kbench_run_finished")
        }
        for name, (feature, _) in last.items():
            self._told.setdefault(name, _Told(feature, self._verbs))
        for name, told in self._told.items():
            told.end((last[name][1], context) if name in last else None)
        limit = DEADLINE_S if deadline_s is None else deadline_s
        answers = []
        for name in sorted(self._told, key=[each.name for each in self._verbs.features].index):
            told = self._told[name]
            if not told.wait(limit):
                self._verbs.fail(name, f"it hangs: no sign of life for {limit:g} s")
            elif told.n_dropped and name not in last:
                self._verbs.fail(name, f"it is slow, and has missed {told.n_dropped} notifications")
            elif isinstance(told.answer, Delivered):
                answers.append((told.feature, told.answer))
            elif told.answer is not None:
                what = type(told.answer).__name__
                self._verbs.fail(name, f"kbench_run_finished: must return Delivered, got {what}")
        return answers


@contextlib.contextmanager
def in_background() -> Iterator[None]:
    """Let this thread take neither the CPU nor the interpreter from what computes."""
    with contextlib.suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    # Threads that serve tasks wait for the interpreter as often as they wake up, each
    # time for as long as this one may keep it.
    _interval.shorten()
    try:
        yield
    finally:
        _interval.restore()


class _Interval:
    """The interval of the interpreter, which is short while a thread is in the background."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_threads, self._usual = 0, 0.0

    def shorten(self) -> None:
        """Count one more thread; the first one shortens the interval."""
        with self._lock:
            self._n_threads += 1
            if self._n_threads == 1:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual, SWITCH_S))

    def restore(self) -> None:
        """Count one less; after the last one the interval is the usual one again."""
        with self._lock:
            self._n_threads -= 1
            if not self._n_threads:
                sys.setswitchinterval(self._usual)


_interval = _Interval()
