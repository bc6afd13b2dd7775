"""Of the results of a task, the newest valid one is its answer."""

import dataclasses

import pytest

from kbench import Cell, Limits, Protocol, Ref
from kbench.machine import machine_id
from kbench.planning.cached_results import UNKNOWN, Validity, recall, recall_added
from kbench.planning.current_state import Present, variable
from kbench.planning.planned import PlannedCell, out_of_date, task_key
from kbench.planning.suite_plan import SuitePlan
from kbench.records import Manifest, Result, Suite
from kbench.registry.registry import Registry
from kbench.storage.journal import Journal
from tests.planning.test_planner import IRIS

KEY = "k" * 64
CELL = Cell(Ref("iris"), Ref("rff"), Ref("ridge"), Protocol(n_folds=3))


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "journal.jsonl")


@pytest.fixture
def edit(monkeypatch):
    """Set what results are made from: a variable stands for code, files and versions."""

    def edit_(value):
        monkeypatch.setenv("LAB_CODE", value)

    edit_("one")
    return edit_


def compute(journal, accuracy, splits=range(3), status="ok", **fields):
    """Journal results that are made from what is there now."""
    manifest = Manifest(variables={"LAB_CODE": variable("LAB_CODE")})
    journal.keep_manifest(manifest)
    for split in splits:
        given = {"metrics": {"accuracy": accuracy}, "manifest": manifest.digest, **fields}
        result = Result(task_key(KEY, split), KEY, split, status, **given)
        journal.append("result", **result.to_json())
    return manifest


def recalled(journal, also_outdated=False, **options):
    cell = PlannedCell(CELL, KEY, IRIS, 3)
    recall([cell], Validity(journal, Present(), also_outdated), **options)
    return cell


def accuracies(cell):
    return [result.metrics.get("accuracy") for result in cell.in_order]


def test_an_edit_and_its_revert_find_the_results_of_each(journal, edit):
    compute(journal, 0.1)
    assert accuracies(recalled(journal)) == [0.1] * 3
    edit("two")
    cell = recalled(journal)
    assert (accuracies(cell), cell.missing) == ([], [0, 1, 2])
    assert cell.changed == "the environment variable LAB_CODE has another value"
    assert out_of_date([cell]) == f"{cell.changed}: 1 cell"
    compute(journal, 0.2)
    assert accuracies(recalled(journal)) == [0.2] * 3
    edit("one")
    cell = recalled(journal)
    assert (accuracies(cell), cell.missing, cell.changed) == ([0.1] * 3, [], "")
    assert out_of_date([cell]) == ""
    edit("two")
    assert accuracies(recalled(journal)) == [0.2] * 3


def test_the_newest_of_valid_results_counts_for_each_split(journal, edit):
    compute(journal, 0.1)
    edit("two")
    compute(journal, 0.2, splits=[1])
    edit("one")
    compute(journal, 0.3, splits=[2])
    assert accuracies(recalled(journal)) == [0.1, 0.1, 0.3]
    edit("two")
    cell = recalled(journal)
    assert (accuracies(cell), cell.missing) == ([0.2], [0, 2])


def test_results_beyond_those_asked_for_are_valid_ones(journal, edit):
    compute(journal, 0.1, splits=range(5))
    edit("two")
    compute(journal, 0.2)
    assert recalled(journal).n_splits == 3
    edit("one")
    assert recalled(journal).n_splits == 5


def test_a_failure_of_other_code_is_computed_again(journal, edit):
    compute(journal, 0.1, splits=[0], status="crashed")
    assert recalled(journal).missing == []
    edit("two")
    assert recalled(journal).missing == [0, 1, 2]
    edit("one")
    assert recalled(journal, retry_failed=True).missing == [0, 1, 2]
    compute(journal, 0.1, splits=[0], status="timed_out", limits=Limits(task_timeout_s=1.0))
    assert recalled(journal, limits=Limits(task_timeout_s=1.0)).missing == []
    assert recalled(journal, limits=Limits(task_timeout_s=2.0)).missing == [0, 1, 2]


@pytest.mark.parametrize("manifest", ["", "f" * 32, 1, None])
def test_results_without_a_manifest_are_not_reused(journal, manifest):
    line = Result(task_key(KEY, 0), KEY, 0, "ok", metrics={"accuracy": 0.1}).to_json()
    line = {name: value for name, value in line.items() if name != "manifest"}
    journal.append("result", **line)
    journal.append("result", **(line if manifest is None else {**line, "manifest": manifest}))
    cell = recalled(journal)
    assert (cell.missing, cell.changed) == ([0, 1, 2], UNKNOWN)
    assert out_of_date([cell]) == "dependencies unknown: 1 cell"


def test_a_damaged_manifest_is_unknown(journal, edit):
    manifest = compute(journal, 0.1)
    other = Journal(journal.path.with_name("other.jsonl"))
    other.append("manifest", digest=manifest.digest, content={"modules": 1})
    for line in journal.read("result"):
        other.append(line.pop("kind"), **line)
    assert recalled(other).changed == UNKNOWN


def test_results_that_are_out_of_date_are_shown_where_they_are_wanted(journal, edit):
    compute(journal, 0.1)
    edit("two")
    compute(journal, 0.2, splits=[0])
    edit("three")
    cell = recalled(journal, also_outdated=True)
    assert accuracies(cell) == [0.2, 0.1, 0.1]
    assert cell.outdated == "the environment variable LAB_CODE has another value"
    edit("one")
    # a valid one counts more than a newer one
    cell = recalled(journal, also_outdated=True)
    assert (accuracies(cell), cell.outdated) == ([0.1] * 3, "")


def test_further_splits_that_are_out_of_date_belong_to_no_valid_cell(journal, edit):
    compute(journal, 0.1, splits=range(20))
    edit("two")
    compute(journal, 0.2)
    cell = recalled(journal, also_outdated=True)
    assert (accuracies(cell), cell.n_splits, cell.outdated) == ([0.2] * 3, 3, "")
    edit("three")
    assert recalled(journal, also_outdated=True).n_splits == 20


def test_only_a_few_of_many_changes_are_named(journal, monkeypatch):
    names = [f"LAB_{number}" for number in range(5)]
    manifest = Manifest(variables=dict.fromkeys(names, "otherwise"))
    journal.keep_manifest(manifest)
    assert Validity(journal, Present()).explain(manifest.digest).count(";") == 2


def test_predictions_of_other_code_have_another_address(journal, edit):
    one = compute(journal, 0.1)
    first = recalled(journal).results[0]
    edit("two")
    compute(journal, 0.2)
    second = recalled(journal).results[0]
    assert first.address == f"{first.task_key}-{one.digest}" != second.address
    assert dataclasses.replace(first, manifest="").address == first.task_key
    for result in (first, second):
        journal.save_blob(result.address, "predictions", str(result.metrics).encode())
    assert journal.blob(first.address, "predictions", 100) == b"{'accuracy': 0.1}"


def test_a_cell_has_a_version_for_each_combination_of_manifests(journal, edit):
    versions = {recalled(journal).version}
    assert versions == {KEY}
    digests = [compute(journal, 0.1).digest]
    versions.add(recalled(journal).version)
    assert versions == {KEY, f"{KEY}-{digests[0][:16]}"}
    edit("two")
    assert recalled(journal).version == KEY
    compute(journal, 0.2, splits=[0])
    versions.add(recalled(journal).version)
    assert len(versions) == 3
    # results of two versions of code, of which one is out of date
    mixed = recalled(journal, also_outdated=True)
    assert mixed.version not in versions
    assert mixed.version == recalled(journal, also_outdated=True).version
    mixed.results[1] = dataclasses.replace(mixed.results[1], manifest="")
    assert mixed.version == KEY


def test_an_added_metric_is_of_the_code_that_is_there_now(journal, edit):
    compute(journal, 0.1, ended_ms=7)
    own = Manifest(variables={"LAB_METRIC": None})
    journal.keep_manifest(own)
    added = {"task_key": task_key(KEY, 0), "value": 0.5, "ended_ms": 7}
    journal.append("metric", **added, name="mine", code="c", manifest=own.digest)
    journal.append("metric", **added, name="unknown", code="c")
    journal.append("metric", **added, name="built_in", code="")

    def metrics():
        cell = recalled(journal)
        codes = {"mine": "c", "unknown": "c", "built_in": ""}
        recall_added([cell], Validity(journal, Present()), codes)
        return set(cell.results[0].metrics) - {"accuracy"}

    assert metrics() == {"mine", "built_in"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_METRIC", "set")
        assert metrics() == {"built_in"}
    # those of another result of the task are not
    compute(journal, 0.1, ended_ms=8)
    assert metrics() == set()


def test_what_is_edited_while_it_is_computed_is_marked_at_the_end(monkeypatch):
    monkeypatch.setenv("LAB_CODE", "one")
    plan = SuitePlan(Suite("lab", ()), Registry(), machine_id())
    made = Manifest(variables={"LAB_CODE": variable("LAB_CODE")})
    plan.journal.keep_manifest(made)
    ref = Ref("x")
    cells = [PlannedCell(Cell(ref, ref, ref, Protocol()), "k", None, 1) for _ in range(2)]
    cells[0].results[0] = Result("t", "k", 0, "ok", manifest=made.digest)
    assert plan.recheck(cells) == ""
    monkeypatch.setenv("LAB_CODE", "two")
    why = "the environment variable LAB_CODE has another value"
    assert plan.recheck(cells) == f"out of date already, run the suite again: {why}: 1 cell"
    assert [cell.outdated for cell in cells] == [why, ""]
