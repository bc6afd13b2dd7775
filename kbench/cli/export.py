"""`kbench export`: a method of a suite, fitted on all data and saved as a model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbench.cli.echo import echo
from kbench.cli.options import (
    Data,
    Date,
    Decimal,
    Delimiter,
    Encoding,
    Ignore,
    Keep,
    MeasureName,
    Missing,
    Nominal,
    Proba,
    Sheet,
    Target,
    Task,
    Thousands,
)
from kbench.errors import SuiteError
from kbench.messages import did_you_mean

if TYPE_CHECKING:
    from kbench.planning.planner import PlannedCell
    from kbench.records import Suite
    from kbench.registry.registry import Registry

_MOST = 10
"""Cells that a message names."""


def export(
    suite: Annotated[
        str, typer.Argument(help="Name of a suite, a suite file, or a file of your own data.")
    ],
    cell: Annotated[
        str | None,
        typer.Argument(
            help="Name of a cell, such as 'nystroem + ridge on iris', or the beginning of its key."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="The folder to write; it must not exist."
        ),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Label or name of the dataset of the cell.")
    ] = None,
    feature_map: Annotated[
        str | None, typer.Option(help="Label or name of the feature map of the cell.")
    ] = None,
    learner: Annotated[
        str | None, typer.Option(help="Label or name of the learner of the cell.")
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format", help="skops, or joblib (a pickle: it runs code when it is loaded)."
        ),
    ] = "skops",
    mlflow: Annotated[bool, typer.Option("--mlflow", help="Also save an MLflow model.")] = False,
    data: Data = None,
    target: Target = None,
    task: Task = None,
    measure: MeasureName = None,
    proba: Proba = False,
    ignore: Ignore = None,
    nominal: Nominal = None,
    keep: Keep = None,
    date: Date = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    encoding: Encoding = None,
    missing: Missing = None,
    sheet: Sheet = None,
) -> None:
    """Fit one method on all rows, with its parameter search, and save it with a card.

    The model takes your table as it is and predicts your labels or numbers. Before the folder
    gets its name, the model is loaded again and its predictions are compared.
    """
    from kbench.api.own_data import fetched
    from kbench.execution.plugins import import_registry, load_registry
    from kbench.export.fit import refit
    from kbench.export.folder import TRUST, check_format, refuse_existing, write
    from kbench.planning.planner import Planner
    from kbench.planning.tasks import with_measure
    from kbench.results.sources import of_cell_in_full
    from kbench.storage.datacache import DataCache

    if output is None:
        raise SuiteError("-o FOLDER is missing: the folder to make")
    refuse_existing(output)
    check_format(form)
    registry = load_registry()
    options = {
        "target": target,
        "task": task,
        "ignore": ignore,
        "nominal": nominal,
        "keep": keep,
        "date": date,
        "delimiter": delimiter,
        "decimal": decimal,
        "thousands": thousands,
        "encoding": encoding,
        "missing": missing,
        "sheet": sheet,
        "measure": measure,
        "proba": proba,
    }
    chosen = _suite(suite, registry, dataset, feature_map, learner, data, options)
    cache = DataCache()
    planner = Planner(registry, cache)
    known = {ref.label: planner.dataset(ref) for ref in chosen.datasets}
    chosen = with_measure(chosen, known, registry)
    planned = _one(planner.plan(chosen, known), cell, suite)
    used = planned.cell.feature_map.label
    if feature_map and used not in {m.label for b in chosen.blocks for m in b.feature_maps}:
        raise SuiteError(
            f"learner {planned.cell.learner.label!r} works on the inputs, with {used!r}; leave out "
            f"--feature-map {feature_map}"
        )
    facts = planned.dataset
    if facts is None:
        facts = fetched(planned.cell.dataset, registry)
        again = planner.plan(chosen, {**known, planned.cell.dataset.label: facts})
        planned = next(cell for cell in again if cell.cell == planned.cell)
    planned, where = _recalled(planned)
    row = of_cell_in_full(planned, where, chosen.compared) if planned.done else None
    echo(f"fitting {planned.cell.name} on {facts.n_samples:,} rows", err=True)
    # the model is fitted, saved and loaded again by this process
    rows = cache.load(facts.checksum, facts.feature_kinds)
    fitted = refit(planned.cell, rows, import_registry())
    n_rows = write(output, planned.cell, planned.key, fitted, row, form, mlflow)
    file = output / f"model.{form}"
    echo(f"{output}: {planned.cell.name}")
    echo(f"  {file}: {file.stat().st_size / 1000:,.0f} kB; README.md says how to load it")
    echo(f"  loaded again: it predicts the same on all {n_rows:,} rows")
    if fitted.raw:
        echo("  its input is the table as it is in the file, without the target")
    if row is None:
        echo("  its errors were not measured here: `kbench suite` or `kbench run` measures them")
    echo(f"\n{TRUST}")


def _recalled(planned: PlannedCell) -> tuple[PlannedCell, str]:
    """Return a cell with its results and their place: this machine or its clusters.

    Results of the place that has more are taken; they are not mixed.
    """
    from kbench.machine import cluster_id, machine_id
    from kbench.planning.planner import recall
    from kbench.storage.journal import Journal, state_folder

    candidates = []
    for place in (machine_id(), cluster_id()):
        cell = replace(planned, results={})
        recall([cell], Journal(state_folder(place) / "journal.jsonl"))
        candidates.append((cell, place))
    return max(candidates, key=lambda pair: len(pair[0].done))


def _suite(
    name: str,
    registry: Registry,
    dataset: str | None,
    feature_map: str | None,
    learner: str | None,
    data: str | None,
    options: Mapping[str, Any],
) -> Suite:
    """Return the suite of a name, or that of a file of data, with the filters applied."""
    from kbench.api.inputs import chosen_suite
    from kbench.api.own_data import is_data_file, prepared, suite_for
    from kbench.api.own_measure import comparison

    def listed(given: str | None) -> list[str]:
        return [given] if given else []

    if not is_data_file(name, registry):
        for option, value in options.items():
            if value:
                raise SuiteError(
                    f"--{option} has no meaning for a suite: its file defines the data"
                )
        return chosen_suite(
            name, registry, listed(dataset), listed(feature_map), listed(learner), data=data
        )
    if data is not None:
        raise SuiteError(f"--data has no meaning: {name} is the dataset")
    if dataset is not None:
        raise SuiteError(f"--dataset has no meaning: {name} is the dataset")
    given = {option: value for option, value in options.items() if value}
    wanted, proba = given.pop("measure", None), given.pop("proba", False)
    own = prepared(name, registry, **given)
    by = comparison(wanted, proba, own.facts, registry)
    for text in (*own.notices, own.target):
        echo(f"kbench: {text}", err=True)
    maps, learners = listed(feature_map), listed(learner)
    return suite_for(own.ref, own.facts, registry, maps, learners, by=by)


def _one(planned: list[PlannedCell], wanted: str | None, suite: str) -> PlannedCell:
    """Return the cell of a name, of a part of it, or of the beginning of its key.

    Raises
    ------
    SuiteError
        There is none, or there are several: their names.
    """
    matches = planned
    if wanted is not None:
        words = " ".join(wanted.split())
        matches = [
            candidate
            for candidate in planned
            if words in (candidate.cell.name, candidate.cell.name.rpartition(" on ")[0])
            or (len(words) >= 6 and candidate.key.startswith(words.lower()))
        ]
        if not matches:
            names = [cell.cell.name for cell in planned]
            raise SuiteError(f"no cell of {suite} is {wanted!r}{did_you_mean(words, names)}")
    if len(matches) > 1:
        names = [shlex.quote(cell.cell.name) for cell in matches[:_MOST]]
        more = f"\n  and {len(matches) - _MOST} more" if len(matches) > _MOST else ""
        raise SuiteError(
            f"{len(matches)} cells match: name one, or narrow them with --dataset, "
            "--feature-map and --learner:\n  " + "\n  ".join(names) + more
        )
    return matches[0]
