"""Datasets of OpenML: what is damaged is noticed and fetched anew once."""

import numpy as np
import pytest

from kbench import DatasetError
from kbench_openml._source import load
from tests.support.openml_server import OpenMLServer


@pytest.mark.parametrize("fault", ["truncate", "truncate-lines", "html@download"])
def test_without_a_checksum_rows_are_counted(connect_openml, fault):
    with OpenMLServer(faults=["no-md5", fault]) as server:
        connect_openml(server)
        with pytest.raises(DatasetError, match="OpenML data 61"):
            load(data_id=61)


def test_neither_checksum_nor_count_is_refused(connect_openml):
    with OpenMLServer(faults=["no-md5", "no-qualities"]) as server:
        connect_openml(server)
        with pytest.raises(DatasetError, match="neither a checksum nor"):
            load(data_id=61)


def test_a_cut_file_in_the_cache_is_fetched_anew(connect_openml):
    with OpenMLServer() as server:
        cache = connect_openml(server)
        right = load(data_id=61)
        file = cache / "datasets" / "61" / "dataset.arff"
        text = file.read_text()
        file.write_text(text[: text.index("\n", len(text) // 2) + 1])
        np.testing.assert_array_equal(load(data_id=61).X, right.X)
        assert file.read_text() == text


def test_a_damaged_description_in_the_cache_is_fetched_anew(connect_openml):
    with OpenMLServer() as server:
        cache = connect_openml(server)
        load(data_id=61)
        file = cache / "datasets" / "61" / "description.xml"
        file.write_text(file.read_text()[:200])
        assert load(data_id=61).X.shape == (150, 4)


def test_a_cut_file_without_a_network_is_an_error(connect_openml, monkeypatch):
    with OpenMLServer() as server:
        cache = connect_openml(server)
        load(data_id=61)
        file = cache / "datasets" / "61" / "dataset.arff"
        file.write_text(file.read_text()[:3000])
        monkeypatch.setenv("KBENCH_OFFLINE", "1")
        with pytest.raises(DatasetError, match=r"checksum.*Run again with network access"):
            load(data_id=61)
