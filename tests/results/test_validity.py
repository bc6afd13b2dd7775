"""Results that are out of date say why, and are left out with a notice."""

from dataclasses import replace

import pytest

from kbench.errors import SuiteError
from kbench.machine import machine_id
from kbench.planning.cached_results import UNKNOWN as WITHOUT
from kbench.planning.current_state import variable
from kbench.planning.planner import Planner
from kbench.records import ACCURACY, Manifest
from kbench.registry.registry import Registry
from kbench.results.stored import UNKNOWN, StoredResults, current, mark_outdated
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal
from tests.support.report_rows import row

CHANGED = "the environment variable LAB_CODE has another value"


@pytest.fixture
def manifests(monkeypatch):
    """Digests of a manifest that is valid, and of one that is not."""
    monkeypatch.setenv("LAB_CODE", "one")
    valid = Manifest(variables={"LAB_CODE": variable("LAB_CODE")})
    other = Manifest(variables={"LAB_CODE": "otherwise"})
    for each in (valid, other):
        Journal().keep_manifest(each)
    return valid.digest, other.digest


def planner():
    return Planner(Registry(), DataCache())


def stored(*made_from, **more):
    rows = [
        replace(row("iris", f"map-{i}", **more), made_from=each, machine=machine_id())
        for i, each in enumerate(made_from)
    ]
    return StoredResults(rows, "trial", ACCURACY)


def reasons(results):
    return [each.outdated for each in mark_outdated(results, planner()).rows]


def test_rows_say_whether_they_are_out_of_date(manifests):
    valid, other = manifests
    given = [valid, other, f"{valid} {other}", UNKNOWN, f"{other} {UNKNOWN}", "f" * 32, ""]
    assert reasons(stored(*given)) == [
        "",
        CHANGED,
        CHANGED,
        WITHOUT,
        f"{CHANGED}; {WITHOUT}",
        WITHOUT,
        WITHOUT,
    ]


def test_the_reason_is_the_first_of_the_notes(manifests):
    _, other = manifests
    given = stored(other)
    given.rows[0] = replace(given.rows[0], notes="its fit did not converge")
    (marked,) = mark_outdated(given, planner()).rows
    assert marked.notes == f"out of date: {CHANGED}; its fit did not converge"
    assert marked.metrics == given.rows[0].metrics


def test_a_cell_without_results_is_not_out_of_date(manifests):
    assert reasons(stored("", status="unavailable")) == [""]


def test_nothing_is_said_of_rows_of_other_machines(manifests):
    _, other = manifests
    given = stored(other, other)
    given.rows[0] = replace(given.rows[0], machine="m1")
    assert reasons(given) == ["", CHANGED]
    assert reasons(replace(given, is_imported=True)) == ["", ""]


def test_what_is_out_of_date_is_left_out_and_counted(manifests):
    valid, other = manifests
    notices = []
    results = mark_outdated(stored(valid, other, other, UNKNOWN), planner())
    kept = current(results, notices.append)
    assert [each.feature_map for each in kept.rows] == ["map-0"]
    (notice,) = notices
    assert notice == (
        f"3 of 4 cells are out of date and left out ({CHANGED}: 2 cells; {WITHOUT}: 1 cell); "
        "`kbench suite trial` computes them again, and `outdated=True` shows them"
    )
    assert kept.left_out
    assert notice.startswith(kept.left_out)


def test_results_that_are_all_out_of_date_are_an_error(manifests):
    _, other = manifests
    notices = []
    with pytest.raises(SuiteError, match=rf"are out of date \({CHANGED}: 2 cells\)"):
        current(mark_outdated(stored(other, other), planner()), notices.append)
    assert notices == []


def test_nothing_is_said_where_all_is_valid(manifests):
    valid, _ = manifests
    results = mark_outdated(stored(valid), planner())
    notices = []
    assert current(results, notices.append) is results
    assert notices == []
