"""A lock on this machine, shared or exclusive."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from kbench.storage.journal import Journal
from kbench.storage.locks import Holder, named

LOCK = "computing"
"""Name of the lock that every kbench of a user holds while it computes."""


class ThisMachine:
    """Holds this machine's lock while tasks run.

    With `exclusive`, no other kbench of this user computes meanwhile. `notice` is called
    with a text that names the process that is waited for.
    """

    def __init__(self, exclusive: bool, notice: Callable[[str], None]) -> None:
        self._exclusive, self._notice = exclusive, notice
        self._lock = ExitStack()
        self._is_held = False

    def acquire(self) -> None:
        """Wait for the lock, unless it is held."""
        if not self._is_held:
            lock = Journal().lock(LOCK, self._waiting, shared=not self._exclusive)
            self._lock.enter_context(lock)
            self._is_held = True

    def release(self) -> None:
        """Release the lock."""
        self._lock.close()
        self._is_held = False

    def _waiting(self, holder: Holder | None) -> None:
        why = (
            "which computes on this machine: exclusive timing needs the machine alone"
            if self._exclusive
            else "which holds this machine exclusively (--timing exclusive)"
        )
        self._notice(f"waiting for {named(holder)}, {why}")
