"""Tables of results in the forms people need: text, CSV, JSON, LaTeX, Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kbench.results import COLUMNS, Row, is_complete

FORMATS = ("table", "csv", "json", "latex", "markdown")

_DIGITS = {
    "accuracy": ".4f",
    "accuracy_sd": ".4f",
    "fit_time_s": ".4g",
    "predict_time_s": ".4g",
    "search_time_s": ".4g",
    "peak_memory_mb": ".1f",
    "n_components": "g",
}


def shown(name: str, value: Any) -> str:
    """Write one value of a results row for people.

    >>> shown("accuracy", 0.97333), shown("converged", False), shown("accuracy_sd", None)
    ('0.9733', 'no', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format(value, _DIGITS.get(name, "g"))
    return str(value)


def write(rows: Sequence[Row], form: str) -> str:
    """Write results rows in one of the text forms.

    Parameters
    ----------
    rows : sequence of dict
        Rows of `kbench.results.COLUMNS`.
    form : {"csv", "json", "latex", "markdown"}
        The form; "table" is drawn by the command line.
    """
    writers: Mapping[str, Callable[[Sequence[Row]], str]] = {
        "csv": _csv,
        "json": _json,
        "latex": _latex,
        "markdown": _markdown,
    }
    return writers[form](rows)


def _json(rows: Sequence[Row]) -> str:
    return json.dumps(list(rows), indent=1, ensure_ascii=False)


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_harmless("" if v is None else v) for v in row.values()])
    return text.getvalue().rstrip("\n")


def _harmless(value: Any) -> Any:
    """Keep spreadsheets from running a name as a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value


def _markdown(rows: Sequence[Row]) -> str:
    def cell(text: str) -> str:
        for sign in "\\|<>*_`[]":
            text = text.replace(sign, "\\" + sign)
        return " ".join(text.split())

    numbers = COLUMNS[4:]
    lines = [
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "|".join(" ---: " if name in numbers else " --- " for name in COLUMNS) + "|",
    ]
    for row in rows:
        values = [shown(name, row[name]) for name in COLUMNS]
        written = [v if n in numbers else cell(v) for n, v in zip(COLUMNS, values, strict=True)]
        lines.append("| " + " | ".join(written) + " |")
    return "\n".join(lines)


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def latex_text(text: str) -> str:
    r"""Escape text for LaTeX.

    >>> latex_text("50 % of_{x}")
    '50 \\% of\\_\\{x\\}'
    """
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))


def _latex(rows: Sequence[Row]) -> str:
    """Write a booktabs table; the best accuracy of each dataset is bold."""
    best: dict[str, float] = {}
    for row in rows:
        if is_complete(row):
            value = round(row["accuracy"], 4)
            best[row["dataset"]] = max(best.get(row["dataset"], 0.0), value)
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{tabular}{lllrrr}",
        r"\toprule",
        r"dataset & feature map & learner & accuracy & fit (s) & predict (s) \\",
    ]
    before = None
    for row in rows:
        if row["dataset"] != before:
            lines.append(r"\midrule")
        dataset = latex_text(row["dataset"]) if row["dataset"] != before else ""
        before = row["dataset"]
        names = [dataset, latex_text(row["feature_map"]), latex_text(row["learner"])]
        if row["accuracy"] is None:
            numbers = [latex_text(row["status"]), "", ""]
        else:
            text = shown("accuracy", row["accuracy"])
            if is_complete(row) and round(row["accuracy"], 4) == best.get(row["dataset"]):
                text = rf"\textbf{{{text}}}"
            if row["accuracy_sd"] is not None:
                text += rf" $\pm$ {shown('accuracy_sd', row['accuracy_sd'])}"
            if not is_complete(row):
                text += rf" ({row['n_splits_done']} of {row['n_splits']} splits)"
            numbers = [text, *(shown(n, row[n]) for n in ("fit_time_s", "predict_time_s"))]
        lines.append(" & ".join([*names, *numbers]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])
