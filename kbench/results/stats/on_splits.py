"""Two methods on one dataset, over splits that share training rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kbench.records import ACCURACY, Measure
from kbench.results.rows import Row
from kbench.results.stats.pairs import Array

EQUAL = 1e-9
"""Differences this close are equal: they come from the rounding of sums, not from scores."""

NO_TEST = "all differences are equal: no test"
"""Why there is no p: the spread of the differences, by which a test divides, is zero."""


@dataclass(frozen=True)
class CorrectedT:
    """Corrected resampled t-test of two methods on one dataset.

    The mean difference over the splits, its interval of level 1 - alpha, and
    the two-sided p; None where all differences are equal, as `NO_TEST` says.
    """

    difference: float
    low: float | None
    high: float | None
    p: float | None

    @property
    def is_zero(self) -> bool:
        """Whether the methods score the same on every split."""
        return self.p is None and self.difference == 0.0


def corrected_t(
    differences: Sequence[float] | Array,
    test_to_train: float,
    alpha: float = 0.05,
    unit: float = 1.0,
) -> CorrectedT:
    """Compare two methods on one dataset over splits that share training rows.

    Where all differences are equal there is no test: a test divides by their spread,
    which is zero.

    Parameters
    ----------
    differences : array-like, shape (n_splits,)
        Scores of the first method less those of the second on the same splits,
        at least two.
    test_to_train : float
        Test rows over training rows: 1 / (k - 1) for k folds; see `holdout_ratio`.
    alpha : float, default 0.05
    unit : float, default 1
        Size of the scores: differences that are equal to nine digits of it are equal.

    References
    ----------
    C. Nadeau, Y. Bengio, "Inference for the generalization error", Machine
    Learning 52 (2003), section 3: the variance is multiplied by
    1/n + n_test/n_train instead of 1/n.

    Examples
    --------
    >>> test = corrected_t([0.02, 0.01, 0.03, 0.02, 0.02], test_to_train=0.25)
    >>> round(test.difference, 3), round(test.p, 3)
    (0.02, 0.014)
    """
    from scipy.special import stdtr, stdtrit

    d = np.round(np.asarray(differences, dtype=float) / unit, 12)
    n = len(d)
    if n < 2:
        raise ValueError(f"differences must be those of at least 2 splits, got {n}")
    mean = float(d.mean())
    if np.ptp(d) < EQUAL:  # not 0: the mean of equal floats is not always that float
        # rounding is not a difference
        return CorrectedT(0.0 if abs(mean) < EQUAL else mean * unit, None, None, None)
    error = float(d.std(ddof=1)) * math.sqrt(1 / n + test_to_train)
    wide = error * float(stdtrit(n - 1, 1 - alpha / 2))
    p = 2 * float(stdtr(n - 1, -abs(mean) / error))
    return CorrectedT(mean * unit, (mean - wide) * unit, (mean + wide) * unit, p)


def unit_of(values: Iterable[float], measure: Measure) -> float:
    """Return the size of scores, below which nine digits are equal: 1 without units."""
    return (max(map(abs, values), default=0.0) or 1.0) if measure.in_units else 1.0


def holdout_ratio(row: Row) -> float:
    """Return test rows over training rows of a results row, as `corrected_t` needs them.

    Where the numbers of rows are not known, the ratio is that of as many folds
    as the row has splits, 1 for fewer than two: never 0, which would be the
    uncorrected test.

    >>> row = Row("iris", "rff", "ridge", "ok", 5, 5, {"n_test": 30.0, "n_train": 120.0})
    >>> holdout_ratio(row)
    0.25
    >>> hashes = {"0": "a", "1": "b", "2": "c"}
    >>> holdout_ratio(Row("iris", "rff", "ridge", "ok", 3, 3, split_hash=hashes))
    0.5
    """
    n_train, n_test = row.measures.get("n_train"), row.measures.get("n_test")
    if n_test and n_train:
        return n_test / n_train
    return 1.0 / max(1, len(row.split_hash) - 1)


def common_splits(first: Row, second: Row, measure: str) -> list[str]:
    """Return the splits on which two rows of a dataset have a measure, of the same test rows."""
    a, b = first.by_split(measure), second.by_split(measure)
    ours, theirs = first.split_hash, second.split_hash
    return [i for i in a if i in b and ours.get(i) == theirs.get(i)]


def on_dataset(
    first: Row,
    second: Row,
    measure: Measure = ACCURACY,
    alpha: float = 0.05,
    nested: bool = False,
) -> CorrectedT | None:
    """Compare two rows of a dataset over their common splits; None for fewer than two.

    With `nested`, splits of one number are common: the training rows are samples, the test
    rows are the same.
    """
    a, b = first.by_split(measure.name), second.by_split(measure.name)
    common = common_splits(first, second, measure.name)
    if nested:
        common = [i for i in a if i in b]
    if len(common) < 2:
        return None
    unit = unit_of([*a.values(), *b.values()], measure)
    differences = [a[i] - b[i] for i in common]
    return corrected_t(differences, holdout_ratio(first), alpha, unit)
