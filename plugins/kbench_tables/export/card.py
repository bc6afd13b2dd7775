"""The card of an exported model: what it is, how to load it, how accurate it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kbench.messages import counted, number
from kbench.tables.texts import DateColumn, UnitColumn
from kbench_tables.export.fit import Fitted, has_intervals

_SHOWN: Mapping[str, Mapping[str, str]] = {
    "classification": {"accuracy": "accuracy"},
    "regression": {
        "rmse": "root mean squared error (rmse), in the target's units",
        "mae": "mean absolute error, in the target's units",
        "r2": "r2",
        "rmse_standardised": "rmse over the target's standard deviation",
        "coverage_error_90": "90 % intervals",
    },
}
"""Measures that a card shows, with their names; the first one says over what."""


def card(facts: Mapping[str, Any], fitted: Fitted, warning: str, mlflow: bool) -> str:
    """Write the card of a model in Markdown, from the facts of its ``model.json``.

    `warning` is what to know before the file is loaded; `mlflow` says whether
    the model was saved as an MLflow model too. No text of the facts becomes
    markup.
    """
    predicting = _predicting(facts, fitted)
    if "package" in facts:
        load, predicting = _loading(facts), _asking(facts)
    elif facts["file"].endswith("skops"):
        load = (
            "import skops.io\n\n"
            "# the types in the file beside scikit-learn's: look through them first\n"
            f"trusted = {json.dumps(facts['trusted'], indent=4)}\n"
            f'model = skops.io.load("{facts["file"]}", trusted=trusted)'
        )
    else:
        load = f'import joblib\n\nmodel = joblib.load("{facts["file"]}")'
    chosen = "\n".join(f"- {_text(k)}: {_text(v)}" for k, v in facts["chosen"].items())
    served = "\n`mlflow/` is the same as an MLflow model.\n" if mlflow else ""
    return f"""# {_text(facts["cell"])}

Exported by kbench {facts["kbench"]} on {facts["written"]}.

**{warning}**

```python
{load}
{predicting}
```
{_portable(facts)}{served}{_warning(facts)}
## Input

{_input(fitted)}

## What it is

{_errors(facts)}
- data: {_text(facts["dataset_source"] or facts["dataset"])}, {facts["n_rows"]} rows,
  checksum `{facts["dataset_checksum"]}`
{_target(facts)}
- cell key: `{facts["cell_key"]}`
{_files(facts)}

Chosen by inner cross-validation on all rows:

{chosen}

## Needs

{_needs(facts)}
"""


def _loading(facts: Mapping[str, object]) -> str:
    """Write how the package of a model is loaded."""
    return f"from {facts['package']} import load\n\nmodel = load()"


def _asking(facts: Mapping[str, object]) -> str:
    """Write calls of a model that is loaded from its package."""
    if not facts.get("columns_named", True):
        return "model.predict(X)"
    lines = ["rows = [{...}, {...}]  # one mapping for each row, or a mapping of columns"]
    if facts["task"] == "classification":
        lines.append("model.predict(rows)  # names of classes")
        if facts["has_probabilities"]:
            lines.append("model.predict_proba(rows)  # in the order of model.classes")
    else:
        lines.append("model.predict(rows)  # numbers in the target's units")
        lines.append("low, high = model.predict_interval(rows, coverage=0.9)")
    lines.append("model.check(rows)  # new categories, numbers outside of training")
    return "\n".join(lines)


def _portable(facts: Mapping[str, Any]) -> str:
    """Write what else a folder without kbench can do, and what it is made of."""
    if "package" not in facts:
        return ""
    package = facts["package"]
    latency = facts["latency_s"]
    script = ""
    if facts["columns_named"]:
        script = "\n```console\n$ python predict.py new.csv -o predictions.csv\n```\n"
    onnx = ""
    if facts.get("onnx"):
        onnx = f"""
`model.onnx` is the same from numbers on: its input `X` is what `model.encode(rows)` returns.
Its outputs are {_outputs(facts["onnx"]["outputs"])}.
On the training rows they differ by at most {facts["onnx"]["difference"]:.1g} of their range.
"""
    return f"""{script}
Install `requirements.txt` first; kbench is not needed. The folder of this file must be where
Python looks for modules, or copy `{package}/` there. Predicting took
{_duration(latency["1"])} per row one row at a time, and {_duration(latency["1000"])} per row for
1,000 rows at a time.

When the model is loaded, its data are compared with their checksums, and its answers for a
few made-up rows with those at the export: other versions of the packages are refused if they
predict otherwise. Loading runs the code in `{package}/`. It uses no pickle.
{onnx}{_intervals(facts)}"""


def _intervals(facts: Mapping[str, Any]) -> str:
    """Write how intervals are made, or probabilities."""
    found = facts.get("intervals")
    if found is None:
        if not facts.get("is_calibrated"):
            return ""
        return """
The learner has no probabilities: they are sigmoid functions of its decision values, fitted on
rows that were held out.
"""
    unit = "standard deviations of its predictions" if found["is_relative"] else "absolute errors"
    over, fitted, rest = "five folds", "four fifths of the rows", "the other fifth"
    if found["own_splits"]:
        over, fitted, rest = "the splits by groups or by time", "their training rows", "the others"
    return f"""
Intervals are split-conformal over {over}: the method was fitted on {fitted} with
the chosen parameters, and an interval reaches as far as the quantile of the {unit}
on {rest}. In this way, {100 * found["coverage"]:.1f} % of {found["n_rows"]:,} held-out
targets were in intervals of {100 * found["level"]:g} %. The parameters were chosen on the same
rows; the share holds for new rows like these.
"""


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} microseconds"


def _files(facts: Mapping[str, Any]) -> str:
    """Write the checksum of the model's file, or whose code the folder holds."""
    if "package" not in facts:
        return f"- `{facts['file']}`: SHA-256 `{facts['sha256']}`"
    parts = []
    for name, licence in facts["licences"].items():
        text = f"`LICENSES/{name}`" if licence["files"] else "no licence file found"
        parts.append(f"{_text(name)} ({_text(licence['licence'])}, {text})")
    return f"- code: parts of {', '.join(parts)}"


def _needs(facts: Mapping[str, Any]) -> str:
    if "package" not in facts:
        names = ", ".join(facts["requirements"])
        return f"{names}, and the plugins of its feature map and learner."
    optional = ""
    if facts["optional"]:
        optional = f" {', '.join(facts['optional'])} can make it faster."
    python = facts["versions"]["python"]
    return f"Python {python} and {', '.join(facts['requirements'])}.{optional}"


def _predicting(facts: Mapping[str, object], fitted: Fitted) -> str:
    """Write the call that predicts."""
    if facts["task"] == "classification":
        return "model.predict(table)  # names of classes"
    if not has_intervals(fitted.pipeline):
        return "model.predict(table)  # numbers in the target's units"
    return (
        "import pandas\n\n"
        "mean, sd = model.predict(table, return_std=True)  # in the target's units\n"
        "predictions = pandas.DataFrame(\n"
        '    {"prediction": mean, "lower_90": mean - 1.645 * sd, "upper_90": mean + 1.645 * sd}\n'
        ")"
    )


def _warning(facts: Mapping[str, Any]) -> str:
    """Write what to keep in mind when numbers are predicted."""
    if facts["task"] == "classification":
        return ""
    low, high = facts["target"]["lowest"], facts["target"]["highest"]
    return (
        f"\nThe targets that it was fitted on reach from {low:,.10g} to {high:,.10g}. A prediction "
        "outside of this\nrange is an extrapolation, and no measured error holds for it.\n"
    )


def _errors(facts: Mapping[str, Any]) -> str:
    """List what was measured, with its spread over the splits."""
    measured = facts["measured"] or {}
    shown = [name for name in _SHOWN[facts["task"]] if name in measured]
    if not shown:
        what = "accuracy" if facts["task"] == "classification" else "errors"
        return (
            f"- {what}: not measured: `kbench suite` or `kbench run` has not computed this cell "
            "here"
        )
    lines = []
    for name in shown:
        value, spread = measured[name], measured.get(f"{name}_sd")
        written = _SHOWN[facts["task"]][name]
        if name == "coverage_error_90":
            lines.append(
                f"- 90 % intervals: the share of targets in them was {100 * value:.1f} points off "
                "90 %, on average over the splits"
            )
            continue
        lines.append(f"- {written}: {_number(name, value)}")
        lines[-1] += "" if spread is None else f" ± {_number(name, spread)}"
    has_spread = measured.get(f"{shown[0]}_sd") is not None
    lines[0] += (
        f", mean{' and standard deviation' if has_spread else ''} over "
        f"{counted(measured['n_splits_done'], 'split')}"
        f"{', on a cluster' if measured['machine'].startswith('cluster-') else ''}; "
        "this model was then fitted on all rows"
    )
    return "\n".join(lines)


def _outputs(names: Sequence[str]) -> str:
    """Name the outputs of an ONNX model, and say where it has decision values only."""
    written = ", ".join(f"`{name}`" for name in names)
    if "decision" not in names or "probabilities" in names:
        return written
    return f"{written}. Decision values are no probabilities: the larger, the likelier"


def _number(name: str, value: float) -> str:
    return f"{value:.4f}" if name in ("accuracy", "r2") else number(value)


def _target(facts: Mapping[str, Any]) -> str:
    """Describe the target, and the weights if the rows had any."""
    if facts["task"] == "classification":
        line = f"- classes: {_text(', '.join(map(str, facts['classes'][:20])))}"
    else:
        line = (
            "- target: numbers, standardised for the fit; the model predicts in the target's units"
        )
    return line + ("\n- the rows were weighted" if facts["is_weighted"] else "")


def _input(fitted: Fitted) -> str:
    encoder = fitted.pipeline.named_steps.get("encode")
    if encoder is None:
        return (
            f"A sparse matrix with {fitted.dataset.X.shape[1]} columns, in the order of the file."
        )
    lines = [
        "A pandas data frame with these columns, in any order. Values may be missing only where",
        "the protocol says what to do with them; a category that is not listed is none of them.",
        "",
    ]
    dates = {date.name: date for date in (DateColumn.parsed(d, "dates") for d in encoder.dates)}
    units = {unit.name: unit for unit in (UnitColumn.parsed(u, "units") for u in encoder.units)}
    for name, categories in encoder.columns[:100]:
        what = "number" if categories is None else "one of " + ", ".join(categories[:20])
        if categories is not None and len(categories) > 20:
            what += f" and {len(categories) - 20:,} more"
        if name in units:
            what = "number" + (f", {units[name].unit} may be around it" if units[name].unit else "")
        if name in dates:
            what = f"date written as {dates[name].format}, or of a type for dates"
        lines.append(f"- {_code(name)}: {_text(what)}")
    if len(encoder.columns) > 100:
        lines.append(f"- and {len(encoder.columns) - 100} more, in `model.json` of the encoder")
    return "\n".join(lines)


def _code(value: object) -> str:
    """Write untrusted text as Markdown code, between more backticks than it contains."""
    text = " ".join(str(value).split())
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}" if text else "(no name)"


def _text(value: object) -> str:
    """Write untrusted text as Markdown that shows it."""
    text = " ".join(str(value).split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|!" else sign for sign in text)
