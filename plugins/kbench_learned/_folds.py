"""Held-out rows of the training part."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_PARTS = 5
"""A fold holds out one of so many parts of the rows."""

_HELD_OUT = 1_000
"""Rows that all folds together hold out, if there are enough of them."""


@dataclass(frozen=True)
class Fold:
    """Rows to fit on, and held-out rows."""

    fit: np.ndarray
    held_out: np.ndarray


def folds_of(strata: np.ndarray, rng: np.random.RandomState) -> list[Fold]:
    """Hold out as many parts of the rows in turn as have 1,000 rows together.

    Errors of fewer rows choose a round by chance, and more rows take time. Strata are alike in all
    parts. Below four rows there is no fold.
    """
    n_parts = min(_PARTS, len(strata) // 2)
    if n_parts < 2:
        return []
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    part = np.empty(len(order), dtype=np.intp)
    part[order] = np.arange(len(order)) % n_parts
    n_folds = min(n_parts, math.ceil(_HELD_OUT * n_parts / len(strata)))
    return [Fold(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(n_folds)]
