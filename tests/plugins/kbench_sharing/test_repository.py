"""A results repository: files that are named by their content, and checked as a whole."""

import json

import pytest

from kbench.errors import BundleError
from kbench.execution.plugins import load_registry
from kbench_sharing import repository
from kbench_sharing.columns import dump_line, pack, unpack
from kbench_sharing.reading import parse_bundle, read_bundle
from kbench_sharing.writing import Saved, build_files
from kbench_sharing.zip_file import sha256
from tests.support.bundles import SUITE, files, known
from tests.support.report_rows import NASTY


def bundle(author="Ada", cells=slice(None)):
    """Return a checked bundle of some cells of the made-up results."""
    some = Saved(known().suite, known().cells[cells], known().planner, 0, known().manifests)
    return parse_bundle(dict(build_files(some, SUITE, load_registry(), author=author)))


@pytest.fixture
def published(tmp_path):
    repository.publish(bundle(), tmp_path)
    return tmp_path


def contents(folder):
    return {name: (folder / name).read_bytes() for name in repository.names(folder)}


def rewritten(folder, change):
    """Change the lines of the first rows file, and name it by its content as a forger does."""
    path = folder / repository.names(folder)[0]
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    key = lines[2]["key"]
    blocks = ((f"line {i}", line) for i, line in enumerate(lines[3:], 4))
    lines[3:] = [result for _, result in unpack(blocks, [key], 1 << 40)]
    change(lines)
    data = b"".join(map(dump_line, lines[:3])) + pack(lines[3:], [key])
    path.unlink()
    (path.parent / f"{sha256(data)}.jsonl").write_bytes(data)


def test_a_repository_has_a_file_per_cell_and_keeps_what_it_has(published):
    before = contents(published)
    assert len(before) == len(known().cells)
    assert repository.publish(bundle(), published) == repository.Published(0, len(before))
    assert contents(published) == before
    assert repository.problems(published) == (len(before), [])


def test_files_do_not_depend_on_the_bundle_that_they_came_in(published, tmp_path):
    repository.publish(bundle(cells=slice(0, 2)), tmp_path / "part")
    part = contents(tmp_path / "part")
    assert len(part) == 2
    assert part.items() <= contents(published).items()


def test_a_changed_file_is_neither_overwritten_nor_accepted(published):
    name = repository.names(published)[0]
    (published / name).write_bytes(b"{}\n")
    with pytest.raises(BundleError, match="was changed: its name is not the SHA-256"):
        repository.publish(bundle(), published)
    assert (published / name).read_bytes() == b"{}\n"
    n_good, (problem,) = repository.problems(published)
    assert n_good == len(known().cells) - 1
    assert problem == f"{name}: it was changed: its name is not the SHA-256 of its content"


def test_rows_are_not_written_through_links(tmp_path):
    (tmp_path / "repository" / "results").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "repository" / "results" / "shared").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match="is a symbolic link"):
        repository.publish(bundle(), tmp_path / "repository")
    assert not list((tmp_path / "elsewhere").iterdir())
    _, (problem,) = repository.problems(tmp_path / "repository")
    assert "is not a rows file" in problem


def test_published_rows_have_an_author(tmp_path):
    with pytest.raises(BundleError, match="--author"):
        repository.publish(parse_bundle(files()), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[3]["metrics"].update(accuracy=1.5), "which is out of range"),
        (lambda lines: lines[3].update(seconds=-1.0), "greater than or equal to 0"),
        (lambda lines: lines[3].update(machine=7), "a machine that the bundle lacks"),
        (lambda lines: lines.append(lines[3]), "twice"),
        (lambda lines: lines[2].update(key="0" * 64), "has a key that does not match its data"),
        (lambda lines: lines[1].update(checksum="0" * 64), "has a key that does not match its"),
        (lambda lines: lines[0].update(author=""), "names no author"),
        (lambda lines: lines[0].update(author="\u202eAda"), "cannot be displayed"),
        (lambda lines: lines[0].update(suite="../other"), "folder of another suite"),
        (lambda lines: lines[0].update(more=1), "not permitted"),
        (lambda lines: lines[0]["versions"].update(numpy="1; rm -rf x"), "is invalid"),
        (lambda lines: lines.__delitem__(slice(3, None)), "lacks a header"),
        (
            lambda lines: lines[3]["details"].update(split_hash="other"),
            "has different rows than the same split of other methods",
        ),
    ],
)
def test_forged_files_are_refused_in_one_line(published, change, message):
    rewritten(published, change)
    _, found = repository.problems(published)
    assert found
    assert all(message in problem and "\n" not in problem for problem in found[:1])


def test_the_same_results_have_one_form(published):
    path = published / repository.names(published)[0]
    data = path.read_bytes().replace(b'":', b'": ', 1)
    path.unlink()
    (path.parent / f"{sha256(data)}.jsonl").write_bytes(data)
    _, (problem,) = repository.problems(published)
    assert "line 1 is not in canonical form" in problem


def test_other_line_ends_are_named(published):
    path = published / repository.names(published)[0]
    data = path.read_bytes().replace(b"\n", b"\r\n")
    path.unlink()
    (path.parent / f"{sha256(data)}.jsonl").write_bytes(data)
    _, (problem,) = repository.problems(published)
    assert "git` with core.autocrlf" in problem


def test_rows_of_one_author_are_not_those_of_another(published):
    repository.publish(bundle("Eve", slice(0, 1)), published)
    n_good, (problem,) = repository.problems(published)
    assert n_good == len(known().cells)
    assert "one of the two was copied" in problem


def test_a_file_elsewhere_in_the_results_is_a_problem(published):
    (published / "results" / "notes.txt").write_text("hello")
    _, (problem,) = repository.problems(published)
    assert problem.startswith("results/notes.txt: it is not a rows file")


def test_a_folder_without_results_is_no_repository(tmp_path):
    with pytest.raises(BundleError, match="it is not a results repository"):
        repository.problems(tmp_path)


@pytest.mark.parametrize("text", [*NASTY, "../..", "..", ".", "", "con/../x", "\x00", "é" * 300])
def test_a_text_becomes_one_harmless_part_of_a_path(text):
    name = repository.slug(text)
    assert len(name) < 80
    assert name.isascii()
    assert not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789.-")
    assert name[0] not in ".-"
    assert name != repository.slug(text + "x")


def test_two_texts_have_two_names():
    assert repository.slug("RFF") != repository.slug("rff")
    assert repository.slug("a+b") != repository.slug("a b")


def test_a_rows_file_is_read_like_a_bundle(published):
    name = repository.names(published)[0]
    read = read_bundle(published / name)
    (cell,) = read.cells
    assert read.results[cell.key] == bundle().results[cell.key]
    assert read.author == "Ada"
