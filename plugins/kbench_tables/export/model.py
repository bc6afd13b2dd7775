"""An exported model: loading and predictions; this module is bundled with each model.

It also reports rows that differ from the training data.
"""

import hashlib
import io
import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from kbench.messages import list_some, plural
from kbench_tables.export.encoder import split_columns
from kbench_tables.export.plain_objects import load

# Maximum number of example values in a finding.
EXAMPLES = 3

_SAYING = {
    "unknown": "a category that the training data lacks",
    "below": "a value below the training minimum",
    "above": "a value above the training maximum",
    "missing": "a missing value; the training data have none",
}


@dataclass
class Finding:
    """Values of one column that differ from the training data."""

    column: str
    kind: str
    """One of {"unknown", "below", "above", "missing"}."""
    n_rows: int
    first_row: int
    examples: list[str] = field(default_factory=list)
    bound: float | None = None
    """Smallest or largest number in the training data."""

    def __str__(self) -> str:
        rows = plural(self.n_rows, "row")
        has = "has" if self.n_rows == 1 else "have"
        bound = "" if self.bound is None else f" ({self.bound:.10g})"
        shown = f": {', '.join(map(repr, self.examples))}" if self.examples else ""
        return (
            f"column {self.column!r}: {rows} {has} {_SAYING[self.kind]}{bound}, the first is row "
            f"{self.first_row:,}{shown}"
        )


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return one finding for each column and kind, of several blocks of rows."""
    merged: dict[tuple[str, str], Finding] = {}
    for each in findings:
        other = merged.setdefault((each.column, each.kind), each)
        if other is not each:
            other.n_rows += each.n_rows
            other.examples = list(dict.fromkeys([*other.examples, *each.examples]))[:EXAMPLES]
    return list(merged.values())


def describe(findings: Iterable[Finding]) -> list[str]:
    """Return a sentence for each finding, or one for many columns with findings of one kind."""
    by_kind: dict[str, list[Finding]] = {}
    for each in findings:
        by_kind.setdefault(each.kind, []).append(each)
    sentences: list[str] = []
    for kind, group in by_kind.items():
        if len(group) <= EXAMPLES:
            sentences += map(str, group)
            continue
        n_rows = plural(max(each.n_rows for each in group), "row")
        names = list_some([each.column for each in group], EXAMPLES)
        sentences.append(f"{len(group):,} columns have {_SAYING[kind]}, in up to {n_rows}: {names}")
    return sentences


def refuse_missing(encoded: np.ndarray, places: Mapping[str, slice], first_row: int) -> None:
    """Raise a `ValueError` that names the first missing value of a block of rows."""
    if not np.isnan(encoded).any():
        return
    row = int(np.isnan(encoded).any(axis=1).argmax())
    name = next(name for name, place in places.items() if np.isnan(encoded[row, place]).any())
    raise ValueError(
        f"column {name!r} has a missing value, which the model does not support, in row "
        f"{first_row + row:,}"
    )


def find_unusual(
    values: Mapping[str, Any],
    encoded: np.ndarray,
    places: Mapping[str, slice],
    seen: Mapping[str, Mapping[str, Any]],
    first_row: int = 1,
) -> list[Finding]:
    """Return how rows differ from the training data; `encoded` has their numbers.

    `seen` describes a column of the training data: ``kind`` is "number", "codes" or "indicators",
    ``low`` and ``high`` bound its numbers, ``missing`` is whether values were missing.
    """
    findings = []
    for name, place in places.items():
        block, seen_values = encoded[:, place], seen[name]
        first = block[:, 0]
        is_missing = np.isnan(first)
        rows: dict[str, Any] = {}
        if not seen_values["missing"]:
            rows["missing"] = is_missing
        if seen_values["kind"] == "indicators":
            rows["unknown"] = ~is_missing & (block.sum(axis=1) == 0)
        elif seen_values["kind"] == "codes":
            rows["unknown"] = first < 0
        elif seen_values["low"] is not None:
            rows["below"], rows["above"] = first < seen_values["low"], first > seen_values["high"]
        for kind, mask in rows.items():
            if not mask.any():
                continue
            where = np.flatnonzero(mask)
            bound = {"below": seen_values.get("low"), "above": seen_values.get("high")}.get(kind)
            texts = [] if kind == "missing" else [str(values[name][i]) for i in where[:200]]
            examples = list(dict.fromkeys(value[:60] for value in texts))[:EXAMPLES]
            findings.append(
                Finding(name, kind, len(where), first_row + int(where[0]), examples, bound)
            )
    return findings


# The metadata of a model: the JSON object of ``model.json``.
Facts: TypeAlias = dict[str, Any]

OBJECTS, ARRAYS = "objects.json", "arrays.npz"
# Version of the folder of a model, the only one that `kbench predict` reads.
FORMAT = 2

# Relative tolerance between the predictions of a loaded model and those at its export.
TOLERANCE = 1e-6


class Model:
    """A fitted method whose input is the user's original table.

    Rows are a list of mappings, a mapping of columns, or a data frame; for a model of sparse
    data a CSR matrix.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        Maps rows to class names, or to numbers in the target's units.
    facts : mapping
        The metadata of the model, as in ``model.json``.
    intervals : Intervals, optional
        Prediction intervals of a regression model.

    Attributes
    ----------
    columns : tuple of str
        Columns of the table that are used; empty if they have no names.
    classes : list
        Classes in the order of `predict_proba`; empty for regression.
    """

    def __init__(self, pipeline: Any, facts: Mapping[str, Any], intervals: Any = None) -> None:
        self.pipeline, self.facts, self.intervals = pipeline, facts, intervals
        self.encoder = pipeline.named_steps.get("encode")
        self.columns = () if self.encoder is None else tuple(n for n, _ in self.encoder.columns)
        self.classes = pipeline[-1].classes_.tolist() if facts["task"] == "classification" else []

    def __repr__(self) -> str:
        return f"<Model {self.facts['cell']!r}>"

    @property
    def has_probabilities(self) -> bool:
        """Whether the model predicts class probabilities."""
        return bool(self.classes) and hasattr(self.pipeline, "predict_proba")

    def encode(self, rows: object) -> Any:
        """Encode rows as numbers: the input of the model's other steps and of an ONNX model."""
        return rows if self.encoder is None else self.encoder.transform(rows)

    def predict(self, rows: Any) -> np.ndarray:
        """Return a class or a number for each row."""
        return np.asarray(self.pipeline.predict(rows))

    def predict_proba(self, rows: Any) -> np.ndarray:
        """Return a probability for each row and class, in the order of `classes`."""
        if not self.has_probabilities:
            raise ValueError("this model predicts no probabilities")
        return np.asarray(self.pipeline.predict_proba(rows))

    def predict_interval(
        self, rows: object, coverage: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper ends of prediction intervals.

        Their widths are quantiles of out-of-fold residuals; see README.md.
        """
        encoded = self.encode(rows)
        return self.interval_around(self.predict_encoded(encoded, "predict"), encoded, coverage)

    def interval_around(
        self, predicted: np.ndarray, encoded: Any, coverage: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return intervals around predictions for encoded rows."""
        if self.intervals is None:
            raise ValueError("this model predicts classes: prediction intervals are for regression")
        sd = None
        if self.intervals.is_relative:
            sd = self._steps.predict(encoded, return_std=True)[1]
        low, high = self.intervals.around(predicted, sd, coverage)
        return low, high

    def predict_encoded(self, encoded: object, method: str) -> np.ndarray:
        """Call a method of the steps after the encoding of the table."""
        return np.asarray(getattr(self._steps, method)(encoded))

    def check(self, rows: object) -> list[Finding]:
        """Report new categories and numbers outside the range of the training data.

        ValueError is raised if columns are missing or hold strings instead of numbers.
        """
        table = split_columns(rows)
        if self.encoder is None or table is None:
            return []
        return self.check_encoded(self.encoder.select(table), self.encode(table), 1)

    def check_encoded(
        self, values: Mapping[str, Any], encoded: np.ndarray, first_row: int
    ) -> list[Finding]:
        """Report how a block of rows differs from training; raise for missing values."""
        places = self.encoder.places()
        if not self.facts["takes_missing"]:
            refuse_missing(encoded, places, first_row)
        return find_unusual(values, encoded, places, self.facts["columns"], first_row)

    @property
    def _steps(self) -> Any:
        return self.pipeline if self.encoder is None else self.pipeline[1:]


def load_files(contents: Mapping[str, bytes], package: str) -> Model:
    """Return the model of the files `OBJECTS` and `ARRAYS`, after a trial.

    `package` is that of the code. RuntimeError is raised if the model predicts something else with
    the installed packages than at its export.
    """
    document = json.loads(contents[OBJECTS])
    facts = document["facts"]
    with np.load(io.BytesIO(contents[ARRAYS]), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    try:
        parts = load(document["model"], arrays, package, facts["needed"])
        model = Model(parts["pipeline"], facts, parts["intervals"])
        answers = encoded_answers(model, parts["trial"])
    except Exception as error:
        if differing := other_versions(facts["versions"]):
            raise RuntimeError(f"the model cannot be loaded with {differing}: {error}") from error
        raise
    if not agree(parts["answers"], answers):
        differing = other_versions(facts["versions"]) or "the installed packages"
        raise RuntimeError(f"the predictions differ from those at the export, with {differing}")
    return model


def encoded_answers(model: Model, encoded: object) -> np.ndarray:
    """Return the predictions of a model: probabilities, decision values, or numbers."""
    for name in ("predict_proba", "decision_function"):
        if model.classes and hasattr(model.pipeline, name):
            return model.predict_encoded(encoded, name)
    answers = model.predict_encoded(encoded, "predict")
    if model.classes:
        return np.array([model.classes.index(label) for label in answers.tolist()])
    return answers


def agree(one: np.ndarray, other: np.ndarray, tolerance: float = TOLERANCE) -> bool:
    """Whether answers are equal up to rounding."""
    scale = max(float(np.abs(one).max(initial=0.0)), 1.0)
    return one.shape == other.shape and bool(np.all(np.abs(one - other) <= tolerance * scale))


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that every model needs."""
    names = ("numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in names}}


def other_versions(wanted: Mapping[str, str]) -> str:
    """Name the packages that have another version than at the export."""
    installed = versions()
    differing = [
        f"{name} {installed[name]} instead of {version}"
        for name, version in wanted.items()
        if installed.get(name, version) != version
    ]
    return ", ".join(differing) and f"{', '.join(differing)} (see requirements.txt)"


def load_folder(folder: Path, package: str, checksums: Mapping[str, str]) -> Model:
    """Return the model of a package's folder; `ValueError` where a file is damaged."""
    contents = {}
    for name, checksum in checksums.items():
        contents[name] = (folder / name).read_bytes()
        if hashlib.sha256(contents[name]).hexdigest() != checksum:
            raise ValueError(f"{folder / name} is damaged: its SHA-256 is not {checksum}")
    return load_files(contents, package)
