"""Everything a mirror of OpenML has: datasets value by value, faults, tasks and suites."""

import importlib.util
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from kbench import Dataset, DatasetError, Ref
from kbench.storage.datacache import DataCache
from kbench_openml import _transport
from kbench_openml._source import expand, load
from tests.support.paths import MIRROR

needs_mirror = pytest.mark.skipif(
    not (MIRROR / "openml_mirror.py").exists(),
    reason="needs the mirror of OpenML next to the checkout (../shared/openml-mirror)",
)


@pytest.fixture(scope="module")
def mirror_module():
    path = MIRROR / "openml_mirror.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def _catalogue(folder=MIRROR):
    if not (folder / "catalogue.json").exists():
        return []
    return json.loads((folder / "catalogue.json").read_text())["datasets"]


SMALL = [entry for entry in _catalogue() if entry["bytes"] < 100_000]
REGRESSION = _catalogue(MIRROR / "regression")
LARGE = [entry for entry in _catalogue() if entry["bytes"] >= 100_000]


def _check_entry(entry, mirror, connect, tmp_path) -> Dataset:
    with mirror.Mirror() as server:
        connect(server)
        data = load(data_id=entry["id"])
        cache = DataCache(tmp_path / "kbench")
        checksum = cache.store(data)
        facts = cache.describe(checksum)
    assert facts.n_samples == entry["rows"]
    assert facts.n_classes == entry["classes"]
    by_name = dict(zip(facts.target_names, facts.class_counts, strict=True))
    assert by_name == {name: n for name, n in entry["class_counts"].items() if n}
    assert facts.n_missing == entry["missing_values"]
    assert facts.missing == entry["missing_by_attribute"]
    return data


@needs_mirror
@pytest.mark.parametrize("entry", SMALL, ids=lambda entry: entry["name"])
def test_small_datasets_of_the_mirror(entry, mirror_module, connect_openml, tmp_path):
    _check_entry(entry, mirror_module, connect_openml, tmp_path)


@needs_mirror
@pytest.mark.slow
@pytest.mark.parametrize("entry", LARGE, ids=lambda entry: entry["name"])
def test_large_datasets_of_the_mirror(entry, mirror_module, connect_openml, tmp_path):
    _check_entry(entry, mirror_module, connect_openml, tmp_path)


@needs_mirror
@pytest.mark.slow
@pytest.mark.parametrize("entry", _catalogue(), ids=lambda entry: entry["name"])
def test_values_equal_the_parquet_copies(entry, mirror_module, connect_openml, tmp_path):
    """The copies were made by another reader: value by value, they must agree."""
    import pandas

    copy = MIRROR / "data" / f"{entry['id']}.pq"
    if not copy.exists():
        pytest.skip("the mirror has no parquet copy of it")
    frame = pandas.read_parquet(copy)
    data = _check_entry(entry, mirror_module, connect_openml, tmp_path)
    columns = dict(zip(data.feature_names, data.X.T, strict=True))
    for name in frame.columns:
        if name == entry["default_target_attribute"]:
            labels = np.asarray(data.target_names)[data.y]
            assert list(labels) == [str(value) for value in frame[name]]
            continue
        if name in columns:
            np.testing.assert_array_equal(columns[name], frame[name].to_numpy(dtype=float))
            continue
        for other in [column for column in columns if column.rpartition("=")[0] == name]:
            value = other.rpartition("=")[2]
            given = frame[name]
            expected = np.where(given.isna(), np.nan, given.astype(str) == value).astype(float)
            np.testing.assert_array_equal(columns[other], expected)


@needs_mirror
@pytest.mark.slow
def test_bundled_others_differ_from_openml(mirror_module, connect_openml):
    from sklearn.datasets import load_breast_cancer, load_iris

    with mirror_module.Mirror() as server:
        connect_openml(server)
        iris, wdbc = load(data_id=61), load(data_id=1510)
    assert np.flatnonzero(np.any(load_iris().data != iris.X, axis=1)).tolist() == [34, 37]
    assert np.any(load_breast_cancer().data != wdbc.X, axis=1).sum() == 5


MIRROR_RECOVERS = (
    *("http-500-twice", "http-503-twice", "busy-twice", "reset-twice", "slow=0.2", "plain"),
    *("no-md5", "trickle=1000000"),
)
MIRROR_FAILS = (
    *("truncate", "truncate-lines", "cut", "bad-md5", "empty", "bad-xml", "html", "http-500"),
    *("not-found", "reset", "slow=3", "trickle=300"),
)


@needs_mirror
@pytest.mark.slow
@pytest.mark.parametrize("fault", MIRROR_RECOVERS + MIRROR_FAILS)
def test_every_fault_of_the_mirror(fault, mirror_module, connect_openml, monkeypatch):
    with mirror_module.Mirror() as server:
        connect_openml(server)
        right = load(data_id=61)
    if fault == "trickle=300":
        monkeypatch.setattr(_transport, "TOTAL_S", 2.0)
    if fault == "slow=3":
        monkeypatch.setattr(_transport, "SILENCE_S", 1.0)
    with mirror_module.Mirror(faults=[fault]) as server:
        connect_openml(server)
        start = time.monotonic()
        if fault in MIRROR_FAILS:
            with pytest.raises(DatasetError, match="OpenML data 61"):
                load(data_id=61)
        else:
            np.testing.assert_array_equal(load(data_id=61).X, right.X)
        assert time.monotonic() - start < 60


@needs_mirror
@pytest.mark.slow
def test_tasks_and_suites_of_the_mirror(mirror_module, connect_openml):
    with mirror_module.Mirror() as server:
        connect_openml(server)
        small = expand(openml_suite=990002)
        assert Ref("openml", {"task_id": 3}) in small
        data = load(task_id=3)
    assert len(data.splits) == 10
    assert sorted(np.concatenate([split.test for split in data.splits])) == list(range(3196))
    assert len({split.digest for split in data.splits}) == 10


@pytest.mark.slow
@needs_mirror
@pytest.mark.parametrize("entry", REGRESSION, ids=lambda entry: entry["name"])
def test_regression_tasks_of_the_mirror(entry, mirror_module, connect_openml, tmp_path):
    import pandas

    with mirror_module.Mirror(root=MIRROR / "regression") as server:
        connect_openml(server)
        data = load(task_id=entry["task_id"])
        assert load(data_id=entry["id"]).task == "regression"
        assert Ref("openml", {"task_id": entry["task_id"]}) in expand(openml_suite=990003)
    cache = DataCache(tmp_path / "kbench")
    facts = cache.describe(cache.store(data))
    assert (facts.task, facts.n_samples, facts.n_splits) == ("regression", entry["rows"], 10)
    folder = MIRROR.parent / "regression" / entry["name"]
    if not folder.exists():
        pytest.skip("needs the regression sets next to the checkout (../shared/regression)")
    table = pandas.read_csv(folder / "data.csv.gz")
    np.testing.assert_allclose(data.y, table["y"], rtol=1e-12)
    is_test = pandas.read_csv(folder / "splits.csv.gz").to_numpy()
    for split, column in zip(data.splits, is_test.T, strict=True):
        assert split.test.tolist() == np.flatnonzero(column).tolist()
        assert split.train.tolist() == np.flatnonzero(column == 0).tolist()


@needs_mirror
@pytest.mark.slow
def test_all_datasets_of_the_suite_uci_come_once(mirror_module, tmp_path):
    """From empty caches every set is loaded; the second time nobody is asked."""
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "OPENML_CACHE_DIR": str(tmp_path / "openml"),
        "KBENCH_CACHE_DIR": str(tmp_path / "kbench"),
        "no_proxy": "127.0.0.1",
    }
    environment.pop("KBENCH_OFFLINE", None)
    command = [sys.executable, "-m", "kbench.cli", "data", "fetch", "uci"]
    (tmp_path / "config" / "openml").mkdir(parents=True)

    def fetch():
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    with mirror_module.Mirror() as server:
        config = tmp_path / "config" / "openml" / "config"
        config.write_text(f"server = {server.url}\n")
        first = fetch()
        assert first.returncode == 0, first.stdout + first.stderr
        assert "unavailable" not in first.stdout
        asked = len(server.requests)
        assert asked >= 21  # description, data and qualities of seven sets
        second = fetch()
        assert second.stdout == first.stdout
        assert len(server.requests) == asked
    cache = DataCache(tmp_path / "kbench")
    assert cache.verify() == []
    assert len(cache.entries()) == len(first.stdout.splitlines())
