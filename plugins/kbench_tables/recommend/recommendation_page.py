"""The result of a comparison on a user's data, as sentences and as a report page."""

import math
from collections.abc import Sequence
from itertools import groupby

from kbench.features import (
    Column,
    Folded,
    Heading,
    Lead,
    Metric,
    Note,
    Part,
    Registry,
    ReportData,
    Row,
    Table,
    machine_facts,
    page,
)
from kbench.messages import list_some, number, option, plural, printable
from kbench_tables.profile import Role
from kbench_tables.recommend.compared_methods import OUT_OF_TIME, ComparedMethods
from kbench_tables.recommend.explain import Explanation
from kbench_tables.recommend.metric import Comparison, list_shares
from kbench_tables.recommend.user_data import UserData

COLUMNS = ("column", "type", "encoding", "n features", "note")

# Minimum number of adjacent columns with equal encoding that share one row.
MIN_ALIKE = 6


def column_rows(roles: Sequence[Role]) -> list[tuple[str, ...]]:
    """Return a row with `COLUMNS` for each column; adjacent columns with equal encoding share one.

    >>> column_rows([Role("age", "numbers", "number", 1)])
    [('age', 'numbers', 'number', '1', '')]
    >>> column_rows([Role(f"x{j}", "numbers", "number", 1) for j in range(40)])
    [('x0 ... x39 (40 columns)', 'numbers', 'number', '40', '')]
    """
    lines = []
    for _, group in groupby(roles, key=lambda f: (f.read_as, f.encoded_as, f.n_columns, f.note)):
        alike = list(group)
        if len(alike) >= MIN_ALIKE:
            first, last = (printable(role.name, 60) for role in (alike[0], alike[-1]))
            lines.append(_line(alike, f"{first} ... {last} ({len(alike):,} columns)"))
        else:
            lines += [_line([role], printable(role.name, 60)) for role in alike]
    return lines


def _line(alike: Sequence[Role], name: str) -> tuple[str, ...]:
    role = alike[0]
    n_columns = sum(each.n_columns for each in alike)
    return (name, role.read_as, role.encoded_as, f"{n_columns:,}", printable(role.note, 200))


def build_lead(
    compared: ComparedMethods,
    data: UserData,
    by: Comparison,
    time_limit: float | None,
    command: str = "",
) -> Lead:
    """Return the recommendation in sentences, with a description of the data."""
    sentences = (
        *_sentences(compared, time_limit),
        *_without_metric(compared.rows, compared.report.suite.compared),
        *compared.explained,
    )
    return Lead(sentences, (shape(data), data.target, *filter(None, [by.sentence])), command)


def build_page(compared: ComparedMethods, data: UserData, lead: Lead, registry: Registry) -> str:
    """Return the report page, with the recommendation and the column encodings at its top."""
    report, preview = compared.report, data.preview
    sentence = (preview.sentence,) if preview and preview.sentence else ()
    about = (*lead.facts, *sentence, *data.warnings)
    parts: list[Part] = []
    if preview and (lines := column_rows(preview.roles)):
        title = "How the columns of the file are encoded"
        table = Table.make("columns", list(map(Column, COLUMNS)), lines, title=title)
        parts.append(Folded(title, table))
    if compared.explanation:
        parts += explanation_section(compared.explanation, report.suite.compared)
    top = Lead(lead.sentences, about, lead.command, parts)
    content = ReportData(
        report.suite.name,
        list(compared.rows),
        metric=report.suite.compared,
        machine=machine_facts(compared.rows[0].machine),
        store=", ".join(delivered.uri for delivered in report.deliveries),
        budget=report.suite.equal_budget,
    )
    return page(content, registry, top)


def explanation_section(result: Explanation, metric: Metric) -> list[Part]:
    """Show permutation importances and errors of the recommended method."""
    note = (
        f"Permutation importance: how much worse the {metric.words} is if a column is permuted "
        f"among {result.n_rows:,} test rows of the first split (mean and standard deviation of "
        "three permutations). Correlated columns share their importance."
    )
    title = "Permutation importances"
    four = "{:.4f}".format
    columns = [Column("column"), *(Column(name, "", four, True) for name in ("importance", "sd"))]
    lines = [(each.column, each.mean, each.sd) for each in result.importances]
    table = Table.make("importances", columns, lines, title=title)
    parts: list[Part] = [Heading(title), Note(note), table]
    if result.confusion:
        title, whole = "Confusion matrix", "{:,}".format
        note = "Test rows by class (rows) and predicted class (columns)."
        heads = enumerate(result.classes)
        columns = [Column("class"), *(Column(str(i), name, whole, True) for i, name in heads)]
        rows = zip(result.classes, result.confusion, strict=True)
        counts = [(name, *by_class) for name, by_class in rows]
        parts += [Heading(title), Note(note), Table.make("confusion", columns, counts, title=title)]
    return parts


def shape(data: UserData) -> str:
    """Describe the data: rows, columns before and after encoding, target, missing values."""
    facts, preview = data.facts, data.preview
    columns = plural(facts.n_features, "column")
    if preview is not None and preview.n_columns != facts.n_features:
        columns = f"{plural(preview.n_columns, 'column')}, {facts.n_features:,} after encoding"
    parts = [plural(facts.n_samples, "row"), columns]
    if facts.target_mean is not None and facts.target_sd is not None:
        parts.append(
            f"target with mean {number(facts.target_mean)} and standard deviation "
            f"{number(facts.target_sd)}"
        )
    else:
        parts.append(f"{plural(facts.n_classes, 'class', 'classes')} ({list_shares(facts)})")
    if facts.n_missing:
        parts.append(plural(facts.n_missing, "missing value"))
    if preview is not None and preview.n_unlabelled:
        parts.append(f"{plural(preview.n_unlabelled, 'row')} without a label left out")
    return ", ".join(parts)


def _sentences(compared: ComparedMethods, time_limit: float | None) -> tuple[str, ...]:
    sentences = compared.advice.sentences if compared.advice else ("No method was evaluated.",)
    n_left = sum(row.error.startswith(OUT_OF_TIME) for row in compared.rows)
    if time_limit is None or not n_left:
        return sentences
    return (
        *sentences,
        f"{n_left} of {plural(len(compared.rows), 'method')} {'was' if n_left == 1 else 'were'} "
        f"not evaluated in full within {time_limit:g} s, and a better one may be among them: "
        f"increase the limit, e.g. {option('time_limit', max(60, math.ceil(4 * time_limit)))}; "
        "finished results are stored.",
    )


def _without_metric(rows: Sequence[Row], metric: Metric) -> list[str]:
    lacking = [row for row in rows if row.status == "ok" and metric.name not in row.metrics]
    if not lacking:
        return []
    names = list_some([f"{row.feature_map} + {row.learner}" for row in lacking], 3)
    return [f"No {metric.words} for {names}: the learner lacks the predictions that it needs."]
