"""Bootstrap intervals for means over datasets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from kbench.results.stats.arrays import Array


def bootstrap_interval(
    values: Sequence[float] | Array,
    level: float = 0.95,
    n_samples: int = 10_000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the percentile bootstrap interval (low, high) for the mean over datasets.

    `values` are scores, or differences of scores, shape (n_datasets,).

    >>> bootstrap_interval([0.5, 0.5, 0.5])
    (0.5, 0.5)
    """
    x = np.asarray(values, dtype=float)
    drawn = _resamples(len(x), n_samples, seed)
    low, high = np.quantile(drawn @ x, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@lru_cache(maxsize=2)
def _resamples(n: int, n_samples: int, seed: int) -> Array:
    """Return the share of each value in each resample; the same for all methods."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, np.full(n, 1 / n), size=n_samples) / n
