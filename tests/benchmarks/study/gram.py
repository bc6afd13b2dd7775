"""Question 3: rank correlation of the loss with the error of the Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .families import Numbers, interval
from .table import GAUSSIAN, Array, Study

LEAST_MAPS = 5
"""A width counts for a rank correlation if it has so many maps.

Landmarks end at 1,024: wider maps are four kinds of random features of nearly equal error.
"""

PLANNED_ERRORS = ("gram_error_same_bandwidth", "span_error")
"""Errors of maps of one bandwidth. Others are those of tuned maps, and are not tested: the
bandwidth that was chosen decides the error and the loss."""

N_PERMUTATIONS = 2_000


def gram_errors(study: Study, n_permutations: int = N_PERMUTATIONS, seed: int = 0) -> Numbers:
    """Return the rank correlation of each error of maps with the loss, over maps of one width."""
    names = sorted(
        {
            name
            for cell in study.cells
            for name in cell.metrics
            if name.startswith(("gram_error", "span_error")) and not name.endswith("_sd")
        }
    )
    return {name: _rank_correlation(study, name, n_permutations, seed) for name in names}


def _rank_correlation(study: Study, metric: str, n_permutations: int, seed: int) -> Numbers:
    errors = study.values(metric)
    learner = study.main_learner
    widths = sorted({o.width for o in study.options if o.width is not None})
    rng = np.random.default_rng(seed)
    by_family: dict[str, list[tuple[float, Array]]] = {}
    used: set[int] = set()
    for i, name in enumerate(study.datasets):
        E, L = (_by_width(study, values[i], widths, learner) for values in (errors, study.losses))
        there = np.isfinite(E) & np.isfinite(L)
        there[there.sum(axis=1) < LEAST_MAPS] = False
        products = rank_products(E, L, there)
        if products is None:
            continue
        used |= {width for width, some in zip(widths, there, strict=True) if some.any()}
        orders = orders_of_maps(there, n_permutations, rng)
        permuted = products[np.arange(len(products)), orders].sum(axis=1)
        own = float(np.trace(products))
        by_family.setdefault(study.family_of[name], []).append((own, permuted))
    if not by_family:
        return {"n_families": 0, "reason": f"no width has {LEAST_MAPS} maps with this metric"}
    means = np.array([np.mean([each for each, _ in found]) for found in by_family.values()])
    null = np.mean(
        [np.mean([each for _, each in found], axis=0) for found in by_family.values()], axis=0
    )
    mean = float(means.mean())
    low, high = interval(means)
    result: Numbers = {
        "n_families": len(means),
        "widths": sorted(used),
        "correlation": mean,
        "low": low,
        "high": high,
    }
    if metric in PLANNED_ERRORS:
        # one side: an error that is larger where the loss is less does not predict it
        result["p"] = (int((null >= mean - 1e-12).sum()) + 1) / (n_permutations + 1)
    return result


def orders_of_maps(there: NDArray[np.bool_], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw permutations of the maps of a dataset, shape (n, n_maps), one for all its widths.

    The widths of a dataset are not independent. Maps change places with those that have the same
    widths, so that each width keeps its maps.
    """
    orders = np.tile(np.arange(there.shape[1]), (n, 1))
    for pattern in np.unique(there, axis=1).T:
        alike = np.flatnonzero((there == pattern[:, None]).all(axis=0))
        orders[:, alike] = rng.permuted(np.tile(alike, (n, 1)), axis=1)
    return orders


def _by_width(study: Study, values: Array, widths: Sequence[int], learner: str) -> Array:
    """Return values of one dataset, shape (n_widths, n_maps)."""
    # maps of other kernels differ in more than their error
    names = [name for name in study.maps(learner) if name.split("(")[0] in GAUSSIAN]
    out = np.full((len(widths), len(names)), np.nan)
    for j, option in enumerate(study.options):
        if option.learner == learner and option.width in widths and option.map in names:
            out[widths.index(option.width), names.index(option.map)] = values[j]
    return out


def rank_products(E: Array, L: Array, there: NDArray[np.bool_]) -> Array | None:
    """Return products of standardised ranks, averaged over widths, shape (n_maps, n_maps).

    Its trace is the mean of Spearman's correlations. A width ranks the maps that are there;
    widths where all values tie are left out.
    """
    from kbench.results.rows import rank_with_ties

    total, n = np.zeros((E.shape[1], E.shape[1])), 0
    for first, second, some in zip(E, L, there, strict=True):
        if not some.any():
            continue
        ranks = [rank_with_ties(np.round(each[some], 12)) for each in (first, second)]
        centred = [each - each.mean() for each in ranks]
        sizes = [float(np.sqrt((each**2).sum())) for each in centred]
        if min(sizes) > 0:
            total[np.ix_(some, some)] += np.outer(centred[0] / sizes[0], centred[1] / sizes[1])
            n += 1
    return total / n if n else None
