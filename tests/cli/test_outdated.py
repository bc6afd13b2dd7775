"""Results that are out of date are left out of what commands show, unless they are wanted."""

import json
import warnings

import pytest

import kbench
from kbench.errors import SuiteError
from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

PLUGIN = """
from kbench import FeatureMap, hookimpl
from lab_scale import scaled

def scaling():
    from sklearn.preprocessing import FunctionTransformer  # each description would wait for it
    return FunctionTransformer(scaled)

@hookimpl
def kbench_feature_maps():
    return [FeatureMap("scaled", make=scaling)]
"""
SUITE = """
datasets = [{ name = "two-moons", n_samples = 60 }]
feature_maps = ["identity", "scaled"]
learners = ["dummy-majority"]
[limits]
n_splits = 2
"""
WHY = "lab_scale.py changed: 1 cell"


@pytest.fixture
def run(install_plugin, tmp_path, monkeypatch, store_uri, capfd):
    """Return a function that runs a suite, and the file of what one of its methods imports."""
    scale = install_plugin("lab_plugin", PLUGIN).with_name("lab_scale.py")
    scale.write_text("def scaled(X):\n    return 2 * X\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)

    def run_suite(text=SUITE):
        (tmp_path / "ours.toml").write_text(text)
        code, out, err = command("suite", "ours.toml", "--quiet", capfd=capfd)
        assert code == 0, out + err

    return run_suite, scale


def rows_of(*arguments, capfd):
    """Return the maps of the rows that a command shows, and what it says besides."""
    code, out, err = command(*arguments, "--format", "json", capfd=capfd)
    assert code == 0, err
    return {row["feature_map"] for row in json.loads(out)}, " ".join(err.split())


@pytest.mark.slow
def test_what_is_out_of_date_is_left_out_with_a_notice(run, tmp_path, capfd):
    """One test, since each edit needs a run."""
    run_suite, scale = run
    run_suite()
    assert rows_of("results", "ours", capfd=capfd)[0] == {"identity", "scaled"}
    scale.write_text("def scaled(X):\n    return 3 * X\n")
    shown, notice = rows_of("results", "ours", capfd=capfd)
    assert shown == {"identity"}
    assert f"1 of 2 cells are out of date and left out ({WHY})" in notice
    assert "`kbench suite ours` computes them again, and --outdated shows them" in notice

    assert rows_of("results", "ours", "--outdated", capfd=capfd) == ({"identity", "scaled"}, "")
    code, out, _ = command("results", "ours", "--outdated", capfd=capfd)
    assert (code, out.count("out of date")) == (0, 1)

    with pytest.warns(UserWarning, match="out of date and left out"):
        assert len(kbench.load_results("ours")) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(kbench.load_results("ours", outdated=True)) == 2

    for name, options in (("current", ()), ("all", ("--outdated",))):
        code, _, err = command("report", "ours", "-o", f"{name}.html", *options, capfd=capfd)
        assert code == 0
        assert ("out of date" in err) is (name == "current")
    assert "1 of 2 cells are out of date and left out" in (tmp_path / "current.html").read_text()
    assert "left out" not in (tmp_path / "all.html").read_text()

    # computed again, they are there
    run_suite()
    assert rows_of("results", "ours", capfd=capfd) == ({"identity", "scaled"}, "")


@pytest.mark.slow
def test_results_that_are_all_out_of_date_are_an_error(run, capfd):
    run_suite, scale = run
    run_suite(SUITE.replace('"identity", ', ""))
    scale.unlink()
    reason = "all results of 'ours' are out of date (lab_scale is not there: 1 cell)"
    for words in (
        ["results", "ours"],
        ["report", "ours", "-o", "page.html"],
        ["plot", "ours", "metric-vs-fit-time", "-o", "picture.svg"],
        ["compare", "ours", "ours"],
    ):
        code, _, err = command(*words, capfd=capfd)
        assert (code, reason in " ".join(err.split())) == (2, True), err
    with pytest.raises(SuiteError, match="out of date"):
        kbench.load_results("ours")


def test_results_of_data_that_have_changed_are_out_of_date(tmp_path, monkeypatch, store_uri, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    rows = [f"{i % 7},{i % 3},{'ab'[i % 2]}" for i in range(60)]
    table = "\n".join(["x,z,y", *rows, ""])
    (tmp_path / "table.csv").write_text(table)
    line = '{ name = "csv", path = "table.csv", target = "y", label = "mine" }'
    text = SUITE.replace('{ name = "two-moons", n_samples = 60 }', line)
    (tmp_path / "ours.toml").write_text(text.replace(', "scaled"', ""))
    assert command("suite", "ours.toml", "--quiet", capfd=capfd)[0] == 0
    assert rows_of("results", "ours", capfd=capfd)[0] == {"identity"}
    (tmp_path / "table.csv").write_text(table.replace("0,0,a", "9,9,b"))
    code, _, err = command("results", "ours", capfd=capfd)
    assert code == 2
    assert "the data of mine changed: 1 cell" in err
    (tmp_path / "table.csv").unlink()
    assert command("results", "ours", capfd=capfd)[0] == 2
