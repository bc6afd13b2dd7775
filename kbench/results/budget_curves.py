"""The best inner score that a number of seconds of search reaches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kbench.records import Measure
from kbench.results.search_curves import Candidates, is_whole, values_of
from kbench.results.stats import Array

N_ORDERS = 200
"""Random orders of the candidates that are averaged."""

PER_DECADE = 4
"""Points of a curve for each power of ten of seconds."""


def budget_curve(
    splits: Sequence[tuple[Candidates, Sequence[float]]], measure: Measure | None
) -> list[list[float]]:
    """Return points of seconds and the best inner score reached by then, a mean over splits.

    A search tries its candidates in an order that says nothing of a shorter search, so that
    their orders are averaged. A curve begins where each order has finished a candidate, and
    ends with all of them. The seconds of a candidate are its own and its part of what it
    shares with others.

    Parameters
    ----------
    splits : sequence of (candidates, seconds)
        The candidates of the search of each split, as `search_curves` takes them, and the
        seconds of each of them.
    measure : Measure or None
        What the search optimised; without it there is no curve.

    Examples
    --------
    >>> candidates = [{"values": [0.7]}, {"values": [0.9]}]
    >>> curve = budget_curve([(candidates, [1.0, 1.0])], Measure("accuracy"))
    >>> [(seconds, round(value, 2)) for seconds, value in curve]
    [(1.0, 0.8), (1.77828, 0.8), (2.0, 0.9)]
    """
    found = []
    for candidates, seconds in splits:
        known = [
            (float(np.mean(values_of(each))), spent)
            for each, spent in zip(candidates, seconds, strict=False)
            if is_whole(each) and values_of(each) and spent > 0
        ]
        if measure is None or len(known) < 2 or len(seconds) != len(candidates):
            return []
        found.append(np.array(known))
    if measure is None or not found:
        return []
    end = max(float(table[:, 1].sum()) for table in found)
    first = max(float(table[:, 1].max()) for table in found)
    steps = np.arange(np.ceil(PER_DECADE * np.log10(first)), PER_DECADE * np.log10(end))
    times = np.array([*(10 ** (steps / PER_DECADE)), end])
    curves = [_mean_best(measure.gain(table[:, 0]), table[:, 1], times) for table in found]
    means = measure.gain(np.mean(curves, axis=0))
    return [[float(f"{t:.6g}"), float(f"{v:.7g}")] for t, v in zip(times, means, strict=True)]


def _mean_best(gains: Array, seconds: Array, times: Array) -> Array:
    """Return the best gain of the candidates that are finished by each time, over orders."""
    rng = np.random.default_rng(0)
    order = rng.permuted(np.tile(np.arange(len(gains)), (N_ORDERS, 1)), axis=1)
    best = np.maximum.accumulate(gains[order], axis=1)
    ends = np.cumsum(seconds[order], axis=1)
    # rounding of sums must not leave the last candidate out
    done = (ends[:, :, None] <= times * (1 + 1e-9)).sum(axis=1)
    return np.asarray(np.take_along_axis(best, np.maximum(done - 1, 0), axis=1).mean(axis=0))


def mean_curve(curves: Sequence[Sequence[Sequence[float]]]) -> list[tuple[float, float]]:
    """Average curves of datasets at common times; each keeps its last value after its end.

    It begins where all of them have begun.

    >>> mean_curve([[[1.0, 0.8], [10.0, 0.9]], [[1.0, 0.6], [3.0, 0.7]]])
    [(1.0, 0.7), (3.0, 0.75), (10.0, 0.8)]
    """
    begin = max(curve[0][0] for curve in curves)
    times = sorted({t for curve in curves for t, _ in curve if t >= begin})
    values = []
    for curve in curves:
        at, reached = np.array(curve).T
        values.append(reached[np.searchsorted(at, times, side="right") - 1])
    return [(t, float(f"{v:.7g}")) for t, v in zip(times, np.mean(values, axis=0), strict=True)]
