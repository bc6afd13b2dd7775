"""Export a cell: fit it, write its folder and card, load it again and compare predictions."""

import json
import re
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from kbench import features
from kbench._version import __version__
from kbench.errors import ExportError
from kbench.messages import number, plural
from kbench.records import Cell, Metric, TaskType
from kbench.tables.texts import DateColumn, UnitColumn
from kbench_tables.export.decode_table import example_rows, plain_rows
from kbench_tables.export.fit import Fitted, refit, to_labels
from kbench_tables.export.load_model import try_out
from kbench_tables.export.model import FORMAT, Facts, agree
from kbench_tables.export.onnx import check_onnx, write_onnx
from kbench_tables.export.package_writer import hash_files, package_name, write_package

TRUST = (
    "The folder holds code, which runs when the model is loaded. Load only folders that you or "
    "people you trust have written; kbench predict compares all files with model.json."
)
EXAMPLE_ROWS = 5
# Rows that a fresh process predicts as mappings.
TRIED_ROWS = 1000
# Largest relative difference of numbers between two processes.
ROUNDING = 1e-9
# Metrics that a card shows, with their names.
_SHOWN: Mapping[str, Mapping[str, str]] = {
    "classification": {
        "accuracy": "accuracy",
        "balanced_accuracy": "balanced accuracy, the mean recall of the classes",
        "f1_macro": "f1 macro, the mean F1 of the classes",
        "mcc": "Matthews' correlation coefficient",
        "roc_auc": "ROC AUC",
        "brier_score": "Brier score of the probabilities",
    },
    "regression": {
        "rmse": "root mean squared error (rmse), in the target's units",
        "mae": "mean absolute error, in the target's units",
        "r2": "r2",
        "rmse_standardized": "rmse over the target's standard deviation",
        "coverage_error_90": "90 % intervals",
    },
}
# Columns of a results row that ``model.json`` has, beside the machine and the metrics.
_MEASURED = ("n_splits_done", "fit_time_s", "predict_time_s")


def write(
    folder: Path,
    cell: Cell,
    key: str,
    fitted: Fitted,
    row: features.Row | None,
    owners: Mapping[str, str],
    *,
    mlflow: bool = False,
    onnx: bool = False,
) -> Facts:
    """Save a fitted pipeline with its card, load it again, compare its predictions.

    The folder, which must not exist, is written under another name and renamed:
    it is never there in part. `owners` has the distributions of plugins by their top-level
    modules. Returns the facts of ``model.json``.
    """
    refuse_existing(folder)
    temporary = folder.absolute().with_name(f".{folder.name}-{secrets.token_hex(4)}")
    try:
        temporary.mkdir(parents=True)
        package = package_name(fitted.dataset.checksum, key)
        about = write_package(temporary, package, cell, fitted, owners)
        about["latency_s"] = _compare_in_process(temporary, fitted, about)
        if onnx:
            about["onnx"] = write_onnx(temporary / "model.onnx", fitted)
        if mlflow:
            example = fitted.table[:EXAMPLE_ROWS]
            if fitted.raw:
                example = example_rows(
                    cell, fitted.pipeline[0], features.import_registry(), EXAMPLE_ROWS
                )
            _save_mlflow(fitted.pipeline, temporary / "mlflow", example)
        facts = _facts(cell, key, fitted, row, about)
        (temporary / "README.md").write_text(card(facts, fitted, TRUST, mlflow), "utf-8")
        facts["files"] = hash_files(temporary)
        (temporary / "model.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
        temporary.rename(folder.absolute())
    except OSError as error:
        raise ExportError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return facts


def _compare_in_process(folder: Path, fitted: Fitted, about: Mapping[str, Any]) -> dict[str, float]:
    """Compare the predictions of a new process without kbench; return its seconds per row.

    ExportError is raised if labels differ, or numbers differ by more than rounding.
    """
    names = ("predict", "predict_proba", "decision_function")
    pipeline, table = fitted.pipeline, fitted.table
    expected = {n: np.asarray(getattr(pipeline, n)(table)) for n in names if hasattr(pipeline, n)}
    rows = plain_rows(table, TRIED_ROWS) if "encode" in pipeline.named_steps else []
    answers, latency = try_out(
        folder, about["package"], fitted.dataset.X, rows, list(expected), about["requirements"]
    )
    if rows:
        expected["rows"] = expected["predict"][: len(rows)]
    is_same = expected.keys() == answers.keys()
    for name, one in expected.items() if is_same else ():
        other = answers[name]
        is_number = one.dtype.kind == other.dtype.kind == "f"
        is_same &= agree(one, other, ROUNDING) if is_number else np.array_equal(one, other)
    if not is_same:
        raise ExportError("the predictions change when the model is loaded from the folder")
    return latency


def refuse_existing(folder: Path) -> None:
    """Raise ExportError if the folder exists: nothing is ever overwritten."""
    if folder.exists() or folder.is_symlink():
        raise ExportError(f"-o {folder}: it exists; choose another folder, or remove it first")


def _save_mlflow(pipeline: Any, folder: Path, example: Any) -> None:
    names = ("kbench-core", "scikit-learn", "numpy", "scipy", "pandas")
    context = {
        "form": "mlflow",
        "pipeline": pipeline,
        "folder": folder,
        "example": example,
        "requirements": [f"{name}=={metadata.version(name)}" for name in names],
    }
    if not features.Verbs().one("kbench_save_model", **context):
        raise ExportError("no feature saves models as mlflow; see `kbench list plugins`")


def _facts(
    cell: Cell, key: str, fitted: Fitted, row: features.Row | None, more: Mapping[str, Any]
) -> Facts:
    dataset, intervals = fitted.dataset, fitted.intervals
    facts: Facts = {
        "format": FORMAT,
        "cell": cell.name,
        "cell_key": key,
        "feature_map": cell.feature_map.label,
        "learner": cell.learner.label,
        "chosen": {
            name: value if isinstance(value, str | int | float | None) else str(value)
            for name, value in fitted.chosen.items()
        },
        "dataset": cell.dataset.label,
        "dataset_source": dataset.source,
        "dataset_checksum": dataset.checksum,
        "n_rows": len(dataset.y),
        "task": dataset.task,
        "is_weighted": dataset.sample_weight is not None,
        "is_balanced": bool(cell.learner.params.get("balanced")),
        "threshold": getattr(fitted.pipeline[-1], "threshold_", None),
        "brier_score": fitted.brier,
        "measured": row and _read_scores(row, dataset.task),
        "is_calibrated": getattr(fitted.pipeline[-1], "calibration_", None) is not None,
        **more,
        "kbench": __version__,
        "written": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }
    if dataset.task == "classification":
        facts["classes"] = to_labels(dataset.target_names).tolist()
    else:
        y = np.asarray(dataset.y)
        facts["target"] = {"lowest": float(y.min()), "highest": float(y.max())}
        if cell.protocol.target_scale == "log":
            facts["target"]["scale"] = "log"
    if intervals is not None:
        params, copies = cell.dataset.params, "copies" * (cell.protocol.cv == "group_duplicates")
        names = ("level", "coverage", "n_rows", "is_relative")
        facts["intervals"] = {
            **{name: getattr(intervals, name) for name in names},
            "rmse": float(np.sqrt(np.mean(intervals.errors**2))),
            "own_splits": cell.protocol.cv == "official" and bool(dataset.splits),
            "splits_by": next((by for by in ("time_column", "groups") if params.get(by)), copies),
        }
    return facts


def _read_scores(row: features.Row, task: TaskType) -> Facts:
    names = [name for name, metric in features.METRICS.items() if metric.task == task]
    columns = [column for name in names for column in (name, f"{name}_sd")]
    return {
        **{column: row.metrics[column] for column in columns if column in row.metrics},
        **{name: row.value(name) for name in _MEASURED},
        "machine": row.machine,
    }


def check_export(folder: Path, onnx: bool = False) -> None:
    """Raise ExportError if the folder exists or ONNX models cannot be written here."""
    refuse_existing(folder)
    if onnx:
        check_onnx()


def export_cell(
    planned: features.PlannedCell,
    folder: Path,
    registry: features.Registry,
    metric: Metric,
    *,
    onnx: bool = False,
    mlflow: bool = False,
    announce: Callable[[str], None] = lambda message: None,
) -> tuple[Facts, bool]:
    """Search and fit the method of a cell on all rows of its dataset, and write the model.

    The dataset is in the data cache. `announce` is called before the fit. Return the facts of
    ``model.json``, and whether the input of the model is the user's original table.
    """
    facts = planned.dataset
    assert facts is not None
    planned, where = recall_results(planned)
    row = features.make_full_row(planned, where, metric) if planned.done else None
    announce(f"fitting {planned.cell.name} on {facts.n_samples:,} rows")
    # the model is fitted, saved and loaded again by this process
    fitted = refit(planned.cell, features.DataCache().load_for(facts), features.import_registry())
    owners = {plugin.module.partition(".")[0]: plugin.distribution for plugin in registry.plugins}
    written = write(
        folder, planned.cell, planned.key, fitted, row, owners, mlflow=mlflow, onnx=onnx
    )
    return written, fitted.raw


def recall_results(planned: features.PlannedCell) -> tuple[features.PlannedCell, str]:
    """Return a cell with its results, of this machine or of its clusters.

    The results of the one with more splits are used; they are not mixed.
    """
    candidates = []
    for place in (features.machine_id(), features.cluster_id()):
        cell = replace(planned, results={})
        features.recall(
            [cell],
            features.Validity(
                features.Journal(features.state_folder(place) / "journal.jsonl"), features.Present()
            ),
        )
        candidates.append((cell, place))
    return max(candidates, key=lambda pair: len(pair[0].done))


def card(facts: Mapping[str, Any], fitted: Fitted, warning: str, mlflow: bool) -> str:
    """Write the card of a model in Markdown, from the facts of its ``model.json``.

    `warning` is printed before the loading instructions; `mlflow` is true if the model was also
    saved as an MLflow model. Strings of the facts are escaped.
    """
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("kbench_tables"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"code": _code, "duration": _duration, "text": _text}
    environment.filters |= {"plural": plural, "score": _score}
    return environment.get_template("card.md.j2").render(
        facts=facts,
        warning=warning,
        mlflow=mlflow,
        is_classifier=facts["task"] == "classification",
        columns=_columns(fitted.pipeline.named_steps.get("encode")),
        n_features=fitted.dataset.X.shape[1],
        scores=_SHOWN[facts["task"]],
    )


def _score(value: float, name: str) -> str:
    return f"{value:.4f}" if name == "r2" or name in _SHOWN["classification"] else number(value)


def _columns(encoder: Any) -> list[tuple[str, str]] | None:
    """Describe the columns that an encoder takes; None for a sparse matrix."""
    if encoder is None:
        return None
    dates = {date.name: date for date in (DateColumn.parse(d, "dates") for d in encoder.dates)}
    units = {unit.name: unit for unit in (UnitColumn.parse(u, "units") for u in encoder.units)}
    columns = []
    for name, categories in encoder.columns:
        values = "number" if categories is None else "one of " + ", ".join(categories[:20])
        if categories is not None and len(categories) > 20:
            values += f" and {len(categories) - 20:,} more"
        if name in units and units[name].unit:
            values = f"number, with or without {units[name].unit}"
        if name in dates:
            values = f"date in the format {dates[name].format}, or a date type"
        columns.append((name, values))
    return columns


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} microseconds"


def _code(value: object) -> str:
    """Write untrusted text as Markdown code, between more backticks than it contains."""
    line = " ".join(str(value).split())
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{line}{space}{fence}" if line else "(no name)"


def _text(value: object) -> str:
    """Write untrusted text as Markdown that shows it."""
    line = " ".join(str(value).split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|!" else sign for sign in line)
