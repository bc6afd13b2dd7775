"""Rows of bundles: what tables, reports and sites show of the results of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from kbench.features import (
    MEASURES,
    ImportedRow,
    PlannedCell,
    StoredResults,
    as_one_side,
    of_cell_with_splits,
    task_key,
    without_times,
)
from kbench.records import DatasetFacts, Measure
from kbench_sharing.form import Bundle, SharedCell
from kbench_sharing.kept import SHORT, find, of_suite
from kbench_sharing.meaning import meaning_of
from kbench_sharing.recomputed import Records, checks_of, kept

_VERSIONS = ("kbench-core", "python", "numpy", "scipy", "scikit-learn")


def rows_of(bundle: Bundle, measure: Measure, records: Records) -> Iterator[ImportedRow]:
    """Yield the rows of a bundle's cells that have results.

    `measure` is the one whose spread and values by split rows have; `records` say which splits
    were recomputed.
    """
    for cell in bundle.cells:
        if bundle.results.get(cell.key):
            yield _row(bundle, cell, measure, records)


def kept_rows(
    suite: str, measure: Measure | None = None, notice: Callable[[str], None] = lambda text: None
) -> list[ImportedRow]:
    """Return the rows of a suite in the bundles that are kept here, without their times.

    `measure` is by default that of the first bundle; rows of a cell that an author has given
    several times, made from the same code, are the last ones that were computed. `notice` is
    told which bundle is left out.
    """
    records = kept()
    found: dict[tuple[str, str, str, str], ImportedRow] = {}
    for bundle in of_suite(suite, notice):
        measure = measure or measure_of(bundle)
        for other in rows_of(bundle, measure, records):
            place = (other.author, other.cpu, other.row.key, other.row.made_from)
            known = found.get(place)
            if known is None or known.row.end_ms < other.row.end_ms:
                found[place] = replace(other, row=without_times(other.row))
    return list(found.values())


def stored_results(name: str) -> StoredResults:
    """Return the last row of each cell of a bundle, whatever machines its author has."""
    bundle = find(name)
    measure = measure_of(bundle)
    return as_one_side(list(rows_of(bundle, measure, {})), bundle.manifest.suite, measure)


def _row(bundle: Bundle, cell: SharedCell, measure: Measure, records: Records) -> ImportedRow:
    dataset = bundle.datasets[cell.dataset]
    shared = bundle.results[cell.key]
    cpus = [each.cpu for each in bundle.manifest.machines]
    names = dict(enumerate(cpus))
    of_cell = cell.cell(dataset.ref)
    equivalence, family = meaning_of(of_cell)
    planned = PlannedCell(
        of_cell,
        cell.key,
        DatasetFacts(**dataset.model_dump(exclude={"ref"})),
        cell.n_splits,
        results={
            split: result.result(task_key(cell.key, split), names, cpus[result.machine])
            for split, result in shared.items()
        },
        equivalence=equivalence,
        family=family,
    )
    cpu = ", ".join(dict.fromkeys(cpus[shared[split].machine] for split in sorted(shared)))
    given = bundle.manifest.versions
    return ImportedRow(
        of_cell_with_splits(planned, f"{bundle.author} on {cpu}", measure),
        measure,
        bundle.author,
        cpu,
        bundle.id[:SHORT],
        ", ".join(f"{name} {given[name]}" for name in _VERSIONS if name in given),
        checks_of(shared, records),
    )


def measure_of(bundle: Bundle) -> Measure:
    """Return the measure of a bundle; one of a plugin need not be installed."""
    name, better = bundle.manifest.measure, bundle.manifest.better
    known = MEASURES.get(name)
    return known if known is not None and known.better == better else Measure(name, better)
