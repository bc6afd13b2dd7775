"""Noise of a score on test rows: how much of a difference is chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kbench.records import DatasetFacts, Measure

OVER_CLASSES = ("balanced_accuracy", "f1_macro", "average_precision", "roc_auc")
"""Means over classes, whose noise is that of the rare ones."""

BY_RANKS = ("average_precision", "roc_auc")
"""Those that compare each row of a class with rows of the others."""


def standard_error(
    value: float, n_test: float, measure: Measure, shares: Sequence[float] = ()
) -> float:
    """Return a rough standard error of a score on test rows.

    Of a share it is that of a binomial; of an error that of the root of a mean square. A mean
    over classes, which have these `shares` of the rows, has that of a mean of binomials. Ranks
    of two classes are as uncertain as the rarer one.

    >>> round(standard_error(0.9, 900, Measure("accuracy")), 4)
    0.01
    >>> balanced = Measure("balanced_accuracy")
    >>> round(standard_error(0.5, 800, balanced, (0.03, 0.97)), 3)
    0.052
    >>> round(standard_error(0.5, 800, balanced, (0.01, *[0.11] * 9)), 3)
    0.024
    """
    n = n_test
    if shares and measure.name in OVER_CLASSES:
        if len(shares) == 2 and measure.name in BY_RANKS:
            n *= min(shares)
        else:
            n *= len(shares) ** 2 / sum(1 / share for share in shares)
    n = max(1.0, n)
    if measure.better == "higher":
        share = min(max(value, 0.0), 1.0)
        return math.sqrt(max(share * (1 - share), 1 / n) / n)
    return abs(value) / math.sqrt(2 * n)


def class_shares(facts: DatasetFacts | None) -> tuple[float, ...]:
    """Return the shares of the rows of the classes; none for numbers."""
    if facts is None:
        return ()
    return tuple(max(1, count) / facts.n_samples for count in facts.class_counts)
