"""`kbench leakage`, and what suites, their reports and own tables say of leakage."""

import json

import numpy as np
import pandas
import pytest

import kbench
from kbench.features import state_folder
from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

SIGN = "casual + registered alone predicts the target of test rows: R2 1.000"


@pytest.fixture
def table(tmp_path):
    """Return a file whose target is the sum of two columns."""
    rng, n = np.random.default_rng(0), 300
    frame = pandas.DataFrame(rng.normal(size=(n, 2)), columns=["wind", "heat"])
    frame["casual"], frame["registered"] = rng.gamma(2.0, size=n), rng.gamma(3.0, size=n)
    frame["total"] = frame["casual"] + frame["registered"]
    frame.to_csv(tmp_path / "rides.csv", index=False)
    return tmp_path / "rides.csv"


@pytest.fixture
def suite(table):
    """Return a suite file with this table and one without signs."""
    clean = pandas.read_csv(table).drop(columns="casual")
    clean.to_csv(table.with_name("clean.csv"), index=False)
    path = table.with_name("mine.toml")
    path.write_text(
        """
datasets = [
  { name = "csv", path = "rides.csv", target = "total", label = "rides" },
  { name = "csv", path = "clean.csv", target = "total", label = "clean" },
]
feature_maps = ["identity"]
learners = ["ridge"]

[protocol]
n_folds = 3

[limits]
n_splits = 1
"""
    )
    return path


def test_a_file_is_read_as_for_a_recommendation(table, capfd):
    lines = table.read_text().replace(",", ";").replace(".", ",")
    table.write_text(f"Rides of a year;;;;\n;;;;\n{lines};;;;\nSource: the city;;;;\n")
    code, out, err = command("leakage", table, "--target", "total", capfd=capfd)
    assert code == 0
    assert SIGN in out
    assert "--header-row names another row" in err


def test_an_option_that_the_command_lacks_is_not_advised(table, capfd):
    frame = pandas.read_csv(table)
    frame["Probe"] = [f"probe {i}" for i in range(len(frame))]
    frame.to_csv(table, index=False)
    code, _, err = command("leakage", table, "--target", "total", capfd=capfd)
    assert code == 0
    assert "keep" not in err


def test_the_same_numbers_under_other_names_have_these_names(table, capfd):
    command("leakage", table, "--target", "total", capfd=capfd)
    renamed = table.with_name("renamed.csv")
    pandas.read_csv(table).rename(columns={"casual": "guests"}).to_csv(renamed, index=False)
    _, out, _ = command("leakage", renamed, "--target", "total", capfd=capfd)
    assert "guests + registered alone predicts" in out
    assert "casual" not in out


def test_a_file_is_checked(table, capfd):
    code, out, err = command("leakage", table, "--target", "total", capfd=capfd)
    assert (code, err) == (0, "")
    assert out.startswith("rides: 240 training rows, 60 test rows\n  evidence: " + SIGN)
    code, out, _ = command("leakage", table, "--target", "total", "--drop", "casual", capfd=capfd)
    assert code == 0 and "no evidence of leakage" in out


def test_json_has_all_measurements(table, capfd):
    _, out, _ = command("leakage", table, "--target", "total", "--json", capfd=capfd)
    (line,) = map(json.loads, out.splitlines())
    assert line["dataset"] == "rides" and line["signs"][0].startswith(SIGN)
    assert {"column", "sum", "copies"} <= {each["kind"] for each in line["measured"]}


def test_all_datasets_of_a_suite_are_checked(suite, capfd):
    code, out, _ = command("leakage", suite, "--data", suite.parent, capfd=capfd)
    assert code == 0
    assert out.index("rides: 200 training rows") < out.index(SIGN) < out.index("clean: 200")
    assert out.count("evidence: ") == 1


@pytest.mark.slow
def test_a_suite_its_known_results_and_its_report_say_it(suite, capfd, monkeypatch):
    monkeypatch.setenv("KBENCH_DISABLE_PLUGINS", "mlflow")
    monkeypatch.chdir(suite.parent)
    for _ in range(2):  # computed, and known
        code, out, err = command("suite", suite, "-q", "--data", suite.parent, capfd=capfd)
        assert code == 0
        (said,) = [line for line in (out + err).splitlines() if "leakage" in line]
        assert said.startswith("kbench: rides: possible leakage: " + SIGN)
    code, _, err = command("report", suite, "-o", "page.html", capfd=capfd)
    assert code == 0, err
    page = (suite.parent / "page.html").read_text()
    assert "Possible leakage" in page and "casual + registered alone" in page
    _, out, _ = command("report", suite, "--table", "leakage", "--format", "csv", capfd=capfd)
    assert out.splitlines()[0] == "dataset,sign" and out.splitlines()[1].startswith("rides,casual")
    for kept in (state_folder() / "leakage").iterdir():
        kept.unlink()
    command("report", suite, "-o", "page.html", capfd=capfd)
    page = (suite.parent / "page.html").read_text()
    assert "Not checked on this machine: &#39;rides&#39;, &#39;clean&#39;" in page


@pytest.mark.slow
def test_a_comparison_on_an_own_table_says_it(table, capfd, monkeypatch, store_uri):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    run = kbench.recommend(
        str(table), "total", feature_map="identity", learner="ridge", progress=False
    )
    assert "kbench: rides: possible leakage: " + SIGN in capfd.readouterr().err
    assert "casual + registered alone" in run.report()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rides.csv"], "--target is missing: name the column to predict"),
        (["no.csv", "--target", "y"], "does not exist"),
        (["rides.csv", "--target", "zz"], "zz"),
        (["rides.csv", "--target", "total", "--data", "."], "is for suites, not for a data file"),
        (["uci-small", "--target", "y"], "--target is for a data file"),
        (["uci-smal"], "did you mean 'uci-small'"),
    ],
)
def test_a_mistake_ends_with_its_reason(words, message, table, capfd, monkeypatch):
    monkeypatch.chdir(table.parent)
    code, out, err = command("leakage", *words, capfd=capfd)
    assert message in out + err and "Traceback" not in err
    assert code == 2
