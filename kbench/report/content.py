"""The data of a report: rows, and what is compared over datasets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kbench import machine
from kbench.records import ACCURACY, Metric, Published, TaskType
from kbench.results import stats
from kbench.results.imported import ImportedRow
from kbench.results.leaderboard import Certainty, Leaderboard, make_leaderboard
from kbench.results.rows import NOT_MEASURED, Labels, Method, Row, find_row_task
from kbench.results.stats import ALPHA, Scores, Standing

# Statuses of cells that did not fail; those that were not measured are listed apart.
NO_FAILURE = ("ok", "unavailable", *NOT_MEASURED)

ROPE = 0.01


def format_method(method: Method) -> str:
    """Write a method for people.

    >>> format_method(("rff", "ridge"))
    'rff + ridge'
    """
    return " + ".join(method)


@dataclass(frozen=True, eq=False)
class ReportData:
    """The data of a suite's report; page templates know it as ``content``.

    It is compared by identity, so that features can keep what they computed of it.

    Parameters
    ----------
    suite : str
        Its name.
    rows : list of Row
        One per cell.
    published : sequence of Published, optional
        Published values of the suite file.
    machine : mapping of str to str, optional
        Facts about the machine, by name.
    store : str, optional
        The MLflow store that has the runs.
    without : sequence of (feature map, learner), optional
        Methods to keep out of the comparison.
    metric : Metric, default accuracy
        What is compared.
    budget : {"", "candidates", "seconds"}
        The equal budget that the suite declares.
    order : sequence of (feature map, learner), optional
        The first methods of tables; the others follow, ordered by their mean ranks.
    digits : int, optional
        Decimals of the metric in tables; by default they depend on its values.
    focus : sequence of (feature map, learner), optional
        Methods that are compared with each other method, and highlighted in tables and charts.
    links : mapping of (dataset, feature map, learner) to str, optional
        URLs of the cells' runs, if the store is a server.
    imported : sequence of ImportedRow, optional
        Imported results, for the table of that name only.
    """

    suite: str
    rows: list[Row]
    published: Sequence[Published] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    store: str = ""
    without: Sequence[Method] = ()
    metric: Metric = ACCURACY
    budget: str = ""
    order: Sequence[Method] = ()
    digits: int | None = None
    focus: Sequence[Method] = ()
    links: Mapping[Labels, str] = field(default_factory=dict)
    imported: Sequence[ImportedRow] = ()

    # -- what is compared

    @cached_property
    def datasets(self) -> list[str]:
        """The datasets in the order of the rows."""
        return list(dict.fromkeys(row.dataset for row in self.rows))

    @cached_property
    def scores(self) -> Scores:
        """The metric of each method on each dataset that all methods finished."""
        return stats.scores(self.rows, self.metric, self.without)

    @cached_property
    def standings(self) -> list[Standing]:
        """The methods in the order of their mean ranks."""
        return stats.standings(self.scores, self.rows)

    @cached_property
    def adjusted(self) -> stats.Array:
        """Adjusted p of any two methods over datasets: the worse one is worse than the other."""
        stability, k = self.certainty.stability, len(self.scores.methods)
        return np.minimum(stability.p, stability.p.T) if stability else np.ones((k, k))

    @cached_property
    def friedman(self) -> stats.Friedman | None:
        """The test whether methods differ; None for two methods."""
        is_tested = self.certainty.stability and len(self.scores.methods) > 2
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

    @cached_property
    def leaderboard(self) -> Leaderboard:
        """One line per method."""
        return make_leaderboard(self.certainty)

    @property
    def task(self) -> TaskType:
        """The task of the datasets."""
        return find_row_task(self.rows)


def machine_facts(owner: str) -> dict[str, str]:
    """Describe the machine of the runs: only its name if it is another machine."""
    facts = machine.describe()
    if facts.id != owner:
        return {"machine": owner}
    return {
        "machine": owner,
        "cpu": facts.cpu,
        "cores": f"{facts.physical_cores} ({facts.logical_cores} hardware threads)",
        "memory": f"{facts.memory_mib / 1024:.1f} GiB",
        "system": facts.system,
        "versions now": ", ".join(f"{name} {version}" for name, version in facts.versions.items()),
    }
