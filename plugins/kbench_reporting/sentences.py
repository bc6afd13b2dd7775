"""How certain fronts, places and means are, and at what budgets methods were compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from kbench.features import (
    Budget,
    Column,
    Front,
    FrontPlace,
    Method,
    ReportData,
    Row,
    duration,
    geometric_mean,
    holdout_ratio,
    name_of,
    named,
    number,
    share,
    smallest_p,
)
from kbench.messages import counted
from kbench.records import Measure

# -- fronts and places


def places(content: ReportData, cost: str) -> list[FrontPlace]:
    """Return the places on the front against a cost, in the order of the standings."""
    by_method = dict(zip(content.scores.methods, content.certainty.front(cost).places, strict=True))
    return [by_method[standing.method] for standing in content.standings]


def front_sentence(content: ReportData, front: Front, title: str) -> str:
    """Say how certain the front against a cost is."""
    if front.reason:
        return f"The front against {title} has no statuses: {front.reason}."
    counts = Counter(place.status for place in front.places)
    text = (
        f"Against {title}, {counts['frontier']} of {len(front.places)} methods are certainly on "
        f"the front, {counts['dominated']} certainly are not, and {counts['undecided']} are "
        "undecided."
    )
    if front.hypervolume is not None and front.low is not None and front.high is not None:
        text += (
            f" The hypervolume is {front.hypervolume:.3g} ({front.low:.3g} to {front.high:.3g})."
        )
    return text


def of_standings(content: ReportData) -> list[dict[str, object]]:
    """Return for each standing its status on the front, its places, and its first places."""
    found, stability = places(content, "fit_time_s"), content.certainty.stability
    rows: list[dict[str, object]] = []
    for standing, place in zip(content.standings, found, strict=True):
        row: dict[str, object] = {"front": place.status, "p_front": place.probability}
        row["dominated_by"] = (
            None if place.by is None else name_of(content.scores.methods[place.by])
        )
        if content.certainty.front("fit_time_s").reason:
            row["front"] = None
        low = high = first = None
        if stability is not None:
            i = content.scores.methods.index(standing.method)
            (low, high), first = stability.places[i], stability.first[i]
        places_text = None if low is None else f"{low}" if low == high else f"{low} to {high}"
        row |= {"places": places_text, "place_low": low, "place_high": high, "p_first": first}
        rows.append(row)
    return rows


STANDING_COLUMNS = (
    Column("places", "places", numeric=True, wide=True),
    Column("place_low", numeric=True, data_only=True),
    Column("place_high", numeric=True, data_only=True),
    Column("p_first", "first in", share, True, wide=True),
    Column("front", "front"),
    Column("p_front", "P(front)", share, True, wide=True),
    Column("dominated_by", data_only=True),
)
"""Columns of `of_standings`."""


def stability_sentences(content: ReportData) -> list[str]:
    """Say how certain the order of the methods is."""
    stability = content.certainty.stability
    if stability is None:
        if len(content.scores.groups) == 1 and content.standings:
            return ["One dataset says nothing of how the order would be on others."]
        return []
    methods, groups = content.scores.methods, content.scores.groups
    leader, k = name_of(methods[stability.leader]), len(methods)
    sentences = []
    if not stability.is_tested:
        n = len(content.scores.tried)
        sentences.append(
            f"{counted(n, 'group')} of datasets cannot show which of {k} methods is first: the "
            f"smallest p of the test, {smallest_p(n):.2g}, is above {content.alpha}/{k - 1}."
        )
    elif stability.contenders == [stability.leader]:
        sentences.append(f"{leader} is significantly better than every other method.")
    else:
        names = named([name_of(methods[i]) for i in stability.contenders])
        sentences.append(f"The first place is not certain: {names} may be first on other datasets.")
    if lacking := content.scores.missing:
        names = named([f"{name_of(m)} lacks {len(lacking[m])}" for m in methods if m in lacking])
        sentences.append(
            f"Of {counted(len(content.scores.tried_datasets), 'dataset')}, {names}: a missing cell "
            "counts as the worst in a claim for its method, as the best in one against it."
        )
    sentences.append(
        f"{leader} is first in {share(stability.first[stability.leader])} of the draws of the mean "
        "ranks."
    )
    if stability.changes:
        each = [
            f"without {groups[i]} {name_of(methods[stability.without[i][0]])}"
            for i in stability.changes
        ]
        sentences.append(f"Another method is first if one is left out: {named(each)}.")
    else:
        sentences.append("It stays first whichever dataset is left out.")
    certain = sum(low == high for low, high in stability.places)
    sentences.append(
        f"Of the {counted(len(methods), 'place')}, {certain} "
        f"{'is' if certain == 1 else 'are'} certain."
    )
    return sentences


def is_stable(content: ReportData) -> bool:
    """Whether the first place of the diagram of ranks is certain."""
    stability = content.certainty.stability
    return stability is not None and stability.is_stable


# -- budgets


def span(least: float, most: float) -> str:
    """Write a range of numbers.

    >>> span(4.0, 16.0), span(8.0, 8.0)
    ('4 to 16', '8')
    """
    low, high = number(least), number(most)
    return low if low == high else f"{low} to {high}"


def budget_sentences(budgets: Sequence[Budget], claimed: str) -> list[str]:
    """Say at what budgets methods were compared, and where a claim of the suite does not hold.

    `claimed` is `Suite.budget`: "candidates", "seconds", or empty.
    """
    counted = [budget for budget in budgets if budget.candidates and not budget.is_baseline]
    if not counted:
        return []
    counts = [count for budget in counted for count in budget.candidates.values()]
    said = [f"Methods were compared at {_candidates(min(counts), max(counts))}."]
    if not claimed:
        return said
    said.append(_within_families(counted))
    if claimed == "seconds":
        said += _across_families(counted)
    return said


def _candidates(least: float, most: float) -> str:
    return f"{span(least, most)} candidate{'' if most == 1 else 's'}"


def _within_families(budgets: Sequence[Budget]) -> str:
    claim = "Within each family, methods have equal numbers of candidates"
    exceptions = [
        f"{' + '.join(budget.method)} ({span(budget.least or 0, budget.most or 0)} "
        f"beside {span(usual[0], usual[-1])} of the family {budget.family!r})"
        for budget, usual in unequal(budgets)
    ]
    return f"{claim}, except: {'; '.join(exceptions)}." if exceptions else f"{claim}."


def unequal(found: Iterable[Budget]) -> list[tuple[Budget, list[float]]]:
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
    families: dict[str | Method, list[Budget]] = {}
    for budget in found:
        if not budget.is_baseline:
            families.setdefault(budget.group, []).append(budget)
    others = []
    for methods in families.values():
        usual = _usual(methods)
        for budget in methods:
            differs = [
                usual[name] for name, count in budget.candidates.items() if count != usual[name]
            ]
            if differs:
                others.append((budget, sorted(set(differs))))
    return others


def _usual(methods: Sequence[Budget]) -> dict[str, float]:
    """Return the commonest number of candidates by dataset."""
    counts: dict[str, Counter[float]] = {}
    for budget in methods:
        for dataset, count in budget.candidates.items():
            counts.setdefault(dataset, Counter())[count] += 1
    return {
        dataset: max(counter, key=lambda count: (counter[count], count))
        for dataset, counter in counts.items()
    }


def seconds_by_family(found: Iterable[Budget]) -> dict[str | Method, float]:
    """Return the CPU seconds of a search by family: geometric means over its methods.

    Methods without a search are left out.
    """
    seconds: dict[str | Method, list[float]] = {}
    for budget in found:
        if budget.search_s is not None:
            seconds.setdefault(budget.group, []).append(budget.search_s)
    return {group: mean for group, all_ in seconds.items() if (mean := geometric_mean(all_))}


def _across_families(budgets: Sequence[Budget]) -> list[str]:
    said = [
        "Numbers of candidates were chosen on development sets so that families search for "
        "equal CPU seconds."
    ]
    seconds = seconds_by_family(budgets)
    if len(seconds) > 1:
        shortest, *_, longest = sorted(seconds, key=seconds.__getitem__)
        said.append(
            f"The family that searches longest ({_group_named(longest)}, "
            f"{duration(seconds[longest])} per split) takes "
            f"{number(seconds[longest] / seconds[shortest])} times as long as the one that "
            f"searches shortest ({_group_named(shortest)}, {duration(seconds[shortest])})."
        )
    without = [" + ".join(budget.method) for budget in budgets if not budget.is_searched]
    if without:
        said.append(f"Without a search: {', '.join(without)}.")
    return said


def _group_named(group: str | tuple[str, str]) -> str:
    return group if isinstance(group, str) else " + ".join(group)


# -- digits

_MOST_DECIMALS = 6


def decimals_for(rows: Iterable[Row], measure: Measure) -> int | None:
    """Return the decimals that show two digits of the usual standard error of some means.

    The error is that of the corrected t-test. It is None where no spread is known.

    Examples
    --------
    >>> from kbench.features import Row
    >>> def row(sd):
    ...     measures = {"accuracy": 0.9, "accuracy_sd": sd, "n_test": 10.0, "n_train": 40.0}
    ...     return Row("iris", "rff", "ridge", "ok", 4, 4, measures)
    >>> [decimals_for([row(sd)], Measure("accuracy")) for sd in (0.02, 20.0)]
    [3, 0]
    >>> decimals_for([row(0.0)], Measure("accuracy")) is None
    True
    """
    errors = [
        row.value(measure.sd) * math.sqrt(1 / row.n_splits_done + holdout_ratio(row))
        for row in rows
        if row.n_splits_done and 0 < (row.value(measure.sd) or 0) < math.inf
    ]
    if not errors:
        return None
    return min(_MOST_DECIMALS, max(0, 1 - math.floor(math.log10(median(errors)))))
