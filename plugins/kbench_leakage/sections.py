"""The section of a report on signs of leakage."""

from __future__ import annotations

from kbench.features import Column, Note, Part, ReportData, Section, Table
from kbench.messages import counted, listed
from kbench_leakage.findings import Leakage
from kbench_leakage.kept import key_of, recall

COLUMNS = ("dataset", "sign")

NOT_CHECKED = "not checked on this machine"

EXPLAINED = (
    "What predicts the target of test rows of the first split without a model. It may be "
    "legitimate: whether these columns and rows are known when a prediction is due is not in "
    "the data. Methods that can look such rows or columns up are ahead on these datasets."
)


def sections(data: ReportData) -> list[Section]:
    """Return the section: signs, or that there are none, and what was not checked."""
    found: dict[str, Leakage | None] = {}
    for row in data.rows:
        known = recall(key_of(row.checksum, row.protocol)) if row.checksum else None
        found[row.dataset] = known or found.get(row.dataset)
    checked = [name for name, each in found.items() if each is not None and each.measured]
    signs = {name: each for name, each in found.items() if each is not None and each.signs}
    parts: list[Part] = []
    if signs:
        parts += [Note(EXPLAINED), _table(signs)]
    elif checked:
        parts.append(f"No sign of leakage was found in {counted(len(checked), 'dataset')}.")
    missing = [name for name in found if name not in checked]
    if missing and any(row.checksum for row in data.rows):
        parts.append(f"Not checked on this machine: {listed(missing)}.")
    printed = [_table(found)]
    return [Section("leakage", "Signs of leakage", parts, [], printed, "Leakage", "doubts")]


def _table(found: dict[str, Leakage | None]) -> Table:
    lines = []
    for name, each in found.items():
        is_checked = each is not None and each.measured
        none = ["none"] if is_checked else [NOT_CHECKED]
        said = (each.sentences if each is not None else []) or none
        lines += [{"dataset": name, "sign": sentence} for sentence in said]
    return Table("leakage", "Signs of leakage", [Column(name, name) for name in COLUMNS], lines)
