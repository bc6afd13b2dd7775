"""The card of an exported model: its method, how to load it, and its scores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kbench.messages import number, plural
from kbench.tables.texts import DateColumn, UnitColumn
from kbench_tables.export.fit import Fitted

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
"""Metrics that a card shows, with their names."""


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
    is_share = name == "r2" or name in _SHOWN["classification"]
    return f"{value:.4f}" if is_share else number(value)


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
