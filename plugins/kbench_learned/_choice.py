"""Choice of a form, a bandwidth and a round by errors of held-out rows."""

from __future__ import annotations

import numpy as np

from kbench_learned._rounds import Trajectory

_STANDARD_ERRORS = 2.33
"""A gain must be larger: that of a normal test of level 1 %.

The best of up to ten rounds is tested, and small sets hold out few rows: with levels of 5 and
10 %, one draw in twenty had an error that is 5 to 8 % larger than without learning.
"""


def choose(tried: list[Trajectory], n_fit: int) -> tuple[int, int]:
    """Choose a trajectory and its round by the errors of the same held-out rows.

    That is the smallest mean squared error, if absolute errors fall too: their mean must be smaller
    than that of the best fit without learning by more than 2.33 standard errors of the difference.
    Else it is the latter. A few rows with large squared errors decide a mean of squares, and their
    spread hides gains of all others; absolute errors are less sensitive to them. `n_fit` are the
    rows of a fit.
    """
    if not tried[0].losses:
        return 0, 0
    plain = min(range(len(tried)), key=lambda i: tried[i].errors[0])
    best = min(range(len(tried)), key=lambda i: tried[i].errors.min())
    number = tried[best].best
    gains = np.sqrt(tried[plain].losses[0]) - np.sqrt(tried[best].losses[number])
    if gains.mean() > _STANDARD_ERRORS * standard_error(gains, n_fit):
        return best, number
    return plain, 0


def standard_error(differences: np.ndarray, n_fit: int) -> float:
    """Return that of the mean of differences of held-out losses.

    Rows of a fold share a fit, and folds share rows. The variance of a mean over independent
    rows is therefore multiplied by 1 + n_held_out / n_fit (Nadeau and Bengio, Machine Learning 52,
    2003).
    """
    held_out = len(differences)
    return float(differences.std() * np.sqrt(1 / held_out + 1 / n_fit))
