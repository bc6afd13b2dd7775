"""Rows of cells without a run, in the tags of an experiment."""

import base64
import json
import zlib

import pytest

from kbench_mlflow.reading import rows_without_run, tags_without_run
from tests.support.report_rows import row


def test_a_row_may_have_a_name_that_utf_8_cannot_write():
    lacking = row("wine", "rff", status="skipped", error="looked for /data/\udcff")
    tags = tags_without_run("here", [lacking], {})
    (read,) = rows_without_run(tags)
    assert (read.dataset, read.feature_map) == ("wine", "rff")
    assert "looked for /data/" in read.error
    read.error.encode()


def test_many_rows_are_pieces_that_mlflow_can_store():
    rows = [
        row(f"set-{i}", "rff", status="unavailable", error=f"reason {i}" * 20) for i in range(400)
    ]
    tags = tags_without_run("here", rows, {})
    assert all(len(value) <= 5000 for value in tags.values())
    assert [each.dataset for each in rows_without_run(tags)] == [each.dataset for each in rows]


FIELDS = {
    "dataset": "iris",
    "feature_map": "rff",
    "learner": "ridge",
    "status": "unavailable",
    "n_splits_done": 0,
    "n_splits": 5,
    "task": "regression",
}


def written(*rows):
    """Return the tags that another user of the store wrote."""
    packed = base64.b64encode(zlib.compress(json.dumps(rows).encode())).decode()
    return {"mlflow.kbench.without_run.other.0000": packed}


def test_a_row_has_its_task_and_splits():
    (read,) = rows_without_run(written(FIELDS))
    assert (read.task, read.n_splits, read.status) == ("regression", 5, "unavailable")


@pytest.mark.parametrize(
    "changed",
    [
        {"status": "ok"},
        {"task": "ranking"},
        {"dataset": 7},
        {"learner": ["ridge"]},
        {"n_splits": "5"},
        {"status": None},
    ],
)
def test_what_is_no_row_is_left_out(changed):
    assert rows_without_run(written(FIELDS | changed)) == []


def test_tags_that_are_damaged_are_left_out():
    tags = written(FIELDS)
    (name,) = tags
    for value in (
        "",
        "x",
        tags[name][: len(tags[name]) // 8 * 4],
        base64.b64encode(b"no zlib").decode(),
    ):
        assert rows_without_run({name: value}) == []
    assert rows_without_run(written("text", 3, None)) == []
    assert rows_without_run(written(FIELDS | {"metrics": {"accuracy": "x"}}))[0].metrics == {}
    bomb = base64.b64encode(zlib.compress(b"[" + b" " * 2**27 + b"]")).decode()
    assert rows_without_run({name: bomb}) == []
