"""Changes of times: ratios, corrected by the calibration figures of the machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from kbench.features import Row
from kbench_compare.changes import ONE_SPLIT, Change, Noise, Verdict
from kbench_compare.matching import values_on, why_none

CALIBRATION_SPREAD = 1.25
"""Ratio of two calibration figures of one machine above which its times are doubted."""


def time_change(
    a: Row, b: Row, splits: Sequence[str], name: str, doubts: tuple[str, ...], noise: Noise
) -> Change:
    """Return the ratio of two times, that of b corrected, with its interval, over common splits."""
    pairs = [pair for pair in values_on(a, b, splits, name) if min(pair) > 0]
    if not pairs:
        return Change(doubts=(why_none(a, b, "times"),))
    of_a, of_b = _calibration(a), _calibration(b)
    factor = math.log(of_a[0]) - math.log(of_b[0]) if of_a and of_b else 0.0
    logs = [math.log(right) - math.log(left) + factor for left, right in pairs]
    mean_a = _exp(math.fsum(math.log(left) for left, _ in pairs) / len(pairs))
    ratio = _exp(math.fsum(logs) / len(logs))
    if len(pairs) < 2:
        return Change(mean_a, mean_a * ratio, ratio, doubts=(*doubts, ONE_SPLIT))
    low, high, p = _interval(logs, noise)
    return Change(mean_a, mean_a * ratio, ratio, _exp(low), _exp(high), p, doubts=doubts)


def _exp(value: float) -> float:
    """Return e^value, the value clipped to what gives a positive number."""
    return math.exp(max(-700.0, min(value, 700.0)))


def _interval(logs: Sequence[float], noise: Noise) -> tuple[float, float, float]:
    """Return an interval for the mean of logarithms of ratios, and p of "no change".

    The variance within a run is estimated from the splits, that between runs
    is given, so that the degrees of freedom are Satterthwaite's.
    """
    from scipy.special import stdtr, stdtrit

    n = len(logs)
    mean = math.fsum(logs) / n
    within = math.fsum((value - mean) ** 2 for value in logs) / (n - 1) / n
    error = math.sqrt(within + 2 * noise.time_noise**2)
    if error == 0:
        return mean, mean, float(mean == 0)
    df = (n - 1) * (error**2 / within) ** 2 if within > 1e-12 else math.inf
    wide = error * float(stdtrit(min(df, 1e6), 1 - noise.alpha / 2))
    return mean - wide, mean + wide, 2 * float(stdtr(min(df, 1e6), -abs(mean) / error))


def _calibration(row: Row) -> list[float]:
    """Return the calibration figures of a row: their median, the least and the greatest."""
    figures = [float(text) for text in row.calibration_s.split(", ") if text]
    figures = [figure for figure in figures if figure > 0]
    return [median(figures), min(figures), max(figures)] if figures else []


def doubts_of(a: Row, b: Row) -> tuple[str, ...]:
    """Return why the times of two rows cannot be compared."""
    doubts = []
    for side, row in (("a", a), ("b", b)):
        if row.contention:
            doubts.append(f"{side}: the machine was busy: {row.contention}")
        calibration = _calibration(row)
        if not calibration:
            doubts.append(f"{side}: no calibration figure")
        elif calibration[2] > CALIBRATION_SPREAD * calibration[1]:
            doubts.append(f"{side}: the machine's speed changed between its splits")
    figures = [_calibration(row) for row in (a, b)]
    if all(figures) and a.machine == b.machine:
        of_a, of_b = figures[0][0], figures[1][0]
        if max(of_a, of_b) > CALIBRATION_SPREAD * min(of_a, of_b):
            doubts.append(
                "the machine itself was not as fast in both: its small computation took "
                f"{of_a:.3g} s in a, {of_b:.3g} s in b"
            )
    threads_a, threads_b = (row.protocol.get("threads", "1") for row in (a, b))
    if threads_a != threads_b:
        doubts.append(f"{threads_a} threads in a, {threads_b} in b")
    return tuple(doubts)


def time_verdict(change: Change, noise: Noise) -> Verdict:
    """Judge a ratio by its adjusted p and by how far it is from 1."""
    assert change.a is not None and change.b is not None
    assert change.change is not None and change.p_holm is not None
    far = max(change.change, 1 / change.change) > noise.time_factor
    far = far and abs(change.b - change.a) > noise.time_floor_s
    if change.p_holm > noise.alpha or not far:
        return "same"
    return "better" if change.change < 1 else "worse"
