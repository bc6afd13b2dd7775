"""kbench without one of its features: a suite runs, and what is missing is said by name."""

import pytest

from kbench.machine import machine_id
from kbench.registry.features import features, find_features
from kbench.storage.journal import Journal, state_folder
from tests.support.features_here import Site, kbench

PACKAGES = {each.name: each.module.partition(".")[0] for each in features()}
SUITE = ("suite", "uci-small", "--dataset", "iris", "--feature-map", "identity", "--n-splits", "1")

MISSING = {
    "claims": None,
    "compare": ("compare", "uci-small", "uci-small"),
    "costs": None,
    "dask": (*SUITE, "--scheduler", "tcp://127.0.0.1:1"),
    "leakage": ("leakage", "uci-small"),
    "listing": ("list",),
    "mlflow": ("sync",),
    "reporting": ("report", "uci-small"),
    "rescoring": ("rescore", "uci-small", "--metric", "f1_macro"),
    "sharing": ("bundle", "add", "others.zip"),
    "tables": ("recommend", "table.csv", "--target", "y"),
    "testing": ("plugin", "check"),
}
"""What cannot be done without a feature; None for those without commands and options."""

QUIET = ("claims", "compare", "dask", "listing", "reporting", "rescoring", "tables", "testing")
"""Features that a suite, its results and its report do not call."""


@pytest.fixture
def site(tmp_path, monkeypatch, store_uri):
    """Return a folder in which a feature is broken, for the processes of a test."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    (tmp_path / "desk").mkdir()
    yield Site(tmp_path / "site", monkeypatch)
    find_features.cache_clear()


def test_every_feature_of_kbench_is_tried():
    assert PACKAGES.keys() == MISSING.keys()


def marked(name):
    """Return a parameter of a slow test, but for the feature that matters most."""
    return pytest.param(name, marks=() if name == "mlflow" else pytest.mark.slow)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(map(marked, MISSING)))
def test_a_suite_runs_without(name, site, tmp_path):
    site.block(PACKAGES[name])
    desk = tmp_path / "desk"
    out, err = kbench(*SUITE, folder=desk)
    assert "1 cell planned: 1 ok" in out
    (line,) = Journal(state_folder(machine_id()) / "journal.jsonl").read("result")
    assert line["status"] == "ok"
    said = err
    out, err = kbench("results", "uci-small", "--format", "csv", folder=desk)
    assert out.splitlines()[1].startswith("iris,identity,linear-svm (ovo),ok,")
    assert f"{line['metrics']['accuracy']:.4f}" in out
    said += err
    if name != "reporting":
        out, err = kbench("report", "uci-small", "-o", "page.html", folder=desk)
        assert "linear-svm" in (desk / "page.html").read_text()
        said += err
    if name not in QUIET:
        assert f"the feature {name!r} is left out: " in said
        assert f"{PACKAGES[name]} is blocked" in said
    if MISSING[name]:
        _, err = kbench(*MISSING[name], folder=desk, code=2)
        assert f"the feature {name!r}" in err
        assert f"cannot be used: ImportError: {PACKAGES[name]} is blocked" in err
        assert "Traceback" not in err
