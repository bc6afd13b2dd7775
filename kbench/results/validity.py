"""Results that are out of date: what they were made from has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from kbench.errors import SuiteError
from kbench.machine import cluster_id, machine_id
from kbench.messages import counted
from kbench.planning.planner import Planner
from kbench.planning.plans import Plans
from kbench.planning.recall import Validity
from kbench.results.rows import Row
from kbench.results.stored import StoredResults
from kbench.storage.journal import Journal, state_folder

UNKNOWN = "unknown"
"""Stands for the manifest of a result that has none."""


def with_validity(stored: StoredResults, planner: Planner) -> StoredResults:
    """Return stored results whose rows say whether they are out of date.

    Rows of other machines do not: what they were made from is there. Data are those of the
    planner's cache; of a dataset that is not there, it is not known.
    """
    present = planner.present
    places = {
        place: Validity(Journal(state_folder(place) / "journal.jsonl"), present)
        for place in (machine_id(), cluster_id())
    }
    data = {
        (place, label): found
        for place, validity in places.items()
        for label, found in Plans(validity.journal).datasets(stored.name).items()
    }

    @cache
    def why_data(place: str, label: str, checksum: str) -> str:
        ref, known = data.get((place, label), (None, ""))
        changed = ref is not None and checksum == known and planner.has_other_data(ref, checksum)
        return f"the data of {label} changed" if changed else ""

    def marked(row: Row) -> Row:
        made_from = row.made_from.split() or [UNKNOWN] * bool(row.n_splits_done)
        if stored.is_imported or row.machine not in places:
            return row
        validity = places[row.machine]
        why = [validity.why("" if each == UNKNOWN else each) for each in made_from]
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

    SuiteError is raised where none is left.
    """
    counts = Counter(row.outdated for row in stored.rows if row.outdated)
    if not counts:
        return stored
    why = "; ".join(f"{reason}: {counted(n, 'cell')}" for reason, n in counts.most_common(5))
    advice = f"`kbench suite {stored.name}` computes them again, and --outdated shows them"
    rows = [row for row in stored.rows if not row.outdated]
    if not rows:
        raise SuiteError(f"all results of {stored.name!r} are out of date ({why}); {advice}")
    n_cells = counted(len(stored.rows), "cell")
    left_out = f"{counts.total()} of {n_cells} are out of date and left out ({why})"
    notice(f"{left_out}; {advice}")
    return replace(stored, rows=rows, left_out=left_out)
