"""The site of a results repository: pages that are made of its rows files and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbench._version import __version__
from kbench.errors import BundleError
from kbench.features import (
    beside,
    duration,
    environment_of_pages,
    heading,
    leaderboard,
    leaderboard_sentences,
    leaderboard_table,
    name_of,
    shown,
    write_file,
)
from kbench.messages import counted
from kbench_sharing.board import Board, Published, boards
from kbench_sharing.container import whole_folder
from kbench_sharing.repository import Checked, slug

if TYPE_CHECKING:
    from jinja2 import Template

_MOST_NAMED = 5


@dataclass(frozen=True)
class Site:
    """What was written: rows and pages. There is none if `problems` has lines."""

    n_rows: int
    n_pages: int
    problems: list[str]


def write_site(repository: Path, out: Path) -> Site:
    """Check a results repository and write its site into a new or an empty folder.

    The same rows files become the same bytes. With a problem nothing is written.

    Raises
    ------
    BundleError
        `out` is not empty or cannot be written, or there is no results repository.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BundleError(f"{out} exists: name a new folder for the site")
    checked = Checked(repository)
    found = boards(checked)
    n_rows = sum(len(board.rows) for board in found)
    if checked.problems:
        return Site(n_rows, 0, checked.problems)
    n_pages = 0
    with whole_folder(out) as folder:
        for board in found:
            for each in board.rows:
                (folder / each.place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(repository / each.place, folder / each.place, follow_symlinks=False)
        for name, text in pages(found):
            write_file(folder / name, text.encode(), flush=False)
            n_pages += 1
    return Site(n_rows, n_pages, [])


def pages(found: Sequence[Board]) -> Iterable[tuple[str, str]]:
    """Yield name and text of each page."""
    from markupsafe import Markup

    folder = files("kbench.report") / "templates"
    environment = environment_of_pages()
    environment.globals |= {
        "css": Markup((folder / "page.css").read_text(encoding="utf-8")),
        "js": Markup((folder / "site" / "rows.js").read_text(encoding="utf-8")),
        "version": __version__,
    }
    template = environment.get_template("site/page.html.j2")
    folders = _folders(found)
    yield (
        "index.html",
        template.render(
            title="Results",
            sentences=["Rows that anyone can recompute, by suite."],
            path=[],
            suites=[_line(b, f"{f}/index.html") for b, f in zip(found, folders, strict=True)],
        ),
    )
    for board, place in zip(found, folders, strict=True):
        for name, text in _of_board(board, template):
            yield f"{place}/{name}", text


def _folders(found: Sequence[Board]) -> list[str]:
    """Return the folder of each board: that of its suite, and of its measure if there are more."""
    suites = [board.suite for board in found]
    return [
        f"suites/{slug(suite if suites.count(suite) == 1 else f'{suite} by {board.measure.name}')}"
        for suite, board in zip(suites, found, strict=True)
    ]


def _line(board: Board, address: str) -> dict[str, Any]:
    return {
        "address": address,
        "name": board.suite,
        "measure": heading(board.measure),
        "n_rows": len(board.rows),
        "n_datasets": len({each.row.dataset for each in board.rows}),
        "n_methods": len({each.row.method for each in board.rows}),
        "authors": _names(board.rows),
    }


def _of_board(board: Board, template: Template) -> Iterable[tuple[str, str]]:
    """Yield the pages of a suite, of its datasets and of its methods."""
    made = leaderboard(board.compared, board.measure)
    table = leaderboard_table(made)
    others = board.others()
    lines = [_row(board, each, others.get(each.place, "")) for each in board.rows]
    said = [*leaderboard_sentences(made)]
    if board.timed_on:
        said.append(f"Times were taken by {board.timed_on}.")
    else:
        said.append("Times have no column, because rows were computed on more than one machine.")
    common = {"heading": board.measure.words}
    yield (
        "index.html",
        template.render(
            common,
            title=board.suite,
            sentences=[f"{counted(len(lines), 'row')} by {_names(board.rows)}."],
            path=[("All suites", "../../index.html")],
            leaders=table,
            columns=[
                c for c in table.visible if any(table.value(i, c) for i in range(len(table.rows)))
            ],
            leader_sentences=said,
            leader_links=[f"methods/{slug(name_of(line.method))}.html" for line in made.lines],
            rows=[_linked(line, "../../", "") for line in lines],
        ),
    )
    path = [("All suites", "../../../index.html"), (board.suite, "../index.html")]
    kinds: dict[str, Callable[[Published], str]] = {
        "datasets": lambda each: each.row.dataset,
        "methods": lambda each: name_of(each.row.method),
    }
    for kind, name_in in kinds.items():
        groups: dict[str, list[int]] = {}
        for number, each in enumerate(board.rows):
            groups.setdefault(name_in(each), []).append(number)
        for name, numbers in groups.items():
            yield (
                f"{kind}/{slug(name)}.html",
                template.render(
                    common,
                    title=name,
                    sentences=[
                        f"{counted(len(numbers), 'row')} of {board.suite}, by "
                        f"{_names(board.rows[number] for number in numbers)}."
                    ],
                    path=path,
                    rows=[_linked(lines[number], "../../../", "../") for number in numbers],
                ),
            )


def _names(rows: Iterable[Published]) -> str:
    names = sorted({each.other.author for each in rows})
    if len(names) > _MOST_NAMED:
        names = [*names[:_MOST_NAMED], f"{len(names) - _MOST_NAMED} more"]
    return ", ".join(names)


def _row(board: Board, each: Published, others: str) -> dict[str, Any]:
    row, name = each.row, board.measure.name
    value = shown(name, each.value)
    sd = row.measures.get(board.measure.sd)
    fit_time = row.measures.get("fit_time_s")
    return {
        "dataset": row.dataset,
        "method": name_of(row.method),
        "value": value,
        "sd": beside(value, sd, lambda v: shown(name, v)) if value and sd is not None else "",
        "status": row.status,
        "splits": f"{row.n_splits_done} of {row.n_splits}",
        "fit_time": "" if fit_time is None else duration(fit_time),
        "by": row.machine,
        "others": others,
        "state": each.other.state,
        "is_refuted": each.other.is_refuted,
        "versions": each.other.versions,
        "file": each.place,
        "dataset_link": f"datasets/{slug(row.dataset)}.html",
        "method_link": f"methods/{slug(name_of(row.method))}.html",
    }


def _linked(line: dict[str, Any], top: str, suite: str) -> dict[str, Any]:
    """Return a line whose links are relative to a page."""
    return {
        **line,
        "file": top + line["file"],
        "dataset_link": suite + line["dataset_link"],
        "method_link": suite + line["method_link"],
    }
