"""Question 6: boosting against the exact kernel and the best map."""

from __future__ import annotations

import numpy as np

from kbench.results.stats import corrected_t, holm

from .families import Numbers, difference, interval
from .gram import LEAST_MAPS, rank_products
from .table import BOOSTING, EXACT, Study


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
        **difference(study, column, exact),
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
    low, high = interval(means)
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
        products = rank_products(np.array([value]), np.array([lead]), there)
        if products is not None:
            own = float(np.trace(products))
            found.append({"predictor": name, "correlation": own, "n_families": len(families)})
    return found
