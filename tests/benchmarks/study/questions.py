"""The questions of the study, each as numbers: `answer` returns them for one task.

Datasets of a family are averaged first; families are what intervals and tests are over. Splits
are never resampled. All p values of a study are adjusted together, by Holm's method, in
`adjust`. A missing cell counts at its worst against each claim, and widens each interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kbench.results.stats import (
    corrected_t,
    front,
    holm,
    mean_draws,
    median_interval,
    signed_rank,
)

from .intervals import family_interval
from .table import BOOSTING, CONTROL, COSTS, EXACT, GAUSSIAN, LINEAR, Array, Study

LEAST_MAPS = 4
"""A rank correlation over fewer maps says nothing."""

N_PERMUTATIONS = 2_000

Numbers = dict[str, Any]


def answer(study: Study, development: Sequence[str] = ()) -> Numbers:
    """Answer all questions of one task; `development` names datasets or families."""
    return {
        "task": study.task,
        "n_datasets": len(study.datasets),
        "n_families": len(study.families),
        "n_splits": {name: len(splits) for name, splits in study.splits.items()},
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
        "learned": learned_directions(study, development),
        "boosting": boosting(study),
        "boosting_kernel": boosting(study, study.reference(EXACT)),
    }


# (a) loss against width, bytes and seconds


def curves(study: Study) -> list[Numbers]:
    """Return mean loss and costs of each option, and its loss less that of the linear model."""
    low_fill, high_fill = (study.by_family(each) for each in study.bounded())
    losses = study.by_family(study.losses)
    costs = {name: _geometric(study, study.values(name)) for name in COSTS}
    linear = study.reference(LINEAR)
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
            "n_missing": int((study.by_family(study.planned.astype(float))[:, j] > 0).sum())
            - int(known.sum()),
            **{name: float(column[j]) for name, column in costs.items()},
        }
        if linear is not None:
            both = known & np.isfinite(losses[:, linear])
            gain = losses[both, linear] - values[both]
            line["gain_over_linear"] = float(gain.mean()) if len(gain) else None
            line["gain_low"], line["gain_high"] = _interval(gain)
        found.append(line)
    return found


def widths(study: Study) -> list[Numbers]:
    """Return for each width the map of the least mean loss, and how probable it is for each.

    A missing cell has the worst loss of its dataset; ``maps_best`` are the probabilities if it has
    the best one.
    """
    best_fill, worst_fill = (study.by_family(each) for each in study.bounded())
    linear, maps = study.reference(LINEAR), study.maps(study.main_learner)
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
        low, high = _interval(values[:, best])
        gain: Numbers = {}
        if linear is not None and np.isfinite(worst_fill[full, linear]).all():
            gains = worst_fill[full, linear] - values[:, best]
            ends = _interval(gains)
            gain = {"gain": float(gains.mean()), "gain_low": ends[0], "gain_high": ends[1]}
        found.append(
            {
                **gain,
                "width": width,
                "n_families": len(values),
                "n_filled": int(np.isnan(study.losses[:, columns]).sum()),
                "best": names[best],
                "loss": float(values[:, best].mean()),
                "low": low,
                "high": high,
                "maps": _least(values, names),
                "maps_best": _least(best_fill[full][:, columns], names),
            }
        )
    return found


NARROW, WIDE = 64, 512


def wider(study: Study) -> list[Numbers]:
    """Compare a wide with a narrow embedding of each map, by the exact sign test over families.

    Missing cells have the worst loss if they are wide, and the best one if they are narrow.
    """
    from scipy.stats import binomtest

    best, worst = (study.by_family(each) for each in study.bounded())
    found = []
    for name in study.maps(study.main_learner):
        at = {study.options[j].width: j for j in study.columns(name)}
        if NARROW not in at or WIDE not in at:
            continue
        gains = best[:, at[NARROW]] - worst[:, at[WIDE]]
        gains = np.round(gains[np.isfinite(gains)], 12)
        wins, n = int((gains > 0).sum()), int((gains != 0).sum())
        low, high = _interval(gains)
        found.append(
            {
                "map": name,
                "gain": float(gains.mean()) if len(gains) else None,
                "low": low,
                "high": high,
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
    return family_interval(values)


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

    Missing cells have the worst loss of their dataset, and the usual cost of their option.
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
    values = study.values(cost)
    with np.errstate(all="ignore"):
        logs = np.log(np.where(values > 0, values, np.nan))
    share = np.isfinite(study.losses).mean(axis=0)
    options = [j for j in options if share[j] >= 0.5 and np.isfinite(logs[:, j]).any()]
    usual = np.array([np.nanmedian(logs[:, j]) for j in options])
    logs = np.where(np.isfinite(logs[:, options]), logs[:, options], usual)
    losses, logs = study.by_family(study.bounded()[1][:, options]), study.by_family(logs)
    full = np.isfinite(losses).all(axis=1)
    gains, costs = -losses[full], np.exp(logs[full])
    result: Numbers = {
        "n_families": int(full.sum()),
        "n_filled": int(np.isnan(study.losses[:, options]).sum()),
        "left_out": sorted(
            str(o)
            for j, o in enumerate(study.options)
            if o.learner == study.main_learner and o.map in maps and j not in options
        ),
    }
    if full.sum() < 2 or len(options) < 2:
        return {**result, "reason": "there are fewer than two families or options", "places": []}
    found = front(gains, costs)
    places = [
        {
            "option": str(study.options[j]),
            "map": _shown(study, j),
            "width": study.options[j].width,
            "status": place.status,
            "probability": place.probability,
            "loss": float(-gains[:, k].mean()),
            "cost": float(np.exp(np.log(costs[:, k]).mean())),
        }
        for k, (j, place) in enumerate(zip(options, found.places, strict=True))
    ]
    drawn = mean_draws(np.column_stack([gains, np.log(costs)]))
    names = [_shown(study, j) for j in options]
    best = _best_at(drawn[:, : len(options)], drawn[:, len(options) :], names)
    return {**result, "reason": found.reason, "places": places, "best_at": best}


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
    """Return the rank correlation of each map metric with the loss, over maps of one width."""
    names = sorted(
        {
            name
            for cell in study.cells
            for name in cell.metrics
            if name.startswith(("gram_error", "span_error"))
        }
    )
    return {name: _rank_correlation(study, name, n_permutations, seed) for name in names}


def _rank_correlation(study: Study, metric: str, n_permutations: int, seed: int) -> Numbers:
    errors = study.values(metric)
    learner = study.main_learner
    widths = sorted({o.width for o in study.options if o.width is not None})
    rng = np.random.default_rng(seed)
    by_family: dict[str, list[tuple[float, Array]]] = {}
    for i, name in enumerate(study.datasets):
        E, L = (_by_width(study, values[i], widths, learner) for values in (errors, study.losses))
        there = np.isfinite(E) & np.isfinite(L)
        kept = there[:, there.sum(axis=0) > 0].sum(axis=1) >= LEAST_MAPS
        maps = there[kept].all(axis=0) if kept.any() else np.zeros(E.shape[1], dtype=bool)
        if maps.sum() < LEAST_MAPS:
            continue
        products = _rank_products(E[kept][:, maps], L[kept][:, maps])
        if products is None:
            continue
        n = products.shape[0]
        own = float(np.trace(products))
        # one permutation of the maps for all widths: the widths of a dataset are not independent
        orders = rng.permuted(np.tile(np.arange(n), (n_permutations, 1)), axis=1)
        permuted = products[np.arange(n), orders].sum(axis=1)
        by_family.setdefault(study.family_of[name], []).append((own, permuted))
    if not by_family:
        return {"n_families": 0, "reason": f"no dataset has {LEAST_MAPS} maps with this metric"}
    means = np.array([np.mean([each for each, _ in found]) for found in by_family.values()])
    null = np.mean(
        [np.mean([each for _, each in found], axis=0) for found in by_family.values()], axis=0
    )
    mean = float(means.mean())
    extreme = int((np.abs(null) >= abs(mean) - 1e-12).sum())
    low, high = _interval(means)
    return {
        "n_families": len(means),
        "correlation": mean,
        "low": low,
        "high": high,
        "p": (extreme + 1) / (n_permutations + 1),
    }


def _by_width(study: Study, values: Array, widths: Sequence[int], learner: str) -> Array:
    """Return values of one dataset, shape (n_widths, n_maps)."""
    # maps of other kernels differ in more than their error
    names = [name for name in study.maps(learner) if name.split("(")[0] in GAUSSIAN]
    out = np.full((len(widths), len(names)), np.nan)
    for j, option in enumerate(study.options):
        if option.learner == learner and option.width in widths and option.map in names:
            out[widths.index(option.width), names.index(option.map)] = values[j]
    return out


def _rank_products(E: Array, L: Array) -> Array | None:
    """Return products of standardised ranks, averaged over widths, shape (n_maps, n_maps).

    Its trace is the mean of Spearman's correlations; widths where all values tie are left out.
    """
    from kbench.results.rows import rank_with_ties

    total, n = np.zeros((E.shape[1], E.shape[1])), 0
    for first, second in zip(E, L, strict=True):
        ranks = [rank_with_ties(np.round(each, 12)) for each in (first, second)]
        centred = [each - each.mean() for each in ranks]
        sizes = [float(np.sqrt((each**2).sum())) for each in centred]
        if min(sizes) > 0:
            total += np.outer(centred[0] / sizes[0], centred[1] / sizes[1])
            n += 1
    return total / n if n else None


# (d) the share of the exact kernel's gain


def kernel_gain(study: Study, alpha: float = 0.05) -> Numbers:
    """Return the share of the exact kernel's gain over the linear model, by map and width.

    Only datasets count on which the gain is beyond noise: the corrected t-test over the splits
    on which to choose. Shares are computed on the other splits.
    """
    linear, exact = study.reference(LINEAR), study.reference(EXACT)
    if linear is None or exact is None:
        return {"reason": "the linear model or the exact kernel is missing", "shares": []}
    kept: dict[str, Array] = {}
    tested = 0
    for name in study.datasets:
        values = study.losses_by_split[name]
        gain = values[:, linear] - values[:, exact]
        turns = study.turns(name)
        if len(gain) < 4 or not np.isfinite(gain).all() or not turns:
            continue
        tested += 1
        choose, score = turns[-1]
        test = corrected_t(gain[choose], study.ratio(name))
        scored = float(gain[score].mean())
        if test.difference > 0 and (test.p is None or test.p <= alpha) and scored > 0:
            kept[name] = (values[score, linear].mean() - values[score].mean(axis=0)) / scored
    shares = []
    for name in study.maps(study.main_learner):
        for j in study.columns(name):
            families: dict[str, list[float]] = {}
            for dataset, values in kept.items():
                if np.isfinite(values[j]):
                    families.setdefault(study.family_of[dataset], []).append(float(values[j]))
            if families:
                median, low, high = median_interval([float(np.mean(v)) for v in families.values()])
                shares.append(
                    {
                        "map": name,
                        "width": study.options[j].width,
                        "share": median,
                        "low": _or_none(low),
                        "high": _or_none(high),
                        "n_families": len(families),
                    }
                )
    return {"n_tested": tested, "datasets": sorted(kept), "shares": shares}


def _or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None


# (e) learned directions


def learned_directions(study: Study, development: Sequence[str] = ()) -> list[Numbers]:
    """Return what a map ``X-learned`` adds to X of the same width, where nothing was chosen."""
    found = []
    chosen = set(development)
    counted = [n for n in study.datasets if n not in chosen and study.family_of[n] not in chosen]
    rows = [study.datasets.index(name) for name in counted]
    for name in study.maps(study.main_learner):
        base = name.replace("-learned", CONTROL)
        base = base if study.columns(base) else name.replace("-learned", "")
        pairs = [
            (i, j)
            for i in study.columns(base)
            for j in study.columns(name)
            if base != name and study.options[i].width == study.options[j].width
        ]
        if not pairs:
            continue
        best, worst = study.bounded()
        gains = np.array([study.losses[:, i] - study.losses[:, j] for i, j in pairs]).T
        least = np.array([best[:, i] - worst[:, j] for i, j in pairs]).T
        most = np.array([worst[:, i] - best[:, j] for i, j in pairs]).T
        bounds = [_family_means(study, each.mean(axis=1), rows) for each in (least, most)]
        mean = _family_means(study, np.asarray(least + most).mean(axis=1) / 2, rows)
        low, high = _bounded_interval(mean, *bounds)
        found.append(
            {
                "map": name,
                "base": base,
                "n_families": len(mean),
                "n_missing": int(np.isnan(gains[rows]).sum()),
                "gain": float(mean.mean()) if len(mean) else None,
                "low": low,
                "high": high,
                "p": _bounded_p(*bounds),
                "by_width": _by_width_gains(study, (least, most), pairs, rows),
                "left_out": sorted(set(study.datasets) - set(counted)),
            }
        )
    return found


def _bounded_p(least: Array, most: Array) -> float:
    """Return the larger p of both bounds; 1 if they have different signs."""
    tests = [signed_rank(each) for each in (least, most)]
    signs = {test.plus > test.minus for test in tests}
    return max(test.p for test in tests) if len(signs) == 1 else 1.0


def _by_width_gains(
    study: Study, bounds: tuple[Array, Array], pairs: list[tuple[int, int]], rows: list[int]
) -> list[Numbers]:
    lines = []
    for k, (i, _) in enumerate(pairs):
        least, most = (_family_means(study, each[:, k], rows) for each in bounds)
        if len(least):
            low, high = _bounded_interval((least + most) / 2, least, most)
            lines.append(
                {
                    "width": study.options[i].width,
                    "gain": float((least + most).mean()) / 2,
                    "low": low,
                    "high": high,
                    "p": _bounded_p(least, most),
                }
            )
    return lines


def _family_means(study: Study, values: Array, rows: Sequence[int]) -> Array:
    """Average a number of each dataset over the datasets of a family; NaN if one is missing."""
    families: dict[str, list[float]] = {}
    for i in rows:
        families.setdefault(study.family_of[study.datasets[i]], []).append(float(values[i]))
    return np.array([float(np.mean(each)) for each in families.values()])


# (f) boosting


def boosting(study: Study, other: int | None = None) -> Numbers:
    """Return the loss of boosting less that of the best map, chosen on other repeats.

    With `other`, the column of an option, that is what boosting is compared with.
    Positive: the map is better. A dataset counts as won or lost if the corrected test over its
    scored splits, of the option that was best on the others, decides.
    """
    column = study.reference(BOOSTING)
    if column is None:
        return {"reason": "boosting is missing"}
    maps = [j for name in study.maps(study.main_learner) for j in study.columns(name)]
    maps = maps if other is None else [other]
    lines: list[Numbers] = []
    unknown: list[str] = []
    for name in study.datasets:
        values, turns = study.losses_by_split[name], study.turns(name)
        known = [j for j in maps if np.isfinite(values[:, j]).all()]
        if not turns or not known or not np.isfinite(values[:, column]).all():
            if study.planned[study.datasets.index(name), column]:
                unknown.append(name)
            continue
        differences = []
        picks = []
        for choose, score in turns:
            best = known[int(values[choose][:, known].mean(axis=0).argmin())]
            picks.append(str(study.options[best]))
            differences += list(values[score, column] - values[score, best])
        test = corrected_t(differences, study.ratio(name))
        lines.append(
            {
                "dataset": name,
                "family": study.family_of[name],
                "difference": test.difference,
                "low": test.low,
                "high": test.high,
                "p": test.p,
                "chosen": picks,
            }
        )
    if not lines:
        return {"reason": "no dataset has boosting and a map on two splits"}
    adjusted = holm([1.0 if line["p"] is None else line["p"] for line in lines])
    for line, p in zip(lines, adjusted, strict=True):
        line["p_holm"] = float(p)
    families: dict[str, list[float]] = {}
    for line in lines:
        families.setdefault(line["family"], []).append(line["difference"])
    means = np.array([float(np.mean(each)) for each in families.values()])
    low, high = _interval(means)
    gaps = {study.family_of[name] for name in unknown} - families.keys()
    return {
        "unknown": unknown,
        "difference": float(means.mean()),
        "low": low,
        "high": high,
        "p": signed_rank(np.append(means, np.full(len(gaps), np.nan))).p,
        "n_families": len(means),
        "better_boosting": [
            x["dataset"] for x in lines if x["p_holm"] <= 0.05 and x["difference"] < 0
        ],
        "better_map": [x["dataset"] for x in lines if x["p_holm"] <= 0.05 and x["difference"] > 0],
        "datasets": lines,
    }


def when_boosting(
    result: Numbers, predictors: dict[str, dict[str, float]], seed: int = 0
) -> list[Numbers]:
    """Return rank correlations of boosting's lead with what is known of a dataset.

    Positive: the larger the number, the better boosting is. p is by permutation of families.
    """
    lines = [x for x in result.get("datasets", []) if x["dataset"] in predictors]
    families = sorted({line["family"] for line in lines})
    if len(families) < LEAST_MAPS:
        return []
    lead = [-np.mean([x["difference"] for x in lines if x["family"] == f]) for f in families]
    found = []
    rng = np.random.default_rng(seed)
    for name in sorted(set.intersection(*(set(predictors[x["dataset"]]) for x in lines))):
        value = [
            np.mean([predictors[x["dataset"]][name] for x in lines if x["family"] == f])
            for f in families
        ]
        products = _rank_products(np.array([value]), np.array([lead]))
        if products is None:
            continue
        n = len(families)
        orders = rng.permuted(np.tile(np.arange(n), (N_PERMUTATIONS, 1)), axis=1)
        own = float(np.trace(products))
        null = products[np.arange(n), orders].sum(axis=1)
        p = (int((np.abs(null) >= abs(own) - 1e-12).sum()) + 1) / (N_PERMUTATIONS + 1)
        found.append({"predictor": name, "correlation": own, "p": p, "n_families": n})
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
            text = f"{result['map']} differs from {result['base']}"
            add(task, "learned", text, result["p"])
            for line in result["by_width"]:
                add(task, "learned by width", f"{text} with {line['width']} features", line["p"])
        for name, words in (("boosting", "the best map"), ("boosting_kernel", "the exact kernel")):
            if "p" in each[name]:
                add(task, "boosting", f"boosting differs from {words}", each[name]["p"])
        for result in each.get("when_boosting", []):
            text = f"{result['predictor']} says when boosting is better"
            add(task, "when boosting", text, result["p"])
    for group in {(line["task"], line["question"]) for line in found}:
        lines = [line for line in found if (line["task"], line["question"]) == group]
        for line, p in zip(lines, holm([line["p"] for line in lines]), strict=True):
            line["p_holm"] = float(p)
    return found
