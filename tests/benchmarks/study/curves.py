"""Question 1: loss against width, and costs of each option."""

from __future__ import annotations

import numpy as np

from kbench.results.stats import mean_draws

from .families import (
    Numbers,
    bounded_interval,
    difference,
    ends,
    family_means,
    geometric,
    split_interval,
)
from .table import COSTS, EXACT, Array, Study

NARROW = 64

WIDE = 512

LARGE = 3.0
"""An rmse, in standard deviations of the target, that no model of the mean has."""


def curves(study: Study) -> list[Numbers]:
    """Return mean loss and costs of each option, and its loss less that of the exact kernel."""
    low_fill, high_fill = (study.by_family(each) for each in study.bounded())
    losses = study.by_family(study.losses)
    costs = {name: geometric(study, study.values(name)) for name in COSTS}
    planned = study.by_family(study.planned.astype(float)) > 0
    exact = study.reference(EXACT)
    found = []
    for j, option in enumerate(study.options):
        values = losses[:, j]
        known = np.isfinite(values)
        if not known.any():
            continue
        low, high = bounded_interval(values, low_fill[:, j], high_fill[:, j])
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
            line["over_kernel"] = difference(study, j, exact)
        found.append(line)
    return found


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
        means = values.mean(axis=0)
        best = int(means.argmin())
        tied = np.isclose(values, values[:, [best]], rtol=1e-6, atol=1e-9).all(axis=0)
        found.append(
            {
                "width": width,
                "n_families": len(values),
                "n_filled": int(np.isnan(study.losses[:, columns]).sum()),
                "best": names[best],
                "tied": [name for name, is_tied in zip(names, tied, strict=True) if is_tied],
                "loss": float(means[best]),
                "maps": _least(values, names, tied),
                "maps_best": _least(best_fill[full][:, columns], names, tied),
            }
        )
    return found


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
        least, _ = ends(study, at[NARROW], at[WIDE])
        gains = np.round(family_means(study, least, range(len(least))), 12)
        wins, n = int((gains > 0).sum()), int((gains != 0).sum())
        gain = difference(study, at[NARROW], at[WIDE])
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


def _least(losses: Array, names: list[str], tied: Array) -> dict[str, float]:
    """Return the share of the draws of means in which each column is the smallest.

    Tied columns have one loss, and a share together.
    """
    first = mean_draws(losses).argmin(axis=1)
    shares = np.bincount(first, minlength=len(names)) / len(first)
    shares[tied] = shares[tied].sum()
    return {name: float(share) for name, share in zip(names, shares, strict=True)}


def dataset_curves(study: Study) -> list[Numbers]:
    """Return the curve of each map on each dataset, with the corrected interval over splits."""
    found = []
    for i, name in enumerate(study.datasets):
        for j, option in enumerate(study.options):
            values = study.losses_by_split[name][:, j]
            if not len(values) or np.isnan(values).any():
                continue
            low, high = split_interval(values, study.ratio(name))
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


def large_errors(study: Study) -> list[Numbers]:
    """Count, by map and reference, the fits of a regression with an error above `LARGE`.

    Not planned: it was looked for after means had been seen.
    """
    found: dict[str, Numbers] = {}
    for name in study.datasets:
        for j, option in enumerate(study.options):
            values = study.losses_by_split[name][:, j]
            values = values[np.isfinite(values)]
            line = found.setdefault(
                study.references.get(option, option.map),
                {"n_fits": 0, "n_large": 0, "largest": 0.0, "datasets": []},
            )
            line["n_fits"] += len(values)
            line["n_large"] += int((values > LARGE).sum())
            line["largest"] = float(max([line["largest"], *values]))
            if (values > LARGE).any() and name not in line["datasets"]:
                line["datasets"].append(name)
    return [{"method": method, **line} for method, line in found.items()]
