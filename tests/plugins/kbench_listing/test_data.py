"""`kbench data`: list, fetch, verify, path and clear."""

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from kbench import Dataset
from kbench.cli.app import app
from kbench.storage.datacache import DataCache

pytestmark = pytest.mark.usefixtures("forked_sandboxes")


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return DataCache()


def run(*words, code=0, **options):
    result = CliRunner().invoke(app, ["data", *words], **options)
    assert result.exit_code == code, result.output
    return result.output


def some(name="some", seed=0):
    X = np.random.default_rng(seed).normal(size=(9, 2))
    return Dataset(name, X, np.arange(9) % 3, source="a place")


def test_list(cache):
    assert "kbench data fetch" in run("list")
    assert json.loads(run("list", "--json")) == []
    cache.store(some("one"))
    cache.store(some("two", seed=1))
    lines = run("list").splitlines()
    assert lines[0].split()[:3] == ["dataset", "rows", "columns"]
    assert lines[1].split()[:4] == ["one", "9", "2", "3"]
    assert lines[2].split()[0] == "two"
    assert "2 datasets" in lines[-1]
    entries = json.loads(run("list", "--json"))
    assert [entry["name"] for entry in entries] == ["one", "two"]


def test_the_target_of_a_regression_task(cache):
    cache.store(Dataset("line", np.arange(8.0)[:, None], np.arange(8.0), task="regression"))
    cache.store(some())
    lines = run("list").splitlines()
    assert "target" in lines[0]
    assert "3.5 (sd 2.291)" in lines[1]
    assert "3 classes" in lines[2]


def test_path(cache):
    assert run("path").strip() == str(cache.root)


def test_verify(cache):
    checksum = cache.store(some())
    assert "1 dataset " in run("verify")
    file = cache.root / checksum / "X.npy"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    assert "X.npy has changed" in run("verify", code=1)
    assert "0 datasets" in run("verify")


def test_clear(cache):
    cache.store(some())
    run("clear", code=1, input="n\n")
    assert len(cache.entries()) == 1
    run("clear", input="y\n")
    assert cache.entries() == []
    assert "0.0 MiB" in run("clear", "--yes")


def test_fetch(cache, tmp_path, monkeypatch):
    pytest.importorskip("kbench_datasets")
    monkeypatch.delenv("KBENCH_OFFLINE", raising=False)
    file = tmp_path / "mine.toml"
    file.write_text(
        'datasets = [{ name = "two-moons", n_samples = 50 }, { name = "iris" },\n'
        '  { name = "csv", path = "/nowhere.csv", target = "y" }, "friedman3"]\n'
        'feature_maps = [{ name = "identity" }]\nlearners = [{ name = "dummy-majority" }]\n'
    )
    try:
        output = run("fetch", str(file), code=1)
        assert "[1/4] two-moons(n_samples=50): 50 x 2, synthetic" in output
        assert "[2/4] iris: 150 x 4" in output
        assert "[4/4] friedman3: 1,000 x 4, regression, synthetic" in output
        assert "unavailable" in output
        assert "No such file" in output
        assert {entry.name for entry in cache.entries()} == {"two-moons", "iris", "friedman3"}
        again = run("fetch", str(file), "--dataset", "iris", "--offline")
        assert again == "[1/1] iris: 150 x 4, bundled with scikit-learn\n"
    finally:
        os.environ.pop("KBENCH_OFFLINE", None)
