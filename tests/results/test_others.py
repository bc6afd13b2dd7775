"""Rows of others are compared only where that is fair, and their times never."""

import dataclasses

import pytest

from kbench.records import ACCURACY
from kbench.report.content import ReportData
from kbench.report.tables import make_tables
from kbench.results.imported import (
    Check,
    ImportedRow,
    match_local_rows,
    why_not_comparable,
    without_times,
)
from tests.support.report_rows import row

DATA = "a" * 64
HASHES = {"0": "h0", "1": "h1", "2": "h2"}


def own(**changes):
    made = row("iris", "rff", fit_time_s=0.5)
    return dataclasses.replace(made, checksum=DATA, key="k" * 64, split_hash=HASHES, **changes)


def theirs(checks=(), **changes):
    made = dataclasses.replace(own(), **changes)
    return ImportedRow(made, ACCURACY, "Ada", "A CPU", checks=checks)


def test_an_equal_key_is_the_same_cell():
    (found,) = match_local_rows([own()], [theirs(dataset="flowers")], ACCURACY)
    assert found.comparable == "same cell; 3 splits"
    assert found.difference == 0
    assert found.local == pytest.approx(0.9)


def test_other_code_is_compared_on_equal_data_protocol_and_splits():
    better = {"accuracy": {"0": 0.92, "1": 0.94}}
    other = theirs(key="other", values_by_split=better, n_splits_done=2)
    (found,) = match_local_rows([own()], [other], ACCURACY)
    assert found.comparable == "same data, protocol and splits; 2 splits"
    assert found.difference == pytest.approx(0.02)
    # the own mean is over the splits of both
    assert found.local == pytest.approx((0.9 + 0.92) / 2)


def test_another_effort_of_the_search_is_compared_and_named():
    other = theirs(key="other", protocol={**own().protocol, "n_candidates": "12"})
    (found,) = match_local_rows([own()], [other], ACCURACY)
    assert found.comparable.endswith("; n_candidates 12 instead of -")
    assert found.difference == 0


UNFAIR = {
    "other data": {"checksum": "b" * 64},
    "unknown data": {"checksum": ""},
    "other protocol: n_folds": {"protocol": {"cv": "stratified", "n_folds": "10"}},
    "other splits": {"split_hash": {**HASHES, "1": "other"}},
    "no common split": {"split_hash": {"7": "h7"}},
}


@pytest.mark.parametrize("reason", UNFAIR)
def test_what_is_not_comparable_has_no_difference(reason):
    other = theirs(key="other", **UNFAIR[reason])
    assert why_not_comparable(own(), other.row) == reason
    (found,) = match_local_rows([own()], [other], ACCURACY)
    assert found.comparable == f"not compared: {reason}"
    assert (found.difference, found.local) == (None, None)
    assert found.value == pytest.approx(0.9)


def test_cells_that_only_one_has_are_listed_after_own_datasets():
    more = [theirs(dataset="wine", key="x"), theirs()]
    found = match_local_rows([own()], more, ACCURACY)
    assert [each.other.row.dataset for each in found] == ["iris", "wine"]
    assert found[1].comparable == "not computed locally"


def test_a_row_of_others_has_no_times():
    made = without_times(own())
    assert "accuracy" in made.metrics
    assert "fit_time_s" not in made.metrics
    assert "fit_time_s" not in made.values_by_split
    assert made.machine_speed_s == ""


def test_a_report_ranks_own_rows_only():
    rows = [own(), dataclasses.replace(own(), feature_map="identity", key="i")]
    best = theirs(feature_map="best", key="b", metrics={"accuracy": 1.0})
    alone, beside = ReportData("uci", rows), ReportData("uci", rows, imported=[best])
    assert beside.methods == alone.methods
    # as texts: an interval over one dataset is NaN
    assert str(beside.standings) == str(alone.standings)
    made, of_alone = make_tables(beside), make_tables(alone)
    for name, table in made.items():
        if name != "imported":
            assert str(table.rows) == str(of_alone[name].rows), name
    (line,) = made["imported"].rows
    assert line["author"] == "Ada on A CPU"
    assert line["verification"] == "imported"


def test_a_split_that_differs_is_said_and_marked():
    checks = [Check(0, "equal", "Bob", 0), Check(1, "different", "Cy", 86_400_000)]
    other = theirs(checks)
    assert other.is_refuted
    assert other.verification == (
        "recomputed: 2 of 3 splits by Bob and Cy, 1970-01-02; equal, different"
    )
    assert not theirs([Check(0, "noise", "Bob", 0)]).is_refuted
