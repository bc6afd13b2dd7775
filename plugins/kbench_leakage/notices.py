"""What a run says of signs of leakage in its datasets."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from kbench import features
from kbench.messages import counted, list_some
from kbench_leakage.stored_checks import find_related, get_key, protocol_fields, read_leakage

SHOWN = 5
"""Datasets whose signs are shown in full."""

_seen: WeakKeyDictionary[features.Run, set[str]] = WeakKeyDictionary()
"""Datasets that each run has shown: a strategy plans further cells of them."""


def show(run: features.Run, cells: Sequence[features.PlannedCell]) -> None:
    """Check the datasets of cells that are in the cache, and show a notice for each with signs."""
    seen = _seen.setdefault(run, set())
    lines, is_first = [], not seen
    for planned in cells:
        if planned.dataset is None:
            continue
        key = get_key(planned.dataset.checksum, protocol_fields(planned.cell.protocol))
        if key in seen:
            continue
        seen.add(key)
        leakage = read_leakage(planned.dataset, planned.cell.protocol)
        if leakage.signs:
            signs = "; ".join(leakage.sentences)
            lines.append(f"{planned.cell.dataset.label}: possible leakage: {signs}")
    if is_first and (families := _note_related(cells)):
        run.notice(f"these datasets may be related, but count separately: {families}")
    for line in lines[:SHOWN]:
        run.notice(line)
    if (more := len(lines) - SHOWN) > 0:
        rest = counted(more, "further dataset")
        run.notice(f"possible leakage in {rest}: the report and `kbench leakage` list the evidence")


def _note_related(cells: Sequence[features.PlannedCell]) -> str:
    """Name the datasets of cells that may be related, and of different groups."""
    facts = {each.cell.dataset.label: each.dataset for each in cells if each.dataset is not None}
    groups = {name: each.dataset_family or name for name, each in facts.items()}
    related = find_related(groups, {name: each.checksum for name, each in facts.items()})
    return "; ".join(f"{list_some(names)} ({why})" for names, why in related)
