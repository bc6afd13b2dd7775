"""Memory and time of a task before it runs, from trials on samples of its rows.

A trial is a task on some of the rows of its split: it measures what a task measures,
whatever a plugin does. `predict` extrapolates from the trials of a cell to all rows, and
`too_large` writes why a cell cannot fit into the limit of memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul

from kbench.messages import of_memory
from kbench.records import Cost, Estimate, Trial

SPREAD = 1.645
"""Standard deviations at the ends of an interval that has nine cases of ten."""

_EXPONENTS = [number / 20 for number in range(10, 61)]

Point = tuple[float, float]
"""A number of rows, and a cost."""


@dataclass(frozen=True)
class Growth:
    """What is known of a kind of cost before it is measured.

    A cost is ``a + b * rows**c`` with a, b >= 0. The exponent c is close to `exponent`, by
    about `exponent_scale`. `noise` is the relative error of a measured cost, and `drift`
    that of the law for each factor e of the rows beyond those that were measured.
    """

    exponent_scale: float
    noise: float
    drift: float
    exponent: float = 1.0

    def predict(
        self, points: Sequence[Point], n_rows: float, beside: Sequence[Point] = ()
    ) -> Estimate:
        """Predict the cost of a number of rows from costs of fewer rows.

        Laws with all exponents are fitted to the points by relative errors, and weighed by
        how well they fit. There must be at least one point; costs are positive. Points
        `beside` are of another cost that grows with the same exponent.
        """
        weights, means, variances = [], [], []
        scores = [self._score(c, points) + self._score(c, beside) for c in _EXPONENTS]
        best = max(scores)
        for c, score in zip(_EXPONENTS, scores, strict=True):
            law = _Law.fitted(points, c)
            # of a Cauchy distribution: another exponent is unlikely, and not impossible
            prior = 1 / (1 + ((c - self.exponent) / self.exponent_scale) ** 2)
            weights.append(prior * math.exp(score - best))
            means.append(math.log(law.at(n_rows)))
            # a term too small to be seen might be any size; laws that say so are unlikely ones
            variances.append(min(1.0, self.noise**2 * law.relative_variance(n_rows)))
        total = sum(weights)
        mean = sum(map(mul, weights, means)) / total
        within = sum(map(mul, weights, variances)) / total
        between = sum(w * (x - mean) ** 2 for w, x in zip(weights, means, strict=True)) / total
        beyond = max(0.0, math.log(n_rows / max(n for n, _ in points)))
        sd = math.sqrt(within + between + (self.drift * beyond) ** 2)
        return estimate(mean, math.hypot(sd, self.noise))

    def measured(self, cost: float) -> Estimate:
        """Return the estimate of a cost that was measured once."""
        # the difference of two measured costs
        return estimate(math.log(cost), math.sqrt(2) * self.noise)

    def _score(self, exponent: float, points: Sequence[Point]) -> float:
        """Return the logarithm of the likelihood of an exponent."""
        return -_Law.fitted(points, exponent).error / (2 * self.noise**2) if points else 0.0


@dataclass(frozen=True)
class _Law:
    """A law ``a + b * rows**exponent`` that was fitted to points by relative errors.

    `error` is the sum of their squares. `moments` are the sums of the products of the two
    terms at the points, relative to the costs; zero for a term that is left out.
    """

    a: float
    b: float
    exponent: float
    error: float
    moments: tuple[float, float, float]

    @classmethod
    def fitted(cls, points: Sequence[Point], exponent: float) -> _Law:
        u = [1 / cost for _, cost in points]
        v = [n**exponent / cost for n, cost in points]
        uu, vv, uv = sum(map(mul, u, u)), sum(map(mul, v, v)), sum(map(mul, u, v))
        determinant = uu * vv - uv * uv
        a = b = -1.0
        if determinant > 1e-9 * uu * vv:
            a = (sum(u) * vv - sum(v) * uv) / determinant
            b = (sum(v) * uu - sum(u) * uv) / determinant
        if a < 0 or b < 0:  # one of the terms alone: the one that grows, unless it falls
            falls = determinant > 1e-9 * uu * vv and b < 0
            a, b = (sum(u) / uu, 0.0) if falls else (0.0, sum(v) / vv)
            uu, vv, uv = (uu, 0.0, 0.0) if falls else (0.0, vv, 0.0)
        error = sum((a * x + b * y - 1) ** 2 for x, y in zip(u, v, strict=True))
        return cls(a, b, exponent, error, (uu, vv, uv))

    def at(self, n_rows: float) -> float:
        return self.a + self.b * math.pow(n_rows, self.exponent)

    def relative_variance(self, n_rows: float) -> float:
        """Return the variance of ``at(n_rows)`` over its square, for costs of variance 1."""
        uu, vv, uv = self.moments
        x = math.pow(n_rows, self.exponent)
        if not vv or not uu:
            return 1 / uu / self.at(n_rows) ** 2 if uu else x * x / vv / self.at(n_rows) ** 2
        return (vv - 2 * x * uv + x * x * uu) / (uu * vv - uv * uv) / self.at(n_rows) ** 2


def estimate(mean: float, sd: float) -> Estimate:
    """Return the estimate of a number whose logarithm has a mean and a standard deviation."""
    return Estimate(*(math.exp(mean + z * sd) for z in (0.0, -SPREAD, SPREAD)))


def wider(given: Estimate, sd: float) -> Estimate:
    """Return an estimate to whose logarithm an error of standard deviation `sd` is added."""
    own = math.log(given.high / given.low) / (2 * SPREAD)
    return estimate(math.log(given.value), math.hypot(own, sd))


TIME = Growth(exponent_scale=0.05, noise=0.06, drift=0.06)
"""Growth of seconds: the work of most methods is close to linear in the rows."""

MEMORY = Growth(exponent_scale=0.05, noise=0.03, drift=0.04)
"""Growth of memory: the sizes of matrices with a row for each row of the data."""

LAST = 3
"""Trials that memory is predicted from: those on the most rows."""

RATIO_SD = 0.3
"""Standard deviation of the logarithm of the ratio of a whole search to a short one, between
those rows on which both were made and all rows."""

TIME_BY_WIDTH = Growth(exponent=2.0, exponent_scale=0.5, noise=0.06, drift=0.1)
"""Growth of seconds with the columns of the embedding, between a product and a decomposition."""

MEMORY_BY_WIDTH = Growth(exponent=1.5, exponent_scale=0.5, noise=0.03, drift=0.1)
"""Growth of memory with them: blocks of rows and Gram matrices."""

THREADS_SD = 0.25
"""Standard deviation of the logarithm of what several threads save."""

LEAST_MB, LEAST_S = 8.0, 0.1
"""Costs whose growth is lost in others: they are added before the fit, and taken off after."""


def predict(trials: Sequence[Trial], n_rows: int) -> Cost | None:
    """Predict the cost of a task with `n_rows` training rows; None without a good trial.

    Memory grows as that of short searches, and is at least that of any trial. Time is
    that of the whole searches, extrapolated with the exponent of the short ones, which had
    more rows; of a single whole search, that of the short ones times their ratio. A trial of
    the whole search on all rows is the task itself. A trial with several threads says what
    they save.

    Examples
    --------
    >>> trials = [Trial(n, whole, "ok", n / 1000 * (4 if whole else 1), n / 100)
    ...           for n, whole in [(2000, True), (2000, False), (4000, False), (8000, False)]]
    >>> cost = predict(trials, 80_000)
    >>> 750 < cost.memory_mb.value < 850, 300 < cost.seconds.value < 350
    (True, True)
    """
    together = [trial for trial in trials if trial.n_threads > 1]
    good = [trial for trial in trials if trial.status == "ok" and trial.n_threads == 1]
    for trial in good:
        if trial.is_whole and trial.n_rows == n_rows:  # it is the task
            seconds = TIME.measured(max(1e-3, trial.seconds))
            return Cost(
                MEMORY.measured(max(1.0, trial.memory_mb)), _with_threads(seconds, good, together)
            )
    over = [trial for trial in trials if trial.status == "memory"]
    if not (good or over):
        return None
    short = {trial.n_rows: trial.memory_mb for trial in good if not trial.is_whole}
    whole = {trial.n_rows: trial.memory_mb for trial in good if trial.is_whole}
    least = max(trial.memory_mb for trial in trials)
    if over:
        # it grows in proportion to the rows, or faster
        least = max(trial.memory_mb * n_rows / trial.n_rows for trial in over)
    memory = Estimate(least, least, least)
    if points := _points(short or whole, LEAST_MB):
        with_more = MEMORY.predict(points[-LAST:], n_rows)
        memory = with_more.less(LEAST_MB - _of_threads(good, together)).at_least(least)
    alone = _seconds(good, n_rows)
    return Cost(memory, alone and _with_threads(alone, good, together), bool(over))


def predict_wider(costs: Mapping[int, Cost], width: int) -> Cost:
    """Predict the cost of a wider embedding from those of narrower ones, by width."""
    memory = {w: known.memory_mb for w, known in costs.items()}
    times = {w: known.seconds for w, known in costs.items() if known.seconds is not None}
    return Cost(
        _wider(memory, width, MEMORY_BY_WIDTH),
        _wider(times, width, TIME_BY_WIDTH) if times else None,
    )


def of_wider(costs: Mapping[int, float], width: int, growth: Growth = TIME_BY_WIDTH) -> Estimate:
    """Return what a cost, seconds if nothing else is said, comes to on a wider embedding."""
    return growth.predict(sorted(costs.items()), width)


def _wider(costs: Mapping[int, Estimate], width: int, growth: Growth) -> Estimate:
    grown = of_wider({w: max(1e-3, known.value) for w, known in costs.items()}, width, growth)
    widest = costs[max(costs)]
    return wider(grown, math.log(widest.high / widest.low) / (2 * SPREAD))


def _of_threads(good: Sequence[Trial], together: Sequence[Trial]) -> float:
    """Return the memory of further threads."""
    alone = {t.n_rows: t.memory_mb for t in good if t.is_whole}
    more = [t.memory_mb - alone[t.n_rows] for t in together if t.status == "ok"]
    return max([0.0, *more])


def _with_threads(alone: Estimate, good: Sequence[Trial], together: Sequence[Trial]) -> Estimate:
    """Return the wall clock with several threads, from the CPU time with one.

    It is between that and its part for each thread: more would be the work of other
    programs, and so is a trial with several threads that took too long.
    """
    for trial in together:
        of_one = [t.seconds for t in good if t.is_whole and t.n_rows == trial.n_rows]
        if trial.status != "ok" or not of_one or of_one[-1] <= 0:
            return wider(alone, THREADS_SD)
        saved = min(1.0, max(1 / trial.n_threads, trial.seconds / of_one[-1]))
        return wider(alone.scaled(saved), THREADS_SD)
    return alone


def rows_that_need(trials: Sequence[Trial], memory_mb: float, n_rows: int) -> int:
    """Return how many of `n_rows` rows should need an amount of memory; at most all."""
    low, high = 1, n_rows
    while low < high:
        middle = (low + high) // 2
        cost = predict(trials, middle)
        if cost is not None and cost.memory_mb.value >= memory_mb:
            high = middle
        else:
            low = middle + 1
    return low


def _seconds(good: Sequence[Trial], n_rows: int) -> Estimate | None:
    whole = {trial.n_rows: trial.seconds for trial in good if trial.is_whole}
    short = {trial.n_rows: trial.seconds for trial in good if not trial.is_whole}
    if not whole:
        return None
    least = max(whole.values())
    of_short, of_whole = _points(short, LEAST_S), _points(whole, LEAST_S)
    if len(whole) > 1 or max(whole) not in short:
        predicted = TIME.predict(of_whole, n_rows, beside=of_short)
    else:
        ratio = of_whole[-1][1] / (short[max(whole)] + LEAST_S)
        predicted = wider(TIME.predict(of_short, n_rows).scaled(ratio), RATIO_SD)
    return predicted.less(LEAST_S).at_least(least)


def _points(costs: Mapping[int, float], more: float) -> list[Point]:
    """Return costs by rows, in the order of the rows, with a constant added."""
    return [(n, cost + more) for n, cost in sorted(costs.items())]


MARGIN = 0.95
"""Share of the limit that is aimed at."""


def next_width(needs: Mapping[int, float], limit_mb: float) -> int | None:
    """Return a smaller width to try; None if one fits already, or if none can.

    `needs` has the memory that was predicted for widths.
    """
    width, need = min(needs.items())
    if need <= MARGIN * limit_mb or width <= 1:
        return None
    return min(width - 1, _rounded(width * MARGIN * limit_mb / need)) or None


def largest_width(needs: Mapping[int, float], limit_mb: float) -> int | None:
    """Return the largest width that fits, in two digits; None where none is known to fit.

    Between two widths of which one fits, memory grows by a power law.

    >>> largest_width({8000: 41.0, 2000: 12.0, 500: 3.0}, 4.0)
    630
    """
    fit = {width: need for width, need in needs.items() if need <= MARGIN * limit_mb}
    if not fit:
        return None
    width, need = max(fit.items())
    beyond, its_need = min((w, n) for w, n in needs.items() if w > width)
    exponent = math.log(its_need / need) / math.log(beyond / width)
    if exponent <= 0:
        return width
    return max(width, _rounded(width * (MARGIN * limit_mb / need) ** (1 / exponent)))


def rounded_up(width: float) -> int:
    """Round up to two digits, and to more than `width`.

    >>> rounded_up(699.05), rounded_up(700), rounded_up(4000)
    (700, 710, 4100)
    """
    unit: int = 10 ** max(0, math.floor(math.log10(max(1.0, width))) - 1)
    return (int(width // unit) + 1) * unit


def _rounded(width: float) -> int:
    """Round down to two digits."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(1.0, width))) - 1)
    return int(width // unit) * unit


def too_large(
    cost: Cost,
    limit_mb: float,
    name: str = "",
    largest: int | None = None,
    in_blocks: int | None = None,
) -> str:
    """Say that a task does not fit into the limit of memory, and what would.

    An embedding of `in_blocks` columns is never one matrix, so that it fits again.

    >>> from kbench.records import Estimate
    >>> cost = Cost(Estimate(41_984, 39_000, 45_000))
    >>> too_large(cost, 4096, "n_components", 2000)
    'needs 41 GB, the limit is 4 GB; n_components up to about 2,000 should fit'
    >>> too_large(cost, 4096, "n_components", in_blocks=3000)
    'needs 41 GB, the limit is 4 GB; n_components from 3,000 on should fit, in blocks'
    """
    least = "at least " if cost.is_least else ""
    text = f"needs {least}{of_memory(cost.memory_mb.value)}, the limit is {of_memory(limit_mb)}"
    narrow = [] if largest is None else [f"up to about {largest:,}"]
    wide = [] if in_blocks is None else [f"from {in_blocks:,} on"]
    if not narrow + wide:
        return text
    which = " and ".join(narrow + wide)
    return f"{text}; {name} {which} should fit{', in blocks' if wide else ''}"
