"""Tasks of OpenML and their splits."""

import numpy as np
import pytest

from kbench import DatasetError
from kbench_openml._source import load
from tests.support.openml_server import OpenMLServer


def test_task_with_its_own_splits(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        data = load(task_id=1187)
        again = len(server.requests)
        load(task_id=1187)
        assert len(server.requests) == again  # all of it was kept
    assert data.X.shape == (178, 13)
    assert [split.index for split in data.splits] == [0, 1, 2, 3]
    for split in data.splits:
        assert sorted([*split.train, *split.test]) == list(range(178))
    assert sorted([*data.splits[2].test, *data.splits[3].test]) == list(range(178))


def test_splits_follow_the_rows_that_are_left(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        data = load(task_id=1000 + 9001)
    for split in data.splits:
        assert sorted([*split.train, *split.test]) == [0, 1, 2, 3, 4]


def test_a_regression_task_decides_what_the_target_is(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        data = load(task_id=1000 + 9004)
        assert load(data_id=9004).task == "classification"  # whole numbers
    assert (data.task, data.y.tolist()) == ("regression", [100, 250, 300, 310, 220])
    assert (data.y.dtype, data.target_names) == (np.float64, ())
    assert [split.index for split in data.splits] == [0, 1, 2, 3]
    for split in data.splits:
        assert sorted([*split.train, *split.test]) == [0, 1, 2, 3, 4]


def test_a_regression_task_of_text(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        server.datasets[9004]["target"] = "colour"
        with pytest.raises(
            DatasetError, match="'colour' is not numeric in 5 rows of 5, the first is row 1"
        ):
            load(task_id=1000 + 9004)


def test_other_tasks_are_refused(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        with pytest.raises(DatasetError, match="supervised classification and regression"):
            load(task_id=1062)


@pytest.mark.parametrize("fault", ["truncate", "cut", "empty", "html", "not-found", "bad-xml"])
def test_faults_of_splits(connect_openml, fault):
    part = "@task" if fault == "bad-xml" else "@splits"
    with OpenMLServer(faults=[fault + part]) as server:
        connect_openml(server)
        with pytest.raises(DatasetError, match="OpenML task 1061"):
            load(task_id=1061)
