"""Copies of OpenML's datasets that are installed with kbench."""

import gzip
import hashlib
import re

import numpy as np
import pytest

from kbench import DatasetError
from kbench_openml import _datasets
from kbench_openml._datasets import read_origins
from kbench_openml._source import load
from tests.support import openml_server
from tests.support.openml_server import OpenMLServer
from tests.support.paths import ROOT


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    import openml

    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr(openml.config, "_root_cache_directory", tmp_path / "openml")


SHAPES = {
    15: (699, 9, 2),
    31: (1000, 63, 2),  # of 56 categories that are declared, two do not occur
    36: (2310, 19, 7),
    40: (208, 60, 2),
    41: (214, 9, 6),
    59: (351, 34, 2),
    187: (178, 13, 3),
    307: (990, 27, 11),
}


def test_every_file_has_its_origin():
    names = {int(file.name.partition(".")[0]) for file in _datasets._FOLDER.glob("*.gz")}
    assert names == set(read_origins()) == set(SHAPES)
    assert sum(file.stat().st_size for file in _datasets._FOLDER.iterdir()) < 1e6
    assert all(origin.licence == "CC BY 4.0" for origin in read_origins().values())
    assert all(origin.url.startswith("https://doi.org/") for origin in read_origins().values())


@pytest.mark.parametrize("data_id", SHAPES)
def test_a_copy_is_read_without_a_network(data_id, no_network):
    origin = read_origins()[data_id]
    content = gzip.decompress((_datasets._FOLDER / f"{data_id}.arff.gz").read_bytes())
    assert hashlib.md5(content).hexdigest() == origin.md5
    data = load(data_id=data_id)
    assert (*data.X.shape, len(np.unique(data.y))) == SHAPES[data_id]
    assert data.name == origin.name
    assert all(part in data.source for part in (origin.creator, origin.url, "copy", "CC BY 4.0"))


def test_a_copy_and_the_file_of_a_server_are_equal(connect_openml, tmp_path, monkeypatch):
    copy = load(data_id=41, target="Type")
    arff = gzip.decompress((_datasets._FOLDER / "41.arff.gz").read_bytes()).decode()
    served = openml_server.dataset("glass", arff, "Type", 214)
    everything = {**openml_server.datasets(), 41: served}
    monkeypatch.setattr(openml_server, "datasets", lambda: everything)
    with OpenMLServer() as server:
        connect_openml(server)
        original = load(data_id=41)
    assert original.source != copy.source
    assert original.checksum == copy.checksum
    assert original.feature_names == copy.feature_names
    assert original.target_names == copy.target_names


def test_the_wine_of_scikit_learn_is_that_of_openml(no_network):
    from kbench_datasets import load_wine

    assert load(data_id=187).checksum == load_wine().checksum


def test_a_damaged_cache_gives_way_to_the_copy(no_network, tmp_path):
    import openml

    folder = tmp_path.joinpath(*_parts(openml), "datasets", "41")
    folder.mkdir(parents=True)
    (folder / "dataset.arff").write_text("@relation damaged")
    assert "copy" in load(data_id=41).source


def _parts(openml):
    from pathlib import Path

    root = Path(openml.config._root_cache_directory)
    return Path(openml.config.get_cache_directory()).relative_to(root.parent).parts


def test_a_changed_copy_is_rejected(monkeypatch, tmp_path, no_network):
    content = bytearray((_datasets._FOLDER / "41.arff.gz").read_bytes())
    content[-20] ^= 1
    (tmp_path / "41.arff.gz").write_bytes(content)
    read_origins()
    monkeypatch.setattr(_datasets, "_FOLDER", tmp_path)
    with pytest.raises(DatasetError, match=r"41\.arff\.gz was changed. Install kbench again"):
        load(data_id=41)


def test_groups_keep_the_rows_of_a_speaker_together(no_network):
    data = load(data_id=307, groups="Speaker_Number", drop=["Sex"])
    whole = load(data_id=307)
    speakers = [name for name in whole.feature_names if name.startswith("Speaker_Number=")]
    of_row = whole.X[:, [whole.feature_names.index(name) for name in speakers]].argmax(axis=1)
    assert len(data.splits) == 5
    assert not [name for name in data.feature_names if re.match("Speaker|Sex", name)]
    for split in data.splits:
        assert not set(of_row[split.train]) & set(of_row[split.test])
        assert len(np.unique(data.y[split.test])) == 11
    assert sorted(np.concatenate([split.test for split in data.splits])) == list(range(990))


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"groups": "Speaker"}, "did you mean 'Speaker_Number'"),
        ({"groups": "Sex"}, "groups: column 'Sex' has 2 values; 5 folds need at least as many"),
        ({"groups": "Class"}, "'Class' is among the ignored columns"),
    ],
)
def test_groups_that_cannot_be(params, why, no_network):
    with pytest.raises(DatasetError, match=re.escape(why)):
        load(data_id=307, **params)


def test_a_task_defines_its_splits():
    with pytest.raises(ValueError, match="OpenML defines the splits of a task"):
        load(task_id=3, groups="Sex")


def test_the_documentation_credits_every_copy():
    page = (ROOT / "docs" / "reference" / "datasets.rst").read_text()
    for origin in read_origins().values():
        assert all(part in page for part in (origin.title, origin.url, origin.creator))
