"""The interval of a mean over families: `mean_interval`, guarded against rounding.

Where most values are equal, as regrets of 0, many resamples have no spread. Their variance is
then rounding, and not exactly zero, and their t is huge. Here a variance below a billionth of that
of the values is zero. In all other cases both are the same.
"""

from __future__ import annotations

import numpy as np

from kbench.results.stats.resampling import FEWEST, shares

from .table import Array

N_DRAWS = 4_000


def family_interval(values: Array, level: float = 0.95) -> tuple[float, float]:
    """Return the outer ends of Student's t and of the bootstrap-t interval of a mean.

    >>> low, high = family_interval(np.array([0.0, 0.0, 0.0, 0.0, 2.3]))
    >>> -2 < low < 0 < high < 100
    True
    """
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=float)
    n, mean, tail = len(values), float(values.mean()), (1 - level) / 2
    spread = float(values.std(ddof=1))
    if spread <= 1e-12 * max(1.0, abs(mean)):
        return mean, mean
    error = spread / np.sqrt(n)
    most = float(stdtrit(n - 1, 1 - tail))
    low, high = -most, most
    if n >= FEWEST:
        weights = shares(n, N_DRAWS, 0)
        centred = values - mean
        drawn = weights @ centred
        variance = (weights @ centred**2 - drawn**2) / (n - 1)
        clear = variance > 1e-9 * error**2
        t = np.divide(drawn, np.sqrt(np.where(clear, variance, 1.0)), where=clear, out=0 * drawn)
        first, last = np.quantile(t, [tail, 1 - tail])
        low, high = min(low, float(first)), max(high, float(last))
    return mean - high * error, mean - low * error
