"""The content of a report: all its numbers, without markup."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kbench import machine
from kbench.records import ACCURACY, Measure, Published, TaskType
from kbench.results import stats
from kbench.results.budgets import Budget, budgets
from kbench.results.imported import ImportedRow
from kbench.results.leaderboard import Certainty, Leaderboard, of_certainty
from kbench.results.rows import (
    LABELS,
    NOT_MEASURED,
    PLAIN,
    Labels,
    Method,
    Row,
    rounded,
    task_of,
    unequal_splits,
)
from kbench.results.search_curves import CURVE
from kbench.results.stats import Scores, Standing

NO_FAILURE = ("ok", "unavailable", *NOT_MEASURED)
"""Statuses of cells that did not fail; those that were not measured are listed apart."""

ALPHA = 0.05
ROPE = 0.01
MAX_PAIRS = 300
"""Most pairs that are all listed; of more, only those with the best method."""


def name_of(method: Method) -> str:
    """Write a method for people.

    >>> name_of(("rff", "ridge"))
    'rff + ridge'
    """
    return " + ".join(method)


@dataclass(frozen=True)
class Entry:
    """One cell of the main table; its row is None where the cell was not planned.

    `mark` is "best" for the best of its dataset, "tie" for a method that the
    corrected resampled t-test does not tell apart from it, "untested" where
    there is no test (one common split, or all differences are equal), or empty.
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
    median: float
    median_low: float
    median_high: float
    wins: int
    ties: int
    losses: int
    p: float
    adjusted: float
    posterior: stats.Posterior


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

    @property
    def name(self) -> str:
        """The method, written for people."""
        return name_of(self.method)


@dataclass(frozen=True, eq=False)
class ReportData:
    """All data of a suite's report; page templates know it as ``content``.

    It is compared by identity, so that features can keep what they computed of it.

    Parameters
    ----------
    suite : str
        Its name.
    rows : list of Row
        One per cell.
    published : sequence of Published, optional
        Figures of the suite file.
    machine : mapping of str to str, optional
        Facts about the machine: name to text.
    store : str, optional
        The MLflow store that has the runs.
    without : sequence of (feature map, learner), optional
        Methods to keep out of the comparison.
    measure : Measure, default accuracy
        What is compared.
    budget : {"", "candidates", "seconds"}
        The equal budget that the suite claims.
    order : sequence of (feature map, learner), optional
        The first methods of tables; the others follow in the order of their mean ranks.
    digits : int, optional
        Decimals of the measure in tables; by the size of its values by default.
    focus : sequence of (feature map, learner), optional
        Methods that are shown beside each other one, and that stand out in tables and charts.
    links : mapping of (dataset, feature map, learner) to str, optional
        Addresses of the cells' runs, where the store is a server.
    others : sequence of ImportedRow, optional
        Rows that others computed. Only the table of them has them.
    """

    suite: str
    rows: list[Row]
    published: Sequence[Published] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    store: str = ""
    without: Sequence[Method] = ()
    measure: Measure = ACCURACY
    budget: str = ""
    order: Sequence[Method] = ()
    digits: int | None = None
    focus: Sequence[Method] = ()
    links: Mapping[Labels, str] = field(default_factory=dict)
    others: Sequence[ImportedRow] = ()

    # -- what is compared

    @cached_property
    def datasets(self) -> list[str]:
        """The datasets in the order of the rows."""
        return list(dict.fromkeys(row.dataset for row in self.rows))

    @cached_property
    def scores(self) -> Scores:
        """The measure of each method on each dataset that all of them finished."""
        return stats.scores(self.rows, self.measure, self.without)

    @cached_property
    def standings(self) -> list[Standing]:
        """The methods in the order of their mean ranks."""
        return stats.standings(self.scores, self.rows)

    @property
    def _is_tested(self) -> bool:
        # on one dataset each p is 1, and scipy.stats need not be loaded
        return bool(self.standings) and len(self.scores.gains) > 1

    @cached_property
    def adjusted(self) -> stats.Array:
        """Adjusted p values of the tests of any two methods over datasets."""
        k = len(self.scores.methods)
        return stats.wilcoxon_holm(self.scores.tried_gains) if self._is_tested else np.ones((k, k))

    @cached_property
    def friedman(self) -> stats.Friedman | None:
        """The test whether methods differ; None for two methods."""
        is_tested = self._is_tested and len(self.scores.methods) > 2
        return stats.friedman(self.scores.gains) if is_tested else None

    @cached_property
    def certainty(self) -> Certainty:
        """Fronts of the methods, and the stability of their order."""
        return Certainty(self.rows, self.scores, self.standings, ALPHA)

    @cached_property
    def methods(self) -> list[Method]:
        """All methods, in the order of tables."""
        first = [*self.order, *(standing.method for standing in self.standings)]
        every = {row.method for row in self.rows}
        in_order = dict.fromkeys([*first, *(row.method for row in self.rows)])
        return [method for method in in_order if method in every]

    # -- tables

    @cached_property
    def leaderboard(self) -> Leaderboard:
        """One line per method."""
        return of_certainty(self.certainty)

    def table(self) -> list[tuple[str, list[Entry]]]:
        """Return the main table: for each dataset an entry per method, in `methods`' order."""
        by_labels = {row.labels: row for row in self.rows}
        table = []
        for dataset in self.datasets:
            rows = [by_labels.get((dataset, *method)) for method in self.methods]
            gains = {
                row.method: self.measure.gain(rounded(row.value(self.measure.name)))
                for row in rows
                if row is not None and row.is_complete and row.value(self.measure.name) is not None
            }
            table.append((dataset, [Entry(row, self._mark(row, rows, gains)) for row in rows]))
        return table

    def _mark(
        self, row: Row | None, rows: Sequence[Row | None], gains: Mapping[Method, float]
    ) -> str:
        """Mark a row of a dataset, beside those that have a gain; a single one has no mark."""
        if row is None or row.method not in gains or len(gains) < 2:
            return ""
        best_gain = max(gains.values())
        if gains[row.method] == best_gain:
            return "best"
        best = next(r for r in rows if r is not None and gains.get(r.method) == best_gain)
        test = stats.on_dataset(best, row, self.measure, ALPHA)
        if test is None or test.p is None:
            return "untested"
        return "tie" if test.p > ALPHA else ""

    def cliques(self) -> list[list[int]]:
        """Return the places (from 0) in `standings` that no test tells apart."""
        index = self._columns()
        p = self.adjusted[np.ix_(index, index)]
        return stats.cliques([standing.rank for standing in self.standings], p, ALPHA)

    def _columns(self) -> list[int]:
        return [self.scores.methods.index(standing.method) for standing in self.standings]

    def pairs(self) -> list[Pair]:
        """Compare methods two by two, in the order of their mean ranks.

        A missing cell counts in the tests against the method that is better by them.
        """
        values, gains, index = self.scores.values, self.scores.gains, self._columns()
        tried = self.scores.tried_gains
        counted = stats.wins_ties_losses(gains)
        chosen: Iterable[tuple[int, int]] = itertools.combinations(index, 2)
        if self.shortened:
            chosen = ((index[0], j) for j in index[1:])
        pairs = []
        for i, j in chosen:
            d, gained = values[:, i] - values[:, j], tried[:, i] - tried[:, j]
            test, ahead = stats.signed_rank(gained), np.sign(np.nansum(gained))
            gained[np.isnan(gained)] = -ahead * np.inf if ahead else 0.0
            wins, ties, losses = map(int, counted[i, j])
            pairs.append(
                Pair(
                    self.scores.methods[i],
                    self.scores.methods[j],
                    float(d.mean()),
                    *stats.mean_interval(d),
                    *stats.median_interval(d),
                    wins,
                    ties,
                    losses,
                    p=test.p,
                    adjusted=float(self.adjusted[i, j]),
                    posterior=stats.bayesian_signed_rank(gained, ROPE, n_samples=10_000),
                )
            )
        return pairs

    @property
    def best_mean(self) -> float:
        """The best mean of the measure over datasets; there must be standings."""
        return max((standing.mean for standing in self.standings), key=self.measure.gain)

    @property
    def alpha(self) -> float:
        """Level of the tests."""
        return ALPHA

    @property
    def shortened(self) -> bool:
        """Whether `pairs` holds those with the best method only."""
        return math.comb(len(self.standings), 2) > MAX_PAIRS

    @property
    def task(self) -> TaskType:
        """The task of the datasets."""
        return task_of(self.rows)

    @property
    def plain(self) -> Measure | None:
        """The plain measure of the task, if another one is compared and the rows have it."""
        plain = PLAIN[self.task]
        has_it = any(row.value(plain.name) is not None for row in self.rows)
        return plain if plain != self.measure and has_it else None

    def unmeasured(self) -> list[Method]:
        """Return the methods that finished datasets and have the measure on none of them."""
        return stats.unmeasured(self.rows, self.measure)

    def budgets(self) -> list[Budget]:
        """Return the budgets of the methods, those of a family together.

        They are over the datasets that all methods finished, else over all.
        """
        found = budgets(self.rows, self.scores.datasets or self.datasets, self.measure)
        place = {method: i for i, method in enumerate(self.methods)}
        found.sort(key=lambda budget: place[budget.method])
        first: dict[str | Method, int] = {}
        for i, budget in enumerate(found):
            first.setdefault(budget.group, i)
        return sorted(found, key=lambda budget: first[budget.group])

    def sizes(self) -> list[int]:
        """Return the numbers of training rows of what is compared, where they vary.

        Empty where there are fewer than three, or the largest is not four
        times the smallest: no growth can be fitted then.
        """
        sizes = sorted({round(row.measures["n_train"]) for row in self._sized()})
        return sizes if len(sizes) > 2 and sizes[-1] >= 4 * sizes[0] else []

    def _sized(self) -> list[Row]:
        """Return the complete rows of the compared datasets whose training rows are known."""
        compared = set(self.scores.datasets)
        return [
            row
            for row in self.rows
            if row.dataset in compared and row.is_complete and row.measures.get("n_train")
        ]

    def growth(self) -> list[Growth]:
        """Return the growth of fit times with the number of training rows, where sizes vary."""
        if not self.sizes():
            return []
        seconds: dict[Method, dict[int, list[float]]] = {}
        for row in self._sized():
            if fit_time_s := row.measures.get("fit_time_s"):
                by_size = seconds.setdefault(row.method, {})
                by_size.setdefault(round(row.measures["n_train"]), []).append(fit_time_s)
        growth = []
        for standing in self.standings:
            by_size = seconds.get(standing.method, {})
            if len(by_size) < 3:
                continue
            points = [(n, math.exp(np.mean(np.log(by_size[n])))) for n in sorted(by_size)]
            exponent, r2 = _power(points)
            count = sum(map(len, by_size.values()))
            growth.append(Growth(standing.place, standing.method, points, exponent, r2, count))
        return growth

    def searched(self) -> list[dict[str, object]]:
        """Return the points of the search curves, a row each; those of a curve together."""
        return [
            {
                **dict(zip(LABELS, row.labels, strict=True)),
                "parameter": parameter,
                "measure": measure.name,
                **dict(zip(CURVE, point, strict=True)),
            }
            for row in self.rows
            if (measure := row.searched) is not None
            for parameter, points in row.search.items()
            for point in points
        ]

    # -- what was run

    def period(self) -> tuple[str, str]:
        """Return when the first task began and the last ended (UTC)."""
        begun = [row.start_ms for row in self.rows if row.start_ms]
        ended = [row.end_ms for row in self.rows if row.end_ms]
        return _written(min(begun, default=0)), _written(max(ended, default=0))

    def protocols(self) -> list[dict[str, str]]:
        """Return the protocols of the rows, each once."""
        protocols = {tuple(sorted(row.protocol.items())): row.protocol for row in self.rows}
        return [dict(protocol) for protocol in protocols.values() if protocol]

    def versions(self) -> list[str]:
        """Return the versions of kbench behind the rows."""
        return sorted({row.version for row in self.rows if row.version})

    def failures(self) -> list[Row]:
        """Return the rows that failed."""
        return [row for row in self.rows if row.status not in NO_FAILURE]

    def skipped(self) -> list[Row]:
        """Return the rows that were not measured, because they would not fit or were not begun."""
        return [row for row in self.rows if row.status in NOT_MEASURED]

    def partial(self) -> list[Row]:
        """Return the rows that are ok on fewer splits than planned."""
        ok = (row for row in self.rows if row.status == "ok")
        return [row for row in ok if row.n_splits_done < row.n_splits]

    def unequal(self) -> dict[str, str]:
        """Return the datasets whose rows have different splits, and how they differ."""
        return unequal_splits(self.rows)

    def unavailable(self) -> dict[str, tuple[int, str]]:
        """Return for each dataset without data the number of its cells, and why."""
        missing: dict[str, tuple[int, str]] = {}
        for row in self.rows:
            if row.status == "unavailable":
                count, reason = missing.get(row.dataset, (0, row.error))
                missing[row.dataset] = count + 1, reason
        return missing

    def not_converged(self) -> list[Row]:
        """Return the rows in which a fit did not converge."""
        return [row for row in self.rows if row.converged is False]

    def busy(self) -> int:
        """Count the rows during which the machine had other work."""
        return sum(bool(row.contention) for row in self.rows)

    def with_notes(self) -> list[tuple[str, str]]:
        """Return the notes of evaluations, and parameters chosen at the edge of their grid."""
        noted: dict[str, list[Row]] = {}
        for row in self.rows:
            if row.notes:
                noted.setdefault(row.notes, []).append(row)
            if row.at_edge:
                text = f"chosen at the edge of its grid: {row.at_edge}"
                noted.setdefault(text, []).append(row)
        return [(text, _places(rows)) for text, rows in noted.items()]


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
    """List the cells of a remark; a few of them where there are many."""
    names = [f"{name_of(r.method)} on {r.dataset}" for r in rows]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def machine_facts(owner: str) -> dict[str, str]:
    """Describe the machine of the runs, as far as it is known here."""
    here = machine.describe()
    if here.id != owner:
        return {"machine": owner}
    versions = ", ".join(f"{name} {version}" for name, version in here.versions.items())
    return {
        "machine": owner,
        "cpu": here.cpu,
        "cores": f"{here.physical_cores} ({here.logical_cores} hardware threads)",
        "memory": f"{here.memory_mb / 1024:.1f} GB",
        "system": here.system,
        "versions now": versions,
    }
