"""The cost of a task, predicted from trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kbench.records import Cost, Estimate, Trial
from kbench_costs.prediction._growth import SPREAD, Growth, Point, wider

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
