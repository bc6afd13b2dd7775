"""Decimals that a standard error allows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median

from kbench.records import Measure
from kbench.results.rows import Row
from kbench.results.stats import holdout_ratio

_MOST = 6


def decimals_for(rows: Iterable[Row], measure: Measure) -> int | None:
    """Return the decimals that show two digits of the usual standard error of some means.

    The error is that of the corrected t-test. It is None where no spread is known.

    Examples
    --------
    >>> def row(sd):
    ...     measures = {"accuracy": 0.9, "accuracy_sd": sd, "n_test": 10.0, "n_train": 40.0}
    ...     return Row("iris", "rff", "ridge", "ok", 4, 4, measures)
    >>> [decimals_for([row(sd)], Measure("accuracy")) for sd in (0.02, 20.0)]
    [3, 0]
    >>> decimals_for([row(0.0)], Measure("accuracy")) is None
    True
    """
    errors = [
        row.value(measure.sd) * math.sqrt(1 / row.n_splits_done + holdout_ratio(row))
        for row in rows
        if row.n_splits_done and 0 < (row.value(measure.sd) or 0) < math.inf
    ]
    if not errors:
        return None
    return min(_MOST, max(0, 1 - math.floor(math.log10(median(errors)))))
