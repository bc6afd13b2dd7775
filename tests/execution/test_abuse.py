"""Whatever a plugin does in a run, it costs its own cells only: on this machine and on Dask."""

import sys
import uuid

import pytest

from kbench.execution.sandbox import warm_process
from kbench.machine import machine_id
from tests.support.planted import (
    check_rows,
    nothing_is_left,
    plant,
    run_text,
    statuses,
    suite_text,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")

EXPECTED = {
    "work": "ok",
    "hang-in-python": "timed_out",
    "hang-in-c": "timed_out",
    "segfault": "crashed",
    "exit": "crashed",
    "reserve-100-tb": "out_of_memory",
    "allocate-4-gb": "out_of_memory",
    "leave-children": "ok",
    "print": "ok",
    "close-descriptors": "crashed",
    "leave-threads": "ok",
    "nan": "error",
    "raise-at-unpickling": "ok",
    "raise": "error",
    "nap": "ok",
}


@pytest.fixture
def mark(monkeypatch):
    """Return what marks every process of this test, in its environment."""
    value = uuid.uuid4().hex
    monkeypatch.setenv("KBENCH_TEST", value)
    return f"KBENCH_TEST={value}"


@pytest.fixture
def planted(tmp_path, monkeypatch):
    return plant(tmp_path / "site", monkeypatch)


def check(report, store_uri):
    assert statuses(report) == EXPECTED
    check_rows(report, store_uri)
    by_act = {cell.cell.feature_map.params["do"]: cell for cell in report.cells}
    for act, status in EXPECTED.items():
        results = by_act[act].results
        # splits after a timeout, an exhausted memory or a crash are not tried
        assert status not in ("ok", "error") or len(results) == 2, act
        assert all(result.status == status for result in results.values()), act
        # whatever became of a task, its line says who computed it
        assert {result.machine for result in results.values()} == {machine_id()}
    assert by_act["print"].done[0].printed.endswith("the end, in C\ufffd\n")
    assert "SIGSEGV" in by_act["segfault"].results[0].error


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_each_costs_its_own_cells_only(planted, store_uri, mark, jobs):
    report, seen = run_text(suite_text(*EXPECTED, time_s=3), store_uri, jobs=jobs)
    check(report, store_uri)
    assert seen.slots <= set(range(jobs))
    assert nothing_is_left(mark)


@pytest.mark.slow
@pytest.mark.parametrize("act", ["kill-supervisor", "stop-supervisor"])
def test_a_task_that_ends_the_warm_parent_costs_its_own_cell_only(
    planted, store_uri, mark, monkeypatch, act
):
    """Its cell alone crashes; the tasks beside it are tried once more."""
    monkeypatch.setattr(warm_process, "STOPPED_S", 2.0)
    report, _ = run_text(suite_text("nap", act, "work"), store_uri, jobs=2)
    assert statuses(report) == {"nap": "ok", act: "crashed", "work": "ok"}
    assert nothing_is_left(mark)


@pytest.mark.slow
def test_each_costs_its_own_cells_only_on_dask(planted, store_uri, mark):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        text = suite_text(*EXPECTED, time_s=3)
        report, _ = run_text(text, store_uri, jobs=None, scheduler=cluster.scheduler_address)
        check(report, store_uri)
    assert nothing_is_left(mark)
