"""A limit on the seconds of a block of code in this process."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

_AGAIN_S = 1.0


class TimeLimitExceeded(BaseException):
    """A block has taken too long. Code that catches every `Exception` lets it pass."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimitExceeded` in a block that takes longer.

    Only the main thread can be interrupted, by a signal that Windows does not have: elsewhere
    there is no limit. The signal comes again where the block has caught it.
    """
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise TimeLimitExceeded

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
