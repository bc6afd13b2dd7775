"""Questions 4 and 5: share of the exact kernel's gain, and gain of learned directions."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from kbench.results.stats import corrected_t, median_interval

from .families import Numbers, bounded_p, difference, ends, family_means, or_none
from .table import CONTROL, EXACT, LINEAR, Array, Study

LEAST_FAMILIES = 6
"""The signed-rank test of fewer families cannot be below 0.05."""


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
                    "share": or_none(median),
                    "low": or_none(low),
                    "high": or_none(high),
                    "n_families": len(families),
                    "n_without": int(gaps.sum()),
                }
            )
    return {"n_tested": tested, "datasets": sorted(kept), "shares": shares}


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
                **difference(study, j, at[width], rows),
            }
            if line["n_families"] >= LEAST_FAMILIES:
                bounds = ends(study, j, at[width])
                line["p"] = bounded_p(*(family_means(study, each, rows) for each in bounds))
            found.append(line)
    return found
