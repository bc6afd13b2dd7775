"""Search curves: the mean of a metric over inner folds against the values of a parameter."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kbench.evaluation.specs import is_number
from kbench.records import ACCURACY, Metric
from kbench.records.canonical import dumps
from kbench.results.rows import LABELS, group_values, metric_of_search
from kbench.results.stats import optimism

# Fields of a point of a search curve.
CURVE = ("value", "mean", "standard_error", "n", "at_boundary")

_NOT_PARAMETERS = ("values", "converged", "error", "share")

Candidates = Sequence[Mapping[str, Any]]


def search_curves(runs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the points of the search curves of several cells.

    A point is the best that inner cross-validation found with one value of one
    parameter, for any values of the other parameters: in each split, the candidate
    of that value with the best mean. Candidates that failed, or that a race left before
    the last inner fold, are in no point. A search by a metric of a plugin has no curve:
    its direction is unknown.

    Parameters
    ----------
    runs : iterable of mapping
        One for each cell: ``dataset``, ``feature_map`` and ``learner``, the
        labels, and ``search``, the content of the run's artifact ``search.json``,
        as text or parsed: by number of the split, a list of candidates, each
        with its parameters and ``values`` of the metric that the search optimises, one
        for each inner fold; and, unless they are
        the defaults, ``search_metric`` of the protocol and ``task`` of the dataset.

    Returns
    -------
    list of dict
        One row for each value of each numeric parameter that was searched over
        at least two values; the rows of a curve stand together, by ascending
        value, curves in the order of `runs`:

        - ``dataset, feature_map, learner``: the labels;
        - ``parameter``: its name, such as ``"learner.C"``;
        - ``value``: float;
        - ``metric``: what the search optimised, and ``mean`` is a mean of;
        - ``mean``: over the inner folds of all splits;
        - ``standard_error``: of that mean, None for a single fold. The splits
          share rows, so that it is a lower bound;
        - ``n``: how many inner folds there were, of all splits together;
        - ``at_boundary``: True for a value at an end of its grid that has the best mean
          of its curve, and is better than the next value inwards by a standard error
          of the difference: the grid should be wider.

    Examples
    --------
    >>> candidates = [
    ...     {"learner.C": 1.0, "values": [0.7, 0.9], "converged": True},
    ...     {"learner.C": 8.0, "values": [0.8, 1.0], "converged": True},
    ... ]
    >>> run = {"dataset": "iris", "feature_map": "rff", "learner": "linear-svm",
    ...        "search": {"0": candidates}}
    >>> for row in search_curves([run]):
    ...     print(row["parameter"], row["value"], row["metric"], round(row["mean"], 3))
    learner.C 1.0 accuracy 0.8
    learner.C 8.0 accuracy 0.9
    """
    points = []
    for run in runs:
        search = run["search"]
        splits = list((json.loads(search) if isinstance(search, str) else search).values())
        metric = metric_of_search(run.get("search_metric"), run.get("task", "classification"))
        if metric is None:
            continue
        labels = {name: run[name] for name in LABELS} | {"metric": metric.name}
        for parameter in _numeric_parameters(splits):
            points += [{**labels, **point} for point in _curve(parameter, splits, metric)]
    return points


def make_curves(
    search: Mapping[str, Candidates], metric: Metric | None = ACCURACY
) -> dict[str, list[list[Any]]]:
    """Return the curves of one cell by parameter, each point a list of `CURVE`.

    `search` has the candidates of each split, as `search_curves` takes them; `metric` is
    the one that the search optimises; without it there are no curves.
    """
    if metric is None:
        return {}
    splits = list(search.values())
    curves = {}
    for parameter in _numeric_parameters(splits):
        points = [[point[name] for name in CURVE] for point in _curve(parameter, splits, metric)]
        if points:
            curves[parameter] = [[value, *map(_round, rest)] for value, *rest in points]
    return curves


def summarise_choice(splits: Sequence[Candidates], metric: Metric | None) -> dict[str, float]:
    """Return what searches found on the inner folds, means over splits.

    ``search_inner`` is the metric of the best candidate, ``search_inner_default`` that of
    the first one, and ``search_optimism`` how much too good the former is. Empty for a
    plugin's metric, whose direction is unknown, and if no search has two folds.
    """
    choices: list[tuple[float, float, float]] = []
    for candidates in splits if metric is not None else ():
        seen = [get_values(each) for each in candidates if is_whole(each)]
        n_folds = max(map(len, seen), default=0)
        table = np.array([values for values in seen if len(values) == n_folds], dtype=float)
        if metric is None or n_folds < 2 or not np.isfinite(table).all():
            continue
        means = table.mean(axis=1)
        best = float(means[int(np.argmax(metric.gain(means)))])
        default = get_values(candidates[0])
        first = float(np.mean(default)) if len(default) == n_folds else best
        choices.append((best, first, optimism(np.asarray(metric.gain(table)))))
    if not choices:
        return {}
    names = ("search_inner", "search_inner_default", "search_optimism")
    return dict(zip(names, map(float, np.mean(choices, axis=0)), strict=True))


def is_whole(candidate: Mapping[str, Any]) -> bool:
    """Whether a candidate did not fail, and was scored on all inner folds."""
    return not candidate.get("error") and candidate.get("share", 1.0) == 1.0


def find_searched_parameters(splits: Iterable[Candidates]) -> tuple[str, ...]:
    """Return the parameters that were searched: candidates have different values of them.

    >>> find_searched_parameters([[{"C": 1.0, "kernel": "a"}, {"C": 8.0, "kernel": "a"}]])
    ('C',)
    """
    tried = _group_tried(splits)
    # a kernel is an object
    return tuple(name for name in tried if len(set(map(dumps, tried[name]))) > 1)


def get_values(candidate: Mapping[str, Any]) -> list[float]:
    """Return the values of a candidate on the inner folds."""
    values: list[float] = candidate.get("values", [])
    return values


def _round(value: Any) -> Any:
    # to digits, not places: errors in the target's units may be of any size
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _numeric_parameters(splits: Sequence[Candidates]) -> list[str]:
    """Return the parameters of at least two values, all of them numbers."""
    tried = _group_tried(splits).items()
    return [name for name, each in tried if all(map(is_number, each)) and len(set(each)) > 1]


def _group_tried(splits: Iterable[Candidates]) -> dict[str, list[Any]]:
    """Return the values of each parameter in all candidates."""
    every = (item for candidates in splits for each in candidates for item in each.items())
    return group_values((name, value) for name, value in every if name not in _NOT_PARAMETERS)


def _curve(
    parameter: str, splits: Sequence[Candidates], metric: Metric
) -> Iterator[dict[str, Any]]:
    tried = sorted({c[parameter] for split in splits for c in split if parameter in c})
    folds = {
        value: [a for split in splits for a in _best(split, parameter, value, metric)]
        for value in tried
    }
    means = {value: float(np.mean(scores)) for value, scores in folds.items() if scores}
    best = max(means, key=lambda value: metric.gain(means[value]), default=None)
    edge = best if best is not None and _is_edge(best, folds, tried) else None
    for value, mean in means.items():
        scores = folds[value]
        error = float(np.std(scores, ddof=1)) / math.sqrt(len(scores)) if len(scores) > 1 else None
        yield {
            "parameter": parameter,
            "value": float(value),
            "mean": mean,
            "standard_error": error,
            "n": len(scores),
            "at_boundary": value == edge,
        }


def _is_edge(best: Any, folds: Mapping[Any, Sequence[float]], tried: Sequence[Any]) -> bool:
    """Return whether an end of a grid is better than the next value inwards, with evidence.

    The rule is that of a search: by a standard error of the difference over the inner
    folds, and neither 0 nor 1 of a number of things is such an end.
    """
    if best not in (tried[0], tried[-1]):
        return False
    if best == tried[0] and (best == 0 or (best == 1 and isinstance(best, int))):
        return False
    inner = folds[tried[1] if best == tried[0] else tried[-2]]
    if not inner:
        return False
    gap = abs(float(np.mean(folds[best]) - np.mean(inner)))
    paired = len(inner) == len(folds[best])
    values = np.subtract(folds[best], inner) if paired else np.asarray(folds[best])
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return gap >= max(error, 1e-12)  # equal means differ by rounding


def _best(candidates: Candidates, parameter: str, value: Any, metric: Metric) -> list[float]:
    """Return the values of the best candidate with a parameter's value; none if none has any."""
    judged = [
        get_values(candidate)
        for candidate in candidates
        if candidate.get(parameter) == value and get_values(candidate) and is_whole(candidate)
    ]
    return max(judged, key=lambda values: metric.gain(np.mean(values)), default=[])
