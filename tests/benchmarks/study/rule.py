"""A rule that orders options by what is known of a dataset before anything is tried.

For each option, the logarithm of its regret is a linear function of a few standardised
predictors, shrunk to its mean over families: without evidence the order is the same for all
datasets. The penalty is chosen by leaving out one family of the training families.

Regret is the loss less that of the best option. The best option is chosen on other folds than
it is scored on, so that selection does not flatter it; regret may then be negative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbench.results.stats import mean_interval

from .table import Array, Option, Study, StudyError

PREDICTORS = (
    "log_rows",
    "log_inputs",
    "log_effective_rank",
    "log_median_distance",
    "landmark_gain",
)

PENALTIES = (1.0, 10.0, 100.0, np.inf)

SMALLEST = {"classification": 0.005, "regression": 0.02}
"""Regrets far below are all the same: half a point of accuracy, 2 % of the error."""

LEAST_ERROR = 0.02
"""Relative regrets are those of at least this rmse, in standard deviations of the target."""

LEAST_SHARE = 0.8
"""An option that fewer datasets have is not one that a rule can recommend."""

SMALL = (256, 512, 1024)
"""Widths of the order of maps in the suites of `kbench recommend`, which has up to 1,000."""

BUDGET = 0.1
"""Share of the compute of trying all."""

Numbers = dict[str, Any]
Predictors = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Rule:
    """Mean log-regret and slopes of each option; `order` sorts options, the best first."""

    options: Sequence[Option]
    center: Array
    scale: Array
    mean: Array
    slopes: Array
    penalty: float

    def predict(self, z: Array) -> Array:
        """Return the log-regret of each option; an unknown predictor has its mean."""
        known = np.where(np.isfinite(z), (z - self.center) / self.scale, 0.0)
        return np.asarray(self.mean + known @ self.slopes)

    def order(self, z: Array) -> list[int]:
        """Return options by predicted regret."""
        return [int(j) for j in np.argsort(self.predict(z), kind="stable")]


def _fill(losses: Array) -> Array:
    """Replace missing losses by the largest one of their row."""
    return np.where(np.isfinite(losses), losses, np.nanmax(losses, axis=1, keepdims=True))


class Problem:
    """Data that the rule is fitted and scored on: datasets by options of the main learner."""

    def __init__(self, study: Study, predictors: Predictors) -> None:
        self.study = study
        columns = [j for name in study.maps(study.main_learner) for j in study.columns(name)]
        self.datasets = [name for name in study.datasets if study.turns(name)]
        if not self.datasets:
            raise StudyError("options are chosen on other folds: a repeat must have two splits")
        rows = [study.datasets.index(name) for name in self.datasets]
        there = np.isfinite(study.losses[rows])
        columns = [j for j in columns if there[:, j].mean() >= LEAST_SHARE]
        if len(columns) < 2:
            raise StudyError(f"{study.task}: the rule needs two options that most datasets have")
        self.options = [study.options[j] for j in columns]
        self.families = [study.family_of[name] for name in self.datasets]
        # who tries an option that fails has paid, and has the worst of the others
        self.losses = _fill(study.losses[np.ix_(rows, columns)])
        self.Z = np.array(
            [[predictors.get(n, {}).get(p, np.nan) for p in PREDICTORS] for n in self.datasets]
        )
        extra = [predictors.get(name, {}).get("cpu_s", 0.0) for name in self.datasets]
        self.predictor_cost = np.array(extra)
        spent = study.values("fit_cpu_s") + np.nan_to_num(study.values("search_cpu_s"))
        costs = spent[np.ix_(rows, columns)]
        usual = np.nanmedian(np.where(np.isfinite(costs), costs, np.nan), axis=0)
        self.costs = np.maximum(np.where(np.isfinite(costs), costs, usual), 1e-6)
        # of each dataset, losses on which to choose and to score, shape (2, n_turns, n_options)
        self.turns = [
            np.array([[v[each].mean(axis=0) for each in turn] for turn in study.turns(n)])
            for n in self.datasets
            for v in [_fill(study.losses_by_split[n][:, columns])]
        ]
        self.turns = [each.swapaxes(0, 1) for each in self.turns]

    def target(self) -> Array:
        """Return the log-regret of each dataset and option."""
        best = self.losses.min(axis=1, keepdims=True)
        if self.study.task == "regression":
            regret = (self.losses - best) / np.maximum(best, LEAST_ERROR)
        else:
            regret = self.losses - best
        return np.asarray(np.log(regret + SMALLEST[self.study.task]))

    def regret(self, chosen: Array, best: Array) -> Array:
        """Return points of accuracy, or percent of the error."""
        if self.study.task == "classification":
            return 100 * (chosen - best)
        return np.asarray(100 * (chosen - best) / np.maximum(best, LEAST_ERROR))


def fit(problem: Problem, rows: Sequence[int]) -> Rule:
    """Fit the rule on some datasets."""
    families = sorted({problem.families[i] for i in rows})
    penalty = PENALTIES[-1]
    if len(families) > 2:
        errors = dict.fromkeys(reversed(PENALTIES), 0.0)
        target = problem.target()
        for family in families:
            rest = [i for i in rows if problem.families[i] != family]
            left = [i for i in rows if problem.families[i] == family]
            for each in errors:
                rule = _fit(problem, rest, each)
                predicted = np.array([rule.predict(problem.Z[i]) for i in left])
                errors[each] += float(((predicted - target[left]) ** 2).mean())
        penalty = min(errors, key=lambda each: errors[each])
    return _fit(problem, rows, penalty)


def _fit(problem: Problem, rows: Sequence[int], penalty: float) -> Rule:
    families = [problem.families[i] for i in rows]
    weights = np.array([1 / families.count(family) for family in families])
    weights /= weights.sum()
    Z, Y = problem.Z[list(rows)], problem.target()[list(rows)]
    known = np.isfinite(Z)
    filled = np.where(known, Z, 0.0)
    share = np.maximum((weights[:, None] * known).sum(axis=0), 1e-12)
    center = (weights[:, None] * filled).sum(axis=0) / share
    spread = np.where(known, Z - center, 0.0)
    scale = np.sqrt((weights[:, None] * spread**2).sum(axis=0) / share)
    scale = np.where(scale > 1e-9, scale, 1.0)
    mean = weights @ Y
    X = spread / scale
    if np.isinf(penalty):
        slopes = np.zeros((X.shape[1], Y.shape[1]))
    else:
        n = len(set(families))
        gram = n * (X.T * weights) @ X + penalty * np.eye(X.shape[1])
        slopes = np.linalg.solve(gram, n * (X.T * weights) @ (Y - mean))
    return Rule(problem.options, center, scale, mean, slopes, penalty)


def shortlist(order: Sequence[int], costs: Array, budget: float) -> list[int]:
    """Return the options that are tried: in their order, those that fit into the budget.

    >>> shortlist([2, 0, 1], np.array([1.0, 1.0, 5.0]), 2.0)
    [0, 1]
    """
    tried, spent = [], 0.0
    for j in order:
        if spent + costs[j] <= budget + 1e-12:
            tried.append(j)
            spent += float(costs[j])
    return tried


def score(problem: Problem, i: int, tried: Sequence[int]) -> float:
    """Return the regret on a dataset of the best option of a list, over turns of the folds."""
    choosing, scoring = problem.turns[i]
    each = np.arange(len(choosing))
    some = np.array(tried)
    chosen = some[choosing[:, some].argmin(axis=1)]
    best = choosing.argmin(axis=1)
    return float(problem.regret(scoring[each, chosen], scoring[each, best]).mean())


def assess(problem: Problem, train: Sequence[Sequence[int]], budget: float = BUDGET) -> Numbers:
    """Score the rule and the baselines on each dataset i, each fitted on ``train[i]``.

    ``first`` is the first option alone; ``tried`` is the best of those that fit in the budget.
    The predictors are paid for. Baselines: the single option with the least mean log-regret on
    the training families (first), in that order (tried); rff of width 512; a random order.
    """
    methods: dict[str, dict[str, list[float]]] = {}
    lines = []
    for i, rows in enumerate(train):
        if not len(rows):
            continue
        costs, all_cost = problem.costs[i], float(problem.costs[i].sum())
        rule, static = fit(problem, rows), _fit(problem, rows, np.inf)
        orders: dict[str, Callable[[], list[int]]] = {
            "rule": lambda rule=rule, i=i: rule.order(problem.Z[i]),  # type: ignore[misc]
            "best single": lambda static=static, i=i: static.order(problem.Z[i]),  # type: ignore[misc]
        }
        line: Numbers = {"dataset": problem.datasets[i], "family": problem.families[i]}
        for name, make in orders.items():
            order = make()
            extra = float(problem.predictor_cost[i]) if name == "rule" else 0.0
            tried = shortlist(order, costs, budget * all_cost - extra)
            for kind, some in (("first", order[:1]), ("tried", tried or order[:1])):
                share = (extra + float(costs[some].sum())) / all_cost
                line[f"{name}, {kind}"] = {
                    "regret": score(problem, i, some),
                    "share": share,
                    "options": [str(problem.options[j]) for j in some],
                }
        fixed = [j for j, o in enumerate(problem.options) if (o.map, o.width) == ("rff", 512)]
        if fixed:
            share = float(costs[fixed[0]]) / all_cost
            line["rff-512, first"] = {"regret": score(problem, i, fixed[:1]), "share": share}
        line |= _random(problem, i, budget)
        lines.append(line)
        for name, value in line.items():
            if isinstance(value, dict):
                at = methods.setdefault(name, {})
                at.setdefault(line["family"], []).append(value["regret"])
    return {
        "unit": "points" if problem.study.task == "classification" else "%",
        "budget": budget,
        "methods": {name: _summary(name, found, lines) for name, found in methods.items()},
        "datasets": lines,
    }


def _random(problem: Problem, i: int, budget: float, n_draws: int = 50) -> Numbers:
    """Return the expected regret of a random option, and of random orders within the budget."""
    costs, all_cost = problem.costs[i], float(problem.costs[i].sum())
    every = range(len(costs))
    rng = np.random.default_rng(i)
    regrets, shares = [], []
    for _ in range(n_draws):
        order = [int(j) for j in rng.permutation(len(costs))]
        tried = shortlist(order, costs, budget * all_cost) or order[:1]
        regrets.append(score(problem, i, tried))
        shares.append(float(costs[tried].sum()) / all_cost)
    return {
        "random, first": {
            "regret": float(np.mean([score(problem, i, [j]) for j in every])),
            "share": 1 / len(costs),
        },
        "random, tried": {"regret": float(np.mean(regrets)), "share": float(np.mean(shares))},
    }


def _summary(name: str, found: Mapping[str, Sequence[float]], lines: Sequence[Numbers]) -> Numbers:
    means = np.array([float(np.mean(each)) for each in found.values()])
    low, high = mean_interval(means) if len(means) > 1 else (None, None)
    shares = [line[name]["share"] for line in lines if name in line]
    return {
        "regret": float(means.mean()),
        "low": low,
        "high": high,
        "median": float(np.median(means)),
        "worst": float(means.max()),
        "share": float(np.mean(shares)),
        "n_families": len(means),
    }


def cross_validate(problem: Problem, budget: float = BUDGET) -> Numbers:
    """Score the rule on each family, fitted on all others."""
    n = range(len(problem.datasets))
    train = [[k for k in n if problem.families[k] != problem.families[i]] for i in n]
    return assess(problem, train, budget)


def test_once(problem: Problem, held_out: Sequence[str], budget: float = BUDGET) -> Numbers:
    """Score the rule on the held-out families, fitted on all others."""
    names = set(held_out)
    n = range(len(problem.datasets))
    out = [problem.families[i] in names or problem.datasets[i] in names for i in n]
    rest = [i for i in n if not out[i]]
    shared = {problem.families[i] for i in n if out[i]} & {problem.families[i] for i in rest}
    if shared:
        raise StudyError(f"held out only in part: families {', '.join(sorted(shared))}")
    return assess(problem, [rest if out[i] else [] for i in n], budget)


def answer(
    study: Study,
    predictors: Predictors,
    held_out: Sequence[str] = (),
    test: bool = False,
    budget: float = BUDGET,
) -> Numbers:
    """Return the rule of one task: cross-validated, and with `test` on the held-out families."""
    names = set(held_out)
    everything = Problem(study, predictors)
    n = range(len(everything.datasets))
    out = [everything.families[i] in names or everything.datasets[i] in names for i in n]
    rest = [i for i in n if not out[i]]
    families = [everything.families[i] for i in rest]
    if len(set(families)) < 2:
        return {"reason": "the rule needs at least two families that are not held out"}
    train = [
        [k for k in rest if everything.families[k] != everything.families[i]] if i in rest else []
        for i in n
    ]
    rule = fit(everything, rest)
    order = rule.order(rule.center)
    result: Numbers = {
        "n_families": len(set(families)),
        "held_out": sorted({everything.families[i] for i in n if out[i]}),
        "without_predictors": [
            name
            for name, z in zip(everything.datasets, everything.Z, strict=True)
            if not np.isfinite(z).all()
        ],
        "penalty": None if np.isinf(rule.penalty) else rule.penalty,
        "typical_order": [str(rule.options[j]) for j in order],
        "maps_to_1024": list(
            dict.fromkeys(rule.options[j].map for j in order if rule.options[j].width in SMALL)
        ),
        "slopes": {
            str(rule.options[j]): dict(zip(PREDICTORS, map(float, rule.slopes[:, j]), strict=True))
            for j in order[:10]
        },
        "cross_validated": assess(everything, train, budget),
    }
    if test and not result["held_out"]:
        result["untested"] = "no result is of a family that is held out"
    elif test:
        result["tested"] = test_once(everything, held_out, budget)
    return result
