"""Methods two by two: on one dataset, whose splits share training rows, and over datasets."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kbench.records import ACCURACY, Metric
from kbench.results.rows import Row

Array = NDArray[np.float64]


def validate_scores(values: Array, allow_nan: bool = False) -> Array:
    """Return scores as an array of shape (n_datasets, n_methods); all must be finite, or NaN."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 2:
        raise ValueError(f"values must have shape (n_datasets, n_methods), got {values.shape}")
    if not (np.isfinite(values) | (allow_nan & np.isnan(values))).all():
        raise ValueError("values must be finite: compare only datasets that all methods finished")
    return values


# Differences up to which the signed-rank test is exact.
_EXACT_UP_TO = 100


@dataclass(frozen=True)
class SignedRank:
    """Wilcoxon's signed-rank test of paired differences, with the two-sided p.

    `plus` and `minus` are the sums of the ranks of positive and of negative
    differences; the ranks of zeros are shared evenly.
    """

    plus: float
    minus: float
    p: float


def signed_rank(differences: Sequence[float] | Array) -> SignedRank:
    """Test whether paired differences are symmetric about zero.

    Zeros are ranked with the others and their ranks shared (Demsar 2006,
    section 3.1.3). Up to 100 differences p is exact also with ties and zeros:
    all signs of the nonzero differences are equally likely. Beyond, normal.

    Missing differences (NaN) count as the largest ones against what is claimed. If neither
    sign can be claimed then, p is 1.

    >>> signed_rank([0.1, 0.2, 0.3, -0.05])
    SignedRank(plus=9.0, minus=1.0, p=0.25)
    >>> signed_rank([0.1] * 9).p, signed_rank([0.1] * 9 + [np.nan]).p
    (0.00390625, 0.091796875)
    """
    from scipy.stats import norm, rankdata

    d = np.round(np.asarray(differences, dtype=float), 12)
    if np.isnan(d).any():
        worst, best = (signed_rank(np.where(np.isnan(d), end, d)) for end in (-np.inf, np.inf))
        if worst.plus <= worst.minus and best.minus <= best.plus:
            return replace(worst, p=1.0)
        return worst if worst.plus > worst.minus else best
    r = rankdata(np.abs(d)) if len(d) else np.empty(0)
    shared = float(r[d == 0].sum()) / 2
    plus, minus = float(r[d > 0].sum()) + shared, float(r[d < 0].sum()) + shared
    r = r[d != 0]
    if not len(r):
        return SignedRank(plus, minus, 1.0)
    lower = min(plus, minus) - shared
    if len(r) <= _EXACT_UP_TO:
        # doubled, ranks are whole even where they are shared
        share = _null_distribution(tuple(sorted(np.rint(2 * r).astype(int).tolist())))
        p = 2 * float(share[: round(2 * lower) + 1].sum())
    else:
        p = 2 * float(norm.cdf((lower - r.sum() / 2 + 0.5) / math.sqrt(float(np.sum(r**2)) / 4)))
    return SignedRank(plus, minus, min(p, 1.0))


@lru_cache(maxsize=256)
def _null_distribution(doubled: tuple[int, ...]) -> Array:
    """Return the probability of each sum of ranks where all signs are equally likely.

    Without ties the ranks, and thus this, are the same for all pairs of methods.
    """
    share = np.zeros(sum(doubled) + 1)
    share[0] = 1.0
    for step in doubled:
        share[step:] = (share[step:] + share[:-step]) / 2
        share[:step] /= 2
    return share


def holm(p: Sequence[float] | Array) -> Array:
    """Adjust p values for their number, by Holm's step-down method: compare them with alpha.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(
        np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)) if len(p) else p, 1.0
    )
    return adjusted


def wins_ties_losses(values: Array, tie: float = 0.0) -> NDArray[np.int64]:
    """Count for each pair of methods the datasets won, tied and lost.

    The shape is (n_methods, n_methods, 3): ``[i, j]`` holds wins, ties and
    losses of i against j. Differences up to `tie` are ties.

    >>> wins_ties_losses(np.array([[0.9, 0.8], [0.7, 0.7], [0.9, 0.5]]))[0, 1]
    array([2, 1, 0])
    """
    values = validate_scores(values)
    counts = []
    for column in values.T:
        d = np.round(column[:, None] - values, 12)
        counts.append(np.sum([d > tie, np.abs(d) <= tie, d < -tie], axis=1, dtype=np.int64).T)
    return np.array(counts)


@dataclass(frozen=True)
class Posterior:
    """Probabilities that the first method is practically worse, the same, better.

    They are about a further dataset, and sum to 1.
    """

    worse: float
    same: float
    better: float


def bayesian_signed_rank(
    differences: Sequence[float] | Array,
    rope: float = 0.01,
    prior: float = 0.5,
    n_samples: int = 50_000,
    seed: int = 0,
) -> Posterior:
    """Compare two methods by the Bayesian signed-rank test.

    Parameters
    ----------
    differences : array-like, shape (n_datasets,)
        Scores of the first method less those of the second.
    rope : float, default 0.01
        Half-width of the region of practical equivalence, in units of the score.
    prior : float, default 0.5
        Weight of a pseudo-difference of 0; a real one weighs 1.
    n_samples : int, default 50,000
        Draws of the posterior; the error of a probability is below 0.5 / sqrt(n_samples).
    seed : int, default 0

    References
    ----------
    A. Benavoli, G. Corani, J. Demsar, M. Zaffalon, "Time for a change: a tutorial
    for comparing multiple classifiers through Bayesian analysis", JMLR 18 (2017),
    section 4.2.

    Examples
    --------
    >>> posterior = bayesian_signed_rank([0.05, 0.03, 0.04, 0.06, 0.05, 0.02])
    >>> posterior.better > 0.95
    True
    """
    z = np.concatenate([[0.0], np.asarray(differences, dtype=float)])
    order = np.argsort(z, kind="stable")
    z = z[order]
    counts = np.zeros(3)
    # about 32 MiB of weights at a time, drawn once for all pairs of methods
    for done in range(0, n_samples, chunk := max(1, 4_000_000 // len(z))):
        w = _weights(len(z), prior, min(chunk, n_samples - done), seed + done)
        # and so few of them at once that they stay in the processor's cache
        for start in range(0, w.shape[1], block := max(1, 65_536 // len(z))):
            worse, better = _masses(z, w[order, start : start + block], 2 * rope)
            mass = np.stack([worse, 1 - worse - better, better])
            counts += np.bincount(mass.argmax(axis=0), minlength=3)
    return Posterior(*map(float, counts / counts.sum()))


def _masses(z: Array, w: Array, edge: float) -> tuple[Array, Array]:
    """Return for each draw of weights the mass of pairs whose sum is below -edge, above edge.

    For z ascending the partners of each value are the first values of z, so
    that cumulative weights do for all pairs. A sum on an edge counts half on
    either side.
    """
    below = np.zeros((len(z) + 1, w.shape[1]))
    np.cumsum(w, axis=0, out=below[1:])

    def up_to(limit: Array) -> Array:
        first = np.searchsorted(z, limit - 1e-12, side="left")
        last = np.searchsorted(z, limit + 1e-12, side="right")
        heads = below[first]
        if (first != last).any():
            heads = (heads + below[last]) / 2
        return np.asarray(np.einsum("is,is->s", heads, w))

    return up_to(-edge - z), below[-1] ** 2 - up_to(edge - z)


@lru_cache(maxsize=4)
def _weights(n: int, prior: float, n_samples: int, seed: int) -> Array:
    """Draw the weights of the differences, shape (n, n_samples); the same for all pairs."""
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.array([prior] + [1.0] * (n - 1)), size=n_samples)
    return np.ascontiguousarray(drawn.T)


# Differences this close are equal: they come from the rounding of sums, not from scores.
EQUAL = 1e-9

# Why there is no p: the spread of the differences, by which a test divides, is zero.
NO_TEST = "all differences are equal: no test"


@dataclass(frozen=True)
class CorrectedT:
    """Corrected resampled t-test of two methods on one dataset.

    The mean difference over the splits, its interval of level 1 - alpha, and
    the two-sided p; None if all differences are equal, as `NO_TEST` says.
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


def find_unit(values: Iterable[float], metric: Metric) -> float:
    """Return the size of scores, below which nine digits are equal: 1 without units."""
    return (max(map(abs, values), default=0.0) or 1.0) if metric.in_units else 1.0


def holdout_ratio(row: Row) -> float:
    """Return test rows over training rows of a results row, as `corrected_t` needs them.

    Where the numbers of rows are unknown, the ratio is that of as many folds
    as the row has splits, 1 for fewer than two: never 0, which would be the
    uncorrected test.

    >>> row = Row("iris", "rff", "ridge", "ok", 5, 5, {"n_test": 30.0, "n_train": 120.0})
    >>> holdout_ratio(row)
    0.25
    >>> hashes = {"0": "a", "1": "b", "2": "c"}
    >>> holdout_ratio(Row("iris", "rff", "ridge", "ok", 3, 3, split_hash=hashes))
    0.5
    """
    n_train, n_test = row.metrics.get("n_train"), row.metrics.get("n_test")
    return n_test / n_train if n_test and n_train else 1.0 / max(1, len(row.split_hash) - 1)


def common_splits(first: Row, second: Row, metric: str) -> list[str]:
    """Return the splits on which two rows of a dataset have a metric, of the same test rows."""
    a, b = first.by_split(metric), second.by_split(metric)
    ours, theirs = first.split_hash, second.split_hash
    return [i for i in a if i in b and ours.get(i) == theirs.get(i)]


def on_dataset(
    first: Row, second: Row, metric: Metric = ACCURACY, alpha: float = 0.05, nested: bool = False
) -> CorrectedT | None:
    """Compare two rows of a dataset over their common splits; None for fewer than two.

    With `nested`, splits of one number are common: the training rows are samples, the test
    rows are the same.
    """
    a, b = first.by_split(metric.name), second.by_split(metric.name)
    common = common_splits(first, second, metric.name)
    if nested:
        common = [i for i in a if i in b]
    if len(common) < 2:
        return None
    unit = find_unit([*a.values(), *b.values()], metric)
    return corrected_t([a[i] - b[i] for i in common], holdout_ratio(first), alpha, unit)
