"""The measure that a suite compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Measure:
    """The measure that the tables, ranks and tests of a suite compare.

    Parameters
    ----------
    name : str, default "accuracy"
        A measure that evaluations report.
    better : {"higher", "lower"}, default "higher"
        Which values are better.

    Examples
    --------
    >>> Measure("expected_error", "lower").gain(0.25)
    -0.25
    """

    name: str = "accuracy"
    better: Literal["higher", "lower"] = "higher"

    @property
    def sd(self) -> str:
        """Name of the standard deviation of one split."""
        return f"{self.name}_sd"

    @property
    def words(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    def gain(self, value: Any) -> Any:
        """Return a value, or an array of them, so that higher is better."""
        return value if self.better == "higher" else -value


ACCURACY = Measure()
