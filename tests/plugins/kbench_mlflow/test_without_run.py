"""Rows of cells without a run, in the tags of an experiment."""

from kbench_mlflow.reading import rows_without_run, tags_without_run
from tests.support.report_rows import row


def test_a_row_may_have_a_name_that_utf_8_cannot_write():
    lacking = row("wine", "rff", error="looked for /data/\udcff")
    tags = tags_without_run("here", [lacking], {})
    (read,) = rows_without_run(tags)
    assert (read.dataset, read.feature_map) == ("wine", "rff")
    assert "looked for /data/" in read.error
    read.error.encode()


def test_many_rows_are_pieces_that_mlflow_can_store():
    rows = [row(f"set-{i}", "rff", error=f"reason {i}" * 20) for i in range(400)]
    tags = tags_without_run("here", rows, {})
    assert all(len(value) <= 5000 for value in tags.values())
    assert [each.dataset for each in rows_without_run(tags)] == [each.dataset for each in rows]
