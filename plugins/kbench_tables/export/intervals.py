"""Prediction intervals from out-of-fold residuals; this module is bundled with a model."""

import math
from dataclasses import dataclass

import numpy as np


def quantile(errors: np.ndarray, n_rows: int, level: float) -> float:
    """Return the conformal quantile of sorted errors, or infinity if there are too few.

    It is the error of rank ceil((n + 1) level) among n. A new error that is exchangeable with these
    is at most that large with probability at least `level`. Residuals of cross-validation are
    exchangeable with new ones only approximately.

    >>> quantile(np.arange(1.0, 10.0), 9, 0.9), quantile(np.arange(1.0, 10.0), 9, 0.95)
    (9.0, inf)
    """
    rank = math.ceil((n_rows + 1) * level - 1e-9)
    if rank > n_rows:
        return math.inf
    # of more rows than errors are kept, every one stands for the ranks below it
    return float(errors[math.ceil((rank - 1) * (len(errors) - 1) / max(n_rows - 1, 1) - 1e-9)])


@dataclass(frozen=True)
class Intervals:
    """Intervals around predictions, from sorted absolute errors of `n_rows` held-out rows.

    The errors are in the target's units, in standard deviations of the predictive distribution if
    they are relative, or of logarithms, of which `log` has the shift and the smearing. `coverage`
    is the fraction of held-out targets inside intervals of the nominal `level`, and `lowest` the
    smallest possible target: 0 if no target of the training set is negative.
    """

    errors: np.ndarray
    n_rows: int
    is_relative: bool
    level: float
    coverage: float
    lowest: float = -math.inf
    log: tuple[float, float] | None = None

    def around(
        self, predicted: np.ndarray, sd: np.ndarray | None, level: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper ends of intervals with the nominal coverage `level`.

        ValueError is raised if there were too few rows.
        """
        if not 0 < level < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {level!r}")
        half = quantile(self.errors, self.n_rows, level)
        if math.isinf(half):
            raise ValueError(
                f"intervals of {100 * level:g} % coverage need at least "
                f"{math.ceil(level / (1 - level))} held-out rows, but there were {self.n_rows}"
            )
        if self.log is not None:
            shift, smearing = self.log
            median = (predicted + shift) / smearing
            low, high = median * math.exp(-half) - shift, median * math.exp(half) - shift
            return np.maximum(low, self.lowest), high
        width = half if not self.is_relative or sd is None else half * sd
        return np.maximum(predicted - width, self.lowest), predicted + width
