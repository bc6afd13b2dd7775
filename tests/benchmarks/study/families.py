"""Means over families, and their intervals with missing cells at both ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kbench.results.stats import corrected_t, mean_interval, signed_rank

from .table import Array, Study

Numbers = dict[str, Any]


def ends(study: Study, i: int, j: int) -> tuple[Array, Array]:
    """Return the least and the most that option i may lose more than j, by dataset."""
    best, worst = study.bounded()
    return best[:, i] - worst[:, j], worst[:, i] - best[:, j]


def difference(study: Study, i: int, j: int, rows: Sequence[int] | None = None) -> Numbers:
    """Return the mean over families of the loss of option i less that of j, and its interval."""
    rows = range(len(study.datasets)) if rows is None else rows
    least, most = (family_means(study, each, rows) for each in ends(study, i, j))
    if not len(least):
        return {"mean": None, "low": None, "high": None, "n_families": 0}
    low, high = bounded_interval((least + most) / 2, least, most)
    mean = float((least + most).mean()) / 2
    return {"mean": mean, "low": low, "high": high, "n_families": len(least)}


def split_interval(values: Array, ratio: float) -> tuple[float | None, float | None]:
    """Return the corrected interval of a mean over the splits of one dataset."""
    if len(values) < 2:
        return None, None
    test = corrected_t(values, ratio)
    mean = float(values.mean())
    return (mean, mean) if test.low is None else (test.low, test.high)


def interval(values: Array) -> tuple[float | None, float | None]:
    """Return the interval of a mean over families; None for fewer than two."""
    if len(values) < 2:
        return None, None
    return mean_interval(values)


def bounded_interval(values: Array, best: Array, worst: Array) -> tuple[float | None, float | None]:
    """Return the ends of the intervals with missing cells at their best and at their worst."""
    planned = np.isfinite(best) & np.isfinite(worst)
    low = interval(best[planned])[0]
    high = interval(worst[planned])[1]
    own = interval(values[np.isfinite(values)])
    return (
        None if low is None else min([low, *(each for each in own[:1] if each is not None)]),
        None if high is None else max([high, *(each for each in own[1:] if each is not None)]),
    )


def geometric(study: Study, values: Array) -> Array:
    """Return the geometric mean over families of positive costs; NaN without one."""
    with np.errstate(all="ignore"):
        logs = np.log(np.where(values > 0, values, np.nan))
    return np.asarray(np.exp(nanmean(study.by_family(logs))))


def nanmean(values: Array) -> Array:
    """Return the means of columns over their finite values; NaN without one."""
    known = np.isfinite(values)
    n = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, n, out=np.full(values.shape[1], np.nan), where=n > 0))


def or_none(value: float) -> float | None:
    """Return a finite number, else None, which JSON has."""
    return value if np.isfinite(value) else None


def bounded_p(least: Array, most: Array) -> float:
    """Return the larger p of both bounds; 1 if they have different signs."""
    tests = [signed_rank(each) for each in (least, most)]
    signs = {test.plus > test.minus for test in tests}
    return max(test.p for test in tests) if len(signs) == 1 else 1.0


def family_means(study: Study, values: Array, rows: Sequence[int]) -> Array:
    """Average a number of each dataset over the datasets of a family; without unknown ones."""
    families: dict[str, list[float]] = {}
    for i in rows:
        families.setdefault(study.family_of[study.datasets[i]], []).append(float(values[i]))
    means = np.array([float(np.mean(each)) for each in families.values()])
    return np.asarray(means[np.isfinite(means)])
