"""How certain fronts and places are, in sentences and as columns of tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kbench.messages import counted
from kbench.report.content import ReportData, name_of
from kbench.report.text import Column, named, share
from kbench.results.stats import Front, FrontPlace, smallest_p


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


def of_standings(content: ReportData) -> list[dict[str, Any]]:
    """Return for each standing its status on the front, its places, and its first places."""
    found, stability = places(content, "fit_time_s"), content.certainty.stability
    rows: list[dict[str, Any]] = []
    for standing, place in zip(content.standings, found, strict=True):
        row: dict[str, Any] = {"front": place.status, "p_front": place.probability}
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
