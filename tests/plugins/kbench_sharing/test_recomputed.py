"""Records of recomputed splits: kept here, published, and refused where they cannot be true."""

import json

import pytest

from kbench.errors import BundleError
from kbench.records import ACCURACY
from kbench_sharing import added_bundles, recomputed, repository
from kbench_sharing.added_bundles import imported_rows, read_rows
from kbench_sharing.reading import bundle_of_rows, parse_bundle
from kbench_sharing.site import boards, write_site
from kbench_sharing.zip_file import sha256
from tests.support.bundles import files, known


@pytest.fixture(scope="module")
def bundle():
    return parse_bundle(files(author="Ada"))


@pytest.fixture
def repo(bundle, tmp_path):
    repository.publish(bundle, tmp_path / "repo")
    return tmp_path / "repo"


def record(bundle, number=0, split=0, verdict="equal", author="Bob"):
    result = bundle.results[bundle.cells[number].key][split]
    return recomputed.make_record(result, verdict, author, {"numpy": "2.0"})


def test_kept_rows_say_what_was_recomputed_here(bundle):
    added_bundles.keep(bundle)
    assert {each.verification for each in imported_rows("shared")} == {"imported"}
    recomputed.keep(record(bundle, author=""))
    recomputed.keep(record(bundle, split=1, verdict="noise"))
    states = {each.row.key: each.verification for each in imported_rows("shared")}
    said = states.pop(bundle.cells[0].key)
    assert said.startswith("recomputed: 2 of 5 splits by Bob and here, ")
    assert said.endswith("; equal, within the noise of BLAS")
    assert set(states.values()) == {"imported"}
    assert not imported_rows("another suite")


def test_a_record_holds_for_the_same_result_in_any_file_and_for_no_other(bundle):
    records = recomputed.group_records([record(bundle)])
    _, data = next(iter(repository.rows_files(bundle)))
    (row,) = read_rows(bundle_of_rows(data), ACCURACY, records)
    assert len(row.checks) == 1
    changed = data.replace(b'"cpu_s":[0.5', b'"cpu_s":[0.25', 1)
    assert changed != data
    (row,) = read_rows(bundle_of_rows(changed), ACCURACY, records)
    assert not row.checks


def test_a_damaged_record_is_left_out(bundle):
    recomputed.keep(record(bundle))
    (path,) = added_bundles.folder().parent.glob("recomputed.jsonl")
    path.write_bytes(path.read_bytes() + b'{"kind":"recomputed","format":1}\n')
    assert len(recomputed.list_records()) == 1


def test_rows_of_an_author_are_shown_once_without_times(bundle):
    added_bundles.keep(bundle)
    for _, data in repository.rows_files(bundle):
        added_bundles.keep(bundle_of_rows(data))
    found = imported_rows("shared")
    assert len(found) == len(known().cells)
    assert not any("fit_time_s" in each.row.metrics for each in found)


def test_a_kept_bundle_that_was_changed_is_left_out_and_named(bundle):
    path, _ = added_bundles.keep(bundle)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-100])
    said = []
    assert not imported_rows("shared", notice=said.append)
    assert len(said) == 1
    assert str(path) in said[0]


def test_the_site_says_who_recomputed(bundle, repo, tmp_path):
    assert repository.publish_records(bundle, [record(bundle)], repo) == 1
    assert repository.publish_records(bundle, [], repo) == 0
    (board,) = boards(repository.Checked(repo))
    assert sum(bool(each.other.checks) for each in board.rows) == 1
    _, _, problems = write_site(repo, tmp_path / "site")
    assert problems == []
    text = (tmp_path / "site" / "suites" / "shared" / "index.html").read_text()
    assert "recomputed: 1 of 5 splits by Bob" in text
    assert text.count(">imported<") == len(known().cells) - 1


def test_records_need_published_rows(bundle, tmp_path):
    with pytest.raises(BundleError, match=r"lacks results/shared/.*publish the rows"):
        repository.publish_records(bundle, [record(bundle)], tmp_path)


def of_line(**fields):
    return lambda lines: lines[0].update(fields)


FORGED = {
    "another result": (of_line(result="0" * 64), "split 0 differs from the result"),
    "another split": (of_line(split=1), "split 1 differs from the result"),
    "a split that is not there": (of_line(split=77), "split 77 differs from the result"),
    "by the author": (of_line(author="Ada"), "it is the author's recomputation"),
    "by nobody": (of_line(author=""), "it does not name who recomputed"),
    "letters that look alike": (
        of_line(author="B\u043eb"),
        "has letters that look like Latin letters",
    ),
    "before it was computed": (of_line(at_ms=1), "was recomputed before it ended"),
    "in the future": (of_line(at_ms=9_000_000_000_000), "or in the future"),
    "another verdict": (of_line(verdict="perfect"), "Input should be 'equal', 'noise' or"),
    "a field that is not known": (of_line(run="rm"), "Extra inputs are not permitted"),
    "a command for a version": (of_line(versions={"numpy": "1; rm"}), "is invalid"),
    "a split twice": (lambda lines: lines.append(lines[0]), "it has 2 lines of 1 splits"),
    "nothing": (lambda lines: lines.clear(), "it has 0 lines of 0 splits"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_record_is_refused_with_its_own_sentence(kind, bundle, repo, tmp_path):
    change, sentence = FORGED[kind]
    repository.publish_records(bundle, [record(bundle)], repo)
    (path,) = (repo / "checks").rglob("*.jsonl")
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(lines)
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    path.unlink()
    (path.parent / f"{sha256(data)}.jsonl").write_bytes(data)
    n_rows, (problem,) = repository.problems(repo)
    assert n_rows == len(known().cells)
    assert problem.startswith(f"checks/{path.parent.name}/")
    assert sentence in problem
    assert problem.isprintable()
    assert write_site(repo, tmp_path / "site") == (n_rows, 0, [problem])
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("plant", ["changed", "elsewhere", "rows gone", "link"])
def test_files_of_records_out_of_place_are_refused(plant, bundle, repo):
    repository.publish_records(bundle, [record(bundle)], repo)
    (path,) = (repo / "checks").rglob("*.jsonl")
    if plant == "changed":
        path.write_bytes(path.read_bytes().replace(b"equal", b"noise"))
        sentence = "its name is not the SHA-256 of its content"
    elif plant == "elsewhere":
        path.rename(repo / "checks" / path.name)
        sentence = "it does not belong in checks"
    elif plant == "rows gone":
        next((repo / "results").rglob(f"{path.parent.name}.jsonl")).unlink()
        sentence = "the repository has no rows file of this name"
    else:
        target = path.rename(repo / "elsewhere.jsonl")
        path.symlink_to(target)
        sentence = "it is a link, a device or too large"
    (problem,) = repository.problems(repo)[1]
    assert sentence in problem
