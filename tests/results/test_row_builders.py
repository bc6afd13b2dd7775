"""Rows of the results in the journal."""

import math

import pytest

from kbench.planning.planned import PlannedCell
from kbench.records import Cell, Metric, Protocol, Ref, Result
from kbench.report.content import ReportData
from kbench.results.leaderboard import leaderboard
from kbench.results.row_builders import make_split_row

NLPD = Metric("nlpd", "lower")


def planned(name, values, dataset="wine"):
    cell = Cell(Ref(dataset), Ref(name), Ref("ridge"), Protocol())
    results = {i: Result(f"k/{i}", "k", i, "ok", {"nlpd": v}) for i, v in enumerate(values)}
    return PlannedCell(cell, "k", None, len(values), results=results)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_a_metric_that_is_not_finite_on_one_split_has_no_mean(bad):
    row = make_split_row(planned("rff", (1.0, bad, 3.0)), "here", NLPD)
    assert row.is_complete
    # the mean of the two others would be 2
    assert (row.value("nlpd"), row.value("nlpd_sd")) == (None, None)
    assert row.notes == "nlpd is not finite on split 1, and has no mean"
    good = make_split_row(planned("rff", (1.0, 2.0, 3.0)), "here", NLPD)
    assert (good.value("nlpd"), good.notes) == (2.0, "")


def test_such_a_cell_counts_as_missing():
    rows = [
        make_split_row(planned(name, (value, value), dataset), "here", NLPD)
        for dataset in ("iris", "wine", "zoo")
        for name, value in (("a", 1.0), ("b", math.inf if dataset == "zoo" else 2.0))
    ]
    board = leaderboard(rows, NLPD)
    assert board.datasets == ("iris", "wine")
    assert [line.mean for line in board.lines] == [1.0, 2.0]
    assert ReportData("s", rows, metric=NLPD).scores.missing == {("b", "ridge"): ("zoo",)}
