"""Figures of papers that a suite file names as a CSV file beside it."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import MISSING, fields, replace
from importlib.resources.abc import Traversable
from pathlib import Path

from kbench.errors import SuiteError
from kbench.messages import similar
from kbench.records import Published, Suite
from kbench.registry.registry import Registry

_COLUMNS = {field.name: field.default is MISSING for field in fields(Published)}
"""The columns of a file, and whether it must have them."""

_SHOWN = 10
"""Mistakes that are named."""


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
    problems = [
        f"{name}: there is no column {column!r}"
        for column, is_needed in _COLUMNS.items()
        if is_needed and column not in columns
    ]
    problems += [
        f"{name}: unknown column {column!r}{similar(column, _COLUMNS)}"
        for column in columns
        if column not in _COLUMNS
    ]
    if problems:
        raise SuiteError(*problems)
    figures: list[Published] = []
    try:
        # a quoted text with a line break would shift the numbers: they are those of its end
        for number, row in zip((number for number, _ in lines[1:]), reader, strict=False):
            figures += _figure(row, f"{name}, line {number}", problems)
    except csv.Error as error:
        problems.append(f"{name}, line {lines[reader.reader.line_num - 1][0]}: {error}")
    places = Counter(
        (each.dataset, each.feature_map, each.learner, each.measure) for each in figures
    )
    problems += [
        f"{name}: {count} figures of {', '.join(place)}"
        for place, count in places.items()
        if count > 1
    ]
    if problems:
        n_more = len(problems) - _SHOWN
        raise SuiteError(*problems[:_SHOWN], *([f"{name}: {n_more} more"] if n_more > 0 else []))
    return tuple(figures)


def _figure(row: dict[str, str | None], place: str, problems: list[str]) -> list[Published]:
    """Return the figure of a row; none, and its mistakes among the problems, where it has any."""
    from pydantic import ValidationError

    from kbench.planning.schema import PublishedTable, explained

    if None in row or None in row.values():
        problems.append(f"{place}: the line has another number of fields than the first")
        return []
    texts = {column: (text or "").strip() for column, text in row.items()}
    given = {column: text for column, text in texts.items() if text or _COLUMNS[column]}
    try:
        return [Published(**PublishedTable.model_validate(given, strict=False).model_dump())]
    except ValidationError as error:
        problems += [f"{place}: {each}" for each in explained(error, given, PublishedTable)]
        return []
