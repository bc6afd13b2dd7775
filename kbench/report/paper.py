"""What a paper asks of a table: fewer methods and datasets, turned, with a caption."""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from kbench.errors import SuiteError
from kbench.messages import did_you_mean, option
from kbench.report.content import format_method
from kbench.report.text import Column, Table, distinct
from kbench.results.rows import Method, Row

T = TypeVar("T")

_SCHEME = re.compile(r" \([^()]*\)$")
_LABEL = re.compile(r"[A-Za-z0-9:._/+-]+")


def select_methods(
    rows: Sequence[Row], patterns: Sequence[str], name: str = "methods"
) -> list[Method]:
    """Return the methods that patterns mean, in their order; all without patterns.

    A pattern fits the name of a method, `map + learner`, with or without the scheme behind
    it, or the name of its feature map.

    SuiteError is raised if a pattern matches nothing.
    """
    names = {
        row.method: (
            format_method(row.method),
            _SCHEME.sub("", format_method(row.method)),
            row.feature_map,
        )
        for row in rows
    }
    return _match_names(names, patterns, name)


def select_datasets(
    rows: Sequence[Row], patterns: Sequence[str], name: str = "datasets"
) -> list[str]:
    """Return the datasets that patterns mean, in their order; all without patterns."""
    return _match_names({row.dataset: (row.dataset,) for row in rows}, patterns, name)


def _match_names(names: Mapping[T, tuple[str, ...]], patterns: Sequence[str], name: str) -> list[T]:
    """Return the keys one of whose names fits a pattern."""
    chosen: dict[T, None] = {} if patterns else dict.fromkeys(names)
    for pattern in patterns:
        meant = [
            key
            for key, written in names.items()
            if pattern in written or any(fnmatch.fnmatchcase(each, pattern) for each in written)
        ]
        if not meant:
            allowed = dict.fromkeys(each for written in names.values() for each in written)
            raise SuiteError(
                f"{option(name)}: {pattern!r} is not among the results"
                f"{did_you_mean(pattern, allowed)}\n"
                f"available: {', '.join(dict.fromkeys(written[0] for written in names.values()))}"
            )
        chosen |= dict.fromkeys(meant)
    return list(chosen)


def split_names(text: str) -> list[str]:
    """Split names at commas outside of brackets, which labels of methods have.

    >>> split_names("rff(n=10,gamma=1), nystroem")
    ['rff(n=10,gamma=1)', 'nystroem']
    """
    names, depth = [""], 0
    for sign in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(sign, 0)
        if sign == "," and depth <= 0:
            names.append("")
        else:
            names[-1] += sign
    return [name.strip() for name in names if name.strip()]


def transpose_table(table: Table) -> Table:
    """Return a table of datasets against methods with its methods as rows.

    SuiteError is raised if the table has other columns.
    """
    if not table.is_grid or table.by:
        raise SuiteError(
            f"{option('transpose')}: the table {table.name!r} has columns of several kinds; "
            "choose scores, scores-default-metric, ranks or a grid of a feature"
        )
    first, *methods = table.visible
    if not methods:
        return table
    headings = distinct((str(row[first.name]) for row in table.rows), "method")
    written = methods[0].written
    columns = [Column("method")]
    for name in headings:
        columns.append(Column(name, "", written, True, sd=f"{name} (sd)"))
        columns.append(Column(f"{name} (sd)", "", written, True))
    rows, marks, notes = [], {}, {}
    for i, method in enumerate(methods):
        row: dict[str, object] = {"method": method.heading}
        for j, (name, line) in enumerate(zip(headings, table.rows, strict=True)):
            row[name] = line[method.name]
            row[f"{name} (sd)"] = line.get(method.sd)
            if mark := table.marks.get((j, method.name)):
                marks[i, name] = mark
            if note := table.notes.get((j, method.name)):
                notes[i, name] = note
        rows.append(row)
    return replace(table, columns=columns, rows=rows, marks=marks, notes=notes)


def wrap_in_float(tabular: str, caption: str, label: str) -> str:
    r"""Return a LaTeX table with a caption and a label around a tabular.

    The caption may have formulas and commands; characters that would break it are escaped.

    >>> print(wrap_in_float("TABULAR", "Errors in % of uci_small, $n_1 = 10$.", "tab:main"))
    \begin{table}
    \centering
    \caption{Errors in \% of uci\_small, $n_1 = 10$.}
    \label{tab:main}
    TABULAR
    \end{table}

    Raises
    ------
    SuiteError
        The label has characters except letters, digits and ``:._/+-``, or braces or dollar
        signs of the caption are not in pairs.
    """
    if label and not _LABEL.fullmatch(label):
        raise SuiteError(f"--label must have letters, digits and :._/+- only, got {label!r}")
    head = [r"\begin{table}", r"\centering"]
    head += [rf"\caption{{{_caption(caption)}}}"] if caption else []
    head += [rf"\label{{{label}}}"] if label else []
    return "\n".join([*head, tabular, r"\end{table}"])


def _caption(text: str) -> str:
    """Escape %, # and &, and _ outside of formulas, where they are not escaped."""
    text = " ".join(text.split())
    signs = re.findall(r"\\.|.|\\$", text)
    depth, in_formula, written = 0, False, []
    for sign in signs:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        in_formula ^= sign == "$"
        if depth < 0 or sign == "\\":
            break
        escaped = sign in ("%", "#", "&") or (sign == "_" and not in_formula)
        written.append(f"\\{sign}" if escaped else sign)
    if depth or in_formula or len(written) < len(signs):
        raise SuiteError(f"--caption: its braces or dollar signs are not in pairs: {text!r}")
    return "".join(written)
