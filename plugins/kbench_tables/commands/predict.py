"""`kbench predict`: predictions of an exported model for the rows of a file."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbench import features
from kbench.errors import ExportError, KbenchError
from kbench.messages import plural
from kbench_tables.commands.recommend import READING, Given

if TYPE_CHECKING:
    import numpy as np

    from kbench_tables.export.model import Model


@features.options_from("recommend", (*READING, "keep_totals"))
def predict(
    model: Annotated[Path, typer.Argument(help="A folder that `kbench export` has written.")],
    file: Annotated[
        str, typer.Argument(help="A CSV, TSV, Excel or Parquet file with the model's columns.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The CSV file to write.")
    ] = None,
    id_: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="COLUMN", help="Copy this column of the file; repeatable."),
    ] = None,
    coverage: Annotated[
        float,
        typer.Option(metavar="FRACTION", help="Nominal coverage of the prediction intervals."),
    ] = 0.9,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing file.")
    ] = False,
    sha256: Annotated[
        str | None,
        typer.Option(
            metavar="HEX", help="Reject the model unless its model.json has this SHA-256."
        ),
    ] = None,
    *,
    own: Given,
) -> None:
    """Predict each row of a file: classes with probabilities, or numbers with intervals.

    The code of the model runs: use only models that you or people you trust have exported.
    Differences from the training data are reported: unknown columns, unseen categories,
    out-of-range values.
    """
    from kbench_tables.export.load_model import open_model

    if output is None:
        raise ExportError("-o FILE is missing: the file to write")
    loaded = open_model(model, sha256)
    package = type(loaded).__module__.rpartition(".")[0]
    predicting = importlib.import_module(f"{package}.predicting")
    replaced = output.exists()
    try:
        predicting.refuse_existing(output, overwrite)
        blocks, texts = _opened(file, {name: value for name, value in own.items() if value}, loaded)
        outcome = predicting.predict_file(
            loaded,
            blocks,
            output,
            texts=texts,
            ids=id_ or (),
            coverage=coverage,
            overwrite=overwrite,
        )
    except KbenchError:
        raise
    except (ValueError, OSError) as error:
        raise ExportError(f"{error}; nothing was written") from error
    except Exception as error:  # the model's own package has its own KbenchError
        if type(error).__module__.startswith(f"{package.partition('.')[0]}."):
            raise ExportError(f"{error}; nothing was written") from error
        raise
    _show(outcome.sentences)
    features.echo(f"{output}: {plural(outcome.n_rows, 'row')}{', replaced' if replaced else ''}")


def _opened(
    file: str, reading: Mapping[str, Any], model: Model
) -> tuple[Iterator[Mapping[str, Any]], dict[str, Any] | None]:
    """Return the rows of a file in blocks, and its dialect; None if that is the training file's."""
    from kbench_tables.export.package_writer import DIALECT

    registry = features.import_registry()
    target = model.facts.get("target_column") or "target"
    source = features.source_of_file(file, registry)
    if source.rows is None:
        raise ExportError(
            f"file {file!r}: rows of {source.name} files cannot be predicted; write them as CSV"
        )
    ref = features.dataset_of_file(file, target, registry=registry, **reading)
    trained = {**DIALECT, **model.facts["dialect"]}
    params = {**ref.params, **({"keep_totals": True} if trained["keep_totals"] else {})}
    taken = features.read_parameters(source.load) or ()
    if "drop" in taken:  # columns without a name are read only if they are left out
        params["drop"] = tuple(model.facts.get("left_out", ()))
    if trained["na_values"] and "na_values" in taken:
        params.setdefault("na_values", tuple(trained["na_values"]))
    table = features.resolve(source.rows)(**params)
    if table is None:
        raise ExportError(f"file {file!r}: sparse rows cannot be predicted; write them as CSV")
    if not source.text_blocks:
        _show(table.warnings)
        return _blocks(table.rows), None
    settings = {**DIALECT, **params, **table.params}
    dialect = {name: settings[name] for name in trained}
    asked = {name: ref.params[name] for name in trained if name in ref.params}
    as_trained = {**trained, "encoding": dialect["encoding"], **asked}

    def read(dialect: Mapping[str, Any]) -> Any:
        path, row = Path(ref.params["path"]), ref.params.get("header_row", "")
        blocks = features.resolve(str(source.text_blocks))
        return blocks(path, dialect["delimiter"], dialect["encoding"], row, dialect["keep_totals"])

    def texts(dialect: Mapping[str, Any]) -> dict[str, Any]:
        return {name: dialect[name] for name in ("decimal", "thousands", "na_values")}

    try:  # whether the first rows are what the model's columns hold, in the training dialect
        params = {**model.encoder.get_params(deep=False), **texts(as_trained)}
        model.encoder.__class__(**params).transform(next(iter(read(as_trained))))
        dialect = as_trained
        doubts: list[str] = []
    except ValueError:  # the model's blocks have rows that are not read otherwise
        doubts = [notice for notice in table.warnings if "not read" not in notice]
    blocks = read(dialect)
    _show(dict.fromkeys([*doubts, *blocks.notices]))
    changed = [
        f"{name} {dialect[name]!r} instead of {trained[name]!r}"
        for name in ("delimiter", "decimal", "thousands", "encoding")
        if dialect[name] != trained[name]
    ]
    if changed:
        _show([f"the file has another format than the training file: {', '.join(changed)}"])
    return blocks, texts(dialect)


def _show(notices: Iterable[str]) -> None:
    for notice in notices:
        features.echo(f"kbench: {features.put_flags(notice)}", err=True)


def _blocks(rows: Any) -> Iterator[dict[str, np.ndarray | list[object]]]:
    names = list(rows.names)
    if not rows.scan({}):
        yield {name: [] for name in names}
    else:
        for block in rows.blocks(names):
            yield {name: block[name].to_numpy() for name in names}
