"""One method against every other method: its wins on datasets, and its rank."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean as mean

import numpy as np

from kbench.records import ACCURACY, Metric
from kbench.results.rows import Method, Row, group_values, round_mean
from kbench.results.stats import ALPHA, common_splits, flip_p, on_dataset


@dataclass(frozen=True)
class Against:
    """A method against another, over the datasets that both finished.

    `won`, `tied` and `lost` count datasets by the corrected resampled t-test; a dataset is tied if
    the difference is not significant. `untested` ones have one common split, or equal differences
    other than zero on all splits. `difference` is the mean over the groups of datasets of the
    difference on common splits, the method's less the other's; NaN if values of several datasets
    have several units. `p` is that of the claim that the method is better, or that it is worse,
    over the groups: the smaller one, adjusted for all others (`kbench.results.stats.flip_p`).
    `verdict` is one of "better", "worse" and "not distinguishable": over the groups, each at level
    0.05.
    """

    other: Method
    won: int
    tied: int
    lost: int
    untested: int
    difference: float
    p: float
    verdict: str

    @property
    def n_datasets(self) -> int:
        """Number of datasets that both finished."""
        return self.won + self.tied + self.lost + self.untested


@dataclass(frozen=True)
class Place:
    """Rank of a method on a dataset, and the best of the others there.

    `rank` is 1 for the best, with ties at the mean of their ranks, among `of` methods.
    """

    dataset: str
    rank: float
    of: int
    value: float
    best: Method
    best_value: float


def against(rows: Sequence[Row], method: Method, metric: Metric = ACCURACY) -> list[Against]:
    """Compare a method with each other method of some rows; the strongest others come first."""
    rows = _list_measured(rows, metric)
    ours = {row.dataset: row for row in rows if row.method == method}
    pairs_of = group_values(
        (row.method, (ours[row.dataset], row))
        for row in rows
        if row.method != method
        and row.dataset in ours
        and common_splits(ours[row.dataset], row, metric.name)
    )
    group_of = {row.dataset: row.dataset_family for row in rows}
    finished = {row.labels for row in rows}
    differences_of = {other: _differences(pairs, metric) for other, pairs in pairs_of.items()}
    for other, differences in differences_of.items():
        for name, group in group_of.items():
            if name not in ours or (name, *other) not in finished:
                differences[group] = math.nan  # counts against what is claimed
    groups = list(dict.fromkeys(group for each in differences_of.values() for group in each))
    gains = np.array(
        [
            [metric.gain(each.get(name, math.nan)) for each in differences_of.values()]
            for name in groups
        ]
    )
    better, worse = (flip_p(sign * gains)[1] for sign in (1, -1)) if differences_of else ((), ())
    compared = [
        _against(other, pairs_of[other], [*differences_of[other].values()], metric, *map(float, p))
        for other, *p in zip(differences_of, better, worse, strict=True)
    ]
    return sorted(compared, key=lambda each: (each.won - each.lost, metric.gain(each.difference)))


def places(rows: Sequence[Row], method: Method, metric: Metric = ACCURACY) -> list[Place]:
    """Return where a method stands on each dataset that it finished, the best places first.

    Means are over the method's splits; others that lack some of these do not count.
    """
    places = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        row_of = {row.method: row for row in _list_measured(rows, metric) if row.dataset == dataset}
        mine = row_of.pop(method, None)
        if mine is None:
            continue
        splits = mine.by_split(metric.name)
        ours = round_mean(metric.gain(mean(splits.values())))
        # others may have more splits, but not fewer
        values = {
            other: round_mean(metric.gain(mean(row.by_split(metric.name)[i] for i in splits)))
            for other, row in row_of.items()
            if len(common_splits(mine, row, metric.name)) == len(splits)
        }
        if not values:
            continue
        better = sum(value > ours for value in values.values())
        tied = sum(value == ours for value in values.values())
        best = max(values, key=values.__getitem__)
        pair = (metric.gain(ours), best, metric.gain(values[best]))
        places.append(Place(dataset, 1 + better + tied / 2, len(values) + 1, *pair))
    return sorted(places, key=lambda place: (place.rank - 1) / (place.of - 1))


def _list_measured(rows: Sequence[Row], metric: Metric) -> list[Row]:
    """Return the rows that finished all splits and have the metric."""
    return [row for row in rows if row.is_complete and row.value(metric.name) is not None]


def _differences(pairs: Sequence[tuple[Row, Row]], metric: Metric) -> dict[str, float]:
    """Return for each group of datasets the mean difference, on splits that both rows have."""
    values: dict[str, list[float]] = {}
    for pair in pairs:
        common = common_splits(*pair, metric.name)
        ours, other = (mean(row.by_split(metric.name)[i] for i in common) for row in pair)
        group = pair[0].dataset_family or pair[0].dataset
        values.setdefault(group, []).append(round_mean(ours) - round_mean(other))
    return {group: mean(differences) for group, differences in values.items()}


def _against(
    other: Method,
    pairs: Sequence[tuple[Row, Row]],
    differences: Sequence[float],
    metric: Metric,
    better: float,
    worse: float,
) -> Against:
    outcomes = [_outcome(ours, theirs, metric) for ours, theirs in pairs]
    counts = {name: outcomes.count(name) for name in ("won", "tied", "lost", "untested")}
    finite = [each for each in differences if not math.isnan(each)]
    mean = sum(finite) / len(finite) if finite else math.nan
    p, verdict = min((better, "better"), (worse, "worse"))
    if p > ALPHA:
        verdict = "not distinguishable"
    comparable = not metric.in_units or len(pairs) == 1
    return Against(
        other, **counts, difference=mean if comparable else math.nan, p=p, verdict=verdict
    )


def _outcome(ours: Row, theirs: Row, metric: Metric) -> str:
    """Return what the test on one dataset says."""
    test = on_dataset(ours, theirs, metric, ALPHA)
    if test is None or (test.p is None and not test.is_zero):
        return "untested"
    if test.p is None or test.p > ALPHA:
        return "tied"
    return "won" if metric.gain(test.difference) > 0 else "lost"
