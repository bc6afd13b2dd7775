"""What the rows of a suite show, in numbers and in sentences.

Marks of the table of scores, growth of fit times, the certainty of fronts, ranks and
means, search budgets, and warnings.
"""

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, multimode

import numpy as np

from kbench.features import (
    ALPHA,
    Budget,
    Front,
    FrontPlace,
    Method,
    Metric,
    ReportData,
    Row,
    budgets_of,
    duration,
    format_method,
    geometric_mean,
    group_values,
    holdout_ratio,
    name_some,
    number,
    on_dataset,
    round_mean,
    unequal_splits,
)
from kbench.messages import plural

# -- the table of scores


@dataclass(frozen=True)
class Entry:
    """One cell of the table of scores; its row is None if the cell was not planned.

    `mark` is "best" for the best of its dataset, "tie" for a method that the corrected resampled
    t-test does not distinguish from it, "untested" if there is no test (one common split, or all
    differences are equal), or empty.
    """

    row: Row | None
    mark: str = ""


def entries(content: ReportData) -> list[tuple[str, list[Entry]]]:
    """Return for each dataset an entry per method, in the order of `content.methods`."""
    by_labels = {row.labels: row for row in content.rows}
    metric, lists = content.metric, []
    for dataset in content.datasets:
        rows = [by_labels.get((dataset, *method)) for method in content.methods]
        gains = {
            row.method: metric.gain(round_mean(row.value(metric.name)))
            for row in rows
            if row is not None and row.is_complete and row.value(metric.name) is not None
        }
        best = max(gains, key=lambda method: gains[method], default=None)
        best_row = None if best is None else by_labels[dataset, *best]
        lists.append((dataset, [Entry(row, _mark(row, best_row, gains, content)) for row in rows]))
    return lists


def _mark(
    row: Row | None, best: Row | None, gains: Mapping[Method, float], content: ReportData
) -> str:
    """Mark a row beside the first of the best ones of its dataset; a single one has no mark."""
    if row is None or best is None or row.method not in gains or len(gains) < 2:
        return ""
    if gains[row.method] == gains[best.method]:
        return "best"
    test = on_dataset(best, row, content.metric, ALPHA)
    if test is None or test.p is None:
        return "untested"
    return "tie" if test.p > ALPHA else ""


# -- over datasets


def worse(content: ReportData) -> list[int]:
    """Return the places (from 0) in `content.standings` of methods outside the best group."""
    return [i for i, line in enumerate(content.leaderboard.lines) if line.verdict == "worse"]


# -- growth of fit times


@dataclass(frozen=True)
class Growth:
    """Growth of a method's fit time with the number of training rows.

    `points` are training rows and seconds, the geometric mean over the
    datasets of that size. By least squares through the logarithms of both, time
    grows as rows to the `exponent`, with the coefficient of determination `r2`.
    """

    place: int
    method: Method
    points: list[tuple[int, float]]
    exponent: float
    r2: float
    n_datasets: int


def list_sizes(content: ReportData) -> list[int]:
    """Return the numbers of training rows of what is compared, if they vary.

    Empty if they are fewer than three, or the largest is not four
    times the smallest: no growth can be fitted then.
    """
    sizes = sorted({round(row.metrics["n_train"]) for row in _sized_rows(content)})
    return sizes if len(sizes) > 2 and sizes[-1] >= 4 * sizes[0] else []


def _sized_rows(content: ReportData) -> list[Row]:
    """Return the complete rows of the compared datasets whose training rows are known."""
    compared = set(content.scores.datasets)
    return [
        row
        for row in content.rows
        if row.dataset in compared and row.is_complete and row.metrics.get("n_train")
    ]


def growth(content: ReportData) -> list[Growth]:
    """Return the growth of fit times with the number of training rows, where sizes vary."""
    if not list_sizes(content):
        return []
    seconds = group_values(
        (row.method, (round(row.metrics["n_train"]), fit_time_s))
        for row in _sized_rows(content)
        if (fit_time_s := row.metrics.get("fit_time_s"))
    )
    results = []
    for standing in content.standings:
        by_size = group_values(seconds.get(standing.method, ()))
        if len(by_size) < 3:
            continue
        points = [(n, math.exp(np.mean(np.log(by_size[n])))) for n in sorted(by_size)]
        count = sum(map(len, by_size.values()))
        results.append(Growth(standing.place, standing.method, points, *_power(points), count))
    return results


def _power(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Fit log y = a + b log x by least squares; return b and R squared."""
    x, y = np.log(np.array(points, dtype=float)).T
    slope, intercept = np.polyfit(x, y, 1)
    residual = float(np.sum((y - intercept - slope * x) ** 2))
    total = float(np.sum((y - y.mean()) ** 2))
    return float(slope), 1 - residual / total if total > 0 else 1.0


# -- what was run, and warnings


def what_was_run(rows: Sequence[Row]) -> dict[str, object]:
    """Return when the first task began and the last ended, protocols, and versions of kbench."""
    protocols = {tuple(sorted(row.protocol.items())): row.protocol for row in rows}
    return {
        "begun": _moment(min((row.start_ms for row in rows if row.start_ms), default=0)),
        "ended": _moment(max((row.end_ms for row in rows if row.end_ms), default=0)),
        "protocols": [dict(protocol) for protocol in protocols.values() if protocol],
        "versions": sorted({row.version for row in rows if row.version}),
    }


def _moment(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(ms / 1000)) if ms else ""


def warnings(rows: Sequence[Row]) -> dict[str, object]:
    """Return what makes numbers unreliable, by kind; each is usually empty or 0.

    Rows with fewer splits, rows that did not converge, datasets whose rows have different splits,
    the number of rows during which the machine was loaded, and notes with their cells.
    """
    boundary = "best at the boundary of its grid: {}".format
    noted = group_values(
        (note, row)
        for row in rows
        for note in (row.notes, row.at_boundary and boundary(row.at_boundary))
        if note
    )
    return {
        "partial": [row for row in rows if row.status == "ok" and row.n_splits_done < row.n_splits],
        "unequal": unequal_splits(rows),
        "not_converged": [row for row in rows if row.converged is False],
        "loaded": sum(bool(row.contention) for row in rows),
        "notes": [(note, _some_cells(cells)) for note, cells in noted.items()],
    }


def _some_cells(rows: Sequence[Row]) -> str:
    names = [f"{format_method(row.method)} on {row.dataset}" for row in rows]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


# -- fronts and ranks


def places(content: ReportData, cost: str) -> list[FrontPlace]:
    """Return the statuses on the front against a cost, in the order of the standings."""
    by_method = dict(zip(content.scores.methods, content.certainty.front(cost).places, strict=True))
    return [by_method[standing.method] for standing in content.standings]


def front_sentence(front: Front, title: str) -> str:
    """Return a sentence on the certainty of the Pareto front against a cost."""
    if front.reason:
        return f"No test of the Pareto front against {title}: {front.reason}."
    counts = Counter(place.status for place in front.places)
    sentence = (
        f"Against {title}, {counts['frontier']} of {len(front.places)} methods are significantly "
        f"on the Pareto front, {counts['dominated']} are significantly dominated, and "
        f"{counts['undecided']} are undecided."
    )
    if front.hypervolume is not None and front.low is not None and front.high is not None:
        interval = f"95 % CI {front.low:.3g} to {front.high:.3g}"
        sentence += f" Hypervolume: {front.hypervolume:.3g} ({interval})."
    return sentence


def stability_sentences(content: ReportData) -> list[str]:
    """Return sentences on the certainty of the order of the methods."""
    stability = content.certainty.stability
    if stability is None:
        if len(content.scores.groups) == 1 and content.standings:
            return ["One dataset does not show how methods rank on other datasets."]
        return []
    methods, groups = content.scores.methods, content.scores.groups
    leader = format_method(methods[stability.leader])
    sentences = []
    if stability.best_group == (stability.leader,):
        sentences.append(f"{leader} is significantly better than every other method.")
    if lacking := content.scores.missing:
        names = name_some(
            [f"{format_method(m)} lacks {len(lacking[m])}" for m in methods if m in lacking]
        )
        sentences.append(
            f"Of {plural(len(content.scores.tried_datasets), 'dataset')}, {names}. A missing cell "
            "counts as the worst in a test for its method and as the best in a test against it."
        )
    if stability.changes:
        each = [
            f"without {groups[i]} {format_method(methods[stability.without[i][0]])}"
            for i in stability.changes
        ]
        sentences.append(f"Another method is first if a dataset is left out: {name_some(each)}.")
    else:
        sentences.append(f"{leader} stays first if any one dataset is left out.")
    return sentences


# -- budgets


def ordered_budgets(content: ReportData) -> list[Budget]:
    """Return the budgets of the methods, those of a family together.

    They are over the datasets that all methods finished, else over all.
    """
    budgets = budgets_of(content.rows, content.scores.datasets or content.datasets, content.metric)
    place = {method: i for i, method in enumerate(content.methods)}
    budgets.sort(key=lambda budget: place[budget.method])
    families = group_values((budget.group, budget) for budget in budgets)
    return [budget for family in families.values() for budget in family]


def span(least: float, most: float) -> str:
    """Write a range of numbers.

    >>> span(4.0, 16.0), span(8.0, 8.0)
    ('4 to 16', '8')
    """
    low, high = number(least), number(most)
    return low if low == high else f"{low} to {high}"


def budget_sentences(budgets: Sequence[Budget], claimed: str) -> list[str]:
    """Return sentences on the search budgets, and on violations of what the suite declares.

    `claimed` is `Suite.equal_budget`: "candidates", "seconds", or empty.
    """
    counted = [budget for budget in budgets if budget.candidates and not budget.is_baseline]
    if not counted:
        return []
    counts = [count for budget in counted for count in budget.candidates.values()]
    candidates = f"{span(min(counts), max(counts))} candidate{'' if max(counts) == 1 else 's'}"
    sentences = [f"Each method had {candidates} in its search."]
    if claimed:
        claim = "Within each family, methods have equal numbers of candidates"
        exceptions = [
            f"{' + '.join(budget.method)} ({span(budget.least or 0, budget.most or 0)} "
            f"instead of {span(usual[0], usual[-1])} in the family {budget.family!r})"
            for budget, usual in unequal(counted)
        ]
        sentences.append(
            f"{claim}, except: {'; '.join(exceptions)}." if exceptions else f"{claim}."
        )
    if claimed == "seconds":
        sentences += _across_families(counted)
    return sentences


def unequal(budgets: Iterable[Budget]) -> list[tuple[Budget, list[float]]]:
    """Return the methods whose numbers of candidates are not those of their family.

    Each stands with the numbers that most methods of the family have on the datasets where
    it differs; of equally frequent ones, the largest. Baselines are left out.

    Examples
    --------
    >>> rff, nystroem = (Budget((name, "ridge"), "f", {"iris": n}) for name, n in
    ...                  [("rff", 8.0), ("orthogonal-rff", 4.0)])
    >>> [(budget.method[0], usual) for budget, usual in unequal([rff, nystroem])]
    [('orthogonal-rff', [8.0])]
    """
    families = group_values((each.group, each) for each in budgets if not each.is_baseline)
    differing = []
    for methods in families.values():
        counts = group_values(pair for budget in methods for pair in budget.candidates.items())
        usual = {name: max(multimode(numbers)) for name, numbers in counts.items()}
        for budget in methods:
            differs = {usual[name] for name, n in budget.candidates.items() if n != usual[name]}
            if differs and budget.note != "whole grid":  # which left nothing to try
                differing.append((budget, sorted(differs)))
    return differing


def seconds_by_family(budgets: Iterable[Budget]) -> dict[str | Method, float]:
    """Return the CPU seconds of a search by family: geometric means over its methods.

    Methods without a search are left out.
    """
    timed = ((each.group, each.search_s) for each in budgets if each.search_s is not None)
    seconds = group_values(timed)
    return {group: mean for group, all_ in seconds.items() if (mean := geometric_mean(all_))}


def _across_families(budgets: Sequence[Budget]) -> list[str]:
    sentences = [
        "The numbers of candidates were chosen on development datasets, so that no family searches "
        "longer than the budget; a family whose whole grid takes less stops there."
    ]
    seconds = seconds_by_family(budgets)
    if len(seconds) > 1:
        shortest, *_, longest = sorted(seconds, key=seconds.__getitem__)
        sentences.append(
            f"The slowest search ({_group_named(longest)}, {duration(seconds[longest])} per split) "
            f"takes {number(seconds[longest] / seconds[shortest])} times as long as the fastest "
            f"({_group_named(shortest)}, {duration(seconds[shortest])})."
        )
    without = [" + ".join(budget.method) for budget in budgets if not budget.is_searched]
    if without:
        sentences.append(f"Without a search: {', '.join(without)}.")
    return sentences


def _group_named(group: str | Method) -> str:
    return group if isinstance(group, str) else format_method(group)


# -- digits

_MAX_DECIMALS = 6


def decimals_for(rows: Iterable[Row], metric: Metric) -> int | None:
    """Return the decimals that show two digits of the usual standard error of some means.

    The error is that of the corrected t-test. It is None if no mean has a spread.

    Examples
    --------
    >>> from kbench.features import Row
    >>> def row(sd):
    ...     metrics = {"accuracy": 0.9, "accuracy_sd": sd, "n_test": 10.0, "n_train": 40.0}
    ...     return Row("iris", "rff", "ridge", "ok", 4, 4, metrics)
    >>> [decimals_for([row(sd)], Metric("accuracy")) for sd in (0.02, 20.0)]
    [3, 0]
    >>> decimals_for([row(0.0)], Metric("accuracy")) is None
    True
    """
    errors = [
        row.value(metric.sd) * math.sqrt(1 / row.n_splits_done + holdout_ratio(row))
        for row in rows
        if row.n_splits_done and 0 < (row.value(metric.sd) or 0) < math.inf
    ]
    if not errors:
        return None
    return min(_MAX_DECIMALS, max(0, 1 - math.floor(math.log10(median(errors)))))
