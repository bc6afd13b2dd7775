"""What a page says: every number of it, and no markup."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kbench.records import ACCURACY, Measure, Published
from kbench.results import stats
from kbench.results.order import unequal_splits
from kbench.results.published import Beside, beside_published
from kbench.results.rows import Method, Row
from kbench.results.search_curves import CURVE
from kbench.results.stats import Scores, Standing

ALPHA = 0.05
ROPE = 0.01
MAX_PAIRS = 300
"""Pairs that are listed one by one; beyond, only those with the best method."""


def name_of(method: Method) -> str:
    """Return what people read for a method.

    >>> name_of(("rff", "ridge"))
    'rff + ridge'
    """
    return " + ".join(method)


@dataclass(frozen=True)
class Entry:
    """One cell of the main table.

    Parameters
    ----------
    row : dict or None
        The results row; None where the cell was not planned.
    mark : {"best", "tie", ""}
        Best of its dataset, or not told apart from it by the corrected
        resampled t-test.
    """

    row: Row | None
    mark: str = ""


@dataclass(frozen=True)
class Pair:
    """Two methods compared over datasets; the first has the better mean rank."""

    first: Method
    second: Method
    difference: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    p: float
    adjusted: float
    posterior: stats.Posterior


@dataclass(frozen=True)
class Growth:
    """How a method's fit time grows with the number of training rows.

    Parameters
    ----------
    place : int
        The method's place in the standings.
    method : (str, str)
    points : list of (int, float)
        Training rows, and seconds: the geometric mean over the datasets of
        that size.
    exponent, r2 : float
        Of the line through the logarithms of both, by least squares: time
        grows as rows to the `exponent`.
    n_datasets : int
    """

    place: int
    method: Method
    points: list[tuple[int, float]]
    exponent: float
    r2: float
    n_datasets: int

    @property
    def name(self) -> str:
        """What people read."""
        return name_of(self.method)


@dataclass(frozen=True)
class Content:
    """All that is said about a suite.

    Parameters
    ----------
    suite : str
        Its name.
    rows : list of Row
        One per cell.
    published : sequence of Published, optional
        Figures of the suite file.
    machine : mapping of str to str, optional
        What is known of the machine: name to text.
    store : str, optional
        Where the runs are.
    without : sequence of (feature map, learner), optional
        Methods to keep out of the comparison.
    measure : Measure, default accuracy
        What is compared.
    """

    suite: str
    rows: list[Row]
    published: Sequence[Published] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    store: str = ""
    without: Sequence[Method] = ()
    measure: Measure = ACCURACY
    datasets: list[str] = field(init=False)
    methods: list[Method] = field(init=False)
    scores: Scores = field(init=False)
    standings: list[Standing] = field(init=False)
    adjusted: stats.Array = field(init=False)
    friedman: stats.Friedman | None = field(init=False)

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        put("datasets", list(dict.fromkeys(row.dataset for row in self.rows)))
        put("scores", stats.scores(self.rows, self.measure, self.without))
        values = self.scores.gains
        put("standings", stats.standings(self.scores, self.rows))
        ranked = bool(self.standings)
        put("adjusted", stats.wilcoxon_holm(values) if ranked else np.ones((len(values.T),) * 2))
        n, k = values.shape
        put("friedman", stats.friedman(values) if n > 1 and k > 2 else None)
        order = {each.method: each.place for each in self.standings}
        methods = dict.fromkeys(row.method for row in self.rows)
        put("methods", sorted(methods, key=lambda method: order.get(method, math.inf)))

    # -- tables

    def table(self) -> list[tuple[str, list[Entry]]]:
        """Return the main table: for each dataset an entry per method, in `methods`' order."""
        by_place = {r.labels: r for r in self.rows}
        found = []
        for dataset in self.datasets:
            rows = [by_place.get((dataset, *method)) for method in self.methods]
            gains = {
                i: self.measure.gain(round(row.value(self.measure.name), 12))
                for i, row in enumerate(rows)
                if row is not None and row.is_complete and row.value(self.measure.name) is not None
            }
            top = max(gains.values(), default=None)
            best = next((rows[i] for i, gain in gains.items() if gain == top), None)
            entries = []
            for i, row in enumerate(rows):
                mark = ""
                if row is not None and best is not None and i in gains and len(gains) > 1:
                    told = None if gains[i] == top else on_dataset(best, row, self.measure)
                    mark = "best" if gains[i] == top else ""
                    mark = "tie" if told is not None and told.p > ALPHA else mark
                entries.append(Entry(row, mark))
            found.append((dataset, entries))
        return found

    def cliques(self) -> list[list[int]]:
        """Return the places (from 0) in `standings` that no test tells apart."""
        index = self._columns()
        p = self.adjusted[np.ix_(index, index)]
        return stats.cliques([each.rank for each in self.standings], p, ALPHA)

    def _columns(self) -> list[int]:
        return [self.scores.methods.index(each.method) for each in self.standings]

    def pairs(self) -> list[Pair]:
        """Compare methods two by two, in the order of their mean ranks."""
        values, gains, index = self.scores.values, self.scores.gains, self._columns()
        counted = stats.wins_ties_losses(gains)
        chosen: Iterable[tuple[int, int]] = itertools.combinations(index, 2)
        if self.shortened:
            chosen = ((index[0], j) for j in index[1:])
        found = []
        for i, j in chosen:
            d, gained = values[:, i] - values[:, j], gains[:, i] - gains[:, j]
            low, high = stats.bootstrap_interval(d)
            wins, ties, losses = (int(count) for count in counted[i, j])
            found.append(
                Pair(
                    self.scores.methods[i],
                    self.scores.methods[j],
                    difference=float(d.mean()),
                    low=low,
                    high=high,
                    wins=wins,
                    ties=ties,
                    losses=losses,
                    p=stats.signed_rank(d).p,
                    adjusted=float(self.adjusted[i, j]),
                    posterior=stats.bayesian_signed_rank(gained, ROPE, n_samples=10_000),
                )
            )
        return found

    @property
    def best_mean(self) -> float:
        """The best mean of the measure over datasets; there must be standings."""
        return max((each.mean for each in self.standings), key=self.measure.gain)

    @property
    def alpha(self) -> float:
        """Level of the tests."""
        return ALPHA

    @property
    def shortened(self) -> bool:
        """Whether `pairs` holds those with the best method only."""
        return math.comb(len(self.standings), 2) > MAX_PAIRS

    def beside_published(self) -> list[Beside]:
        """Return ours beside the figures that papers print."""
        return beside_published(self.rows, self.published, self.measure)

    def sizes(self) -> list[int]:
        """Return the numbers of training rows of what is compared, where they vary.

        Empty where there are fewer than three, or the largest is not four
        times the smallest: no growth can be told then.
        """
        compared = set(self.scores.datasets)
        found = {
            round(row.measures["n_train"])
            for row in self.rows
            if row.dataset in compared and row.is_complete and row.measures.get("n_train")
        }
        return sorted(found) if len(found) > 2 and max(found) >= 4 * min(found) else []

    def growth(self) -> list[Growth]:
        """Return how fit times grow with the number of training rows, where sizes vary."""
        if not self.sizes():
            return []
        compared = set(self.scores.datasets)
        seconds: dict[Method, dict[int, list[float]]] = {}
        for row in self.rows:
            known = row.measures.get("n_train") and row.measures.get("fit_time_s")
            if row.dataset in compared and row.is_complete and known:
                by_size = seconds.setdefault(row.method, {})
                by_size.setdefault(round(row.measures["n_train"]), []).append(
                    row.measures["fit_time_s"]
                )
        found = []
        for each in self.standings:
            by_size = seconds.get(each.method, {})
            if len(by_size) < 3:
                continue
            points = [(n, math.exp(np.mean(np.log(by_size[n])))) for n in sorted(by_size)]
            exponent, r2 = _power(points)
            count = sum(map(len, by_size.values()))
            found.append(Growth(each.place, each.method, points, exponent, r2, count))
        return found

    def searched(self) -> list[dict[str, Any]]:
        """Return the points of what searches saw, a row each; those of a curve together."""
        return [
            {
                **dict(zip(("dataset", "feature_map", "learner"), row.labels, strict=True)),
                "parameter": parameter,
                **dict(zip(CURVE, point, strict=True)),
            }
            for row in self.rows
            for parameter, points in row.search.items()
            for point in points
        ]

    def curves(self) -> dict[str, Any]:
        """Return what the page needs to draw what searches saw: by method, parameter, dataset."""
        place = {method: i for i, method in enumerate(self.methods)}
        found: dict[int, dict[str, list[list[Any]]]] = {}
        for row in self.rows:
            for parameter, points in row.search.items():
                by_parameter = found.setdefault(place[row.method], {})
                number = self.datasets.index(row.dataset)
                by_parameter.setdefault(parameter, []).append([number, points])
        return {
            "methods": [[name_of(self.methods[i]), found[i]] for i in sorted(found)],
            "datasets": self.datasets,
        }

    # -- what was run

    def period(self) -> tuple[str, str]:
        """Return when the first task began and the last ended (UTC)."""
        begun = [row.start_ms for row in self.rows if row.start_ms]
        ended = [row.end_ms for row in self.rows if row.end_ms]
        return _written(min(begun, default=0)), _written(max(ended, default=0))

    def protocols(self) -> list[dict[str, str]]:
        """Return the protocols of the rows, each once."""
        found = {tuple(sorted(row.protocol.items())): row.protocol for row in self.rows}
        return [dict(each) for each in found.values() if each]

    def versions(self) -> list[str]:
        """Return the versions of kbench behind the rows."""
        return sorted({row.version for row in self.rows if row.version})

    def failures(self) -> list[Row]:
        """Return the rows that failed."""
        return [row for row in self.rows if row.status not in ("ok", "unavailable")]

    def partial(self) -> list[Row]:
        """Return the rows that are ok on fewer splits than planned."""
        ok = (row for row in self.rows if row.status == "ok")
        return [row for row in ok if row.n_splits_done < row.n_splits]

    def unequal(self) -> dict[str, tuple[int, int]]:
        """Return the datasets whose rows have unequal numbers of splits: least and largest."""
        return unequal_splits(self.rows)

    def unavailable(self) -> dict[str, tuple[int, str]]:
        """Return for each dataset without data the number of its cells, and why."""
        found: dict[str, tuple[int, str]] = {}
        for row in self.rows:
            if row.status == "unavailable":
                count, reason = found.get(row.dataset, (0, row.error))
                found[row.dataset] = count + 1, reason
        return found

    def not_converged(self) -> list[Row]:
        """Return the rows in which a fit did not converge."""
        return [row for row in self.rows if row.converged is False]

    def busy(self) -> int:
        """Count the rows during which the machine had other work."""
        return sum(bool(row.contention) for row in self.rows)

    def with_notes(self) -> list[tuple[str, str]]:
        """Return what evaluations noted, and parameters chosen at the edge of their grid."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            if row.notes:
                found.setdefault(row.notes, []).append(row)
            if row.at_edge:
                text = f"chosen at the edge of its grid: {row.at_edge}"
                found.setdefault(text, []).append(row)
        return [(text, _places(rows)) for text, rows in found.items()]

    def splits_by_cell(self) -> dict[str, Any]:
        """Return what the page needs to compare any two methods on each dataset.

        All of the measure; rounded to six digits.
        """
        from scipy.stats import t

        place = {method: i for i, method in enumerate(self.methods)}
        cells = []
        for row in self.rows:
            value = row.value(self.measure.name)
            if row.status != "ok" or value is None:
                continue
            hashes = row.split_hash
            by_split = {
                f"{i}/{str(hashes.get(i, ''))[:6]}": round(each, 6)
                for i, each in row.by_split(self.measure.name).items()
            }
            cells.append(
                [
                    self.datasets.index(row.dataset),
                    place[row.method],
                    round(value, 6),
                    round(stats.holdout_ratio(row), 6),
                    by_split,
                ]
            )
        most = max((len(cell[4]) for cell in cells), default=0)
        return {
            "datasets": self.datasets,
            "methods": [name_of(method) for method in self.methods],
            "cells": cells,
            "sign": self.measure.gain(1),
            "t": [
                0.0,
                0.0,
                *(round(float(t.ppf(1 - ALPHA / 2, n - 1)), 4) for n in range(2, most + 1)),
            ],
        }


def on_dataset(first: Row, second: Row, measure: Measure = ACCURACY) -> stats.CorrectedT | None:
    """Compare two rows of a dataset over the splits that both have.

    Returns
    -------
    CorrectedT or None
        None where fewer than two splits are the same.
    """
    a, b = first.by_split(measure.name), second.by_split(measure.name)
    ours, theirs = first.split_hash, second.split_hash
    common = [i for i in a if i in b and ours.get(i) == theirs.get(i)]
    if len(common) < 2:
        return None
    return stats.corrected_t([a[i] - b[i] for i in common], stats.holdout_ratio(first), ALPHA)


def _power(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Fit log y = a + b log x by least squares; return b and R squared."""
    x, y = np.log(np.array(points, dtype=float)).T
    slope, intercept = np.polyfit(x, y, 1)
    residual = float(np.sum((y - intercept - slope * x) ** 2))
    total = float(np.sum((y - y.mean()) ** 2))
    return float(slope), 1 - residual / total if total > 0 else 1.0


def _written(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(ms / 1000)) if ms else "not known"


def _places(rows: Sequence[Row]) -> str:
    """Name the cells of a remark; a few of them where there are many."""
    names = [f"{name_of(r.method)} on {r.dataset}" for r in rows]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
