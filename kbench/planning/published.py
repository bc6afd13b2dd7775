"""Figures of papers that a suite file names as a CSV file beside it."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from importlib.resources.abc import Traversable
from pathlib import Path

from kbench.errors import SuiteError
from kbench.messages import similar
from kbench.records import Published, Suite
from kbench.registry.registry import Registry

_NEEDED = ("dataset", "feature_map", "learner", "measure", "value")
_OPTIONAL = ("sd", "n_runs", "source")


def with_published(suite: Suite, name: str, registry: Registry) -> Suite:
    """Return a suite with the figures of its file; `name` is its name or path, as for `find`.

    SuiteError is raised where there is no such file beside the suite, or it has mistakes.
    """
    if not suite.published_file:
        return suite
    suites = registry.all("suite")
    text = _text(suites[name] if name in suites else Path(name), suite.published_file)
    return replace(suite, published=read_published(text, suite.published_file))


def _text(suite: Traversable | Path, name: str) -> str:
    """Read a file beside a suite."""
    folder = getattr(suite, "parent", None)
    if folder is None:
        raise SuiteError(f"published: {name!r} cannot be read: the suite is not in a folder")
    try:
        return str((folder / name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SuiteError(f"published: cannot read {folder / name}: {reason}") from error


def read_published(text: str, name: str) -> tuple[Published, ...]:
    r"""Read figures from the text of a CSV file; `name` is for messages.

    Columns are the fields of `Published`: ``dataset``, ``feature_map``, ``learner``, ``measure``
    and ``value``, perhaps ``sd``, ``n_runs`` and ``source``. Lines that begin with # are comments.

    SuiteError is raised with every mistake, up to ten.

    Examples
    --------
    >>> text = "dataset,feature_map,learner,measure,value\niris,rff,ridge,accuracy,0.95\n"
    >>> read_published(text, "figures.csv")[0].value
    0.95
    """
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.startswith("#")
    ]
    reader = csv.DictReader(io.StringIO("\n".join(line for _, line in lines)), strict=True)
    columns = [column.strip() for column in reader.fieldnames or ()]
    reader.fieldnames = columns
    problems = [f"{name}: there is no column {each!r}" for each in _NEEDED if each not in columns]
    problems += [
        f"{name}: unknown column {each!r}{similar(each, [*_NEEDED, *_OPTIONAL])}"
        for each in columns
        if each not in (*_NEEDED, *_OPTIONAL)
    ]
    if problems:
        raise SuiteError(*problems)
    figures = []
    try:
        # a quoted text with a line break would shift the numbers: they are those of its end
        for number, row in zip((number for number, _ in lines[1:]), reader, strict=False):
            try:
                figures.append(_figure(row))
            except ValueError as error:
                problems.append(f"{name}, line {number}: {error}")
    except csv.Error as error:
        problems.append(f"{name}, line {lines[reader.reader.line_num - 1][0]}: {error}")
    places: dict[tuple[str, ...], int] = {}
    for figure in figures:
        place = (figure.dataset, figure.feature_map, figure.learner, figure.measure)
        places[place] = places.get(place, 0) + 1
    problems += [
        f"{name}: {count} figures of {', '.join(place)}"
        for place, count in places.items()
        if count > 1
    ]
    if problems:
        more = [f"{name}: {len(problems) - 10} more"] if len(problems) > 10 else []
        raise SuiteError(*problems[:10], *more)
    return tuple(figures)


def _figure(row: dict[str, str | None]) -> Published:
    """Return the figure of a row; a ValueError says what is wrong."""
    if None in row or None in row.values():
        raise ValueError("the line has another number of fields than the first")
    cells = {key: (value or "").strip() for key, value in row.items()}
    for key in ("dataset", "feature_map", "learner", "measure"):
        if not cells[key]:
            raise ValueError(f"{key} is empty")
    sd = _number(cells.get("sd", ""), "sd")
    n_runs = _number(cells.get("n_runs", ""), "n_runs")
    value = _number(cells["value"], "value")
    if value is None:
        raise ValueError("value is empty")
    if sd is not None and sd < 0:
        raise ValueError(f"sd must be a finite number >= 0, got {sd:g}")
    if n_runs is not None and (n_runs < 1 or n_runs != int(n_runs)):
        raise ValueError(f"n_runs must be an integer >= 1, got {n_runs:g}")
    return Published(
        cells["dataset"],
        cells["feature_map"],
        cells["learner"],
        cells["measure"],
        value,
        sd,
        None if n_runs is None else int(n_runs),
        cells.get("source", ""),
    )


def _number(text: str, column: str) -> float | None:
    """Return a finite number, None for an empty text."""
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{column} must be a finite number, got {text!r}")
    return number
