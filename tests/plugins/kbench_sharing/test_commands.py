"""`kbench bundle create` and `kbench bundle verify`: results travel, and can be recomputed."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kbench
from kbench.cli.app import app
from kbench.machine import cpu_model
from kbench.planning.methods import describe_method
from kbench.planning.planner import make_key_from_json
from kbench_sharing import recomputed, zip_file
from kbench_sharing.bundle_records import SharedCell, SharedDataset
from kbench_sharing.reading import read_bundle
from tests.support.bundles import (
    dumped,
    lines,
    results_of,
    signed,
    with_dependencies,
    with_results,
)
from tests.support.command_here import command

SUITE = """
datasets = ["iris"]
feature_maps = ["identity"]
learners = [{ name = "ridge", alpha = 1.0, label = "ridge" }, "dummy-majority"]
[protocol]
cv = "holdout"
test_size = 30
[limits]
n_splits = 3
"""


def at(folder, patch):
    """Go to a folder with its own state, data cache and store."""
    patch.chdir(folder)
    patch.setenv("KBENCH_STATE_DIR", str(folder / "state"))
    patch.setenv("KBENCH_CACHE_DIR", str(folder / "cache"))
    patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'mlflow.db'}")


@pytest.fixture(scope="module")
def computed(tmp_path_factory, migrated_store, fork_sandboxes):
    """Results of the suite, with their state folder, data cache and store."""
    folder = tmp_path_factory.mktemp("computed")
    (folder / "ours.toml").write_text(SUITE)
    shutil.copy(migrated_store, folder / "mlflow.db")
    with pytest.MonkeyPatch.context() as patch:
        fork_sandboxes(patch)
        at(folder, patch)
        kbench.run_suite("ours.toml", progress=False)
        create_bundle("whole.zip")
    return folder


def create_bundle(path, *arguments):
    """Write a bundle of the suite, for tests that only read it."""
    words = ["bundle", "create", "ours.toml", "-o", path, *arguments]
    assert CliRunner().invoke(app, words).exit_code == 0


@pytest.fixture
def run(computed, tmp_path, monkeypatch, forked_sandboxes, capfd):
    """Run a command on a copy of the results."""
    at(shutil.copytree(computed, tmp_path / "here"), monkeypatch)
    return lambda *arguments: command(*arguments, capfd=capfd)


def opened(name="b.zip"):
    return dict(read_bundle(Path(name)).files)


def forge(name, **metrics):
    """Change metrics of every result of a bundle, and sign it anew."""
    files = opened()
    values = results_of(files)
    for line in values:
        line["metrics"].update(metrics)
    zip_file.write(Path(name), signed(with_results(files, values)))


def state():
    return {path: path.read_bytes() for path in Path("state").rglob("journal.jsonl")}


@pytest.mark.slow
def test_a_bundle_is_made_and_recomputed_elsewhere(run, monkeypatch, tmp_path):
    code, out, err = run("bundle", "create", "ours.toml", "-o", "b.zip", "--author", "Ada")
    assert (code, err) == (0, "")
    assert out.startswith("b.zip: 2 cells of ours, 6 splits; id ")
    again = run("bundle", "create", "ours.toml", "-o", "c.zip", "--author", "Ada")
    assert again[0] == 0
    assert Path("b.zip").read_bytes() == Path("c.zip").read_bytes()
    # somebody else, who has neither results nor data nor a store
    (tmp_path / "theirs").mkdir()
    shutil.copy("b.zip", tmp_path / "theirs")
    at(tmp_path / "theirs", monkeypatch)
    code, out, _ = run("bundle", "verify", "b.zip", "--sample", 4, "--nonce", "00ff")
    assert code == 0
    assert out.count("  equal: ") == 4
    assert "\n4 equal\n" in out
    assert "probability 1 - (1 - f)^4: 4% if 1% of them are forged; 34% if 10%" in out
    assert not state()
    assert not Path("mlflow.db").exists()
    assert run("bundle", "verify", "b.zip", "--sample", 4, "--nonce", "00ff")[1] == out


def test_forged_numbers_are_found(run):
    shutil.copy("whole.zip", "b.zip")
    forge("forged.zip", accuracy=1.0)
    before = state()
    code, out, _ = run("bundle", "verify", "forged.zip", "--sample", 2)
    assert code == 1
    assert out.count("  different: ") == 2
    assert ": accuracy 1.000, here 0." in out
    assert state() == before


def test_forged_metrics_beside_the_accuracy_are_found(run):
    shutil.copy("whole.zip", "b.zip")
    forge("forged.zip", invented=0.5)
    code, out, _ = run("bundle", "verify", "forged.zip", "--sample", 1)
    assert code == 1
    assert "different: " in out
    assert "invented 0.5000, here nan" in out


def rekeyed(change):
    """Return the files of a bundle with changed cells, under the keys of their content."""
    files = opened()
    dataset = lines(files["datasets.jsonl"])[0]
    cells, results = lines(files["cells.jsonl"]), results_of(files)
    for line in cells:
        old = line["key"]
        change(line, dataset)
        checksum, task = dataset["checksum"], dataset["task"]
        ref = SharedDataset.model_validate(dataset).ref
        cell = SharedCell.model_validate(line).cell(ref)
        method = describe_method(cell)
        line["key"] = make_key_from_json(method, checksum, task, line["kinds"], line["code"])
        for result in results:
            result["cell"] = line["key"] if result["cell"] == old else result["cell"]
    other = {**files, "datasets.jsonl": dumped([dataset]), "cells.jsonl": dumped(cells)}
    return signed(with_results(other, results))


def test_other_records_cannot_be_recomputed_and_say_so(run):
    """A forger who invents what records say has an honest form, and nothing to show."""
    shutil.copy("whole.zip", "b.zip")

    def edit(cell, dataset):
        cell["code"][-1] = "0" * 64

    files = rekeyed(edit)
    zip_file.write(Path("other.zip"), files)
    code, out, _ = run("bundle", "verify", "other.zip")
    assert code == 1
    assert "6 splits: the records of its method differ here" in out
    assert "no result was recomputed: the numbers are unverified" in out
    manifest = json.loads(files["manifest.json"])
    manifest["versions"]["numpy"] = "1.0.0"
    zip_file.write(Path("older.zip"), {**files, "manifest.json": json.dumps(manifest).encode()})
    code, out, _ = run("bundle", "verify", "older.zip")
    assert code == 1
    assert "it was computed with other versions: numpy 1.0.0 (here " in out


HARMFUL = {
    "a parameter that is not there": (
        lambda cell, dataset: cell["learner"]["params"].update(nosuch=1),
        "'ridge' has no such parameter",
    ),
    "a value of no sense": (
        lambda cell, dataset: cell["learner"]["params"].update(alpha="rm -rf ~"),
        "alpha",
    ),
    "more folds than rows": (
        lambda cell, dataset: cell["protocol"].update(cv="group_duplicates", n_folds=10**30),
        "has .* rows|folds",
    ),
    "an invalid protocol": (
        lambda cell, dataset: cell["protocol"].update(n_folds=1),
        "protocol.n_folds must be greater than or equal to 2, got 1",
    ),
    "a learner that is not installed": (
        lambda cell, dataset: cell["learner"].update(name="nosuch"),
        "no learner is named 'nosuch'",
    ),
    "other data": (
        lambda cell, dataset: dataset.update(checksum="0" * 64),
        "its data differ here: their checksum is not that of the bundle",
    ),
}


@pytest.mark.parametrize("kind", HARMFUL)
def test_what_cannot_be_recomputed_says_why(kind, run):
    run("bundle", "create", "ours.toml", "-o", "b.zip", "--learner", "ridge")
    change, why = HARMFUL[kind]
    zip_file.write(Path("other.zip"), rekeyed(change))
    code, out, err = run("bundle", "verify", "other.zip", "--sample", 1)
    assert code == 1
    assert re.search(f"cannot be recomputed.*: .*({why})", out)
    assert "Traceback" not in out + err


MINE = '{ name = "ridge", alpha = 9.0, label = "mine" }'
TWO = SUITE.replace('"dummy-majority"', f'"dummy-majority", {MINE}')


@pytest.fixture
def theirs(run, tmp_path, monkeypatch, migrated_store):
    """Be somebody else, who has a bundle and one more method."""
    run("bundle", "create", "ours.toml", "-o", "b.zip", "--author", "Ada [bold]")
    folder = tmp_path / "theirs"
    folder.mkdir()
    shutil.copy("b.zip", folder)
    shutil.copy(migrated_store, folder / "mlflow.db")
    at(folder, monkeypatch)
    Path("ours.toml").write_text(TWO)
    return run


@pytest.mark.slow
def test_rows_of_others_are_reused_and_never_delivered(theirs):
    code, out, err = theirs("suite", "ours.toml", "--reuse-bundle", "b.zip", "-q")
    assert code == 0, err
    assert "3 cells planned: 3 ok" in out
    assert "2 cells imported, without times" in out
    assert out.count("Ada [bold]") == 2
    # of three cells one was computed, kept and delivered
    kept = [line for content in state().values() for line in content.splitlines()]
    assert sum(b'"kind":"result"' in line for line in kept) == 3
    code, out, _ = theirs("results", "ours", "--format", "json")
    assert '"mine"' in out
    assert '"dummy-majority"' not in out
    # what is computed here later replaces them
    code, out, _ = theirs("suite", "ours.toml", "-q")
    assert code == 0
    assert "imported results" not in out
    again = theirs("suite", "ours.toml", "--reuse-bundle", "b.zip", "-q")
    assert "no missing result of this run is available in a bundle" in again[2]


def test_a_suite_of_reused_cells_only_has_each_once(theirs):
    Path("ours.toml").write_text(SUITE)
    code, out, err = theirs("suite", "ours.toml", "--reuse-bundle", "b.zip", "-q")
    assert code == 0, err
    assert "2 cells planned: 2 ok" in out
    assert "2 cells imported" in out
    assert out.count("Ada [bold]") == 2


def test_a_method_is_compared_with_those_of_others(theirs):
    words = ("suite", "ours.toml", "--learner", "mine", "--reuse-bundle", "b.zip")
    code, out, _ = theirs(*words, "-q")
    assert code == 0
    assert "identity + mine next to 2 other methods" in out
    assert "2 cells of other methods by Ada [bold] on " in out
    code, out, _ = theirs(*words[:2], "--reuse-bundle", "b.zip", "--json")
    rows = json.loads(out.splitlines()[-1])["rows"]
    assert {row["learner"]: row.get("author") for row in rows} == {
        "mine": None,
        "ridge": f"Ada [bold] on {cpu_model()}",
        "dummy-majority": f"Ada [bold] on {cpu_model()}",
    }
    assert {row["learner"]: row["fit_time_s"] is None for row in rows} == {
        "mine": False,
        "ridge": True,
        "dummy-majority": True,
    }


def test_a_kept_bundle_is_found_by_its_id_and_never_changed(theirs):
    code, out, _ = theirs("bundle", "add", "b.zip")
    assert code == 0
    (short,) = [line.split()[-1] for line in out.splitlines() if line.startswith("imported as ")]
    (path,) = Path("state").glob("*/bundles/ours/*.zip")
    assert path.stem.startswith(short)
    assert path.stat().st_mode & 0o222 == 0
    assert "already imported as" in theirs("bundle", "add", "b.zip")[1]
    assert theirs("suite", "ours.toml", "--reuse-bundle", short, "--dry-run")[0] == 0
    code, _, err = theirs("suite", "ours.toml", "--reuse-bundle", "abcdef0123")
    assert (code, "0 bundles begin with 'abcdef0123'; imported bundles: " in err) == (2, True)
    forge("forged.zip", accuracy=1.0)
    path.unlink()
    shutil.copy("forged.zip", path)
    code, _, err = theirs("suite", "ours.toml", "--reuse-bundle", short)
    assert (code, "was changed after its import" in err) == (2, True)


def test_a_bundle_of_other_versions_names_them_and_a_way(theirs):
    files = opened()
    manifest = json.loads(files["manifest.json"])
    manifest["versions"] |= {"numpy": "1.26.0", "python": "3.9.1"}
    files["manifest.json"] = json.dumps(manifest).encode()
    older = with_dependencies(files, distributions={"numpy": "1.26.0", "python": "3.9"})
    zip_file.write(Path("old.zip"), older)
    _, _, err = theirs("suite", "ours.toml", "--reuse-bundle", "old.zip", "--dry-run")
    assert re.search(r"not reused: 6 splits: numpy \S+ instead of 1\.26\.0; python ", err)
    assert "python3.9 -m venv kbench-" in err
    assert "numpy==1.26.0" in err


@pytest.mark.slow
def test_an_edit_of_a_helper_is_seen_and_named(theirs):
    """Keys have no code: what results were made from decides whether they hold here."""
    files = opened()
    (one, *_) = lines(files["dependencies.jsonl"])
    assert "kbench.evaluation.evaluate" in one["modules"]
    other = with_dependencies(files, modules={"kbench.evaluation.evaluate": "0" * 64})
    zip_file.write(Path("other.zip"), other)
    reason = "6 splits: kbench/evaluation/evaluate.py changed"
    _, out, err = theirs("suite", "ours.toml", "--reuse-bundle", "other.zip", "-q")
    assert f"not reused: {reason}" in err
    assert "is available in a bundle" in err
    assert "imported results" not in out
    code, out, _ = theirs("bundle", "verify", "other.zip")
    assert (code, f"cannot be recomputed on this machine: {reason}" in out) == (1, True)
    # the present code computes the same numbers, of which no outcome is kept
    code, out, err = theirs("bundle", "verify", "other.zip", "--sample", 1, "--outdated")
    assert (code, "\n1 equal\n" in out) == (0, True), err
    assert "recomputing with the present code and versions: no outcome is stored" in out
    assert recomputed.list_records() == {}
    refused = ("--outdated", "--repository", "board", "--author", "B")
    code, _, err = theirs("bundle", "verify", "other.zip", *refused)
    assert (code, "leave out --outdated" in err) == (2, True)


def test_what_only_its_author_can_compare_is_recomputed_and_not_reused(theirs):
    other = with_dependencies(opened(), variables={"ADAS": "set"}, files={"/0": ""})
    zip_file.write(Path("other.zip"), other)
    _, _, err = theirs("suite", "ours.toml", "--reuse-bundle", "other.zip", "--dry-run")
    assert "6 splits: it depends on 1 file of its author's machine, the environment" in err
    assert "variable ADAS, which cannot be compared here" in err
    assert theirs("bundle", "verify", "other.zip", "--sample", 1)[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bundle", "verify", "none.zip"), "none.zip is invalid: it cannot be read: No such file"),
        (("bundle", "verify", "ours.toml"), "ours.toml is invalid: it is neither a zip file"),
        (
            ("bundle", "verify", "b.zip", "--nonce", "xyz"),
            "--nonce must be 1 to 64 hexadecimal digits",
        ),
        (("bundle", "add", "ours.toml"), "ours.toml is invalid: it is neither a zip file"),
        (("bundle", "add", "."), ". is invalid: it has no manifest.json"),
        (
            ("bundle", "verify", "http://127.0.0.1/b.zip"),
            "is a URL: `kbench bundle add` downloads it",
        ),
        (
            ("bundle", "publish", "http://127.0.0.1/b.zip", "--repository", "board"),
            "`kbench bundle add` downloads it",
        ),
        (("bundle", "publish", "b.zip", "--repository", "http://x.org/b.git"), "is not a git URL"),
        (("suite", "ours.toml", "--reuse-bundle", "none.zip"), "none.zip is invalid"),
        (
            ("suite", "ours.toml", "--reuse-bundle", "x.zip", "--recompute"),
            "leave out --reuse-bundle",
        ),
        (("bundle", "create", "uci-smal", "-o", "b.zip"), "did you mean 'uci-small'?"),
        (
            ("bundle", "create", "uci-small", "-o", "b.zip"),
            "no results of 'uci-small' are stored here",
        ),
        (("bundle", "create", "ours.toml", "-o", "state"), "state exists: choose a new folder"),
        (("bundle", "create", "ours.toml", "-o", "x.zip", "--author", "a\x1b[1m"), "the author "),
        (
            ("bundle", "create", "ours.toml", "-o", "x.zip", "--author", "Ada "),
            "'Ada ' has leading, trailing or double spaces",
        ),
        (
            ("bundle", "create", "ours.toml", "-o", "x.zip", "--author", " "),
            "has leading, trailing or double spaces",
        ),
    ],
)
def test_a_mistake_is_one_message(words, message, run):
    code, out, err = run(*words)
    assert code == 2
    assert message in err
    assert "Traceback" not in out + err
    assert "\x1b" not in out + err


def test_hostile_names_are_shown_as_text(run):
    run("bundle", "create", "ours.toml", "-o", "b.zip", "--author", "[red]<b>Ada</b>[/red]")
    code, out, _ = run("bundle", "verify", "b.zip", "--sample", 1)
    assert code == 0
    assert out.startswith("[red]<b>Ada</b>[/red]: 2 cells of ours")


def test_results_are_published_checked_and_recomputed_from_their_file(run):
    run("bundle", "create", "ours.toml", "-o", "b.zip", "--author", "Ada")
    code, out, _ = run("bundle", "publish", "b.zip", "--repository", "board")
    assert (code, out.splitlines()[0]) == (0, "board: 2 new rows files")
    assert run("bundle", "publish", "b.zip", "--repository", "board")[1] == (
        "board: 0 new rows files, 2 already present\n"
    )
    code, out, _ = run("bundle", "site", "board")
    assert (code, out.startswith("2 rows files: schema, keys")) == (0, True)
    path = min(Path("board").rglob("*.jsonl"))
    code, out, _ = run("bundle", "verify", str(path), "--sample", 1)
    assert code == 0
    assert "1 equal" in out
    path.write_bytes(path.read_bytes().replace(b"Ada", b"Eve"))
    code, _, err = run("bundle", "site", "board")
    assert code == 1
    assert err.splitlines() == [
        f"{path.relative_to('board').as_posix()}: it was changed: its name is not the SHA-256 of "
        "its content",
        "1 file rejected, 1 valid",
    ]
    # a file alone has no name to be compared with; its numbers are recomputed
    assert run("bundle", "verify", str(path), "--sample", 1)[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bundle", "publish", "b.zip", "--repository", "board"), "it has no author"),
        (
            ("bundle", "publish", "none.zip", "--repository", "board"),
            "none.zip is invalid: it cannot be read",
        ),
        (
            ("bundle", "publish", "b.zip", "--repository", "ours.toml"),
            "ours.toml is a file: give the folder",
        ),
        (
            ("bundle", "site", "none"),
            "none has no folder 'results': it is not a results repository",
        ),
        (
            ("bundle", "verify", "b.zip", "--repository", "board", "--author", "a\nb"),
            "cannot be displayed",
        ),
        (
            ("bundle", "verify", "b.zip", "--repository", "https://x.org/b", "--author", "B"),
            "--repository takes a folder",
        ),
    ],
)
def test_a_mistake_in_publishing_is_one_message(words, message, run):
    shutil.copy("whole.zip", "b.zip")
    code, out, err = run(*words)
    assert (code, message in err) == (2, True)
    assert "Traceback" not in out + err


def test_a_site_is_written_from_the_files(run):
    run("bundle", "create", "ours.toml", "-o", "b.zip", "--author", "Ada")
    run("bundle", "publish", "b.zip", "--repository", "board")
    code, out, _ = run("bundle", "site", "board", "-o", "pages")
    assert (code, out.splitlines()[1:]) == (0, ["pages/index.html: 5 pages"])
    text = Path("pages/suites/ours/index.html").read_text()
    assert "2 rows by Ada." in text
    code, _, err = run("bundle", "site", "board", "-o", "pages")
    assert (code, "pages exists: choose a new folder for the site" in err) == (2, True)
    path = min(Path("board").rglob("*.jsonl"))
    path.write_bytes(b"")
    code, _, err = run("bundle", "site", "board", "-o", "other")
    assert (code, err.splitlines()[-1]) == (1, "1 file rejected, 1 valid")
    assert not Path("other").exists()


def test_files_for_a_paper_hold_the_bundle(run):
    code, out, _ = run("bundle", "create", "ours.toml", "--for-paper", "paper", "--author", "Ada")
    assert code == 0
    assert "results.zip: 2 cells of ours, 6 splits; id " in out
    assert Path("paper/tables/scores.tex").read_text().startswith(r"\begin{table}")
    assert run("bundle", "verify", "paper/results.zip", "--sample", 1)[0] == 0
    code, _, err = run("bundle", "create", "ours.toml", "--for-paper", "paper", "--author", "Ada")
    assert (code, "paper exists: choose a new folder" in err) == (2, True)
    code, _, err = run("bundle", "create", "ours.toml")
    assert (code, "name the file to write, with -o FILE" in err) == (2, True)
    code, _, err = run("bundle", "create", "ours.toml", "--for-paper", "other")
    assert (code, "give --author NAME" in err) == (2, True)


def test_the_splits_that_were_asked_for_are_all_splits(run):
    _, _, err = run("bundle", "create", "ours.toml", "-o", "all.zip")
    assert "fewer splits" not in err
    assert run("bundle", "create", "ours.toml", "-o", "three.zip", "--n-splits", 3)[2] == ""
    code, _, err = run("bundle", "create", "ours.toml", "-o", "more.zip", "--n-splits", 4)
    assert (code, "2 cells with fewer splits than planned" in err) == (0, True)
    counts = {cell["n_splits"] for cell in lines(opened("more.zip")["cells.jsonl"])}
    assert counts == {4}
    code, out, err = run("bundle", "create", "ours.toml", "-o", "few.zip", "--n-splits", 2)
    assert (code, err, "2 cells of ours, 4 splits" in out) == (0, "", True)
    assert {cell["n_splits"] for cell in lines(opened("few.zip")["cells.jsonl"])} == {2}
    assert {result["split"] for result in results_of(opened("few.zip"))} == {0, 1}


@pytest.mark.slow
def test_predictions_are_measured_again_without_a_fit(run):
    run("bundle", "create", "ours.toml", "-o", "b.zip", "--predictions", "--author", "Ada")
    code, out, _ = run("bundle", "verify", "b.zip", "--sample", 1)
    assert code == 0
    assert "metrics from the predictions of 6 splits: 6 equal" in out
    forge("forged.zip", accuracy=1.0)
    code, out, _ = run("bundle", "verify", "forged.zip", "--sample", 1)
    assert code == 1
    assert "metrics from the predictions of 6 splits: 6 different" in out
    assert ": accuracy 1.000, from the predictions 0." in out
    # the second tier is left out unless it is asked for
    run("bundle", "create", "ours.toml", "-o", "c.zip", "--author", "Ada")
    assert "predictions.jsonl" not in opened("c.zip")
    assert "predictions of" not in run("bundle", "verify", "c.zip", "--sample", 1)[1]
