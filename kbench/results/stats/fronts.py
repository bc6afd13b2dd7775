"""The Pareto front of gain against cost, and how certain each place on it is."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from kbench.results.stats.pairs import EQUAL, Array
from kbench.results.stats.ranking import better_p
from kbench.results.stats.resampling import mean_draws

Status = Literal["frontier", "dominated", "undecided"]


@dataclass(frozen=True)
class FrontPlace:
    """What can be said of a method and the front.

    By its `status` the method is on the front, or is not, at the level of the tests; or neither is
    shown. `probability` is the share of the draws of all means in which no method dominates it;
    `by` is the method that dominates it most clearly, of a dominated method only.
    """

    status: Status
    probability: float | None
    by: int | None = None


@dataclass(frozen=True)
class Front:
    """A front with its uncertainty, and a place for each method.

    `hypervolume` is the area between the front and the worst mean gain and cost of all methods, in
    units of the gain times powers of ten of the cost; `low` and `high` are its 95 % interval.
    `reason` says why nothing can be said; it is empty if something can.
    """

    places: tuple[FrontPlace, ...]
    hypervolume: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


def front(
    gains: Array,
    costs: Array,
    ratio: float = 0.0,
    alpha: float = 0.05,
    of_gains: tuple[Array, Array] | None = None,
) -> Front:
    """Decide which methods are on the front of mean gain against the geometric mean of a cost.

    Gain and cost of a group of datasets stay together, and so do all methods.

    - A method is *dominated* if one other method is significantly better and significantly
      cheaper, each at the level `alpha` / 2, of all other methods at once (`worse_p`).
    - It is on the *frontier* if it is, of each other method, significantly better or
      significantly cheaper: twice the smaller p is at most `alpha`, for all others.
    - Else it is *undecided*.

    The levels hold for each method by itself. Over groups of datasets signs are flipped, so that
    fewer than six decide nothing; a missing cell counts against each claim, as in `flip_p`. Over
    the splits of one dataset the tests are corrected t-tests, with Bonferroni's correction. A
    cost that does not vary needs no test. Draws and the hypervolume are over the rows without a
    missing cell.

    Parameters
    ----------
    gains, costs : ndarray, shape (n, n_methods)
        Larger gains are better, costs are positive; both are NaN if a cell is missing. A row
        for each group of datasets, or for each split of one dataset.
    ratio : float, default 0
        Test rows over training rows of splits (`holdout_ratio`), for the variance of Nadeau
        and Bengio; 0 for datasets.
    alpha : float, default 0.05
    of_gains : (ndarray, ndarray), optional
        `better_p` of the gains over datasets, if already computed.

    References
    ----------
    R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics
    24 (1982): intersection-union tests. C. Nadeau, Y. Bengio, Machine Learning 52 (2003).

    Examples
    --------
    >>> gains = np.array([[0.90, 0.80, 0.85], [0.91, 0.82, 0.86], [0.93, 0.81, 0.86]] * 2)
    >>> costs = np.array([[1.0, 9.0, 0.1], [1.1, 9.5, 0.1], [1.2, 9.1, 0.12]] * 2)
    >>> [place.status for place in front(gains, costs).places]
    ['frontier', 'dominated', 'frontier']
    """
    gains, costs = np.asarray(gains, dtype=float), np.asarray(costs, dtype=float)
    k = gains.shape[1]
    full = ~np.isnan(gains).any(axis=1)
    reason = _find_problem(gains[full], costs[full])
    if reason:
        return Front((FrontPlace("undecided", None),) * k, reason=reason)
    logs = np.log10(costs)
    find = partial(_t_p, ratio=ratio) if ratio else better_p
    better, better_than_any = of_gains or find(gains)
    cheaper, cheaper_than_any = find(-logs, given=True)
    both = np.column_stack([gains, logs])[full]
    drawn = mean_draws(both, ratio)
    probability = _estimate_shares(drawn[:, :k], drawn[:, k:])
    places = []
    for i in range(k):
        rest = np.delete(np.arange(k), i)
        dominates = 2 * np.maximum(better_than_any[rest, i], cheaper_than_any[rest, i])
        by = int(rest[dominates.argmin()])
        status: Status = "undecided"
        if dominates.min() <= alpha:
            status = "dominated"
        elif 2 * np.minimum(better[i, rest], cheaper[i, rest]).max() <= alpha:
            status = "frontier"
        places.append(
            FrontPlace(status, float(probability[i]), by if status == "dominated" else None)
        )
    return Front(tuple(places), *_hypervolume_interval(both, ratio, 1 - alpha))


def _find_problem(gains: Array, costs: Array) -> str:
    """Say why nothing can be said of a front; empty if something can."""
    n, k = gains.shape
    if k < 2:
        return "a front needs at least two methods"
    if n < 2:
        return "the uncertainty of a front needs at least two groups of datasets, or two splits"
    if not (np.isfinite(gains).all() and np.isfinite(costs).all() and (costs > 0).all()):
        return "some method has no cost"
    return ""


def _t_p(values: Array, ratio: float, given: bool = False) -> tuple[Array, Array]:
    """Return the same for splits of one dataset, by t-tests; equal differences have no test."""
    from scipy.special import stdtr

    n, k = values.shape
    p = np.ones((k, k))
    for i in range(k):
        d = values[:, [i]] - values
        mean, error = d.mean(axis=0), d.std(axis=0, ddof=1) * np.sqrt(1 / n + ratio)
        varies = np.ptp(d, axis=0) > EQUAL
        t = np.divide(mean, error, out=np.zeros(k), where=varies)
        p[i] = np.where(varies, stdtr(n - 1, -t), 1.0)
        if given:
            p[i, ~varies & (mean > EQUAL)] = 0.0
    # half of Bonferroni's factor: one test of both claims (intersection-union) has the level
    return p, np.minimum(p * (k - 1) / 2, 1.0)


def _estimate_shares(gains: Array, logs: Array) -> Array:
    """Return the share of the draws in which no method dominates each of them."""
    order = np.lexsort((-gains, logs), axis=1)
    g, c = (np.take_along_axis(each, order, axis=1) for each in (gains, logs))
    # the first of those of one cost is the best of them
    is_first = np.diff(c, axis=1, prepend=-np.inf) > 0
    first = np.maximum.accumulate(np.where(is_first, np.arange(g.shape[1]), 0), axis=1)
    best = np.maximum.accumulate(np.insert(g, 0, -np.inf, axis=1), axis=1)
    dominated = np.take_along_axis(best, first, axis=1) >= g  # by one that costs less
    dominated |= np.take_along_axis(g, first, axis=1) > g
    return np.bincount(order[~dominated], minlength=g.shape[1]) / len(g)


def hypervolume(gains: Array, logs: Array, worst: tuple[float, float]) -> Array:
    """Return the areas that fronts dominate, shape (n_draws,), up to the worst gain and cost.

    >>> float(hypervolume(np.array([[0.8, 0.9]]), np.array([[0.0, 1.0]]), (0.5, 2.0))[0])
    0.7...
    """
    gains, logs = np.atleast_2d(gains), np.atleast_2d(logs)
    order = np.argsort(logs, axis=1, kind="stable")
    reached = np.maximum.accumulate(np.take_along_axis(gains, order, axis=1), axis=1)
    at = np.minimum(np.take_along_axis(logs, order, axis=1), worst[1])
    wide = np.diff(at, axis=1, append=worst[1])
    return np.asarray((np.maximum(reached - worst[0], 0.0) * wide).sum(axis=1))


def _hypervolume_interval(both: Array, ratio: float, level: float) -> tuple[float, float, float]:
    """Return the hypervolume of the mean front, with its t interval by the delta method.

    Draws of the front would be biased: the best of noisy means is too good.
    """
    from scipy.special import stdtrit

    n, k = len(both), both.shape[1] // 2
    mean = both.mean(axis=0)
    worst = float(mean[:k].min()), float(mean[k:].max())
    area = float(hypervolume(mean[:k], mean[k:], worst)[0])
    step = 1e-6
    moved = mean + step * np.eye(2 * k)
    slopes = (hypervolume(moved[:, :k], moved[:, k:], worst) - area) / step
    error = float(((both - mean) @ slopes).std(ddof=1)) * math.sqrt(1 / n + ratio)
    wide = error * float(stdtrit(n - 1, (1 + level) / 2))
    return area, max(area - wide, 0.0), area + wide
