"""Permutation importances and errors of a method, as sentences and tables."""

from __future__ import annotations

from dataclasses import dataclass

from kbench.messages import plural

SHOWN = 12
"""Number of columns that the command line prints."""


@dataclass(frozen=True)
class Importance:
    """Loss in the metric if a column is permuted: mean and standard deviation."""

    column: str
    mean: float
    sd: float


@dataclass(frozen=True)
class Explanation:
    """Permutation importances and errors of a method on test rows of the first split."""

    importances: tuple[Importance, ...]
    n_rows: int
    confusion: tuple[tuple[int, ...], ...] = ()
    """Rows by class and predicted class; empty for regression and for many classes."""
    classes: tuple[str, ...] = ()
    repeats: int = 3
    fitted: tuple[int, ...] = ()
    """Training rows of its fit, and those of the split; empty if they are equal."""

    def sentences(self, words: str) -> list[str]:
        """Name the most important columns; `words` is the name of the metric."""
        useful = [each for each in self.importances if each.mean > 2 * each.sd and each.mean > 0]
        if not useful:
            return [f"No column alone changes the {words} if it is permuted{self._sample}."]
        named = ", ".join(f"{each.column} ({each.mean:.3f})" for each in useful[:SHOWN])
        more = f" and {len(useful) - SHOWN} more" if len(useful) > SHOWN else ""
        rest = len(self.importances) - len(useful)
        return [
            f"Permutation importances, as the loss in {words}, on {self.n_rows:,} test "
            f"rows{self._sample}: {named}{more}."
            + (f" No effect of {plural(rest, 'other')}." if rest else "")
        ]

    @property
    def _sample(self) -> str:
        """Where the time limit reduced the effort."""
        parts = ["once"] if self.repeats == 1 else []
        if self.fitted:
            parts.append("fitted on {:,} of {:,} rows".format(*self.fitted))
        return f" ({', '.join(parts)}, to save time)" if parts else ""
