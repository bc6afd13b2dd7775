"""The section of a report on signs of leakage."""

from __future__ import annotations

from kbench.features import Column, Note, Part, ReportData, Section, Table
from kbench.messages import counted, listed
from kbench_leakage.findings import Leakage
from kbench_leakage.kept import key_of, recall

COLUMNS = ("dataset", "sign")

EXPLAINED = (
    "What predicts the target of test rows of the first split without a model. It may be "
    "legitimate: whether these columns and rows are known when a prediction is due is not in "
    "the data. Methods that can look such rows or columns up are ahead on these datasets."
)


def sections(data: ReportData) -> list[Section]:
    """Return the section; in words only, where there are no signs."""
    found: dict[str, Leakage | None] = {}
    for row in data.rows:
        if row.checksum and found.get(row.dataset) is None:
            found[row.dataset] = recall(key_of(row.checksum, row.protocol))
    if not found:
        return []
    table = _table(found)
    checked = [name for name, each in found.items() if each is not None and each.measured]
    parts: list[Part] = []
    if table.rows:
        parts += [Note(EXPLAINED), table]
    elif checked:
        parts.append(f"No sign of leakage was found in {counted(len(checked), 'dataset')}.")
    if missing := [name for name in found if name not in checked]:
        parts.append(f"Not checked on this machine: {listed(missing)}.")
    return [Section("leakage", "Signs of leakage", parts, [], [table], "Leakage", "doubts")]


def _table(found: dict[str, Leakage | None]) -> Table:
    lines = [
        {"dataset": name, "sign": sentence}
        for name, each in found.items()
        for sentence in (each.sentences if each else ())
    ]
    return Table("leakage", "Signs of leakage", [Column(name, name) for name in COLUMNS], lines)
