"""Results that are read back: a query for them, what is found, and which are out of date.

A result is out of date once its code, data or dependencies have changed.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from kbench.errors import SuiteError
from kbench.messages import list_some, option, plural, similar
from kbench.planning.cached_results import Validity
from kbench.planning.component_refs import get_experiment
from kbench.planning.planner import Planner
from kbench.planning.plans import Plans
from kbench.records import Metric
from kbench.results.row_builders import make_full_row
from kbench.results.rows import UNKNOWN, Labels, Row, sort_by_dataset
from kbench.storage.journal import journals


@dataclass(frozen=True)
class Query:
    """Which results are wanted.

    Parameters
    ----------
    suite : str
        Its name, or the path of its file.
    given : mapping of str to object
        Options of features, by name, such as the store.
    machine : str, optional
        Id of the machine that computed them, or "all". By default this machine, else the
        machine that wrote last.
    superseded : bool, default False
        Also results of earlier code, data or labels.
    outdated : bool, default False
        Also results that are out of date: their rows say so.
    file : str
        A file to read instead of a location; empty for none.
    notice : callable
        Called with a message that names the machine, if there is a choice.
    """

    suite: str
    given: Mapping[str, Any] = field(default_factory=dict)
    machine: str | None = None
    superseded: bool = False
    outdated: bool = False
    file: str = ""
    notice: Callable[[str], None] = lambda message: None


@dataclass(frozen=True)
class StoredResults:
    """Results of a suite: at least one row, ordered by dataset.

    Parameters
    ----------
    rows : list of Row
    name : str
        The name of the suite there.
    metric : Metric
        What the suite compares.
    budget : str
        The equal budget that the suite declares.
    source : str
        Where they are, without credentials.
    links : mapping
        The URL of a page for a row, by its labels.
    left_out : str
        How many cells are out of date and left out, and why; empty for none.
    is_imported : bool
        Others computed them: they have no times.
    """

    rows: list[Row]
    name: str
    metric: Metric
    budget: str = ""
    source: str = ""
    links: Mapping[Labels, str] = field(default_factory=dict)
    left_out: str = ""
    is_imported: bool = False


def read_journal(query: Query) -> StoredResults:
    """Read the results of a suite that this machine, or its clusters, computed.

    Raises SuiteError if there are none.
    """
    name = get_experiment(query.suite)
    suites: set[str] = set()
    for place, journal in journals().items():
        if query.machine not in (None, "all", place):
            continue
        plans = Plans(journal)
        suites |= plans.suites().keys()
        cells, metric = plans.cells(name)
        rows = [make_full_row(cell, place, metric) for cell in cells if cell.is_finished]
        if rows:
            return StoredResults(
                sort_by_dataset(rows), name, metric, plans.budget(name), str(journal.path)
            )
    names = sorted(suites)
    hint = similar(name, names) or (f"; it has results of {list_some(names)}" if names else "")
    raise SuiteError(f"the journal has no results of {name!r}{hint}")


def mark_outdated(stored: StoredResults, planner: Planner) -> StoredResults:
    """Return stored results whose rows say whether they are out of date.

    Rows of other machines do not: their inputs are on that machine. Data are those of the
    planner's cache; a dataset that is not cached counts as unknown.
    """
    present = planner.present
    places = {place: Validity(journal, present) for place, journal in journals().items()}
    data = {
        (place, label): line
        for place, validity in places.items()
        for label, line in Plans(validity.journal).datasets(stored.name).items()
    }

    @cache
    def why_data(place: str, label: str, checksum: str) -> str:
        ref, old = data.get((place, label), (None, ""))
        changed = ref is not None and checksum == old and planner.has_other_data(ref, checksum)
        return f"the data of {label} changed" if changed else ""

    def marked(row: Row) -> Row:
        made_from = row.made_from.split() or [UNKNOWN] * bool(row.n_splits_done)
        if stored.is_imported or row.machine not in places:
            return row
        why = [places[row.machine].explain("" if each == UNKNOWN else each) for each in made_from]
        why.append(why_data(row.machine, row.dataset, row.checksum))
        outdated = "; ".join(dict.fromkeys(filter(None, why)))
        if not outdated:
            return row
        notes = "; ".join(filter(None, (f"out of date: {outdated}", row.notes)))
        return replace(row, outdated=outdated, notes=notes)

    rows = [marked(row) for row in stored.rows]
    present.save()
    return replace(stored, rows=rows)


def current(stored: StoredResults, notice: Callable[[str], None]) -> StoredResults:
    """Return stored results without those that are out of date, which a notice counts.

    Raises SuiteError if none is left.
    """
    counts = Counter(row.outdated for row in stored.rows if row.outdated)
    if not counts:
        return stored
    why = "; ".join(f"{reason}: {plural(n, 'cell')}" for reason, n in counts.most_common(5))
    shows = option("outdated", True)
    advice = f"`kbench suite {stored.name}` computes them again, and {shows} shows them"
    rows = [row for row in stored.rows if not row.outdated]
    if not rows:
        raise SuiteError(f"all results of {stored.name!r} are out of date ({why}); {advice}")
    n_cells = plural(len(stored.rows), "cell")
    left_out = f"{counts.total()} of {n_cells} are out of date and left out ({why})"
    notice(f"{left_out}; {advice}")
    return replace(stored, rows=rows, left_out=left_out)
