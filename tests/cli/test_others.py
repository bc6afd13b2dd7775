"""`kbench bundle add`, and imported results in `kbench results`, `report` and `compare`."""

import json
import shutil
from pathlib import Path

import pytest

import kbench
from kbench_sharing import zip_file
from kbench_sharing.reading import read_bundle
from tests.plugins.kbench_sharing.test_commands import SUITE, at, create_bundle
from tests.support.bundles import results_of, signed, with_results
from tests.support.command_here import command


@pytest.fixture(scope="module")
def two(tmp_path_factory, migrated_store, fork_sandboxes):
    """Two people: Ada with the whole suite, Bob with one of its methods and Ada's bundle."""
    folder = tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        fork_sandboxes(patch)
        for name, learner in (("ada", None), ("bob", "ridge")):
            (folder / name).mkdir()
            (folder / name / "ours.toml").write_text(SUITE)
            shutil.copy(migrated_store, folder / name / "mlflow.db")
            at(folder / name, patch)
            kbench.run_suite("ours.toml", learner=learner, progress=False)
        at(folder / "ada", patch)
        create_bundle("../ada.zip", "--author", "Ada")
    return folder


@pytest.fixture
def run(two, tmp_path, monkeypatch, forked_sandboxes, capfd):
    """Run a command as Bob, who has the bundle of Ada."""
    here = shutil.copytree(two, tmp_path / "two")
    at(here / "bob", monkeypatch)
    monkeypatch.setenv("COLUMNS", "250")
    return lambda *arguments: command(*arguments, capfd=capfd)


@pytest.mark.slow
def test_rows_of_an_added_bundle_are_shown_beside_own_ones(run):
    assert "imported results" not in run("results", "ours")[1]
    code, out, _ = run("bundle", "add", "../ada.zip")
    assert code == 0
    assert "kbench results ours\n" in out
    code, out, _ = run("results", "ours")
    assert code == 0
    own, others = out.split("\nimported results\n")
    assert "Ada" not in own
    assert "1 cell" in own
    assert others.count("Ada on ") == 2
    assert others.count("same cell; 3 splits") == 1
    assert others.count("not computed locally") == 1
    assert others.count("  imported") == 2
    rows = json.loads(run("results", "ours", "--format", "json")[1])
    assert [row.get("author", "")[:3] for row in rows] == ["", "Ada", "Ada"]
    assert all("fit_time_s" not in row or row["fit_time_s"] is None for row in rows[1:])


def test_the_state_of_a_row_follows_what_was_recomputed(run):
    run("bundle", "add", "../ada.zip")
    code, _, _ = run("bundle", "verify", "../ada.zip", "--sample", 6)
    assert code == 0
    out = run("results", "ours")[1]
    assert out.count("recomputed: 3 of 3 splits by here, ") == 2
    assert "  imported" not in out


def test_a_forgery_that_was_recomputed_is_marked(run):
    files = dict(read_bundle(Path("../ada.zip")).files)
    values = results_of(files)
    for line in values:
        line["metrics"]["accuracy"] = 1.0
    zip_file.write(Path("forged.zip"), signed(with_results(files, values)))
    run("bundle", "add", "forged.zip")
    assert run("bundle", "verify", "forged.zip", "--sample", 6)[0] == 1
    out = run("results", "ours")[1]
    assert out.count("; different") == 2


def test_a_report_has_a_section_of_others_and_ranks_without_them(run):
    run("bundle", "add", "../ada.zip")
    assert run("report", "ours", "-o", "r.html", "--no-log")[0] == 0
    text = Path("r.html").read_text()
    assert '<section id="imported"' in text
    assert text.count("Ada on ") == 2
    code, out, _ = run("report", "ours", "--table", "imported", "--format", "csv")
    assert code == 0
    assert out.splitlines()[0].endswith("local,difference,comparable,verification")
    assert len(out.splitlines()) == 3
    code, out, _ = run("results", "ours", "--leaderboard")
    assert "dummy-majority" not in out


def test_two_sides_are_compared_without_times(run):
    run("bundle", "add", "../ada.zip")
    code, out, err = run("compare", "ours", "ours@author=Ada")
    assert (code, err) == (0, "")
    assert "times are not compared: one side has no times" in out
    assert "accuracy (higher is better): 1 no significant change" in out
    assert "fit_time_s: 1 no verdict (?)" in out
    code, again, _ = run("compare", "ours", "../ada.zip")
    assert (code, again) == (0, out)
    code, _, err = run("compare", "ours", "ours@author=Eve")
    assert code == 2
    assert "no rows of 'ours' by 'Eve' were added; there are rows by: Ada" in err
    code, _, err = run("compare", "ours", "ours@author=Ada,version=0.1.0")
    assert code == 2
    assert "author= excludes version=" in err
    # a file that has both holds one side of a comparison
    Path("both.json").write_text(run("results", "ours", "--format", "json")[1])
    assert run("compare", "both.json", "ours")[0] == 0


def test_others_alone_are_shown_where_there_are_no_own_results(run):
    run("bundle", "add", "../ada.zip")
    Path("mlflow.db").unlink()
    code, out, _ = run("results", "ours")
    assert code == 0
    assert out.count("not computed locally") == 2
    assert "no local results: `kbench suite ours` computes them" in out
    assert len(json.loads(run("results", "ours", "--format", "json")[1])) == 2
    assert run("results", "another")[0] == 2


def test_a_rows_file_is_added_and_published_records_need_a_name(run):
    assert run("bundle", "publish", "../ada.zip", "--repository", "board")[0] == 0
    files = sorted(Path("board").rglob("*.jsonl"))
    code, out, _ = run("bundle", "add", files[0])
    assert code == 0
    assert "Ada: 1 cell of ours, 3 splits" in out
    assert "already imported" in run("bundle", "add", files[0])[1]
    assert run("results", "ours")[1].count("Ada on ") == 1
    code, _, err = run("bundle", "verify", "../ada.zip", "--repository", "board")
    assert code == 2
    assert "give --author NAME" in err
    code, _, err = run("bundle", "verify", "../ada.zip", "--repository", "board", "--author", "Ada")
    assert code == 2
    assert "Ada is the author of the results" in err
    code, out, _ = run(
        "bundle", "verify", files[0], "--sample", 1, "--repository", "board", "--author", "Bob"
    )
    assert code == 0
    assert "board: 1 new file of recomputed splits" in out
    assert run("bundle", "site", "board", "-o", "pages")[0] == 0
    text = Path("pages/suites/ours/index.html").read_text()
    assert "recomputed: 1 of 3 splits by Bob" in text
