"""Memory and time of a task before it runs, from trials on samples of its rows.

A trial is a task on some of the rows of its split: it measures what a task measures,
whatever a plugin does. `predict` extrapolates from the trials of a cell to all rows, and
`too_large` writes why a cell cannot fit into the limit of memory.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from operator import mul

import numpy as np

from kbench.messages import format_memory, format_seconds, option
from kbench.records import Cost, Estimate, Protocol, Trial

# Standard deviations at the ends of an interval that has nine cases of ten.
SPREAD = 1.645

_EXPONENTS = np.arange(10, 61) / 20

# Weight of the exponent 2, that of all pairs of rows, relative to the assumed exponent: of any
# method, and of learners with kernels.
PAIRS, PAIRS_OF_KERNEL = 0.01, 5.0

# Weight of a memory that is the same for any rows, of passes over blocks.
SAME, NOISE_OF_BLOCKS = 30.0, 0.07

# A number of rows, and a cost.
Point = tuple[float, float]


@dataclass(frozen=True)
class Growth:
    """Growth of a kind of cost that is assumed before any is measured.

    A cost is ``a * rows**c0 + b * rows**c`` with a, b >= 0 and one of several c0, `least`. The
    exponent c is close to `exponent`, by about `exponent_scale`, and at most `most`. `noise` is
    the relative error of a measured cost, and `drift` that of the law for each factor e of the
    rows beyond those that were measured.
    """

    exponent_scale: float
    noise: float
    drift: float
    exponent: float = 1.0
    least: tuple[float, ...] = (0.0,)
    most: float = 3.0

    def predict(
        self,
        points: Sequence[Point],
        n_rows: float,
        pairs: float = PAIRS,
        same: float = 0.0,
        growing: Estimate | None = None,
    ) -> Estimate:
        """Predict the cost of a number of rows from costs of fewer rows.

        Laws with all exponents are fitted to the points by relative errors, and weighed by
        how well they fit. A cost that is the same for any rows has the weight `same`; `growing`
        is an estimate of the rest, from another method. There must be at least one point; costs
        are positive.
        """
        exponents = np.array(list(product(self.least, (0.0, *_EXPONENTS[self.most >= _EXPONENTS]))))
        rows, values = np.array(points, dtype=np.float64).T
        terms = (rows[:, None] / rows.max()) ** exponents[:, None] / values[:, None]
        targets, at = np.ones(len(points)), (n_rows / rows.max()) ** exponents
        found = np.array(_laws(terms, targets, at))
        if growing is not None:
            weight = self.noise / spread_of(growing)
            growth = at[:, None] * [0, weight / growing.value]
            both = _laws(np.hstack([terms, growth]), np.append(targets, weight), at)
            # trials decide where they contradict it, as if it were far too large
            found[0] += weight**2
            found = np.where(found[0] < both[0], found, both)
        errors, costs, variances = found
        # of a Cauchy distribution: another exponent is unlikely, and not impossible
        scaled = ((exponents[:, 1:] - [self.exponent, 2.0]) / self.exponent_scale) ** 2
        prior = np.where(exponents[:, 1] == 0, same, 1 / (1 + scaled) @ [1.0, pairs])
        weights = prior * np.exp((errors.min() - errors) / (2 * self.noise**2))
        mean = float(np.average(np.log(costs), weights=weights))
        # a term too small to be seen might be any size; laws that say so are unlikely ones
        within = np.minimum(1.0, self.noise**2 * variances)
        variance = np.average(within + (np.log(costs) - mean) ** 2, weights=weights)
        beyond = max(0.0, math.log(n_rows / max(n for n, _ in points)))
        return estimate(mean, math.hypot(math.sqrt(variance), self.drift * beyond, self.noise))


def _laws(
    terms: np.ndarray, targets: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit laws of two terms, given their values over the costs, by least squares.

    Return the sums of squared errors, the costs for terms of the size `at`, and their variances
    over their squares, for costs of variance 1.
    """
    # a term that would be negative is left out; a single point is of the one that grows
    used = np.linalg.pinv(terms) @ targets >= 0 if len(targets) > 1 else np.array([[False, True]])
    solved = np.linalg.pinv(terms * used[:, None, :])
    laws = solved @ targets
    errors = (((terms @ laws[:, :, None])[:, :, 0] - targets) ** 2).sum(axis=1)
    values = (at * laws).sum(axis=1)
    return errors, values, ((at[:, None] @ solved) ** 2).sum(axis=(1, 2)) / values**2


def estimate(mean: float, sd: float) -> Estimate:
    """Return the estimate of a number whose logarithm has a mean and a standard deviation."""
    return Estimate(*(math.exp(mean + z * sd) for z in (0.0, -SPREAD, SPREAD)))


def wider(narrow: Estimate, sd: float) -> Estimate:
    """Return an estimate to whose logarithm an error of standard deviation `sd` is added."""
    return estimate(math.log(narrow.value), math.hypot(spread_of(narrow), sd))


def spread_of(known: Estimate) -> float:
    """Return the standard deviation of the logarithm of an estimate."""
    return math.log(known.high / known.low) / (2 * SPREAD)


# Growth of seconds: the work of most methods is close to linear in the rows.
TIME = Growth(exponent_scale=0.05, noise=0.08, drift=0.06, exponent=0.95)

# Growth of memory: the sizes of matrices with a row for each row of the data, or fewer. The
# largest of several steps may be another one on more rows: noise is such a change of steps.
# No method holds more than pairs of rows.
MEMORY = Growth(exponent_scale=0.05, noise=0.1, drift=0.04, exponent=0.95, most=2.0)

# Growth of the memory of learners with kernels: such matrices, and kernel values of pairs.
MEMORY_OF_KERNEL = replace(MEMORY, noise=0.03, exponent=2.0, least=(0.0, 1.0))

# Part of the memory of a search that is held while metrics are computed, which follow it.
HELD = 0.3

# Standard deviation of the logarithm of the CPU time with several threads over that with one.
THREADS_SD = 0.1

# CPU time in which several threads start.
THREADS_S = 0.18

# CPU time of a trial up to which threads may only wait for each other: in a long task they compute.
SHORT_S = 5.0

# Trials that memory is predicted from: those on the most rows.
LAST = 3

MIN_MB, MIN_MB_OF_KERNEL, MIN_S = 8.0, 0.5, 0.03
"""Costs whose growth is lost in others: they are added before the fit, and taken off after.

A kernel needs few numbers besides those that grow with the rows and with their pairs.
"""


def predict(
    trials: Sequence[Trial],
    n_rows: int,
    pairs: float = PAIRS,
    memory_pairs: float = PAIRS,
    *,
    growing: Estimate | None = None,
) -> Cost | None:
    """Predict the cost of a task with `n_rows` training rows; None without a good trial.

    Costs of the trials are extrapolated; `pairs` and `memory_pairs` are the weights of a time and
    of a memory in proportion to pairs of rows. Costs of metrics, whose samples have the same size
    for any number of rows, are added: they are in trials with metrics only, or in all. Memory is
    at least that of any trial. A trial with several threads shows what they add at most. `growing`
    estimates the part of the time that grows with the rows.

    Examples
    --------
    >>> trials = [Trial(n, False, "ok", n / 1000, n / 100) for n in (2000, 4000, 8000)]
    >>> print(predict(trials, 80_000))
    77 s of CPU time and 757 MiB
    """
    trials = [replace(each, memory_mib=each.memory_mib + each.blocks_mib) for each in trials]
    good = [trial for trial in trials if trial.status == "ok" and trial.n_threads == 1]
    over = [trial for trial in trials if trial.status == "out_of_memory"]
    if not (good or over):
        return None
    with_metrics = {trial.n_rows: trial for trial in good if trial.has_metrics}
    plain = {trial.n_rows: trial for trial in good if not trial.has_metrics} or with_metrics
    if n_rows in with_metrics:  # it is the task
        plain = {n_rows: with_metrics[n_rows]}
    together = [
        (trial, plain[trial.n_rows])
        for trial in trials
        if trial.n_threads > 1 and trial.status == "ok" and trial.n_rows in plain
    ]
    # beyond a limit it grows in proportion to the rows, or faster
    beyond = [trial.memory_mib * n_rows / trial.n_rows for trial in over]
    least = max(beyond or [trial.memory_mib for trial in trials])
    seconds, memory = None, Estimate(least, least, least)
    if plain:
        both = [(trial, plain[n]) for n, trial in with_metrics.items() if n in plain]
        metrics_s = max([0.0, *(trial.seconds - other.seconds for trial, other in both)])
        seconds = TIME.predict(_points(plain), n_rows, pairs, growing=growing)
        # logarithms are taken of it
        seconds = seconds.map(lambda s: max(1e-3, s - MIN_S + metrics_s))
        for trial, alone in together:
            is_short = alone.seconds < SHORT_S
            ratio = (trial.seconds - THREADS_S * is_short) / max(1e-3, alone.seconds)
            factor = min(max(1.0, ratio), trial.n_threads)
            if is_short:  # between none and all of it
                factor = math.sqrt(factor)
                seconds = wider(seconds, math.log(factor) / SPREAD)
            seconds = wider(seconds.map(partial(mul, factor)), THREADS_SD)
        less = [trial.seconds for trial in good if trial.n_rows < n_rows]
        seconds = seconds.map(partial(max, max(less, default=0.0)))
        law, added = (MEMORY_OF_KERNEL, MIN_MB_OF_KERNEL) if memory_pairs > 1 else (MEMORY, MIN_MB)
        points = _points(plain, "memory_mib", added)[-LAST:]
        blocks = any(trial.blocks_mib for trial in plain.values())
        law, same = (replace(law, noise=NOISE_OF_BLOCKS), SAME) if blocks else (law, 0.0)
        memory = law.predict(points, n_rows, same=same).map(lambda mib: mib - added)
        metrics = [trial.memory_mib - HELD * other.memory_mib for trial, other in both]
        of_metrics = max([0.0, *metrics])
        more = max([0.0, *(trial.memory_mib - alone.memory_mib for trial, alone in together)])
        memory = memory.map(lambda mib: max(least, more + max(of_metrics + HELD * mib, mib)))
    return Cost(memory, seconds, bool(over))


# Standard deviation of the exponents of sizes in a cost, about those that are assumed.
SLOPES_SD = 0.5

# Standard deviation of the logarithms of costs of a method on tasks of equal sizes.
SCATTER = 0.3


def extrapolate(
    sizes: np.ndarray, costs: Sequence[float], at: Sequence[float], slopes: Sequence[float]
) -> Estimate:
    """Predict a cost from those of tasks of other sizes, by a Bayesian linear model of logarithms.

    `sizes` has a row for each cost; `slopes` are the exponents that are assumed before any is
    measured.

    >>> sizes = np.array([[100, 2, 10], [1000, 2, 10]])
    >>> cost = extrapolate(sizes, [1.0, 10.0], (10_000, 2, 10), (1.0, 1.0, 0.3))
    >>> 90 < cost.value < 110, cost.low < 50 < 200 < cost.high
    (True, True)
    """
    logs, y = np.log(sizes), np.log(costs)
    X, away = logs - logs.mean(axis=0), np.log(at) - logs.mean(axis=0)
    covariance = np.linalg.inv(X.T @ X / SCATTER**2 + np.eye(len(away)) / SLOPES_SD**2)
    moments = X.T @ (y - y.mean()) / SCATTER**2 + np.array(slopes) / SLOPES_SD**2
    variance = SCATTER**2 * (1 + 1 / len(y)) + away @ covariance @ away
    return estimate(float(y.mean() + away @ covariance @ moments), math.sqrt(variance))


def rows_that_need(trials: Sequence[Trial], memory_mib: float, n_rows: int, *growth: float) -> int:
    """Return how many of `n_rows` rows should need an amount of memory; at most all."""
    return bisect_left(
        range(n_rows),
        memory_mib,
        lo=1,
        key=lambda n: cost.memory_mib.value if (cost := predict(trials, n, *growth)) else 0.0,
    )


def growing_seconds(
    trials: Sequence[Trial], n_rows: int, pairs: float, factor: float, factor_sd: float
) -> Estimate | None:
    """Estimate the growing part of a method's time on `n_rows` rows from trials of a similar one.

    It is `factor` times that of the other, up to an error of the standard deviation `factor_sd`
    of its logarithm. None if the trials show no growth.
    """
    good = [t for t in trials if t.status == "ok" and not t.has_metrics and t.n_threads == 1]
    points = _points({trial.n_rows: trial for trial in good})
    if not points:
        return None
    known = TIME.predict(points, n_rows, pairs)
    grown = known.value - points[0][1]
    if grown <= 2 * TIME.noise * known.value:
        return None
    return estimate(math.log(factor * grown), math.hypot(spread_of(known), factor_sd))


def seconds_of(trials: Sequence[Trial], n_rows: int, pairs: float = PAIRS) -> float:
    """Predict the CPU time of one more trial."""
    return TIME.predict(_points({t.n_rows: t for t in trials}), n_rows, pairs).value - MIN_S


def _points(
    trials: Mapping[int, Trial], cost: str = "seconds", added: float = MIN_S
) -> list[Point]:
    """Return costs by rows, in the order of the rows, with a constant added."""
    return sorted((n, getattr(trial, cost) + added) for n, trial in trials.items())


# Share of the limit that is aimed at.
MARGIN = 0.95


def next_width(needs: Mapping[int, float], limit_mib: float) -> int | None:
    """Return a smaller width to try; None if one fits already, or if none can.

    `needs` has the memory that was predicted for widths.
    """
    width, need = min(needs.items())
    smaller = min(width - 1, round_width(width * MARGIN * limit_mib / need))
    return smaller or None if need > MARGIN * limit_mib else None


def largest_width(needs: Mapping[int, float], limit_mib: float) -> int | None:
    """Return the largest width that fits, in two digits; None if none is expected to fit.

    Between a width that fits and one that does not, memory grows by a power law.

    >>> largest_width({8000: 41.0, 2000: 12.0, 500: 3.0}, 4.0)
    630
    """
    fit = {width: need for width, need in needs.items() if need <= MARGIN * limit_mib}
    if not fit:
        return None
    width, need = max(fit.items())
    beyond, its_need = min((w, n) for w, n in needs.items() if w > width)
    exponent = math.log(its_need / need) / math.log(beyond / width)
    wider = (MARGIN * limit_mib / need) ** (1 / exponent) if exponent > 0 else 1.0
    return max(width, round_width(width * wider))


def round_width(width: float) -> int:
    """Round down to two digits.

    >>> round_width(699.05)
    690
    """
    unit: int = 10 ** max(0, math.floor(math.log10(max(1.0, width))) - 1)
    return int(width // unit) * unit


def too_large(cost: Cost, limit_mib: float, name: str = "", largest: int | None = None) -> str:
    """Say that a task does not fit into the limit of memory, how long it takes, and what would fit.

    >>> from kbench.records import Estimate
    >>> cost = Cost(Estimate(41_984, 39_000, 45_000), Estimate(90, 80, 101))
    >>> too_large(cost, 4096, "columns", 2000)
    'needs 41 GiB (and 90 s of CPU time), the limit is 4 GiB; columns up to about 2,000 should fit'
    """
    least = "at least " if cost.is_least else ""
    need, limit = map(format_memory, (cost.memory_mib.value, limit_mib))
    advice = "" if largest is None else f"; {name} up to about {largest:,} should fit"
    time = f" (and {format_seconds(cost.seconds.value)} of CPU time)" if cost.seconds else ""
    return f"needs {least}{need}{time}, the limit is {limit}{advice}"


def too_long(seconds: Estimate | None, timeout_s: float, protocol: Protocol) -> str:
    """Say that a task does not end before its timeout; empty if it may, in one case of twenty.

    Its threads share its CPU time. A search that has a timeout ends earlier.

    >>> too_long(Estimate(36_000, 30_000, 43_000), 1800, Protocol(threads=2))
    'needs 10 h of CPU time, more than `task_timeout=1800` allows; `task_timeout=21500` should do'
    """
    n_threads, is_bounded = protocol.threads, protocol.search_timeout_s is not None
    if is_bounded or seconds is None or seconds.low <= n_threads * timeout_s:
        return ""
    allowed, enough = (
        option("task_timeout", limit) for limit in (timeout_s, math.ceil(seconds.high / n_threads))
    )
    return (
        f"needs {format_seconds(seconds.value)} of CPU time, more than {allowed} allows; "
        f"{enough} should do"
    )
