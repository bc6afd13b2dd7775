"""Measures of evaluations by which methods can be compared."""

from __future__ import annotations

from collections.abc import Mapping

from kbench.records import ACCURACY, Measure

MEASURES: Mapping[str, Measure] = {
    measure.name: measure
    for measure in (
        ACCURACY,
        Measure("accuracy_unseen"),
        Measure("balanced_accuracy"),
        Measure("expected_error", "lower"),
        Measure("log_loss", "lower"),
        Measure("gram_error_frobenius", "lower"),
        Measure("gram_error_spectral", "lower"),
    )
}
"""Built-in measures by name; plugins add others."""
