"""The questions of the study, each as numbers: `answer` returns them for one task.

Datasets of a family are averaged first; families are what intervals and tests are over. Splits
are never resampled. `adjust` collects the tests that docs/studies/study.md plans, and adjusts the
p values of each question and task together, by Holm's method; all other numbers are estimates.
A missing cell has the best, and the worst, loss of its dataset in its place: an interval has the
outer ends of both, and a test the larger p.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbench.results.stats import (
    corrected_t,
    front,
    holm,
    mean_draws,
    mean_interval,
    median_interval,
    signed_rank,
)

from .table import BOOSTING, CONTROL, COSTS, EXACT, GAUSSIAN, LINEAR, Array, Study

LEAST_MAPS = 5
"""A width counts for a rank correlation if it has so many maps.

Landmarks end at 1,024: wider maps are four kinds of random features of nearly equal error.
"""

PLANNED_ERRORS = ("gram_error_same_bandwidth", "span_error")
"""Errors of maps of one bandwidth. Others are those of tuned maps, and are not tested: the
bandwidth that was chosen decides the error and the loss."""

N_PERMUTATIONS = 2_000

Numbers = dict[str, Any]


def answer(study: Study, held_out: Collection[str] = ()) -> Numbers:
    """Answer all questions of one task; the learned map is tested on `held_out` datasets."""
    return {
        "task": study.task,
        "n_datasets": sum(map(bool, study.splits.values())),
        "n_families": len({study.family_of[n] for n, splits in study.splits.items() if splits}),
        "n_splits": {name: len(splits) for name, splits in study.splits.items() if splits},
        "without_data": [name for name, splits in study.splits.items() if not splits],
        "learner": study.main_learner,
        "missing": study.missing(),
        "notes": study.notes,
        "coarse_costs": sum(cell.coarse for cell in study.cells),
        "curves": curves(study),
        "widths": widths(study),
        "wider": wider(study),
        "dataset_curves": dataset_curves(study),
        "fronts": {cost: pareto(study, cost) for cost in COSTS},
        "gram": gram_errors(study),
        "kernel_gain": kernel_gain(study),
        "learned": learned_directions(study, held_out),
        "boosting": boosting(study),
        "boosting_map": boosting_map(study),
    }


# (a) loss against width, bytes and seconds


def curves(study: Study) -> list[Numbers]:
    """Return mean loss and costs of each option, and its loss less that of the exact kernel."""
    low_fill, high_fill = (study.by_family(each) for each in study.bounded())
    losses = study.by_family(study.losses)
    costs = {name: _geometric(study, study.values(name)) for name in COSTS}
    planned = study.by_family(study.planned.astype(float)) > 0
    exact = study.reference(EXACT)
    found = []
    for j, option in enumerate(study.options):
        values = losses[:, j]
        known = np.isfinite(values)
        if not known.any():
            continue
        low, high = _bounded_interval(values, low_fill[:, j], high_fill[:, j])
        line: Numbers = {
            "map": option.map,
            "width": option.width,
            "learner": option.learner,
            "reference": study.references.get(option, ""),
            "loss": float(values[known].mean()),
            "low": low,
            "high": high,
            "n_families": int(known.sum()),
            "n_missing": int((planned[:, j] & np.isfinite(losses).any(axis=1) & ~known).sum()),
            **{name: float(column[j]) for name, column in costs.items()},
        }
        if exact is not None:
            line["over_kernel"] = _difference(study, j, exact)
        found.append(line)
    return found


def _ends(study: Study, i: int, j: int) -> tuple[Array, Array]:
    """Return the least and the most that option i may lose more than j, by dataset."""
    best, worst = study.bounded()
    return best[:, i] - worst[:, j], worst[:, i] - best[:, j]


def _difference(study: Study, i: int, j: int, rows: Sequence[int] | None = None) -> Numbers:
    """Return the mean over families of the loss of option i less that of j, and its interval."""
    rows = range(len(study.datasets)) if rows is None else rows
    least, most = (_family_means(study, each, rows) for each in _ends(study, i, j))
    if not len(least):
        return {"mean": None, "low": None, "high": None, "n_families": 0}
    low, high = _bounded_interval((least + most) / 2, least, most)
    mean = float((least + most).mean()) / 2
    return {"mean": mean, "low": low, "high": high, "n_families": len(least)}


def widths(study: Study) -> list[Numbers]:
    """Return for each width the map of the least mean loss, and how probable it is for each.

    A missing cell has the worst loss of its dataset; ``maps_best`` are the probabilities if it has
    the best one.
    """
    best_fill, worst_fill = (study.by_family(each) for each in study.bounded())
    maps = study.maps(study.main_learner)
    found = []
    for width in sorted({o.width for o in study.options if o.width is not None}):
        columns = [
            j
            for j, o in enumerate(study.options)
            if o.width == width and o.learner == study.main_learner and o.map in maps
        ]
        full = np.isfinite(worst_fill[:, columns]).all(axis=1)
        values = worst_fill[full][:, columns]
        if len(columns) < 2 or len(values) < 2:
            continue
        names = [study.options[j].map for j in columns]
        best = int(values.mean(axis=0).argmin())
        found.append(
            {
                "width": width,
                "n_families": len(values),
                "n_filled": int(np.isnan(study.losses[:, columns]).sum()),
                "best": names[best],
                "loss": float(values[:, best].mean()),
                "maps": _least(values, names),
                "maps_best": _least(best_fill[full][:, columns], names),
            }
        )
    return found


NARROW, WIDE = 64, 512


def wider(study: Study) -> list[Numbers]:
    """Compare a wide with a narrow embedding of each map, by the exact sign test over families.

    For the test, missing cells have the worst loss if they are wide, and the best if narrow.
    """
    from scipy.stats import binomtest

    found = []
    for name in study.maps(study.main_learner):
        at = {study.options[j].width: j for j in study.columns(name)}
        if NARROW not in at or WIDE not in at:
            continue
        least, _ = _ends(study, at[NARROW], at[WIDE])
        gains = np.round(_family_means(study, least, range(len(least))), 12)
        wins, n = int((gains > 0).sum()), int((gains != 0).sum())
        gain = _difference(study, at[NARROW], at[WIDE])
        found.append(
            {
                "map": name,
                "gain": gain["mean"],
                "low": gain["low"],
                "high": gain["high"],
                "wins": wins,
                "n_families": len(gains),
                "p": float(binomtest(wins, n, alternative="greater").pvalue) if n else 1.0,
            }
        )
    return found


def _least(losses: Array, names: list[str]) -> dict[str, float]:
    """Return the share of the draws of means in which each column is the smallest."""
    first = mean_draws(losses).argmin(axis=1)
    shares = np.bincount(first, minlength=len(names)) / len(first)
    return {name: float(share) for name, share in zip(names, shares, strict=True)}


def dataset_curves(study: Study) -> list[Numbers]:
    """Return the curve of each map on each dataset, with the corrected interval over splits."""
    found = []
    for i, name in enumerate(study.datasets):
        for j, option in enumerate(study.options):
            values = study.losses_by_split[name][:, j]
            if not len(values) or np.isnan(values).any():
                continue
            low, high = _split_interval(values, study.ratio(name))
            found.append(
                {
                    "dataset": name,
                    "option": str(option),
                    "map": option.map,
                    "width": option.width,
                    "learner": option.learner,
                    "loss": float(study.losses[i, j]),
                    "low": low,
                    "high": high,
                }
            )
    return found


def _split_interval(values: Array, ratio: float) -> tuple[float | None, float | None]:
    if len(values) < 2:
        return None, None
    test = corrected_t(values, ratio)
    mean = float(values.mean())
    return (mean, mean) if test.low is None else (test.low, test.high)


def _interval(values: Array) -> tuple[float | None, float | None]:
    """Return the interval of a mean over families; None for fewer than two."""
    if len(values) < 2:
        return None, None
    return mean_interval(values)


def _bounded_interval(
    values: Array, best: Array, worst: Array
) -> tuple[float | None, float | None]:
    """Return the ends of the intervals with missing cells at their best and at their worst."""
    planned = np.isfinite(best) & np.isfinite(worst)
    low = _interval(best[planned])[0]
    high = _interval(worst[planned])[1]
    own = _interval(values[np.isfinite(values)])
    return (
        None if low is None else min(low, *(each for each in own[:1] if each is not None)),
        None if high is None else max(high, *(each for each in own[1:] if each is not None)),
    )


def _geometric(study: Study, values: Array) -> Array:
    """Return the geometric mean over families of positive costs; NaN without one."""
    with np.errstate(all="ignore"):
        logs = np.log(np.where(values > 0, values, np.nan))
    return np.asarray(np.exp(_nanmean(study.by_family(logs))))


def _nanmean(values: Array) -> Array:
    known = np.isfinite(values)
    n = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, n, out=np.full(values.shape[1], np.nan), where=n > 0))


# (b) the fronts


def pareto(study: Study, cost: str) -> Numbers:
    """Return the places on the front of loss against a cost, and the best map at each cost.

    Missing cells have the worst, then the best, loss of their dataset, and the usual cost of
    their option: a place has a probability for each, and is decided if both agree.
    Options that fewer than half of the families have are left out. ``best_at`` has, for budgets
    in powers of two, the probability that a map has the least mean loss of the options within.
    """
    maps = [*study.maps(study.main_learner), "identity"]
    options = [
        j for j, o in enumerate(study.options) if o.learner == study.main_learner and o.map in maps
    ]
    if cost != "features":
        # references have inputs, and no features
        options += [j for kind in (EXACT, BOOSTING) if (j := study.reference(kind)) is not None]
    there = [bool(study.splits[name]) for name in study.datasets]
    values = study.values(cost)
    with np.errstate(all="ignore"):
        logs = np.log(np.where(values > 0, values, np.nan))
    share = np.isfinite(study.losses[there]).mean(axis=0)
    options = [j for j in options if share[j] >= 0.5 and np.isfinite(logs[:, j]).any()]
    usual = np.array([np.nanmedian(logs[:, j]) for j in options])
    logs = study.by_family(np.where(np.isfinite(logs[:, options]), logs[:, options], usual))
    best, worst = (study.by_family(each[:, options]) for each in study.bounded())
    full = np.isfinite(worst).all(axis=1)
    logs = logs[full]
    result: Numbers = {
        "n_families": int(full.sum()),
        "n_filled": int(np.isnan(study.losses[np.ix_(there, options)]).sum()),
        "left_out": sorted(
            str(o)
            for j, o in enumerate(study.options)
            if o.learner == study.main_learner and o.map in maps and j not in options
        ),
    }
    if full.sum() < 2 or len(options) < 2:
        return {**result, "reason": "there are fewer than two families or options", "places": []}
    # without a missing cell, both are the same
    fills = [worst[full], best[full]] if result["n_filled"] else [worst[full]]
    found = [front(-losses, np.exp(logs)) for losses in fills]
    names = [_shown(study, j) for j in options]
    places: list[Numbers] = [
        {
            "option": str(study.options[j]),
            "map": names[k],
            "width": study.options[j].width,
            "loss": float(fills[0][:, k].mean()),
            "cost": float(np.exp(logs[:, k].mean())),
            **_place([each.places[k].probability for each in found]),
        }
        for k, j in enumerate(options)
    ]
    budgets = []
    for losses in fills:
        drawn = mean_draws(np.column_stack([-losses, logs]))
        budgets.append(_best_at(drawn[:, : len(options)], drawn[:, len(options) :], names))
    result |= {"best_at": budgets[0], "best_at_best": budgets[-1]}
    return {**result, "reason": found[0].reason, "places": places}


UNSURE = 0.05
"""A place on a front is decided if its probability is this near to 0 or 1."""


def _place(probabilities: Sequence[float | None]) -> Numbers:
    """Return the ends of the probability of a place on the front, and if it is decided."""
    known = [each for each in probabilities if each is not None]
    if len(known) < len(probabilities):
        return {"probability": None, "probability_high": None, "decided": ""}
    low, high = min(known), max(known)
    decided = "on" if low > 1 - UNSURE else "off" if high < UNSURE else ""
    return {"probability": low, "probability_high": high, "decided": decided}


def _shown(study: Study, j: int) -> str:
    """Return the map of an option, or the name of a reference."""
    return study.references.get(study.options[j], study.options[j].group)


def _best_at(gains: Array, logs: Array, names: list[str]) -> list[Numbers]:
    middle = np.round(logs.mean(axis=0) / np.log(2), 6)
    found = []
    for power in range(int(np.ceil(middle.min())), int(np.ceil(middle.max())) + 1):
        within = logs <= power * np.log(2) + 1e-9
        if not within.any():
            continue
        some = within.any(axis=1)
        first = np.where(within, gains, -np.inf)[some].argmax(axis=1)
        shares = np.bincount(first, minlength=len(names)) / len(gains)
        maps: dict[str, float] = {}
        for name, share in zip(names, shares, strict=True):
            maps[name] = maps.get(name, 0.0) + float(share)
        found.append({"budget": 2.0**power, "maps": {k: v for k, v in maps.items() if v > 0}})
    return found


# (c) does the error of the Gram matrix predict the loss


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
        products = _rank_products(E, L, there)
        if products is None:
            continue
        used |= {width for width, some in zip(widths, there, strict=True) if some.any()}
        orders = _orders(there, n_permutations, rng)
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
    low, high = _interval(means)
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


def _orders(there: NDArray[np.bool_], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
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


def _rank_products(E: Array, L: Array, there: NDArray[np.bool_]) -> Array | None:
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


# (d) the share of the exact kernel's gain


def kernel_gain(study: Study, alpha: float = 0.05) -> Numbers:
    """Return the share of the exact kernel's gain over the linear model, by map and width.

    Only datasets count on which the gain is beyond noise. Each fold is scored if the corrected
    t-test over the other folds of its repeat decides; the share is the gain of the map over that
    of the kernel, both summed over these folds. A family without a share, because a cell is
    missing or the kernel gains nothing on the scored folds, counts as the lowest for the median
    and the lower end, and as the highest for the upper end: it is not selected by its score.
    About an eighth of datasets without a gain are selected on some of 15 splits by chance.
    """
    linear, exact = study.reference(LINEAR), study.reference(EXACT)
    if linear is None or exact is None:
        return {"reason": "the linear model or the exact kernel is missing", "shares": []}
    kept: dict[str, Array] = {}
    tested = 0
    for name in study.datasets:
        values = study.losses_by_split[name]
        gain = values[:, linear] - values[:, exact]
        turns = [turn for turn in study.turns(name) if len(turn[0]) > 1]
        if not turns or not np.isfinite(gain).all():
            continue
        tested += 1
        scored: list[int] = []
        for choose, score in turns:
            test = corrected_t(gain[choose], study.ratio(name))
            if test.difference > 0 and (test.p is None or test.p <= alpha):
                scored += score
        if scored:
            whole = float(gain[scored].sum())
            part = (values[scored, linear][:, None] - values[scored]).sum(axis=0)
            kept[name] = part / whole if whole > 0 else np.full(len(part), np.nan)
    if not tested:
        reason = "families are selected on other folds: a repeat must have three splits"
        return {"reason": reason, "shares": []}
    shares = []
    for name in study.maps(study.main_learner):
        for j in study.columns(name):
            families: dict[str, list[float]] = {}
            for dataset, found in kept.items():
                if study.planned[study.datasets.index(dataset), j]:
                    families.setdefault(study.family_of[dataset], []).append(float(found[j]))
            if not families:
                continue
            means = np.array([float(np.mean(each)) for each in families.values()])
            gaps = np.isnan(means)
            median, low, _ = median_interval(np.where(gaps, -np.inf, means))
            high = median_interval(np.where(gaps, np.inf, means))[2]
            shares.append(
                {
                    "map": name,
                    "width": study.options[j].width,
                    "share": _or_none(median),
                    "low": _or_none(low),
                    "high": _or_none(high),
                    "n_families": len(families),
                    "n_without": int(gaps.sum()),
                }
            )
    return {"n_tested": tested, "datasets": sorted(kept), "shares": shares}


def _or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None


# (e) learned directions


LEAST_FAMILIES = 6
"""The signed-rank test of fewer families cannot be below 0.05."""


def learned_directions(study: Study, held_out: Collection[str] = ()) -> list[Numbers]:
    """Return the loss of a map ``X-learned`` less that of its control, at each of its widths.

    The control is ``X-one-bandwidth``, or else X. Only datasets that are held out count.
    """
    found = []
    rows = [i for i, n in enumerate(study.datasets) if n in held_out and study.splits[n]]
    for name in study.maps(study.main_learner):
        base = name.replace("-learned", CONTROL)
        base = base if study.columns(base) else name.replace("-learned", "")
        if base == name:
            continue
        at = {study.options[j].width: j for j in study.columns(base)}
        for j in study.columns(name):
            width = study.options[j].width
            if width not in at:
                continue
            both = study.losses[rows][:, [j, at[width]]]
            line = {
                "map": name,
                "base": base,
                "width": width,
                "datasets": [study.datasets[i] for i in rows],
                "n_missing": int(np.isnan(both).sum()),
                **_difference(study, j, at[width], rows),
            }
            if line["n_families"] >= LEAST_FAMILIES:
                ends = _ends(study, j, at[width])
                line["p"] = _bounded_p(*(_family_means(study, each, rows) for each in ends))
            found.append(line)
    return found


def _bounded_p(least: Array, most: Array) -> float:
    """Return the larger p of both bounds; 1 if they have different signs."""
    tests = [signed_rank(each) for each in (least, most)]
    signs = {test.plus > test.minus for test in tests}
    return max(test.p for test in tests) if len(signs) == 1 else 1.0


def _family_means(study: Study, values: Array, rows: Sequence[int]) -> Array:
    """Average a number of each dataset over the datasets of a family; without unknown ones."""
    families: dict[str, list[float]] = {}
    for i in rows:
        families.setdefault(study.family_of[study.datasets[i]], []).append(float(values[i]))
    means = np.array([float(np.mean(each)) for each in families.values()])
    return means[np.isfinite(means)]


# (f) boosting


def boosting(study: Study) -> Numbers:
    """Return the loss of boosting less that of the exact kernel.

    Positive: the kernel is better. A dataset has the corrected resampled t-test over all its
    splits. The mean over families is an estimate, without a test.
    """
    column, exact = study.reference(BOOSTING), study.reference(EXACT)
    if column is None or exact is None:
        return {"reason": "boosting or the exact kernel is missing"}
    if max(map(len, study.splits.values())) < 2:
        return {"reason": "the corrected test needs two splits of a dataset"}
    lines: list[Numbers] = []
    unknown: list[str] = []
    for name in study.datasets:
        both = study.losses_by_split[name][:, [column, exact]]
        if len(both) < 2 or np.isnan(both).any():
            unknown.append(name)
            continue
        test = corrected_t(both[:, 0] - both[:, 1], study.ratio(name))
        lines.append(
            {
                "dataset": name,
                "family": study.family_of[name],
                "difference": test.difference,
                "low": test.low,
                "high": test.high,
                "p": 1.0 if test.p is None else test.p,
            }
        )
    # a test that could not be made is one of the group, so that p values do not depend on it
    for line, p in zip(lines, holm([x["p"] for x in lines] + [1.0] * len(unknown)), strict=False):
        line["p_holm"] = float(p)
    decided = [line for line in lines if line["p_holm"] <= 0.05]
    return {
        **_difference(study, column, exact),
        "unknown": unknown,
        "better_boosting": [x["dataset"] for x in decided if x["difference"] < 0],
        "better_kernel": [x["dataset"] for x in decided if x["difference"] > 0],
        "datasets": lines,
    }


def boosting_map(study: Study) -> Numbers:
    """Return the loss of boosting less that of the best map, which is chosen on other folds.

    Exploratory: an estimate for each dataset, and no test.
    """
    column = study.reference(BOOSTING)
    if column is None:
        return {"reason": "boosting is missing"}
    maps = [j for name in study.maps(study.main_learner) for j in study.columns(name)]
    lines: list[Numbers] = []
    for name in study.datasets:
        values, turns = study.losses_by_split[name], study.turns(name)
        known = [j for j in maps if np.isfinite(values[:, j]).all()]
        if not turns or not known or not np.isfinite(values[:, column]).all():
            continue
        differences = []
        picks = []
        for choose, score in turns:
            best = known[int(values[choose][:, known].mean(axis=0).argmin())]
            picks.append(str(study.options[best]))
            differences += list(values[score, column] - values[score, best])
        lines.append(
            {
                "dataset": name,
                "family": study.family_of[name],
                "difference": float(np.mean(differences)),
                "chosen": picks,
            }
        )
    if not lines:
        return {"reason": "the best map is chosen on other folds: a repeat must have two splits"}
    families: dict[str, list[float]] = {}
    for line in lines:
        families.setdefault(line["family"], []).append(line["difference"])
    means = np.array([float(np.mean(each)) for each in families.values()])
    low, high = _interval(means)
    return {
        "difference": float(means.mean()),
        "low": low,
        "high": high,
        "n_families": len(means),
        "datasets": lines,
    }


def when_boosting(result: Numbers, predictors: dict[str, dict[str, float]]) -> list[Numbers]:
    """Return rank correlations of boosting's lead with what is known of a dataset: exploratory.

    Positive: the larger the number, the better boosting is.
    """
    lines = [x for x in result.get("datasets", []) if x["dataset"] in predictors]
    families = sorted({line["family"] for line in lines})
    if len(families) < LEAST_MAPS:
        return []
    lead = [-np.mean([x["difference"] for x in lines if x["family"] == f]) for f in families]
    found = []
    for name in sorted(set.intersection(*(set(predictors[x["dataset"]]) for x in lines))):
        value = [
            np.mean([predictors[x["dataset"]][name] for x in lines if x["family"] == f])
            for f in families
        ]
        there = np.ones((1, len(families)), dtype=bool)
        products = _rank_products(np.array([value]), np.array([lead]), there)
        if products is not None:
            own = float(np.trace(products))
            found.append({"predictor": name, "correlation": own, "n_families": len(families)})
    return found


# multiplicity


def adjust(answers: Sequence[Numbers]) -> list[Numbers]:
    """Collect the hypotheses, and adjust the p values of each question and task together."""
    found: list[Numbers] = []

    def add(task: str, question: str, hypothesis: str, p: float) -> None:
        found.append({"task": task, "question": question, "hypothesis": hypothesis, "p": p})

    for each in answers:
        task = each["task"]
        for result in each["wider"]:
            text = f"{result['map']} has less loss with {WIDE} than with {NARROW} features"
            add(task, "width", text, result["p"])
        for name, result in each["gram"].items():
            if "p" in result:
                add(task, "gram", f"{name} predicts the loss", result["p"])
        for result in each["learned"]:
            if "p" in result:
                text = f"{result['map']} differs from {result['base']} at {result['width']}"
                add(task, "learned", text, result["p"])
        lines = each["boosting"].get("datasets", [])
        p_values = [(line["dataset"], line["p"]) for line in lines]
        for name, p in p_values + [(name, 1.0) for name in each["boosting"].get("unknown", [])]:
            add(task, "boosting", f"boosting differs from the exact kernel on {name}", p)
    for group in {(line["task"], line["question"]) for line in found}:
        lines = [line for line in found if (line["task"], line["question"]) == group]
        for line, p in zip(lines, holm([line["p"] for line in lines]), strict=True):
            line["p_holm"] = float(p)
    return found
