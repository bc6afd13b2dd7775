"""Where the variance of scores comes from, and what more splits can do about it."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kbench.features import Array

MAX_SPLITS = 10_000
"""Maximum number of splits to recommend."""


@dataclass(frozen=True)
class Components:
    """Variance components of scores, by the method of moments; they may be negative.

    The score of a method on a split of a dataset is the sum of its mean and of independent
    effects: of the dataset, of dataset and method together, of the split (the same for all
    methods), and of the method on this split.
    """

    datasets: float | None
    interaction: float | None
    """`datasets` and `interaction` are variances between datasets: of the mean of all methods, and
    of a method's difference from it. None for a single dataset.
    """
    splits: float
    """Between the splits of a dataset, for all methods together."""
    residual: float
    """Of a method on a split: the choice of its search, and the seed of its map unless several were
    drawn.
    """
    seeds: float | None = None
    """Of one seed of the map, with the same data and search. None if each split has one seed: its
    variance cannot be separated from the rest.
    """
    by_method: tuple[float, ...] = ()
    """The residual of each method; empty for two methods, whose noise cannot be separated."""
    seeds_by_method: tuple[float, ...] = ()
    """The variance of the seed of each method's map; empty if each split has one seed."""

    def shares(self) -> dict[str, float]:
        """Return the share of each source in the variance of a score; negative ones are 0."""
        parts = {name: getattr(self, name) for name in _SOURCES}
        positive = {name: max(value, 0.0) for name, value in parts.items() if value is not None}
        total = sum(positive.values())
        return {name: value / total if total else 0.0 for name, value in positive.items()}


_SOURCES = ("datasets", "interaction", "splits", "residual", "seeds")


def components(tables: Sequence[Array]) -> Components:
    """Estimate the variance components of scores from datasets with the same methods.

    The estimates are unbiased, also for different numbers of splits and for noise of
    different size on each dataset; the components within a dataset are then means over
    datasets. They take splits as independent: what splits share because they train on the
    same rows is in the component of their dataset.

    Each table has the shape (n_splits, n_methods), or (n_splits, n_methods, n_seeds) where each
    split was measured with several seeds of the map.

    References
    ----------
    S. R. Searle, G. Casella, C. E. McCulloch, "Variance components" (1992), chapter 4.
    F. E. Grubbs, "On estimating precision of measuring instruments and product variability",
    JASA 43 (1948): the noise of each method.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tables = [d + rng.normal(0, 2, (9, 1)) + rng.normal(size=(9, 4))
    ...           for d in rng.normal(0, 5, 40)]
    >>> found = components(tables)
    >>> [round(math.sqrt(max(v, 0))) for v in (found.datasets, found.splits, found.residual)]
    [4, 2, 1]
    """
    if not tables:
        raise ValueError("tables must hold at least 1 dataset, got none")
    arrays = [np.asarray(table, dtype=float) for table in tables]
    means = [np.asarray(each.mean(axis=2)) if each.ndim == 3 else each for each in arrays]
    k = means[0].shape[1]
    if k < 2 or any(len(table) < 2 or table.shape[1] != k for table in means):
        raise ValueError("tables must have the same methods, at least 2, and at least 2 splits")
    seeds, left_in_means = _seeds(tables)
    of_splits, residuals, within = zip(*map(_within, means), strict=True)
    residual, splits = float(np.mean(residuals)), float(np.mean(of_splits))
    by_method = tuple(map(float, np.mean(within, axis=0) - left_in_means)) if k > 2 else ()
    datasets = interaction = None
    if (n := len(means)) > 1:
        # the parts of the splits' variances that are left in the means over splits
        sizes = [len(table) for table in means]
        left = float(np.mean(np.divide(residuals, sizes)))
        left_all = float(np.mean(np.divide(of_splits, sizes)))
        cells = np.array([table.mean(axis=0) for table in means])
        row_means = cells.mean(axis=1)
        apart = cells - row_means[:, None] - cells.mean(axis=0) + cells.mean()
        between = float(np.sum(apart**2)) / ((n - 1) * (k - 1))
        interaction = between - left
        datasets = float(row_means.var(ddof=1)) - between / k - left_all
    of_seeds = None if seeds is None else float(seeds.mean())
    own = residual - float(np.mean(left_in_means))
    by_seed = () if seeds is None else tuple(map(float, seeds))
    return Components(datasets, interaction, splits, own, of_seeds, by_method, by_seed)


def _seeds(tables: Sequence[Array]) -> tuple[Array | None, Array]:
    """Return each method's variance of one seed, and what is left of it in means over seeds."""
    several = [np.asarray(t, dtype=float) for t in tables if np.ndim(t) == 3 and t.shape[2] > 1]
    if not several or len(several) < len(tables):
        return None, np.zeros(np.shape(tables[0])[1])
    # from the first seed: equal scores have no variance by rounding
    apart = [table - table[:, :, :1] for table in several]
    variances = [table.var(axis=2, ddof=1).mean(axis=0) for table in apart]
    left = [v / table.shape[2] for v, table in zip(variances, several, strict=True)]
    return np.mean(variances, axis=0), np.mean(left, axis=0)


def _within(table: Array) -> tuple[float, float, Array]:
    """Return the components of splits and residuals within one dataset, and those of methods."""
    n, k = table.shape
    apart = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean()
    residual = float(np.sum(apart**2)) / ((n - 1) * (k - 1))
    splits = float(table.mean(axis=1).var(ddof=1)) - residual / k
    own = np.sum(apart**2, axis=0) / (n - 1)
    return splits, residual, (own - own.sum() / (k * (k - 1))) * k / (k - 2) if k > 2 else own


def splits_needed(
    difference: float, sd: float, ratio: float, alpha: float = 0.05, most: int = MAX_SPLITS
) -> int | None:
    """Return the number of splits on which a difference would be significant, None for none.

    A difference of two methods on one dataset has the standard error sd sqrt(1/n + ratio)
    (Nadeau and Bengio 2003), which more splits do not bring below sd sqrt(ratio): with
    80 % training rows, half a standard deviation.

    `sd` is that of the difference on one split, and `ratio` that of test to training rows (see
    `holdout_ratio`). More splits than `most` do not count.

    Examples
    --------
    >>> splits_needed(0.01, sd=0.01, ratio=0.1), splits_needed(0.005, sd=0.01, ratio=0.25)
    (11, None)
    """
    from scipy.special import stdtrit

    if not difference:
        return None
    if not sd:
        return 2

    def shows(n: int) -> bool:
        error = sd * math.sqrt(1 / n + ratio)
        return abs(difference) > error * float(stdtrit(n - 1, 1 - alpha / 2))

    return None if not shows(most) else bisect_left(range(most), True, lo=2, key=shows)
