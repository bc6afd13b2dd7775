"""What is compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Measure:
    """What the tables, ranks and tests of a suite compare.

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
        """What people read."""
        return self.name.replace("_", " ")

    def gain(self, value: Any) -> Any:
        """Return a value, or an array of them, so that higher is better."""
        return value if self.better == "higher" else -value


ACCURACY = Measure()

MEASURES: Mapping[str, Measure] = {
    each.name: each
    for each in (
        ACCURACY,
        Measure("accuracy_unseen"),
        Measure("balanced_accuracy"),
        Measure("expected_error", "lower"),
        Measure("log_loss", "lower"),
        Measure("gram_error_frobenius", "lower"),
        Measure("gram_error_spectral", "lower"),
    )
}
"""Measures of kbench's own by which methods can be compared."""
