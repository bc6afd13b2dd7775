"""Features of third parties, made of public names only: a tracker, an engine, a command."""

import ast
import json
import tomllib
from dataclasses import replace

import pytest

import kbench
from kbench import Result
from kbench.machine import cluster_id, machine_id
from kbench.registry.features import find_features
from kbench.storage.journal import Journal, state_folder
from tests.support.features_here import THIRD_PARTIES, Site
from tests.support.features_here import kbench as command
from tests.support.paths import SUPPORT

SMALL = {"dataset": "iris", "n_splits": 2, "progress": False, "feature_map": "identity"}
ON_IRIS = ("suite", "uci-small", "--dataset", "iris", "--n-splits", "1", "--quiet")


@pytest.fixture
def site(tmp_path, monkeypatch, store_uri, forked_sandboxes):
    """Return a folder to install features into; tests work in another one."""
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    yield Site(tmp_path / "site", monkeypatch)
    find_features.cache_clear()


@pytest.mark.parametrize(
    ("package", "most"), [("feature_tracker", 40), ("feature_engine", 60), ("feature_command", 40)]
)
def test_they_are_short_and_use_public_names_only(package, most):
    files = [each for each in (SUPPORT / package / package).iterdir() if each.is_file()]
    lines = [line for each in files for line in each.read_text().splitlines()]
    assert len([line for line in lines if line]) <= most
    for file in [each for each in files if each.suffix == ".py"]:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            ours = {name for name in names if name.partition(".")[0] == "kbench"}
            assert ours <= {"kbench", "kbench.features"}


@pytest.mark.parametrize(("name", "package"), THIRD_PARTIES.items())
def test_their_pyproject_names_the_entry_point(name, package):
    project = tomllib.loads((SUPPORT / package / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["kbench.features"] == {name: package}


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_tracker_appends_each_result_to_a_file(site, tmp_path):
    site.third_party("jsonl")
    path = tmp_path / "results.jsonl"
    found = kbench.run_suite("uci-small", **SMALL, jsonl=str(path))
    lines = lines_of(path)
    assert len(lines) == 2 * len(found) == len({line["task_key"] for line in lines})
    for row in found.to_frame().itertuples():
        name = f"{row.feature_map} + {row.learner} on {row.dataset}"
        values = [line["metrics"]["accuracy"] for line in lines if line["cell"] == name]
        assert sum(values) / 2 == pytest.approx(row.accuracy, rel=1e-12)
    # a run whose results are known writes what the file lacks, and nothing twice
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    kbench.run_suite("uci-small", **SMALL, jsonl=str(path))
    again = lines_of(path)
    assert sorted(map(_key, again)) == sorted(map(_key, lines))


def _key(line):
    return line["task_key"]


def test_a_typo_in_its_option_is_an_error(site):
    site.third_party("jsonl")
    with pytest.raises(TypeError, match="'jsnl'; did you mean 'jsonl'"):
        kbench.run_suite("uci-small", **SMALL, jsnl="results.jsonl")


@pytest.mark.slow
def test_the_tracker_is_an_option_of_the_command_line(site, tmp_path):
    site.third_party("jsonl")
    out, _ = command("suite", "--help", folder=tmp_path)
    assert "--jsonl FILE" in out
    command(*ON_IRIS, "--jsonl", "found.jsonl", folder=tmp_path)
    assert len(lines_of(tmp_path / "found.jsonl")) == 3


@pytest.mark.slow
def test_the_engine_computes_the_same_values_by_a_command(site, tmp_path):
    site.third_party("batch")
    small = {**SMALL, "feature_map": None}  # maps with seeds, too
    kbench.run_suite("uci-small", **small)
    folder = tmp_path / "jobs"
    kbench.run_suite("uci-small", **small, batch=str(folder), jobs=2)
    here, there = results_at(machine_id()), results_at(cluster_id())
    assert len(here) == len(there) == len(list(folder.glob("*.answer"))) == 6
    for key, result in here.items():
        other = there[key]
        assert result.status == other.status == "ok"
        assert values_of(result) == values_of(other)
        details = replace(result.details, contention=())
        assert details == replace(other.details, contention=())


def results_at(place):
    lines = Journal(state_folder(place) / "journal.jsonl").read("result")
    return {line["task_key"]: Result.from_json(line) for line in lines}


def values_of(result):
    return {
        name: value
        for name, value in result.metrics.items()
        if "time" not in name and name != "peak_memory_mib"
    }


@pytest.mark.slow
def test_a_job_that_dies_is_a_crash_of_its_task(site, monkeypatch, tmp_path):
    site.third_party("batch")
    job = site.folder / "feature_engine" / "job.py"
    job.write_text("raise SystemExit('no queue')\n")
    found = kbench.run_suite("uci-small", **SMALL, batch=str(tmp_path / "jobs"))
    assert set(found.to_frame()["status"]) == {"crashed"}
    (result, *_) = results_at(cluster_id()).values()
    assert result.error == "exit code 1: no queue\n"


def test_the_engine_refuses_exclusive_times(site, tmp_path):
    site.third_party("batch")
    _, err = command(*ON_IRIS, "--batch", "jobs", "--timing", "exclusive", folder=tmp_path, code=2)
    assert "kbench: --timing exclusive applies to this machine only; omit --batch" in err


@pytest.mark.slow
def test_the_command_and_its_section_of_the_report(site, tmp_path):
    site.third_party("fastest")
    out, _ = command("--help", folder=tmp_path)
    assert "Print the fastest method of each dataset." in out
    command(*ON_IRIS, folder=tmp_path)
    out, _ = command("fastest", "uci-small", folder=tmp_path)
    assert out.splitlines()[0].split(" | ") == ["| dataset", "method", "fit time (s) |"]
    assert out.splitlines()[2].startswith("| iris | ")
    command("report", "uci-small", "-o", "page.html", folder=tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert "Fastest methods" in page
    assert 'id="fastest"' in page
    out, _ = command("report", "uci-small", "--table", "fastest", folder=tmp_path)
    assert out.splitlines()[2].startswith("| iris | ")
    out, _ = command("report", "uci-small", "--list-tables", folder=tmp_path)
    assert "fastest" in out
