"""Results of a suite from the journal, as it was planned last."""

from __future__ import annotations

from kbench.errors import SuiteError
from kbench.machine import cluster_id, machine_id
from kbench.messages import listed, similar
from kbench.planning.lines import experiment_of
from kbench.planning.plans import Plans
from kbench.results.order import by_dataset
from kbench.results.sources import of_cell_in_full
from kbench.results.stored import Query, StoredResults
from kbench.storage.journal import Journal, state_folder


def from_journal(query: Query) -> StoredResults:
    """Read the results of a suite that this machine, or its clusters, computed.

    SuiteError is raised where there are none.
    """
    name = experiment_of(query.suite)
    suites: set[str] = set()
    for place in (machine_id(), cluster_id()):
        if query.machine not in (None, "all", place):
            continue
        journal = Journal(state_folder(place) / "journal.jsonl")
        plans = Plans(journal)
        suites |= plans.suites().keys()
        cells, measure = plans.cells(name)
        rows = [of_cell_in_full(cell, place, measure) for cell in cells if cell.is_finished]
        if rows:
            return StoredResults(
                by_dataset(rows), name, measure, plans.budget(name), str(journal.path)
            )
    known = sorted(suites)
    hint = similar(name, known) or (f"; it has results of {listed(known)}" if known else "")
    raise SuiteError(f"the journal has no results of {name!r}{hint}")
