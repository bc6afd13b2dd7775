"""What runs and reports say of signs of leakage: notices, and a section."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from kbench import features
from kbench.features import Column, Note, Part, ReportData, Section, Table, format_method
from kbench.messages import list_some, plural
from kbench_leakage.findings import Leakage
from kbench_leakage.stored_checks import (
    find_related,
    get_key,
    protocol_fields,
    read_leakage,
    recall,
)

COLUMNS = ("dataset", "sign")

NOT_CHECKED = "not checked on this machine"

EXPLAINED = (
    "Columns and rows that predict the target of the test set of the first split without a "
    "model. They may be legitimate: the data do not show whether they are available at "
    "prediction time. Methods that exploit them have an advantage on these datasets."
)


def sections(data: ReportData) -> list[Section]:
    """Return the section: signs, or that there are none, and what was not checked."""
    results: dict[str, Leakage | None] = {row.dataset: None for row in data.rows}
    keys = ((row.dataset, get_key(row.checksum, row.protocol)) for row in data.rows if row.checksum)
    for name, key in dict.fromkeys(keys):
        results[name] = recall(Leakage, key) or results[name]
    checked = [name for name, each in results.items() if each is not None and each.measured]
    signs = {name: each for name, each in results.items() if each is not None and each.signs}
    parts: list[Part] = []
    if signs:
        parts += [Note(EXPLAINED), _table(signs)]
    elif checked:
        parts.append(f"No evidence of leakage was found in {plural(len(checked), 'dataset')}.")
    missing = [name for name in results if name not in checked]
    if missing and any(row.checksum for row in data.rows):
        parts.append(f"Not checked on this machine: {list_some(missing)}.")
    printed = [_table(results)]
    made = [Section("leakage", "Possible leakage", parts, [], printed, "Leakage", "warnings")]
    if families := _related_parts(data):
        made.append(Section("related", "Related datasets", families, after="pairs"))
    return made


def _related_parts(data: ReportData) -> list[Part]:
    """Say which datasets count several times, and whether the first place depends on that."""
    groups = {row.dataset: row.dataset_family for row in data.rows}
    related = find_related(groups, {row.dataset: row.checksum for row in data.rows if row.checksum})
    if not related:
        return []
    once = {name: names[0] for names, _ in related for name in names}
    family = {row.dataset: row.dataset_family for row in data.rows} | once
    rows = [replace(row, dataset_family=family[row.dataset]) for row in data.rows]
    counted_once = replace(data, rows=rows).certainty.stability
    before = data.certainty.stability
    parts: list[Part] = [f"{list_some(names)} may be related: {why}." for names, why in related]
    parts.append(
        "Related datasets are not independent samples, but each of them counts as one dataset "
        "in means, ranks and tests. Give datasets from one source the same dataset_family in "
        "the suite file."
    )
    if before is not None and before.best_group == (before.leader,):
        first = format_method(data.scores.methods[before.leader])
        holds = counted_once is not None and counted_once.best_group == before.best_group
        parts.append(
            f"If each family counts once, {first} is {'still' if holds else 'not'} significantly "
            "better than every other method."
        )
    return parts


def _table(results: Mapping[str, Leakage | None]) -> Table:
    lines = []
    for name, each in results.items():
        none = ["none"] if each is not None and each.measured else [NOT_CHECKED]
        sentences = (each.sentences if each is not None else []) or none
        lines += [{"dataset": name, "sign": sentence} for sentence in sentences]
    return Table("leakage", "Possible leakage", [Column(name, name) for name in COLUMNS], lines)


# -- notices of a run

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
        rest = plural(more, "further dataset")
        run.notice(f"possible leakage in {rest}: the report and `kbench leakage` list the evidence")


def _note_related(cells: Sequence[features.PlannedCell]) -> str:
    """Name the datasets of cells that may be related, and of different groups."""
    facts = {each.cell.dataset.label: each.dataset for each in cells if each.dataset is not None}
    groups = {name: each.dataset_family or name for name, each in facts.items()}
    related = find_related(groups, {name: each.checksum for name, each in facts.items()})
    return "; ".join(f"{list_some(names)} ({why})" for names, why in related)
