"""Export of a planned cell: its data, its known results, its fit, its folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kbench.features import (
    DataCache,
    Journal,
    PlannedCell,
    Present,
    Registry,
    Validity,
    cluster_id,
    import_registry,
    machine_id,
    of_cell_in_full,
    recall,
    state_folder,
)
from kbench.records import Measure
from kbench_tables.export.fit import refit
from kbench_tables.export.folder import PORTABLE, check_format, refuse_existing, write
from kbench_tables.export.onnx import check_onnx


@dataclass(frozen=True)
class Exported:
    """A folder that was written.

    Parameters
    ----------
    facts : dict
        What ``model.json`` says.
    raw : bool
        The input of the model is the table as it is in the user's file.
    """

    facts: dict[str, Any]
    raw: bool


def check_export(folder: Path, form: str = PORTABLE, onnx: bool = False) -> None:
    """Refuse a folder that exists, and formats that cannot be written here."""
    refuse_existing(folder)
    check_format(form)
    if onnx:
        check_onnx()


def export_cell(
    planned: PlannedCell,
    folder: Path,
    registry: Registry,
    measure: Measure,
    *,
    form: str = PORTABLE,
    onnx: bool = False,
    mlflow: bool = False,
    announce: Callable[[str], None] = lambda text: None,
) -> Exported:
    """Search and fit the method of a cell on all rows of its dataset, and write the model.

    The dataset is in the data cache. `announce` is called before the fit.

    Raises
    ------
    ExportError
        The folder cannot be written, or the model predicts otherwise once it is loaded.
    """
    check_export(folder, form, onnx)
    facts = planned.dataset
    assert facts is not None
    planned, where = recalled(planned)
    row = of_cell_in_full(planned, where, measure) if planned.done else None
    announce(f"fitting {planned.cell.name} on {facts.n_samples:,} rows")
    # the model is fitted, saved and loaded again by this process
    rows = DataCache().load_for(facts)
    fitted = refit(planned.cell, rows, import_registry())
    owners = {plugin.module.partition(".")[0]: plugin.distribution for plugin in registry.plugins}
    written = write(folder, planned.cell, planned.key, fitted, row, form, mlflow, owners, onnx)
    return Exported(written, fitted.raw)


def recalled(planned: PlannedCell) -> tuple[PlannedCell, str]:
    """Return a cell with its results and their place: this machine or its clusters.

    Results of the place that has more are taken; they are not mixed.
    """
    candidates = []
    for place in (machine_id(), cluster_id()):
        cell = replace(planned, results={})
        journal = Journal(state_folder(place) / "journal.jsonl")
        recall([cell], Validity(journal, Present()))
        candidates.append((cell, place))
    return max(candidates, key=lambda pair: len(pair[0].done))
