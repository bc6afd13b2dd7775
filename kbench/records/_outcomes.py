"""What features answer at the end of a run: what was delivered, which measures were added."""

from __future__ import annotations

from dataclasses import dataclass

from kbench.messages import counted


@dataclass(frozen=True)
class Delivered:
    """Result of a delivery to a tracker."""

    uri: str
    """Where the results are, without credentials."""
    experiment: str
    """The name of the suite there."""
    experiment_id: str = ""
    """Its identifier; empty where the tracker did not answer."""
    written: int = 0
    """Runs that were written this time."""
    stored: int = 0
    """Runs of the planned cells that are there now."""
    problem: str = ""
    """Why some are missing; empty where none are."""
    tracker: str = ""
    """What keeps them, for people."""
    commands: tuple[tuple[str, str], ...] = ()
    """Commands to type next, and what they do."""
    remedy: str = ""
    """How those that are missing get there."""
    options: tuple[str, ...] = ()
    """Options that name the place in commands; empty for the default one."""


@dataclass(frozen=True)
class Missing:
    """Splits that lack a measure; `failed` says that they should have it."""

    reason: str
    n_splits: int
    learners: tuple[str, ...]
    failed: bool


@dataclass(frozen=True)
class Added:
    """The result of adding a measure to known results.

    `n_added` splits have it now and `n_known` had it before; `missing` lack it.
    """

    measure: str
    n_added: int = 0
    n_known: int = 0
    missing: tuple[Missing, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a split lacks the measure that should have it."""
        return any(part.failed for part in self.missing)

    @property
    def sentence(self) -> str:
        """The result in one line."""
        text = f"{self.measure}: {counted(self.n_added, 'split')} got it"
        if self.n_known:
            text += f", {self.n_known:,} had it"
        for part in self.missing:
            text += f"; {part.n_splits:,} lack it: {part.reason} ({', '.join(part.learners)})"
        return text
