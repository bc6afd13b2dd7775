"""The suite of a limited time: the same methods on nested samples, with the same splits."""

import pytest

from kbench.errors import SuiteError
from kbench.execution.sandbox import Sandbox
from kbench.planning.cells import cell_problems, cells
from kbench.planning.component_refs import relabel_for_task
from kbench.planning.planned import PlannedCell
from kbench.records import DatasetFacts, Ref
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_tables.recommend import user_data
from kbench_tables.recommend.timed_suite import (
    apply_settings,
    parse_settings,
    rounds_for,
    scale_setting,
)
from kbench_tables.recommend.user_data import start_parents, suite_for

FILE = Ref("csv", {"path": "mine.csv", "target": "y"}, "mine")


@pytest.fixture(scope="module")
def registry():
    return build(list_plugins())


def planned(registry, n, **more):
    facts = DatasetFacts("c" * 64, n_samples=n, n_features=5, **more)
    rounds = rounds_for(FILE, facts, registry)
    assert not cell_problems(rounds.suite, registry)
    return rounds, cells(rounds.suite, registry)


def rows_of(found, learner):
    return [c.protocol.max_train_rows for c in found if c.learner.name == learner]


def test_samples_grow_up_to_all_rows(registry):
    rounds, found = planned(registry, 100_000)
    assert [c.protocol.max_train_rows for c in found if c.learner.name == "dummy-majority"] == [
        1250,
        5000,
        20_000,
        None,
    ]
    assert {c.dataset.label for c in found} == {
        "mine (1,250 rows)",
        "mine (5,000 rows)",
        "mine (20,000 rows)",
        "mine",
    }
    # a kernel machine where there are few rows, and a width for each number of rows
    assert rows_of(found, "kernel-svm") == [1250, 5000]
    widths = {
        c.protocol.max_train_rows: c.feature_map.params["n_components"]
        for c in found
        if c.feature_map.label == "rff"
    }
    assert widths == {1250: 312, 5000: 1000, 20_000: 1000, None: 1000}
    assert ("identity", "gradient-boosting") in rounds.first
    assert ("identity", "kernel-svm (ovo)") not in rounds.first


def test_all_cells_have_the_same_test_rows(registry):
    for n, splits in ((100_000, ("holdout", 20_000)), (10_000, ("stratified", 0.3))):
        _, found = planned(registry, n)
        assert {(c.protocol.cv, c.protocol.test_size) for c in found} == {splits}
        assert len({c.protocol.n_folds for c in found}) == 1
    _, found = planned(registry, 2_000_000)
    assert {c.protocol.test_size for c in found} == {50_000}


def test_splits_of_a_column_are_kept(registry):
    _, found = planned(registry, 100_000, n_splits=1)
    assert {c.protocol.cv for c in found} == {"official"}


def test_a_small_table_has_no_samples(registry, monkeypatch):
    monkeypatch.setattr(user_data, "is_skewed", lambda facts: False)
    _, found = planned(registry, 600)
    assert {c.protocol.max_train_rows for c in found} == {None}
    _, found = planned(registry, 600, task="regression", n_classes=0)
    assert ("identity", "dummy-mean") in {(c.feature_map.name, c.learner.name) for c in found}


def test_logarithms_of_a_skewed_target_are_candidates(registry, monkeypatch):
    monkeypatch.setattr(user_data, "is_skewed", lambda facts: True)
    rounds, found = planned(registry, 30_000, task="regression", n_classes=0)
    logs = {c.method for c in found if c.protocol.target_scale == "log"}
    assert logs == {
        ("identity", "ridge (log target)"),
        ("nystroem", "ridge (log target)"),
        ("identity", "gradient-boosting (log target)"),
        ("identity", "gradient-boosting (log target) (3 candidates)"),
    }
    assert logs == {c.method for c in found if "log" in c.learner.label}
    assert len(logs & set(rounds.first)) == 2
    (full,) = [c for c in found if c.method == min(logs) and not c.protocol.max_train_rows]
    assert scale_setting(PlannedCell(full, "key", None, 1)) == {"protocol.target_scale": "log"}
    facts = DatasetFacts("c" * 64, n_samples=600, n_features=5, task="regression", n_classes=0)
    suite = suite_for(FILE, facts, registry, [], ["ridge"])
    labels = [learner.label for block in suite.blocks for learner in block.learners]
    assert set(labels) == {"ridge"}  # a named learner has the scale of its setting
    suite = apply_settings(suite, parse_settings(["protocol.target_scale=log"]), registry)
    assert {block.protocol.target_scale for block in suite.blocks} == {"log"}


def test_methods_are_labelled_as_a_run_labels_them(registry, monkeypatch):
    monkeypatch.setattr(user_data, "is_skewed", lambda facts: False)
    rounds, found = planned(registry, 30_000, task="regression", n_classes=0)
    assert {("identity", "ridge"), ("nystroem (narrow)", "ridge")} < set(rounds.first)
    for cell in (*found, *rounds.on_all_rows):
        assert cell.learner == relabel_for_task(cell.learner, "regression", registry)
    rounds, _ = planned(registry, 30_000)
    assert ("identity", "ridge (ovr)") in rounds.first


def test_the_process_of_the_tasks_starts_before_the_task_is_known(registry, monkeypatch):
    started = []
    monkeypatch.setattr(Sandbox, "warm", lambda sandbox: started.append(sandbox))
    parents = start_parents(registry)
    with parents.using() as sandbox:
        assert started == [sandbox]
    learners = {module for module in parents.preload[()] if module.startswith("kbench_learners")}
    assert {"kbench_learners._ridge", "kbench_learners._linear_svm"} < learners
    # what a task imports that its parent lacks takes the time of each task
    assert "kbench_nbcs._map" in parents.preload[()]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_boosting_has_few_bins_where_there_are_many_columns(registry, task, monkeypatch):
    monkeypatch.setattr(user_data, "is_skewed", lambda facts: True)
    for n_features, is_wide in ((1999, False), (2000, True)):
        facts = DatasetFacts("c" * 64, n_samples=2000, n_features=n_features, task=task)
        rounds = rounds_for(FILE, facts, registry)
        label = "gradient-boosting" + " (16 bins)" * is_wide
        assert {("identity", label), ("identity", f"{label} (8 candidates)")} < {*rounds.first}
        ridge = "ridge (ovr)" if task == "classification" else "ridge"
        assert ("nystroem (narrow)", ridge) in rounds.first
        planned = cells(rounds.suite, registry)
        boosted = [c.learner for c in planned if c.learner.name == "gradient-boosting"]
        assert {ref.params.get("max_bins") for ref in boosted} == {16 if is_wide else None}
        n_sizes = len({block.protocol.max_train_rows for block in rounds.suite.blocks})
        n_boosted = (2 if task == "classification" else 3) + 2 * (not is_wide)  # small trees
        assert len(boosted) == n_boosted * n_sizes
        all_rows = [c.learner for c in rounds.on_all_rows if c.learner.name == "gradient-boosting"]
        assert label in [ref.label for ref in all_rows]
        maps = [c.feature_map.name for c in planned]
        learners = [c.learner.name for c in planned]
        kernel = "kernel-svm" if task == "classification" else "kernel-ridge"
        is_log = f"{label} (log target)" in [ref.label for ref in boosted]
        assert is_log is (task == "regression")
        assert learners.index("gradient-boosting") < learners.index(kernel)
        assert (maps.index("additive-chi2") > learners.index(kernel)) is is_wide


def test_settings_replace_a_search(registry):
    facts = DatasetFacts("c" * 64, n_samples=600, n_features=5)
    suite = suite_for(FILE, facts, registry, ["rff"], ["ridge"])
    settings = parse_settings(["learner.alpha=0.5", "feature_map.n_components=20"])
    (block,) = apply_settings(suite, settings, registry).blocks
    assert block.learners[0].params["alpha"] == 0.5
    assert block.feature_maps[0].params["n_components"] == 20
    assert relabel_for_task(block.learners[0], "classification", registry).label == "ridge (ovr)"
    assert relabel_for_task(block.learners[0], "regression", registry).label == "ridge"
    assert apply_settings(suite, {}, registry) == suite
    with pytest.raises(SuiteError, match=r"alfa.*did you mean 'alpha'"):
        apply_settings(suite, parse_settings(["learner.alfa=1"]), registry)
    for wrong in (
        "protocol.target_scale=sqrt",
        "alpha=1",
        "learner.=1",
        "learner.alpha",
        "map.x=1",
    ):
        with pytest.raises(
            SuiteError, match=r"`params` must be feature_map\.NAME=VALUE or learner"
        ):
            parse_settings([wrong])
