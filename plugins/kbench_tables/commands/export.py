"""`kbench export`: a method of a suite, fitted on all data and saved as a model."""

import hashlib
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from kbench import features
from kbench.errors import SuiteError
from kbench.messages import did_you_mean
from kbench_tables.commands.recommend import COLUMNS, Given

# Maximum number of cells named in a message.
_MOST = 10


@features.options_from("recommend", COLUMNS)
@features.options_from("run_suite")
def export(
    suite: Annotated[
        str,
        typer.Argument(
            help="Name of a suite, a suite file, or a data file.",
            autocompletion=features.completion.suites,
        ),
    ],
    cell: Annotated[
        str | None,
        typer.Argument(
            help="Name of a cell, such as 'nystroem + ridge on iris', or a prefix of its key."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to create.")
    ] = None,
    dataset: str | None = None,
    feature_map: str | None = None,
    learner: str | None = None,
    onnx: Annotated[
        bool,
        typer.Option("--onnx", help="Also write an ONNX model, of linear and Fourier methods."),
    ] = False,
    mlflow: Annotated[bool, typer.Option("--mlflow", help="Also save an MLflow model.")] = False,
    data: str | None = None,
    *,
    own: Given,
    metric: str | None = None,
    probabilities: bool = False,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="SIDE.NAME=VALUE",
            help="Fix a parameter instead of searching for it, e.g. learner.C=8; repeatable.",
        ),
    ] = None,
) -> None:
    """Fit one method on all rows, with its parameter search, and save it with a model card.

    The model takes your table as it is and predicts your labels or numbers. Before kbench creates
    the folder, it loads the model again and compares the predictions.
    """
    from kbench_tables.export.model_folder import TRUST, check_export, export_cell
    from kbench_tables.recommend.user_data import fetch_dataset

    if output is None:
        raise SuiteError("-o FOLDER is missing: the folder to create")
    check_export(output, onnx)
    registry = features.load_registry()
    options = {**own, "metric": metric, "probabilities": probabilities, "params": params}
    chosen = _suite(suite, registry, dataset, feature_map, learner, data, options)
    planner = features.Planner(registry, features.DataCache())
    datasets = {ref.label: planner.dataset(ref) for ref in chosen.datasets}
    chosen = features.set_metric(chosen, datasets, registry)
    planned = _one(planner.plan(chosen, datasets), cell, suite)
    used = planned.cell.feature_map.label
    if feature_map and used not in {m.label for b in chosen.blocks for m in b.feature_maps}:
        raise SuiteError(
            f"learner {planned.cell.learner.label!r} works on the inputs, with {used!r}; leave out "
            f"--feature-map {feature_map}"
        )
    facts = planned.dataset
    if facts is None:
        facts = fetch_dataset(planned.cell.dataset, registry)
        again = planner.plan(chosen, {**datasets, planned.cell.dataset.label: facts})
        planned = next(cell for cell in again if cell.cell == planned.cell)
    written, is_raw = export_cell(
        planned,
        output,
        registry,
        chosen.compared,
        onnx=onnx,
        mlflow=mlflow,
        announce=lambda text: features.echo(text, err=True),
    )
    package = output / written["package"]
    size = sum(each.stat().st_size for each in package.rglob("*") if each.is_file())
    features.echo(f"{output}: {planned.cell.name}")
    features.echo(f"  {package}: {size / 1000:,.0f} kB; README.md says how to load it")
    features.echo(
        "  loaded in a new process without kbench: it predicts the same on all "
        f"{written['n_rows']:,} rows"
    )
    one, many = written["latency_s"]["1"], written["latency_s"]["1000"]
    features.echo(
        f"  {1e6 * one:,.0f} microseconds per row one row at a time, {1e6 * many:,.1f} for "
        "1,000 rows at a time"
    )
    digest = hashlib.sha256((output / "model.json").read_bytes()).hexdigest()
    features.echo(f"  SHA-256 of model.json, for `kbench predict --sha256`: {digest}")
    if is_raw:
        features.echo("  its input is the original table, without the target")
    if written["measured"] is None and "intervals" not in written:
        features.echo("  this search was not evaluated on all rows; a time limit makes it smaller")
    features.echo(f"\n{TRUST}")


def _suite(
    name: str,
    registry: features.Registry,
    dataset: str | None,
    feature_map: str | None,
    learner: str | None,
    data: str | None,
    options: Mapping[str, Any],
) -> features.Suite:
    from kbench_tables.recommend.metric import comparison
    from kbench_tables.recommend.timed_suite import apply_settings, parse_settings
    from kbench_tables.recommend.user_data import prepare_data, suite_for

    if not features.is_data_file(name, registry):
        for option, value in options.items():
            if value:
                raise SuiteError(f"--{option} does not apply to a suite: its file defines the data")
        named = (dataset, feature_map, learner)
        kinds = zip(features.LISTS.values(), named, strict=True)
        add = [each if each in registry.all(kind) else None for kind, each in kinds]
        return features.select_suite(name, registry, *named, add=add, data=data)
    for option, value in (("data", data), ("dataset", dataset)):
        if value is not None:
            raise SuiteError(f"--{option} does not apply: {name} is the dataset")
    nonempty = {option: value for option, value in options.items() if value}
    wanted, probabilities = nonempty.pop("metric", None), nonempty.pop("probabilities", False)
    settings = parse_settings(nonempty.pop("params", ()))
    table = prepare_data(name, registry, **nonempty)
    by = comparison(wanted, probabilities, table.facts, registry)
    for notice in (*table.notices, table.target):
        features.echo(f"kbench: {notice}", err=True)
    maps, learners = features.names_in(feature_map), features.names_in(learner)
    return apply_settings(
        suite_for(table.ref, table.facts, registry, maps, learners, by=by), settings, registry
    )


def _one(
    planned: list[features.PlannedCell], wanted: str | None, suite: str
) -> features.PlannedCell:
    """Return the cell of a name, of a part of it, or of a prefix of its key.

    SuiteError is raised where there is none, or there are several: their names.
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
