"""Names of the measures that evaluations report, and which values are better."""

from __future__ import annotations

from collections.abc import Mapping

from kbench.records import ACCURACY, Measure

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
