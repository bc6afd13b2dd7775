"""The site of a results repository: made of its files alone, harmless, the same bytes again."""

import dataclasses
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from kbench.errors import BundleError
from kbench.execution.plugins import load_registry
from kbench_sharing import repository
from kbench_sharing.reading import parse_bundle
from kbench_sharing.site import _name_data, boards, pages, write_site
from kbench_sharing.writing import Saved, build_files
from tests.support.boards import board_of
from tests.support.bundles import SUITE, known
from tests.support.report_rows import NASTY, nasty_rows


class Links(HTMLParser):
    """Collect tags and addresses of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "src"):
                self.addresses.append(value)


def bundle(author="Ada", cells=slice(None), suite=SUITE, **changes):
    """Return a bundle of the made-up results; `changes` are made to each result."""
    whole = known(text=suite)
    some = [
        dataclasses.replace(
            cell,
            results={
                split: dataclasses.replace(result, **changes)
                for split, result in cell.results.items()
            },
        )
        for cell in whole.cells[cells]
    ]
    made = build_files(
        Saved(whole.suite, some, whole.planner, 0, whole.manifests),
        suite,
        load_registry(),
        author=author,
    )
    return parse_bundle(dict(made))


@pytest.fixture
def repo(tmp_path):
    repository.publish(bundle(), tmp_path / "repo")
    return tmp_path / "repo"


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_clone_becomes_the_same_bytes(repo, tmp_path):
    write_site(repo, tmp_path / "a")
    # published in another order, by two bundles
    for cells in (slice(4, None), slice(0, 4)):
        repository.publish(bundle(cells=cells), tmp_path / "again")
    write_site(tmp_path / "again", tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_every_link_leads_to_a_page_or_a_rows_file(repo, tmp_path):
    _, n_pages, _ = write_site(repo, tmp_path / "site")
    found = sorted((tmp_path / "site").rglob("*.html"))
    assert n_pages == len(found) == 1 + 1 + 2 + 4
    linked = set()
    for page in found:
        for address in Links(page.read_text()).addresses:
            target = (page.parent / unquote(address)).resolve()
            assert target.is_file(), (page, address)
            linked.add(target.relative_to((tmp_path / "site").resolve()).as_posix())
    assert {name for name in linked if name.endswith(".jsonl")} == set(repository.names(repo))


def test_figures_are_those_of_the_rows(repo, tmp_path):
    write_site(repo, tmp_path / "site")
    text = (tmp_path / "site" / "suites" / "shared" / "index.html").read_text()
    for cell in known().cells:
        values = [result.metrics["accuracy"] for result in cell.results.values()]
        assert f">{sum(values) / len(values):.4f}</a>" in text
    assert "Times were measured by Ada on A CPU." in text


def test_times_of_two_machines_are_not_mixed(repo):
    repository.publish(bundle("Bob", slice(0, 4), cpu="Another CPU", cpu_s=0.25), repo)
    (board,) = boards(repository.Checked(repo))
    assert len(board.rows) == len(known().cells) + 4
    # each cell is compared once, and here the first author computed all of them
    assert len(board.compared) == len(known().cells)
    (first, *_) = [
        name for name in repository.names(repo) if (repo / name).read_text().count("Ada")
    ]
    (repo / first).unlink()
    for name in repository.names(repo):
        if '"author":"Ada"' in (repo / name).read_text() and "identity" in name:
            (repo / name).unlink()
    (board,) = boards(repository.Checked(repo))
    assert {row.machine for row in board.compared} == {"Ada on A CPU", "Bob on Another CPU"}
    assert board.timed_on == ""
    assert not any("fit_time_s" in row.metrics for row in board.compared)
    assert all("fit_time_s" in each.row.metrics for each in board.rows)
    text = dict(pages([board]))["suites/shared/index.html"]
    assert "Times are not shown" in text


BLOCKS = """
datasets = ["iris", "wine"]
learners = ["ridge"]
protocol = { search_method = "random" }
[[block]]
feature_maps = ["rff", "nystroem"]
protocol = { n_candidates = 8 }
[[block]]
feature_maps = ["identity"]
protocol = { n_candidates = 3 }
"""


def test_efforts_of_a_search_are_compared_and_those_of_one_method_told_apart(tmp_path):
    repository.publish(bundle(suite=BLOCKS), tmp_path)
    (board,) = boards(repository.Checked(tmp_path))
    assert {row.labels for row in board.compared} == {row.row.labels for row in board.rows}
    # on one dataset, another author searched longer
    longer = BLOCKS.replace("n_candidates = 8", "n_candidates = 80")
    repository.publish(bundle("Bob", slice(0, 1), longer, cpu_s=0.25), tmp_path)
    (board,) = boards(repository.Checked(tmp_path))
    assert len(board.rows) == len(board.compared) + 1
    assert {row.protocol["n_candidates"] for row in board.compared} == {"8", "3"}


def test_what_others_measured_for_the_same_cell_is_said(repo):
    repository.publish(bundle("Bob", slice(0, 1), cpu_s=0.25), repo)
    other = {**known().cells[1].results[0].metrics, "accuracy": 0.5}
    repository.publish(bundle("Cy", slice(1, 2), cpu_s=0.125, metrics=other), repo)
    (board,) = boards(repository.Checked(repo))
    said = board.others()
    by_author = {
        (each.other.author, each.row.key): said[each.place]
        for each in board.rows
        if each.place in said
    }
    first, second = (cell.key for cell in known().cells[:2])
    assert by_author == {
        ("Ada", first): "1 equal",
        ("Bob", first): "1 equal",
        ("Ada", second): "1 different",
        ("Cy", second): "1 different",
    }


def test_data_that_share_a_name_are_told_apart(repo):
    (board,) = boards(repository.Checked(repo))
    one = board.rows[0]
    place = f"{one.place}x"
    row = dataclasses.replace(one.row, checksum="f" * 64)
    other = dataclasses.replace(one, place=place, other=dataclasses.replace(one.other, row=row))
    names = {each.place: each.row.dataset for each in _name_data([*board.rows, other])}
    assert names[place] == f"{one.row.dataset} [ffffffff]"
    assert names[one.place] == f"{one.row.dataset} [{one.row.checksum[:8]}]"


def test_hostile_names_are_text(tmp_path):
    made = dict(pages([board_of(nasty_rows(), NASTY[0], NASTY[1])]))
    assert len(made) > 10
    for name, text in made.items():
        assert re.fullmatch(r"[a-z0-9./-]+", name), name
        found = Links(text)
        assert not {"img", "iframe", "object", "link"} & set(found.tags)
        assert found.tags.count("script") == ("<script>" in text)
        assert all(re.fullmatch(r"[a-z0-9./-]+", each) for each in found.addresses)
        assert "alert(1)>" not in text
        assert "49" not in re.findall(r"<h1>(.*?)</h1>", text)


def test_a_repository_with_a_problem_has_no_site(repo, tmp_path):
    name = repository.names(repo)[0]
    (repo / name).write_bytes(b"{}\n")
    _, n_pages, problems = write_site(repo, tmp_path / "site")
    assert n_pages == 0
    assert len(problems) == 1
    assert not (tmp_path / "site").exists()


def test_a_folder_in_use_is_not_touched(repo, tmp_path):
    before = contents(repo)
    with pytest.raises(BundleError, match="exists: choose a new folder for the site"):
        write_site(repo, repo)
    assert contents(repo) == before
