"""Own results beside the figures that papers print, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kbench.features import Column, ReportData, Table, decimals, headings_of, shown, signed
from kbench.records import Measure, Published
from kbench_claims.published import beside_published


def published(content: ReportData) -> Table:
    """Return own results beside the figures that papers print, one line for each."""
    four = _written_figures(content.published, content.measure, content.digits)
    made = [
        Column("dataset"),
        Column("feature_map", "feature map"),
        Column("learner"),
        Column("measure", wide=True),
        Column("ours", "", four, True),
        Column("standard_error", "standard error", four, True),
        Column("n", "splits", numeric=True),
        Column("paper", "", four, True),
        Column("z", "", lambda value: signed(value, 1), True),
        Column("source"),
    ]
    compared = [
        {**vars(beside.published), **vars(beside), "paper": beside.published.value}
        for beside in beside_published(content.rows, content.published, content.measure)
    ]
    notes = {(i, "ours"): "no result" for i, row in enumerate(compared) if row["ours"] is None}
    return Table("published", "Beside published figures", made, compared, notes=notes)


def _written_figures(
    figures: Sequence[Published], measure: Measure, digits: int | None
) -> Callable[[Any], str]:
    """Return the function that writes published figures: of one measure, as a rule."""
    names = {figure.measure for figure in figures}
    name = names.pop() if len(names) == 1 else measure.name
    return partial(shown, name) if digits is None else partial(decimals, digits=digits)


def published_grid(content: ReportData) -> Table:
    """Return datasets against methods as the paper has them; its figures are in brackets."""
    compared = beside_published(content.rows, content.published, content.measure)
    sources = list(dict.fromkeys(beside.published.source for beside in compared))
    methods = dict.fromkeys(
        (beside.published.feature_map, beside.published.learner) for beside in compared
    )
    names = headings_of(list(methods))
    written = _written_figures(content.published, content.measure, content.digits)
    made = [
        *([Column("source")] if len(sources) > 1 else []),
        Column("dataset"),
    ]
    for name in names.values():
        made.append(Column(name, "", written, True))
        made.append(Column(f"{name} (published)", "", written, True, data_only=True))
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for beside in compared:
        figure = beside.published
        place, name = (figure.source, figure.dataset), names[figure.feature_map, figure.learner]
        empty = dict.fromkeys(column.name for column in made)
        line = lines.setdefault(place, empty | dict(zip(("source", "dataset"), place, strict=True)))
        line |= {name: beside.ours, f"{name} (published)": figure.value}
    notes = {}
    for i, line in enumerate(lines.values()):
        for name in names.values():
            if (value := line[f"{name} (published)"]) is not None:
                text = written(value)
                notes[i, name] = f"({text})" if line[name] is None else text
    title = "Ours, and in brackets the figures of " + (
        sources[0] if len(sources) == 1 else "papers"
    )
    rows, by = list(lines.values()), "source" if len(sources) > 1 else ""
    return Table("published-grid", title, made, rows, notes=notes, by=by, is_grid=True)
