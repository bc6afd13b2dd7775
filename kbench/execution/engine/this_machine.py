"""The right to compute on this machine: beside others who share it, or alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from kbench.storage.journal import Journal
from kbench.storage.locks import Holder, named

LOCK = "computing"
"""The lock of this machine that every kbench of a user holds while it computes."""


class ThisMachine:
    """The machine itself, once no other kbench of its user stands in the way.

    Parameters
    ----------
    exclusive : bool
        Have it alone.
    notice : callable
        Is told, as text, who is waited for.
    """

    def __init__(self, exclusive: bool, notice: Callable[[str], None]) -> None:
        self._exclusive, self._notice = exclusive, notice
        self._lock = ExitStack()
        self._has_it = False

    def take(self) -> None:
        """Wait until this machine may be computed on."""
        if not self._has_it:
            lock = Journal().lock(LOCK, self._waiting, shared=not self._exclusive)
            self._lock.enter_context(lock)
            self._has_it = True

    def release(self) -> None:
        """Let others compute."""
        self._lock.close()
        self._has_it = False

    def _waiting(self, holder: Holder | None) -> None:
        why = (
            "which computes on this machine: exclusive timing wants it alone"
            if self._exclusive
            else "which has this machine alone (--timing exclusive)"
        )
        self._notice(f"waiting for {named(holder)}, {why}")
