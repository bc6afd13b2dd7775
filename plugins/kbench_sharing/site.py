"""The site of a results repository, generated from its rows files only."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from kbench import features
from kbench._version import __version__
from kbench.errors import BundleError
from kbench.features import Method, Row
from kbench.messages import number, plural
from kbench.records import divide_protocol
from kbench.records.canonical import JsonObject
from kbench_sharing.added_bundles import planned_splits, read_metric, read_rows
from kbench_sharing.bundle_records import Bundle
from kbench_sharing.checks import CLOSE
from kbench_sharing.recomputed import Records
from kbench_sharing.repository import Checked
from kbench_sharing.untrusted_text import slug
from kbench_sharing.zip_file import whole_folder

if TYPE_CHECKING:
    from jinja2 import Template


# Rows are compared within a group of equal data, protocol and number of splits.
Group = tuple[str, int]


@dataclass(frozen=True)
class Published:
    """A row of a repository: its file, its author and its group.

    Rows are comparable if their `comparable`, data and protocol, is equal, and their number of
    splits; `planned` is the number that the suite or the protocol asks for.
    """

    place: str
    other: features.ImportedRow
    comparable: str
    planned: int = 1

    @property
    def row(self) -> Row:
        """The row itself."""
        return self.other.row

    @property
    def effort(self) -> str:
        """The fields of its protocol that belong to the search."""
        return str(divide_protocol(self.row.protocol)[1])

    @property
    def value(self) -> float | None:
        """The mean of the suite's metric, None without one."""
        return self.row.metrics.get(self.other.metric.name)

    def with_row(self, row: Row) -> Published:
        """Return the same with another row."""
        return replace(self, other=replace(self.other, row=row))


@dataclass
class Board:
    """All rows of one suite and metric, in the order of their labels.

    `compared` has one row for each dataset and method: of those that share data and protocol
    (`divide_protocol`) with most others, the one with most splits; of these, with the effort of
    search that the method has most often, the first to be computed. Its times are kept only if
    one author computed all of them on one CPU (`timed_on`).
    """

    suite: str
    metric: features.Metric
    rows: list[Published] = field(default_factory=list)
    compared: list[Row] = field(default_factory=list)
    timed_on: str = ""

    def others(self) -> dict[str, str]:
        """Return by place the imported results of the same cell, if it has any."""
        by_cell = features.group_values(
            ((each.row.key, each.row.made_from), (each.place, each.other.author, each.value))
            for each in self.rows
            if each.row.is_complete and each.value is not None
        )
        notes = {}
        for of_cell in by_cell.values():
            for place, author, value in of_cell:
                by_author = {name: other for _, name, other in of_cell if name != author}
                equal = Counter(
                    math.isclose(value, other, rel_tol=CLOSE, abs_tol=CLOSE**2)
                    for other in by_author.values()
                )
                counts = {"equal": equal[True], "different": equal[False]}
                if by_author:
                    notes[place] = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
        return notes


def boards(files: Iterable[tuple[str, Bundle, Records]]) -> list[Board]:
    """Return the boards of rows files with their records, by suite and metric."""
    by_key: dict[tuple[str, str, str], Board] = {}
    for place, bundle, records in files:
        suite, metric = bundle.manifest.suite, read_metric(bundle)
        (cell,) = bundle.cells
        (other,) = read_rows(bundle, metric, records)
        comparable = f"{other.row.checksum}/{cell.task_digest}"
        board = by_key.setdefault((suite, metric.name, metric.better), Board(suite, metric))
        board.rows.append(
            Published(place, other, comparable, planned_splits(suite, cell.protocol_record))
        )
    for board in by_key.values():
        _complete(board)
    return [by_key[key] for key in sorted(by_key)]


def _complete(board: Board) -> None:
    """Put the rows in order, and choose those that are compared: one protocol for a dataset."""
    rows = _name_data(board.rows)
    references = _references(rows)
    board.rows, alike = [], list[Published]()
    for each in sorted(rows, key=lambda each: (each.row.labels, each.row.start_ms, each.place)):
        comparable, n_splits = references[each.row.dataset]
        if each.comparable == comparable and each.row.n_splits < n_splits:
            # it says how many it lacks beside those that it stands beside
            each = each.with_row(replace(each.row, n_splits=n_splits))
        if (each.comparable, each.row.n_splits) == (comparable, n_splits):
            alike.append(each)
        board.rows.append(each)
    efforts = Counter((each.row.method, each.effort) for each in alike)
    chosen = [
        max(group, key=lambda each: (each.row.n_splits_done, efforts[each.row.method, each.effort]))
        for group in features.group_values((each.row.labels, each) for each in alike).values()
    ]
    board.compared = [each.row for each in chosen]
    machines = {(each.other.author, each.other.cpu) for each in chosen}
    if len(machines) == 1:
        board.timed_on = " on ".join(*machines)
    else:
        board.compared = [features.without_times(row) for row in board.compared]


def _name_data(rows: Sequence[Published]) -> list[Published]:
    """Name data that share a label with others by their checksums."""
    seen = features.group_values((each.row.dataset, each.row.checksum) for each in rows)
    return [
        each
        if len(set(seen[each.row.dataset])) == 1
        else each.with_row(
            replace(each.row, dataset=f"{each.row.dataset} [{each.row.checksum[:8]}]")
        )
        for each in rows
    ]


def _references(rows: Sequence[Published]) -> dict[str, Group]:
    """Return what the rows of each dataset are compared in: data with protocol, and splits.

    Those with all splits of the suite or protocol come first: nobody can plan the one split that
    is good. Of these, it is what most methods have, and then what has most splits. Rows that lack
    splits count only where no other row does.
    """
    groups_by_dataset: dict[str, dict[Group, set[Method]]] = {}
    full: set[Group] = set()
    for each in rows:
        group = each.comparable, each.row.n_splits
        methods = groups_by_dataset.setdefault(each.row.dataset, {}).setdefault(group, set())
        if each.row.is_complete:
            methods.add(each.row.method)
        if each.row.n_splits >= each.planned:
            full.add(group)
    return {
        dataset: max(
            sorted(groups),
            key=lambda group: (bool(groups[group]) and group in full, len(groups[group]), group[1]),
        )
        for dataset, groups in groups_by_dataset.items()
    }


_MAX_NAMED = 5


def write_site(repository: Path, out: Path) -> tuple[int, int, list[str]]:
    """Check a results repository and write its site into a new or an empty folder.

    The same rows files become the same bytes. Returns the numbers of rows and of pages, and
    problems; with one nothing is written.

    BundleError is raised if `out` is not empty or cannot be written, or the results repository
    does not exist.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BundleError(f"{out} exists: choose a new folder for the site")
    checked = Checked(repository)
    listed = boards(checked)
    n_rows = sum(len(board.rows) for board in listed)
    if checked.problems:
        return n_rows, 0, checked.problems
    n_pages = 0
    with whole_folder(out) as folder:
        for board in listed:
            for each in board.rows:
                (folder / each.place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(repository / each.place, folder / each.place, follow_symlinks=False)
        for name, content in pages(listed):
            features.write_file(folder / name, content.encode(), flush=False)
            n_pages += 1
    return n_rows, n_pages, []


def pages(listed: Sequence[Board]) -> Iterable[tuple[str, str]]:
    """Yield name and text of each page."""
    from markupsafe import Markup

    folder = files("kbench.report") / "templates"
    environment = features.environment_of_pages()
    environment.globals |= {
        "css": Markup((folder / "page.css").read_text(encoding="utf-8")),
        "js": Markup((folder / "site" / "rows.js").read_text(encoding="utf-8")),
        "version": __version__,
    }
    template = environment.get_template("site/page.html.j2")
    # the folder of a board is that of its suite, and of its metric if there are more
    suites = [board.suite for board in listed]
    folders = [
        f"suites/{slug(suite if suites.count(suite) == 1 else f'{suite} by {board.metric.name}')}"
        for suite, board in zip(suites, listed, strict=True)
    ]
    yield (
        "index.html",
        template.render(
            title="Results",
            sentences=["Published results by suite. Each can be recomputed."],
            path=[],
            suites=[_line(b, f"{f}/index.html") for b, f in zip(listed, folders, strict=True)],
        ),
    )
    for board, place in zip(listed, folders, strict=True):
        for name, content in _board_pages(board, template):
            yield f"{place}/{name}", content


def _line(board: Board, address: str) -> JsonObject:
    return {
        "address": address,
        "name": board.suite,
        "metric": features.heading(board.metric),
        "n_rows": len(board.rows),
        "n_datasets": len({each.row.dataset for each in board.rows}),
        "n_methods": len({each.row.method for each in board.rows}),
        "authors": _names(board.rows),
    }


def _board_pages(board: Board, template: Template) -> Iterable[tuple[str, str]]:
    """Yield the pages of a suite, of its datasets and of its methods."""
    made = features.leaderboard(board.compared, board.metric)
    table = features.leaderboard_table(made)
    imported = board.others()
    lines = [_row(board, each, imported.get(each.place, "")) for each in board.rows]
    times = "Times are not shown, because rows were computed on more than one machine."
    if board.timed_on:
        times = f"Times were measured by {board.timed_on}."
    yield (
        "index.html",
        template.render(
            heading=board.metric.words,
            title=board.suite,
            sentences=[f"{plural(len(lines), 'row')} by {_names(board.rows)}."],
            path=[("All suites", "../../index.html")],
            leaders=table,
            columns=[
                c for c in table.visible if any(table.value(i, c) for i in range(len(table.rows)))
            ],
            leader_sentences=[*features.leaderboard_sentences(made), times],
            leader_links=[
                f"methods/{slug(features.format_method(line.method))}.html" for line in made.lines
            ],
            rows=lines,
            top="../../",
            suite="",
        ),
    )
    for kind, column in (("datasets", "dataset"), ("methods", "method")):
        groups = features.group_values((line[column], number) for number, line in enumerate(lines))
        for name, numbers in groups.items():
            authors = _names(board.rows[number] for number in numbers)
            yield (
                f"{kind}/{slug(name)}.html",
                template.render(
                    heading=board.metric.words,
                    title=name,
                    sentences=[f"{plural(len(numbers), 'row')} of {board.suite}, by {authors}."],
                    path=[("All suites", "../../../index.html"), (board.suite, "../index.html")],
                    rows=[lines[number] for number in numbers],
                    top="../../../",
                    suite="../",
                ),
            )


def _names(rows: Iterable[Published]) -> str:
    names = sorted({each.other.author for each in rows})
    if len(names) > _MAX_NAMED:
        names = [*names[:_MAX_NAMED], f"{len(names) - _MAX_NAMED} more"]
    return ", ".join(names)


def _row(board: Board, each: Published, imported: str) -> JsonObject:
    row, name = each.row, board.metric.name
    value = features.write_cell(name, each.value)
    sd = row.metrics.get(board.metric.sd)
    fit_time = row.metrics.get("fit_time_s")
    return {
        "dataset": row.dataset,
        "method": features.format_method(row.method),
        "value": value,
        "sd": features.write_sd(value, sd, lambda v: features.write_cell(name, v))
        if value and sd is not None
        else "",
        "status": row.status,
        "splits": f"{row.n_splits_done} of {row.n_splits}",
        "candidates": number(row.metrics.get("n_candidates", 1.0)),
        "search_note": features.search_note(row),
        "fit_time": "" if fit_time is None else features.duration(fit_time),
        "by": row.machine,
        "others": imported,
        "state": each.other.verification,
        "is_refuted": each.other.is_refuted,
        "versions": each.other.versions,
        "file": each.place,
        "dataset_link": f"datasets/{slug(row.dataset)}.html",
        "method_link": f"methods/{slug(features.format_method(row.method))}.html",
    }
