"""Question 2: options on the Pareto front of loss and a cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kbench.results.stats import front, mean_draws

from .families import Numbers
from .table import BOOSTING, EXACT, Array, Study

UNSURE = 0.05
"""A place on a front is decided if its probability is this near to 0 or 1."""


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
