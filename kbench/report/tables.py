"""Tables of results: all cells, the leaderboard, imported results, and those of features."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kbench.errors import FeatureError, SuiteError
from kbench.messages import did_you_mean, plural
from kbench.records import Metric
from kbench.registry.features import working
from kbench.registry.verbs import Verbs
from kbench.report import text
from kbench.report.charts import duration, duration_unit, number
from kbench.report.content import ReportData, format_method
from kbench.report.pages import collect_sections
from kbench.report.text import Column, Table
from kbench.results.imported import RowPair
from kbench.results.leaderboard import Leader, Leaderboard
from kbench.results.rows import COLUMNS, LABELS, PLAIN, TIMES, Method, Row, columns, find_row_task
from kbench.results.stats import ALPHA

# Columns of the labels of a row.
LABEL_COLUMNS = (Column("dataset"), Column("feature_map", "feature map"), Column("learner"))

# -- cells


def value_writer(metric: Metric, digits: int | None = None) -> text.Written:
    """Return the function that writes values of a metric, by its size or with some decimals."""
    if digits is None:
        return partial(text.write_cell, metric.name)
    return partial(text.decimals, digits=digits)


def make_column(name: str, **more: Any) -> Column:
    """Return a column of results rows."""
    is_text = name in (*COLUMNS[:4], "family")
    return Column(name, written=partial(text.write_cell, name), numeric=not is_text, **more)


def cells(rows: Sequence[Row], metric: Metric) -> Table:
    """Return every cell with all columns of results; the best of each dataset is marked."""
    task = find_row_task(rows)
    plain = PLAIN[task]
    narrow = {*LABELS, metric.name, *TIMES} | ({plain.name} if plain.in_units else set())
    spreads = {metric.name: metric.sd, plain.name: plain.sd}
    name = metric.default_name
    default = [name] if any(name in row.metrics for row in rows) else []
    made = [
        make_column(name, sd=spreads.get(name, ""), wide=name not in narrow)
        for name in (*columns(metric, task), "family", *default)
    ]
    best: dict[str, float] = {}
    written = value_writer(metric)
    for row in rows:
        if row.is_complete and row.value(metric.name) is not None:
            gain = metric.gain(row.value(metric.name))
            best[row.dataset] = max(best.get(row.dataset, gain), gain)
    marks, notes = {}, {}
    for i, row in enumerate(rows):
        place, value = (i, metric.name), row.value(metric.name)
        if value is None:
            notes[place] = why_not(row, metric)
        elif not row.is_complete:
            notes[place] = few_splits(row)
        elif written(value) == written(metric.gain(best[row.dataset])):
            marks[place] = "best"
    lines = [{column.name: row.value(column.name) for column in made} for row in rows]
    return Table("cells", "All cells", made, lines, marks, notes, by="dataset", key=metric.name)


def why_not(row: Row, metric: Metric) -> str:
    """Return why a row has no value of a metric."""
    return row.status if row.status != "ok" else lacking(metric)


def lacking(metric: Metric) -> str:
    """Return why a method that finished has no value of a metric.

    >>> lacking(Metric("nlpd", "lower", needs="distribution")), lacking(Metric("my_loss"))
    ('no predictive distribution', 'no my_loss')
    """
    label = {"distribution": "predictive distribution", "probabilities": "probabilities"}
    return f"no {label.get(metric.needs, metric.name)}"


def few_splits(row: Row) -> str:
    """Return how many of its splits a row has."""
    return f"{row.n_splits_done} of {row.n_splits} splits"


def make_headings(methods: Sequence[Method]) -> dict[Method, str]:
    """Return the column heading of each method; equal names are numbered."""
    return dict(zip(methods, text.distinct(map(format_method, methods)), strict=True))


# -- the leaderboard

# Columns that are too wide for a screen or a paper, unless the user names them.
WIDE = ("family", "low", "high", "n_components", "candidates", "finished")

# Columns of strings, and the numbers that CSV and JSON have for each.
_COMBINED = {
    "verdict": ("worse_than",),
    "front": ("dominated_by",),
    "finished": ("n_failed", "n_skipped"),
}


def leaderboard_table(
    board: Leaderboard,
    columns: Sequence[str] = (),
    families: Sequence[str] = (),
    digits: int | None = None,
    focus: Sequence[Method] = (),
) -> Table:
    """Return a leaderboard as a table.

    Parameters
    ----------
    board : Leaderboard
    columns : sequence of str, optional
        Names of the columns to show after the method, in this order; all by default.
    families : sequence of str, optional
        Families of the methods to show; ranks are still those among all methods.
    digits : int, optional
        Decimals of the metric.
    focus : sequence of (feature map, learner), optional
        Methods with a note next to their name.

    SuiteError is raised if a column or a family does not exist.
    """
    if families:
        board = board.select_families(_check_names(families, board.families, "--family"))
    made = _columns(board, digits)
    if columns:
        by_name = {column.name: column for column in made}
        fixed = ("place", *LABELS[1:])
        names = [name for name in by_name if name not in fixed and not by_name[name].data_only]
        chosen = _check_names(columns, names, "--columns")
        made = [by_name[name] for name in fixed]
        for name in chosen:
            made.append(replace(by_name[name], wide=False))
            made += [by_name[other] for other in _COMBINED.get(name, ())]
    rows = [
        {
            **vars(line),
            **dict(zip(LABELS[1:], line.method, strict=True)),
            "worse_than": line.worse_than and format_method(line.worse_than),
            "dominated_by": line.dominated_by and format_method(line.dominated_by),
            "finished": f"{line.n_finished} of {line.n_datasets}",
        }
        for line in board.lines
    ]
    notes: dict[text.Place, str] = {}
    for i, line in enumerate(board.lines):
        if line.method in focus:
            notes[i, "learner"] = "highlighted"
        if line.worse_than:
            notes[i, "verdict"] = f"than {format_method(line.worse_than)}"
        if line.dominated_by:
            notes[i, "front"] = f"by {format_method(line.dominated_by)}"
        if line.search_note:
            notes[i, "candidates"] = line.search_note
    title = f"Leaderboard over {plural(len(board.datasets), 'dataset')}"
    marks = best_marks(rows, board.metric)
    return Table("leaderboard", title, made, rows, marks, notes, narrows=not columns)


def leaderboard_sentences(board: Leaderboard) -> list[str]:
    """Return sentences on the datasets of the leaderboard, and on what is missing."""
    sentences = []
    n = len(board.datasets)
    if not board.metric.in_units or n < 2:
        sentence = f"Means and ranks are over the {plural(n, 'dataset')} that all methods finished"
        if 0 < board.n_groups < n:
            sentence += f"; related ones are averaged first, so they count as {board.n_groups}"
        datasets = ", ".join(board.left_out)
        sentences.append(sentence + (f". Left out: {datasets}." if datasets else "."))
    else:
        sentences.append(
            f"{board.metric.words} is in the units of each dataset's target, so there is no mean."
        )
    bad = [line for line in board.lines if line.n_failed]
    if bad:
        names = ", ".join(f"{line.name} on {line.n_failed}" for line in bad[:5])
        more = f" and {len(bad) - 5} more methods" if len(bad) > 5 else ""
        sentences.append(f"Failed: {names}{more}.")
    skipped = sum(line.n_skipped for line in board.lines)
    if skipped:
        sentences.append(f"{plural(skipped, 'cell')} skipped, or on fewer splits than planned.")
    equal = dict(board.same)
    for line in board.lines:
        if line.place is None and line.method in equal:
            equal_to = " + ".join(equal[line.method])
            sentences.append(f"{line.name} has no rank: it equals {equal_to} up to a rotation.")
    return sentences


def answer_sentences(board: Leaderboard, focus: Collection[Method] = ()) -> list[str]:
    """Return what can be said of all methods, and of highlighted ones; the rest is one sentence."""
    compared = [line for line in board.lines if line.place is not None]
    datasets = plural(board.n_tested, "independent dataset")
    if len(compared) < 2:
        return []
    best = [line for line in compared if line.verdict == "best group"]
    if not best:
        needed = math.ceil(-math.log2(ALPHA))
        return [
            f"{datasets} cannot exclude any method at the 5 % level; at least {needed} are needed."
        ]
    names = "all methods" if best == compared else text.name_some(line.name for line in best)
    found = [f"Best group (5 % level, {datasets}): {names}."]
    times = {line.name: line.fit_time_s for line in best if line.fit_time_s is not None}
    if len(times) > 1:
        cheapest, *_ = sorted(times, key=times.__getitem__)
        found.append(f"Cheapest in it: {cheapest}, {duration(times[cheapest])} per fit")
        first = best[0].name
        more = first != cheapest and first in times
        found[-1] += f" ({first}: {duration(times[first])})." if more else "."
    worse = len(compared) - len(best)
    by = {line.name: line.dominated_by for line in compared if line.dominated_by}
    if worse:
        found.append(f"Outside it: {worse}; of each, some method is significantly better.")
    if by:
        names = text.name_some(f"{name} (by {format_method(other)})" for name, other in by.items())
        found.append(f"Dominated, also significantly slower to fit: {names}.")
    if len(best) > 1:
        found.append("Not decided: which method of the best group is the best.")
    return [*found, *(_verdict(line) for line in board.lines if line.method in focus)]


def _verdict(line: Leader) -> str:
    """Return the verdict on a method, in a sentence."""
    if line.dominated_by:
        return f"{line.name} is dominated by {format_method(line.dominated_by)}."
    if line.worse_than:
        return f"{line.name} is significantly worse than {format_method(line.worse_than)}."
    if line.verdict:
        return f"{line.name} is in the best group: no method is significantly better."
    return f"{line.name} has no rank, and so no verdict."


def _columns(board: Leaderboard, digits: int | None) -> list[Column]:
    metric = board.metric
    value = value_writer(metric, digits)
    two, whole = partial(text.decimals, digits=2), partial(text.decimals, digits=0)
    made = [
        Column("place", "rank", numeric=True),
        *LABEL_COLUMNS[1:],
        Column("family"),
        Column("verdict"),
        Column("worse_than", data_only=True),
        Column("rank", "mean rank", two, True),
        Column("mean", f"mean {metric.words}", value, True),
        Column("low", "95 % CI low", value, True),
        Column("high", "95 % CI high", value, True),
        Column("wins", "wins", whole, True),
        Column("fit_time_s", "fit time", duration, True, unit=duration_unit),
        Column("predict_time_per_row_s", "predict time/row", duration, True, unit=duration_unit),
        Column("n_components", "n features", number, True),
        Column("search_s", "search CPU time", duration, True, unit=duration_unit),
        Column("candidates", "candidates", number, True),
        Column("front", "Pareto front"),
        Column("dominated_by", data_only=True),
        Column("finished", "finished", numeric=True),
        Column("n_failed", numeric=True, data_only=True),
        Column("n_skipped", numeric=True, data_only=True),
    ]
    return [replace(column, wide=column.name in WIDE) for column in made]


def best_marks(rows: Sequence[text.Line], metric: Metric) -> dict[text.Place, str]:
    """Mark the best mean rank and mean; the fastest method is often trivial, so times are not."""
    if len(rows) < 2:
        return {}
    best = {}
    for name, gain in (("rank", -1), ("mean", metric.gain(1))):
        values = [row[name] for row in rows if row[name] is not None]
        if values:
            best[name] = max(values, key=lambda value: gain * value)
    return {
        (i, name): "best"
        for i, row in enumerate(rows)
        for name, value in best.items()
        if row[name] is not None and round(row[name], 12) == round(value, 12)
    }


def _check_names(names: Sequence[str], allowed: Sequence[str], option: str) -> list[str]:
    for name in names:
        if name not in allowed:
            raise SuiteError(
                f"{option}: there is no {name!r}{did_you_mean(name, allowed)}\n"
                f"choose from: {', '.join(allowed)}"
            )
    return list(dict.fromkeys(names))


# -- imported results

# The note above the table of imported results.
IMPORTED = (
    "Imported results enter no mean, rank, test or Pareto front, and their times, taken on other "
    "machines, are not shown. The difference is the imported mean minus the local mean over the "
    "splits that both have."
)


def imported_table(beside: Sequence[RowPair], metric: Metric) -> Table:
    """Return imported results, each next to the local row that it may be compared with."""
    written = partial(text.write_cell, metric.name)
    columns = [
        *LABEL_COLUMNS,
        Column("author"),
        Column("splits"),
        Column("metric", text.heading(metric), written, True),
        Column("local", "", written, True),
        Column("difference", "difference", partial(text.write_signed, written=written), True),
        Column("comparable"),
        Column("verification"),
    ]
    lines = [each.to_line() for each in beside]
    return Table("imported", "Imported results", columns, lines, by="dataset")


# -- tables by name


def table_names() -> dict[str, str]:
    """Return the names of all tables, each with a help text; no feature is imported."""
    every = [pair for feature in working() for pair in feature.metadata.tables.items()]
    names = [name for name, table in every if not table.after]
    for name, table in every:
        if table.after:
            names.insert(names.index(table.after) + 1 if table.after in names else len(names), name)
    helps = {name: table.help for name, table in every}
    return {name: helps[name] for name in names}


def check_table(name: str) -> None:
    """Raise SuiteError if no table has this name."""
    names = table_names()
    if name not in names:
        raise SuiteError(f"there is no table {name!r}{did_you_mean(name, names)}")


def table_named(name: str, content: ReportData) -> Table:
    """Return a table of a feature; no other feature is loaded.

    Raises
    ------
    SuiteError
        There is no such table.
    FeatureError
        The feature that has it fails.
    """
    check_table(name)
    owner = next(each for each in working() if name in each.metadata.tables)
    problems = [f"the feature {owner.name!r} did not make it"]
    verbs = Verbs(lambda message: problems.insert(0, message), [owner])
    table = _make_tables(content, verbs, [name]).get(name)
    if table is None:
        raise FeatureError(f"there is no table {name!r}: {problems[0]}")
    return table


def make_tables(content: ReportData, verbs: Verbs | None = None) -> dict[str, Table]:
    """Return all tables by name; a feature that fails is left out, and `verbs` reports it."""
    names = list(table_names())
    made = _make_tables(content, verbs or Verbs(), names)
    return {name: made[name] for name in names if name in made}


def _make_tables(content: ReportData, verbs: Verbs, names: Sequence[str]) -> dict[str, Table]:
    """Return tables by name: those that have a function, and those in sections of features."""
    made: dict[str, Table] = {}
    for feature in verbs.features:
        tables = {} if feature.reason else feature.metadata.tables
        try:
            for name in names:
                if name in tables and tables[name].target:
                    made[name] = feature.load(tables[name].target)(content)
        except (Exception, SystemExit) as error:
            verbs.fail(feature.name, f"{type(error).__name__}: {error}")
    if set(names) - made.keys():
        for feature, section in collect_sections(content, verbs):
            functions = feature.metadata.tables
            made |= {each.name: each for each in section.every_table() if each.name in functions}
    return made
