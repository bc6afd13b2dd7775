"""Files of a suite: labels that name them, their folder, and their changes."""

import gzip
import json
import os
from pathlib import Path

import pytest

from kbench import DatasetSource, SuiteError
from kbench.api.inputs import select_suite
from kbench.execution.plugins import load_registry
from kbench.planning.suite_file import move_to_folder, read
from kbench.registry.registry import build
from kbench.storage.datacache import DataCache
from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

METHODS = 'feature_maps = ["identity"]\nlearners = ["{0}"]\n'
LINES = METHODS.format("ridge")
SUITE = (
    "".join(
        f"""
[[datasets]]
name = "csv"
path = "{name}/data.csv.gz"
target = "y"
split_file = "{name}/splits.csv"
label = "{name}"
"""
        for name in ("one", "two")
    )
    + '[protocol]\ncv = "official"\n'
)
SUITE = METHODS.format("dummy-majority") + 'data_source_hint = "Get them from the donor."\n' + SUITE
SPLITS = "s,t\n" + "1,0\n0,1\n" * 10


@pytest.fixture
def folder(tmp_path):
    for number, name in enumerate(("one", "two")):
        (tmp_path / "there" / name).mkdir(parents=True)
        rows = "".join(f"{i},{(i + number) % 3 > 0:d}\n" for i in range(20))
        with gzip.open(tmp_path / "there" / name / "data.csv.gz", "wt") as file:
            file.write("a,y\n" + rows)
        (tmp_path / "there" / name / "splits.csv").write_text(SPLITS)
    return tmp_path / "there"


@pytest.fixture
def suite_file(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here" / "mine.toml").write_text(SUITE)
    return "mine.toml"


@pytest.fixture
def sources(plugin_of, registry):
    """Two sources of files, of which one is named by labels."""
    made = [
        DatasetSource("named", load="json:loads", named_by_label=True),
        DatasetSource("plain", load="json:loads"),
    ]
    return build([plugin_of(name="files", kbench_datasets=made), *registry.plugins])


def test_labels_name_the_data_of_sources_that_take_them(sources):
    text = (
        'datasets = [{ name = "named", path = "a.x", label = "mine" }, { name = "named" },\n'
        '  { name = "named", path = { expand = ["b.x", "c.x"] }, label = "other" },\n'
        '  { name = "plain", path = "a.x", label = "yours" }]\n' + LINES
    )
    given = {ref.label: ref.params.get("label") for ref in read(text, "s", sources).datasets}
    assert given == {
        "mine": "mine",
        "named": None,
        "other(path=b.x)": "other(path=b.x)",
        "other(path=c.x)": "other(path=c.x)",
        "yours": None,
    }


def test_relative_names_are_those_in_the_folder(sources, tmp_path):
    text = f"""
datasets = [
    {{ name = "named", path = "a.x", split_file = "b/s.x" }},
    {{ name = "plain", path = "{tmp_path}/c.x" }},
    {{ name = "plain", n = 3, path = "~/d.x", label = "home" }},
]
{LINES}"""
    suite = read(text, "s", sources)
    moved = move_to_folder(suite, tmp_path)
    assert [ref.label for ref in moved.datasets] == [ref.label for ref in suite.datasets]
    first, second, third = (dict(ref.params) for ref in moved.datasets)
    assert first == {"path": str(tmp_path / "a.x"), "split_file": str(tmp_path / "b" / "s.x")}
    assert second == {"path": f"{tmp_path}/c.x"}
    assert third == {"n": 3, "path": "~/d.x"}
    assert move_to_folder(suite, None) == suite


def test_a_pattern_is_there_where_one_file_matches(sources, tmp_path):
    text = f'datasets = [{{ name = "plain", path = "parts/*.x" }}]\n{LINES}'
    suite = read(text, "s", sources)
    (tmp_path / "parts").mkdir()
    with pytest.raises(SuiteError, match="none of them exists"):
        move_to_folder(suite, tmp_path)
    (tmp_path / "parts" / "1.x").write_text("")
    (ref,) = move_to_folder(suite, tmp_path).datasets
    assert ref.params["path"] == str(tmp_path / "parts" / "*.x")


def test_a_folder_that_is_not_there(sources, tmp_path):
    suite = read('datasets = ["plain"]\n' + LINES, "s", sources)
    with pytest.raises(SuiteError, match="the folder does not exist"):
        move_to_folder(suite, tmp_path / "nowhere")


@pytest.mark.slow
def test_data_in_a_folder_that_the_user_names(suite_file, folder, store_uri, capfd):
    options = ("--data", folder, "--store", store_uri, "--quiet")
    code, out, err = command("suite", suite_file, *options, capfd=capfd)
    assert code == 0, out + err
    assert {entry.name for entry in DataCache().entries()} == {"one", "two"}
    # the same data elsewhere have the same keys: nothing is computed again
    moved = folder.rename(folder.parent / "moved")
    again = ("suite", suite_file, "--data", moved, "--store", store_uri, "--json")
    code, out, err = command(*again, capfd=capfd)
    assert code == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["tasks"] for event in events if event["event"] == "planned"] == [0]
    # results need no data
    code, out, err = command(
        "results", suite_file, "--store", store_uri, "--format", "csv", capfd=capfd
    )
    assert code == 0, err
    assert len(out.splitlines()) == 3
    assert str(folder.parent) not in out


def test_one_message_where_no_file_is_there(suite_file, folder, capfd):
    for arguments in (("suite", suite_file), ("data", "fetch", suite_file)):
        code, out, err = command(*arguments, capfd=capfd)
        assert (code, out) == (2, ""), err
        wanted = Path.cwd() / "one" / "data.csv.gz"
        assert err.strip().splitlines() == [
            "kbench: the suite 'mine' reads 2 files, and none of them exists: looked for "
            f"{wanted} and more. Name their folder with --data FOLDER. Get them from the donor."
        ]


def test_a_suite_runs_with_the_files_that_are_there(suite_file, folder):
    (folder / "one" / "data.csv.gz").unlink()
    chosen = select_suite(suite_file, load_registry(), data=str(folder))
    assert [ref.label for ref in chosen.datasets] == ["one", "two"]


@pytest.mark.slow
def test_an_edited_splits_file_is_read_again(suite_file, folder, store_uri, capfd):
    of = ("--data", folder, "--store", store_uri, "--dataset", "one")
    run = ("suite", suite_file, *of, "--json")

    def n_computed():
        code, out, err = command(*run, capfd=capfd)
        assert code == 0, err
        events = [json.loads(line) for line in out.splitlines()]
        return sum(event["tasks"] for event in events if event["event"] == "planned")

    assert n_computed() == 2
    assert n_computed() == 0
    # of the same size, and with the time of modification of the old one
    file = folder / "one" / "splits.csv"
    stat = file.stat()
    file.write_text("s,t\n" + "0,1\n1,0\n" * 10)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert n_computed() == 2
    file.unlink()
    _, out, _ = command(*run, capfd=capfd)
    assert '"status": "unavailable"' in out
