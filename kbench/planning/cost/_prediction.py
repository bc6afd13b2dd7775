"""The cost of a task, predicted from trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kbench.planning.cost._growth import Growth, Point, wider
from kbench.records import Cost, Estimate, Trial

TIME = Growth(exponent_scale=0.05, noise=0.06, drift=0.06)
"""Growth of seconds: the work of most methods is close to linear in the rows."""

MEMORY = Growth(exponent_scale=0.05, noise=0.03, drift=0.04)
"""Growth of memory: the sizes of matrices with a row for each row of the data."""

LAST = 3
"""Trials that memory is predicted from: those on the most rows."""

RATIO_SD = 0.3
"""Standard deviation of the logarithm of the ratio of a whole search to a short one, between
those rows on which both were made and all rows."""

LEAST_MB, LEAST_S = 8.0, 0.1
"""Costs whose growth is lost in others: they are added before the fit, and taken off after."""


def predict(trials: Sequence[Trial], n_rows: int) -> Cost | None:
    """Predict the cost of a task with `n_rows` training rows; None without a good trial.

    Memory grows as that of short searches, and is at least that of any trial. Time is
    that of the whole searches, extrapolated with the exponent of the short ones, which had
    more rows; of a single whole search, that of the short ones times their ratio. A trial of
    the whole search on all rows is the task itself.

    Examples
    --------
    >>> trials = [Trial(n, whole, "ok", n / 1000 * (4 if whole else 1), n / 100)
    ...           for n, whole in [(2000, True), (2000, False), (4000, False), (8000, False)]]
    >>> cost = predict(trials, 80_000)
    >>> 750 < cost.memory_mb.value < 850, 300 < cost.seconds.value < 350
    (True, True)
    """
    good = [trial for trial in trials if trial.status == "ok"]
    for trial in good:
        if trial.is_whole and trial.n_rows == n_rows:  # it is the task
            return Cost(
                MEMORY.measured(max(1.0, trial.memory_mb)),
                TIME.measured(max(1e-3, trial.seconds)),
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
        memory = with_more.less(LEAST_MB).at_least(least)
    return Cost(memory, _seconds(good, n_rows), bool(over))


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
