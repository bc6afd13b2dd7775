"""The source `openml`: what names a dataset, suites, and what there is without a network."""

import re

import numpy as np
import pytest

from kbench import DatasetError, Ref
from kbench.errors import SourceUnreachableError
from kbench_openml._source import expand, load
from tests.support.openml_server import OpenMLServer


def test_by_name_and_version(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        assert load(dataset="iris").X.shape == (150, 4)
        assert load(dataset="iris", version=1).X.shape == (150, 4)
        with pytest.raises(DatasetError, match="no such"):
            load(dataset="iris", version=2)
        with pytest.raises(DatasetError, match="no such"):
            load(dataset="irises")
        with pytest.raises(DatasetError, match="no such"):
            load(data_id=4711)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({}, "none is given"),
        ({"data_id": 61, "task_id": 3}, "data_id, task_id are given"),
        ({"data_id": 0}, "data_id must be an integer >= 1, got 0"),
        ({"data_id": True}, "data_id must be an integer >= 1, got True"),
        ({"data_id": "61"}, "data_id must be an integer >= 1, got '61'"),
        ({"data_id": 61, "version": 1}, "version=1"),
        (
            {"dataset": "../x"},
            "dataset must be 1 to 128 letters, digits and characters of '_.(),+-', got '../x'",
        ),
        ({"task_id": 3, "target": "class"}, "target='class'"),
        (
            {"task_id": 3, "task": "regression"},
            "task='regression': OpenML defines the type of task 3",
        ),
        (
            {"data_id": 61, "task": "ranking"},
            "task must be one of 'classification', 'regression', got 'ranking'",
        ),
    ],
)
def test_parameters_that_name_no_dataset(params, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        load(**params)


def test_the_task_of_data_may_be_named(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        assert load(data_id=9004, task="regression").y.tolist() == [100, 250, 300, 310, 220]
        with pytest.raises(DatasetError, match="'class' is not numeric in 150 rows of 150"):
            load(data_id=61, task="regression")


def test_suite_of_tasks(connect_openml, monkeypatch):
    with OpenMLServer() as server:
        connect_openml(server)
        tasks = [Ref("openml", {"task_id": 1061}), Ref("openml", {"task_id": 1187})]
        assert expand(openml_suite=7) == tasks
        assert expand(openml_suite="small") == tasks
        monkeypatch.setenv("KBENCH_OFFLINE", "1")
        asked = len(server.requests)
        assert expand(openml_suite=7) == tasks
        assert len(server.requests) == asked
        with pytest.raises(SourceUnreachableError, match="cannot be reached"):
            expand(openml_suite=8)
        with pytest.raises(SourceUnreachableError, match="cannot be reached"):
            load(openml_suite=8)
        with pytest.raises(DatasetError, match="expands to 2 datasets"):
            load(openml_suite=7)
    assert expand(data_id=61) == []
    with pytest.raises(ValueError, match="openml_suite"):
        expand(openml_suite="../x")
    with pytest.raises(ValueError, match="target"):
        expand(openml_suite=7, target="x")


def test_offline_uses_what_is_cached(connect_openml, monkeypatch):
    with OpenMLServer() as server:
        connect_openml(server)
        right = load(data_id=61)
        monkeypatch.setenv("KBENCH_OFFLINE", "1")
        asked = len(server.requests)
        np.testing.assert_array_equal(load(data_id=61).X, right.X)
        with pytest.raises(DatasetError, match=r"not in the cache.*kbench is offline"):
            load(data_id=9001)
        with pytest.raises(DatasetError, match=r"not in the cache.*kbench is offline"):
            load(dataset="iris")
        with pytest.raises(DatasetError, match=r"not in the cache.*kbench is offline"):
            load(task_id=1061)
        assert len(server.requests) == asked


def test_a_copy_is_that_of_the_public_server(connect_openml, monkeypatch):
    with OpenMLServer() as server:
        connect_openml(server)
        real = load(data_id=187)
    assert "copy" not in real.source  # another server may have other data of this number
    monkeypatch.setenv("KBENCH_OFFLINE", "1")
    with OpenMLServer() as another:
        connect_openml(another)
        for other in (61, 187, 1510, 28):
            with pytest.raises(DatasetError):
                load(data_id=other)
