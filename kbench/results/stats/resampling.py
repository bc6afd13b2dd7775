"""Distributions of means over groups of datasets, or over the splits of one dataset.

Also how much too good the validation score of a chosen candidate is.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from kbench.results.stats.pairs import Array

# Groups below which nothing is resampled: a handful of values has too few resamples.
FEW = 20

# Groups below which there is no bootstrap-t interval: too many resamples have equal values.
FEWEST = 5

N_DRAWS = 2_000


@lru_cache(maxsize=2)
def shares(n: int, n_draws: int, seed: int) -> Array:
    """Return the share of each of `n` groups in each resample, shape (n_draws, n)."""
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_draws)
    return np.asarray(drawn / n, dtype=float)


def mean_draws(values: Array, ratio: float = 0.0, n_draws: int = N_DRAWS, seed: int = 0) -> Array:
    """Draw vectors of means, shape (n_draws, n_columns), from values of shape (n, n_columns).

    From 20 rows on, rows are resampled. Fewer rows, and splits of one dataset, are not: their
    means are drawn from the multivariate t distribution with their mean, n - 1 degrees of
    freedom, and their covariance times 1/n + `ratio`. The columns stay paired in both cases.

    Parameters
    ----------
    values : ndarray, shape (n, n_columns)
        A row for each group of datasets, or for each split.
    ratio : float, default 0
        Test rows over training rows of splits (`holdout_ratio`); 0 for datasets.

    References
    ----------
    Y. Bengio, Y. Grandvalet, "No unbiased estimator of the variance of k-fold
    cross-validation", JMLR 5 (2004): splits must not be resampled.
    """
    values = np.asarray(values, dtype=float)
    n = len(values)
    if n >= FEW and not ratio:
        return np.asarray(shares(n, n_draws, seed) @ values)
    rng = np.random.default_rng(seed)
    # independent normal weights of centred rows have their covariance
    weights = rng.standard_normal((n_draws, n))
    weights *= np.sqrt((1 / n + ratio) / rng.chisquare(n - 1, (n_draws, 1)))
    mean = values.mean(axis=0)
    return np.asarray(mean + weights @ (values - mean))


def mean_interval(values: Sequence[float] | Array, level: float = 0.95) -> tuple[float, float]:
    """Return the interval (low, high) for the mean over groups of datasets.

    From five groups on, each end is the outer one of Student's t interval and of the bootstrap-t
    interval: the first is too narrow for skewed values, the second for a few extreme ones. Fewer
    groups have Student's t interval. Neither accounts for rare failures that occur in no group.
    There is no interval for one value: both ends are NaN.

    `values` are scores, or differences of scores, shape (n_groups,).

    References
    ----------
    B. Efron, R. Tibshirani, "An introduction to the bootstrap" (1993), section 12.5.

    Examples
    --------
    >>> low, high = mean_interval([0.5, 0.6, 0.7])
    >>> round(low, 3), round(high, 3)
    (0.352, 0.848)
    >>> mean_interval([0.5, 0.5, 0.5])
    (0.5, 0.5)
    """
    low, high = mean_intervals(np.asarray(values, dtype=float)[:, None], level)
    return float(low[0]), float(high[0])


def mean_intervals(
    values: Array, level: float = 0.95, n_draws: int = 4_000, seed: int = 0
) -> tuple[Array, Array]:
    """Return `mean_interval` of each column of values, shape (n_groups, n_columns)."""
    from scipy.special import stdtrit

    n = len(values)
    mean = values.mean(axis=0)
    if n < 2:
        return np.full(len(mean), np.nan), np.full(len(mean), np.nan)
    tail = (1 - level) / 2
    error = values.std(axis=0, ddof=1) / np.sqrt(n)
    most = stdtrit(n - 1, 1 - tail)
    low, high = np.full(len(mean), -most), np.full(len(mean), most)
    if n >= FEWEST:
        with np.errstate(all="ignore"):
            t = _studentise(values - mean, shares(n, n_draws, seed))
        drawn = np.quantile(t, [tail, 1 - tail], axis=0)
        low, high = np.minimum(low, drawn[0]), np.maximum(high, drawn[1])
    return np.asarray(mean - high * error), np.asarray(mean - low * error)


def median_interval(
    values: Sequence[float] | Array, level: float = 0.95
) -> tuple[float, float, float]:
    """Return the median over groups of datasets, and its interval (low, high).

    The ends are order statistics, so that the interval covers the median of any distribution
    at the level or above. There is none for fewer than six values at 95 %: both ends are NaN.

    >>> median_interval([0.1, 0.2, 0.3, 0.5, 0.8, 1.3]), median_interval([0.1, 0.2])[1]
    ((0.4, 0.1, 1.3), nan)
    """
    from scipy.special import bdtrik

    ordered, n, tail = np.sort(np.asarray(values, dtype=float)), len(values), (1 - level) / 2
    low = high = float("nan")
    if 0.5**n <= tail:
        # as many values are outside of each end as are there with a probability up to the tail
        outside = int(bdtrik(tail, n, 0.5))
        low, high = float(ordered[outside]), float(ordered[-1 - outside])
    return float(np.median(ordered)), low, high


def _studentise(centred: Array, weights: Array) -> Array:
    """Return the t statistic of each column in each resample, 0 if all values are equal."""
    means, squares = weights @ centred, weights @ centred**2
    variance = (squares - means**2) / (len(centred) - 1)
    differ = variance > _EQUAL * squares  # of equal values the difference is a rounding error
    return np.divide(means, np.sqrt(variance), out=np.zeros_like(means), where=differ)


_EQUAL = 1e-12


def optimism(gains: Array) -> float:
    """Return by how much the validation score of the best candidate is expected to be too good.

    The best of many noisy means is better than it will be. On each inner fold, the candidate
    that is best on the other folds is scored; several equal ones are averaged. The best mean
    over all folds, less the mean of these scores, estimates the optimism. Inner minus outer
    score would also have the effect of smaller training sets in it.

    Parameters
    ----------
    gains : ndarray, shape (n_candidates, n_folds)
        Larger is better; at least two folds.

    Notes
    -----
    Tibshirani and Tibshirani compare the chosen candidate with the best one of each single
    fold. With 40 candidates this was 0.7 to 0.9 times the true optimism on three folds, 1.2 to
    1.8 times on five and 2.1 to 3.9 times on ten; the estimate here was 0.99 to 1.16 times
    (``tests/benchmarks/bench_claims.py``).

    References
    ----------
    R. J. Tibshirani, R. Tibshirani, "A bias correction for the minimum error rate in
    cross-validation", Annals of Applied Statistics 3 (2009). S. Varma, R. Simon, "Bias in
    error estimation when using cross-validation for model selection", BMC Bioinformatics 7
    (2006).

    Examples
    --------
    >>> round(optimism(np.array([[0.80, 0.90], [0.82, 0.84]])), 3)
    0.03
    """
    gains = np.asarray(gains, dtype=float)
    if gains.ndim != 2 or not len(gains) or gains.shape[1] < 2:
        raise ValueError(
            f"gains must have shape (n_candidates, n_folds) with at least 2 folds, "
            f"got {gains.shape}"
        )
    rest = gains.sum(axis=1, keepdims=True) - gains
    chosen = rest >= rest.max(axis=0) - _EQUAL
    scored = (gains * chosen).sum(axis=0) / chosen.sum(axis=0)
    return float(gains.mean(axis=1).max() - scored.mean())
