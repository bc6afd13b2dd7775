"""`kbench rescore` adds metrics to known results; no result is computed again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import kbench
from kbench.records import Result
from kbench.storage.journal import Journal
from kbench.storage.predictions import BLOB
from kbench_mlflow.tracking.store import Store
from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

PLUGIN = """
import os, sys, time
import numpy as np
from kbench import Metric, hookimpl

def gini(y_true, scores):
    from sklearn.metrics import roc_auc_score
    return 2 * roc_auc_score(y_true, scores) - 1

def spread(y_true, probabilities):
    return float(probabilities.var()) * FACTOR

def errors(y_true, predicted):
    return float(np.sum(y_true != predicted))

def raises(y_true, predicted):
    print("a text")
    np.seterr(all="raise")
    raise ValueError("as I was told")

def no_number(y_true, predicted):
    return float("nan")

def hangs(y_true, predicted):
    time.sleep(600)

def ends(y_true, predicted):
    os._exit(3)

def slow(y_true, predicted):
    time.sleep(0.3)
    return 1.0

FACTOR = 1.0

@hookimpl
def kbench_metrics():
    given = [(gini, "scores"), (spread, "probabilities"), (errors, "predictions")]
    given += [(f, "predictions") for f in (raises, no_number, hangs, ends, slow)]
    return [Metric(f.__name__, "lower", "for tests", "classification", n, f) for f, n in given]
"""
SUITE = """
datasets = ["wdbc"]
feature_maps = ["identity"]
learners = [
    { name = "logistic", C = 1.0, label = "logistic" },
    { name = "linear-svm", C = 1.0, label = "svm" },
    "dummy-majority",
]
[protocol]
cv = "holdout"
test_size = 60
train_size = 100
[limits]
n_splits = 2
task_timeout_s = 60
"""


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
    return folder


def at(folder, patch):
    """Go to a folder with its own state, data cache and store."""
    patch.chdir(folder)
    patch.setenv("KBENCH_STATE_DIR", str(folder / "state"))
    patch.setenv("KBENCH_CACHE_DIR", str(folder / "cache"))
    patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'mlflow.db'}")


@pytest.fixture
def here(computed, tmp_path, monkeypatch, install_plugin, capfd):
    """Run a command on a copy of the results."""
    folder = shutil.copytree(computed, tmp_path / "here")
    at(folder, monkeypatch)
    install_plugin("trial_metrics", PLUGIN)

    def run(*arguments):
        return command(*arguments, capfd=capfd)

    return run


def journal():
    (path,) = Path("state").glob("*/journal.jsonl")
    return Journal(path)


def lines(kind):
    return list(journal().read(kind))


def results(run):
    code, out, _ = run("results", "ours", "--format", "json")
    assert code == 0
    return {row["learner"]: row for row in json.loads(out)}


def rescored(run, *names):
    code, out, _ = run(
        "rescore", "ours.toml", "--json", *(w for n in names for w in ("--metric", n))
    )
    return code, {row["metric"]: row for row in map(json.loads, out.splitlines())}


@pytest.mark.slow
def test_a_metric_is_added_without_computing_anything_again(here):
    before = lines("result")
    code, added = rescored(here, "errors", "roc_auc", "spread")
    assert code == 0
    assert added["errors"] == {"metric": "errors", "n_added": 6, "n_known": 0, "missing": []}
    assert added["roc_auc"]["n_known"] == 6
    assert added["spread"]["missing"] == [
        {
            "reason": "no probabilities",
            "n_splits": 2,
            "learners": ["svm"],
            "failed": False,
        }
    ]
    assert lines("result") == before
    rows = results(here)
    for row in rows.values():
        assert row["errors"] == pytest.approx(60 * (1 - row["accuracy"]))
    assert "spread" not in rows["svm"]
    assert rows["dummy-majority"]["spread"] > 0
    code, added = rescored(here, "errors")
    assert (added["errors"]["n_added"], added["errors"]["n_known"]) == (0, 6)
    assert len(lines("metric")) == 6 + 4
    manifests = journal().manifests()
    for line in lines("metric"):
        assert "trial_metrics" in manifests[line["manifest"]].modules


@pytest.mark.slow
def test_a_metric_is_the_mean_over_seeds_of_the_map(here):
    suite = Path("ours.toml").read_text().replace("[protocol]", "[protocol]\nmap_seeds = 3")
    maps = '{ name = "rff", n_components = 4, bandwidth = 1.0, label = "rff" }'
    Path("ours.toml").write_text(suite.replace('"identity"', maps))
    assert here("suite", "ours.toml", "-q")[0] == 0
    _, added = rescored(here, "errors")
    assert added["errors"]["missing"] == []
    rows = results(here)
    assert {row["n_map_seeds"] for row in rows.values()} == {3}
    for row in rows.values():
        assert row["errors"] == pytest.approx(60 * (1 - row["accuracy"]))
    next(Path("state").glob("*/blobs/*/*.predictions.2")).unlink()
    _, added = rescored(here, "gini")
    assert [(each["reason"], each["n_splits"]) for each in added["gini"]["missing"]] == [
        ("no predictions are stored", 1)
    ]


def test_kept_scores_give_the_number_of_the_run_to_the_last_digit(here):
    assert rescored(here, "gini")[0] == 0
    rows = {line["task_key"]: line for line in lines("result")}
    for line in lines("metric"):
        area = rows[line["task_key"]]["metrics"]["roc_auc"]
        assert line["value"] == pytest.approx(2 * area - 1, rel=1e-12, abs=1e-12)
    # a built-in metric that a line lacks is computed by the very code of the run
    for line in rows.values():
        line = {k: v for k, v in line.items() if k not in ("kind", "crc")}
        metrics = dict(line["metrics"])
        del metrics["roc_auc"]
        journal().append("result", **line | {"metrics": metrics, "ended_ms": line["ended_ms"] + 1})
    assert rescored(here, "roc_auc")[1]["roc_auc"]["n_added"] == 6
    for line in lines("metric"):
        if line["name"] == "roc_auc":
            assert line["manifest"] == ""
            assert line["value"] == rows[line["task_key"]]["metrics"]["roc_auc"]


@pytest.mark.slow
def test_a_value_of_changed_code_is_not_shown(here, install_plugin):
    rescored(here, "spread", "errors")
    old = results(here)["dummy-majority"]["spread"]
    install_plugin("trial_metrics", PLUGIN.replace("FACTOR = 1.0", "FACTOR = 3.0"))
    assert here("suite", "ours.toml", "-q")[0] == 0
    assert "spread" not in results(here)["dummy-majority"]
    assert rescored(here, "spread")[1]["spread"]["n_added"] == 4
    assert results(here)["dummy-majority"]["spread"] == pytest.approx(3 * old)


@pytest.mark.slow
def test_a_result_that_is_computed_again_has_no_earlier_metric(here):
    rescored(here, "errors")
    assert here("suite", "ours.toml", "-q", "--recompute", "--learner", "dummy-majority")[0] == 0
    rows = results(here)
    assert "errors" not in rows["dummy-majority"]
    assert rescored(here, "errors")[1]["errors"]["n_added"] == 2


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raises", "metric 'raises' raised ValueError: as I was told"),
        ("no_number", "metric 'no_number' returned nan; expected one finite number"),
        ("ends", "the metric ended with status crashed: "),
    ],
)
def test_a_metric_that_fails_is_said_so_in_one_line(here, name, reason):
    code, out, _ = here("rescore", "ours.toml", "--metric", name)
    assert code == 1
    (line,) = out.splitlines()
    assert line.startswith(f"{name}: 0 splits got it; 6 lack it: {reason}")
    assert line.endswith("(logistic, svm, dummy-majority)")
    assert not lines("metric")


def test_a_metric_that_hangs_is_stopped_once(here):
    Path("ours.toml").write_text(SUITE.replace("timeout_s = 60", "timeout_s = 0.5"))
    started = time.monotonic()
    code, added = rescored(here, "hangs")
    assert code == 1
    assert "timed_out" in added["hangs"]["missing"][0]["reason"]
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("erorrs", "no metric is named 'erorrs'; did you mean 'errors'?"),
        ("crps", "metric 'crps' is for regression, and 'wdbc' is classification"),
        ("gram_error_spectral", "is not computed from predictions"),
    ],
)
def test_a_metric_that_cannot_be_is_refused(here, name, words):
    code, out, err = here("rescore", "ours.toml", "--metric", name)
    assert code == 2
    assert words in err
    assert out == ""


def test_results_that_are_not_known_are_said_so(here):
    Path("ours.toml").write_text(SUITE.replace("test_size = 60", "test_size = 61"))
    code, _, err = here("rescore", "ours.toml", "--metric", "errors")
    assert code == 2
    assert "no results of 'ours' are stored here" in err


def damage(how):
    keys = [line["task_key"] for line in lines("result")]
    results = [Result.from_json(line) for line in lines("result")]
    blobs = [journal()._blob(result.address, BLOB) for result in results]
    if how == "cut":
        for blob in blobs:
            blob.write_bytes(blob.read_bytes()[:-5])
    elif how == "removed":
        for blob in blobs:
            blob.unlink()
    elif how == "swapped":
        content = [blob.read_bytes() for blob in blobs]
        for blob, other in zip(blobs, content[1:] + content[:1], strict=True):
            blob.write_bytes(other)
    elif how == "huge":
        for blob in blobs:
            blob.write_bytes(bytes(10**6))
    else:  # right for the task, and wrong
        from kbench.evaluation.checked_predictions import Predictions
        from kbench.storage.predictions import pack

        for blob, key in zip(blobs, keys, strict=True):
            blob.write_bytes(pack(Predictions(np.zeros(60, int)), key))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("cut", "the kept predictions cannot be used: "),
        ("removed", "no predictions are stored"),
        ("swapped", "those of another task"),
        ("huge", "larger than the predictions of its task can be"),
        ("forged", "the stored predictions yield another accuracy"),
    ],
)
def test_predictions_that_are_not_those_of_the_result_give_no_metric(here, how, words):
    damage(how)
    code, added = rescored(here, "errors")
    assert code == 1
    assert added["errors"]["n_added"] == 0
    assert all(words in part["reason"] for part in added["errors"]["missing"])


@pytest.mark.slow
def test_a_kill_loses_only_the_split_that_it_interrupts(here):
    process = subprocess.Popen(
        [sys.executable, "-m", "kbench.cli", "rescore", "ours.toml", "--metric", "slow"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not lines("metric") and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = len(lines("metric"))
    assert kept >= 1
    code, added = rescored(here, "slow")
    assert code == 0
    assert added["slow"]["n_known"] == kept
    assert added["slow"]["n_added"] == 6 - kept
    assert all(row["slow"] == 1.0 for row in results(here).values())


def test_a_store_that_is_away_gets_the_metrics_later(here):
    uri = os.environ["MLFLOW_TRACKING_URI"]
    Path("mlflow.db").rename("away.db")
    Path("mlflow.db").mkdir()
    code, out, err = here("rescore", "ours.toml", "--metric", "errors")
    assert code == 1
    assert "errors: 6 splits got it" in out
    assert "kbench sync" in err
    Path("mlflow.db").rmdir()
    Path("away.db").rename("mlflow.db")
    assert here("sync", "ours", "--store", uri)[0] == 0
    assert all("errors" in row for row in results(here).values())


@pytest.mark.slow
def test_two_suites_that_share_cells_share_the_metrics(here):
    Path("other.toml").write_text(SUITE)
    rescored(here, "errors")
    code, out, _ = here("rescore", "other.toml", "--metric", "errors")
    assert code == 0
    assert out.startswith("errors: 0 splits got it, 6 had it")
    code, out, _ = here("results", "other", "--format", "json")
    assert all("errors" in row for row in json.loads(out))


def test_a_run_adds_the_metric_that_its_suite_compares(here):
    Path("ours.toml").write_text('metric = "spread"\n' + SUITE)
    code, _, err = here("suite", "ours.toml", "-q")
    assert code == 0
    assert "2 lack it: no probabilities (svm)" in err
    rows = results(here)
    assert rows["logistic"]["metric"] == "spread"
    assert rows["logistic"]["better"] == "lower"
    assert len(rows["logistic"]["metric_by_split"]) == 2
    assert len(lines("result")) == 6  # nothing was computed again


@pytest.mark.slow
def test_a_search_by_the_metric_of_a_plugin_is_in_the_key(here, install_plugin):
    text = SUITE.replace('"dummy-majority"', '{ name = "logistic", label = "searched" }')
    text = text.replace("[protocol]", '[protocol]\nsearch_metric = "errors"\ninner_folds = 2')
    Path("ours.toml").write_text(text)
    assert here("suite", "ours.toml", "-q", "--learner", "searched")[1]
    first = sorted(lines("result")[6:], key=lambda line: line["split"])
    assert [line["status"] for line in first] == ["ok", "ok"]
    values = first[0]["details"]["search"][0]["values"]
    assert len(values) == 2
    assert all(float(value).is_integer() for value in values)
    install_plugin("trial_metrics", PLUGIN.replace("np.sum(y_true", "2 * np.sum(y_true"))
    here("suite", "ours.toml", "-q", "--learner", "searched")
    again = sorted(lines("result")[8:], key=lambda line: line["split"])
    assert len(again) == 2
    assert again[0]["details"]["search"][0]["values"] == [2 * value for value in values]


@pytest.mark.slow
def test_a_run_of_the_store_has_the_metric(here):
    rescored(here, "errors")
    store = Store(os.environ["MLFLOW_TRACKING_URI"])
    runs = store.read("ours")
    assert len(runs) == 3
    assert all("errors" in run.metrics for run in runs)
