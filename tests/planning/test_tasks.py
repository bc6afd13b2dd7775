"""Tasks of datasets decide which methods apply, and the metric of a suite."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import FunctionTransformer

from kbench import Dataset, DatasetSource, FeatureMap, Learner, SuiteError
from kbench.planning.cells import cells
from kbench.planning.planner import Planner
from kbench.planning.suite_file import read
from kbench.planning.tasks import set_metric, task_rows
from kbench.records import DatasetFacts, Metric, Problem, Protocol
from kbench.registry.registry import build

CLASSES = DatasetFacts("a" * 64, name="iris")
NUMBERS = DatasetFacts("b" * 64, name="yacht", task="regression")


def load():
    return Dataset("d", np.eye(3), np.array([0, 1, 0]))


@pytest.fixture
def registry(plugin_of):
    return build(
        [
            plugin_of(
                kbench_datasets=[DatasetSource("iris", load), DatasetSource("yacht", load)],
                kbench_feature_maps=[
                    FeatureMap("plain", FunctionTransformer),
                    FeatureMap("of-classes", FunctionTransformer, tasks=("classification",)),
                ],
                kbench_learners=[
                    Learner("classifier", LogisticRegression),
                    Learner("regressor", regressor=Ridge),
                    Learner("both", LogisticRegression, Ridge),
                ],
            )
        ]
    )


def suite(registry, datasets, maps, learners, more=""):
    text = f"datasets = {datasets}\nfeature_maps = {maps}\nlearners = {learners}\n{more}"
    return read(text.replace("'", '"'), "s", registry)


def test_records_say_for_which_tasks_they_are():
    assert Learner("a", LogisticRegression).tasks == ("classification",)
    assert Learner("a", regressor=Ridge).tasks == ("regression",)
    both = Learner("a", LogisticRegression, Ridge)
    assert both.tasks == ("classification", "regression")
    assert (both.estimator("classification"), both.estimator("regression")) == (
        LogisticRegression,
        Ridge,
    )


@pytest.mark.parametrize(
    ("facts", "metric"),
    [(CLASSES, Metric("accuracy")), (NUMBERS, Metric("rmse_standardized", "lower"))],
)
def test_the_task_decides_the_metric(registry, facts, metric):
    chosen = set_metric(suite(registry, [facts.name], ["plain"], ["both"]), {"d": facts}, registry)
    assert chosen.metric == chosen.compared == metric


def test_a_suite_keeps_its_own_metric(registry):
    lists = 'datasets = ["yacht"]\nfeature_maps = ["plain"]\nlearners = ["both"]'
    given = read(f'metric = "mae"\n{lists}', "s", registry)
    assert set_metric(given, {"yacht": NUMBERS}, registry).metric == Metric("mae", "lower")


@pytest.mark.parametrize(
    ("facts", "labels"),
    [
        (CLASSES, ["both (ovr)", "mine"]),
        (NUMBERS, ["both", "mine"]),
        (None, ["both (ovr)", "mine"]),
    ],
)
def test_labels_show_the_scheme_of_classifiers_only(registry, facts, labels):
    registry._records["learner"]["both"] = Learner(
        "both", LogisticRegression, Ridge, multiclass="ovr"
    )
    lines = '["both", {name = "both", label = "mine"}]'
    chosen = set_metric(suite(registry, ["yacht"], ["plain"], lines), {"d": facts}, registry)
    assert [ref.label for ref in chosen.blocks[0].learners] == labels


def test_labels_that_are_equal_for_numbers_only_are_refused(registry):
    registry._records["learner"]["both"] = Learner(
        "both", LogisticRegression, Ridge, multiclass="ovr"
    )
    lines = '["both", {name = "both", label = "both"}]'
    given = suite(registry, ["yacht"], ["plain"], lines)
    with pytest.raises(SuiteError, match=r"'plain \+ both on yacht' twice"):
        set_metric(given, {"yacht": NUMBERS}, registry)


def test_nothing_is_decided_before_any_dataset_is_known(registry):
    given = suite(registry, ["yacht"], ["of-classes"], ["classifier"])
    problem = Problem("unavailable", "no server")
    for facts in ({}, {"yacht": None}, {"yacht": problem}):
        assert set_metric(given, facts, registry).metric is None


def test_one_message_names_all_that_do_not_go_together(registry):
    given = suite(
        registry, ["iris", "yacht"], ["plain", "of-classes"], ["classifier", "regressor", "both"]
    )
    with pytest.raises(SuiteError) as raised:
        set_metric(given, {"iris": CLASSES, "yacht": NUMBERS}, registry)
    assert str(raised.value) == (
        "these do not go together: learner 'regressor' (regression) with 'iris' "
        "(classification); learner 'classifier' (classification) with 'yacht' (regression); "
        "feature map 'of-classes' (classification) with 'yacht' (regression)"
    )


def test_datasets_of_two_tasks_have_no_metric_in_common(registry):
    given = suite(registry, ["iris", "yacht"], ["plain"], ["both"])
    with pytest.raises(SuiteError, match="'iris' is classification and 'yacht' is regression"):
        set_metric(given, {"iris": CLASSES, "yacht": NUMBERS}, registry)


@pytest.mark.parametrize("line", ['metric = "accuracy"', '[protocol]\nsearch_metric = "log_loss"'])
def test_a_metric_of_the_other_task_is_refused(registry, line):
    lists = 'datasets = ["yacht"]\nfeature_maps = ["plain"]\nlearners = ["both"]\n'
    text = f"{line}\n{lists}" if line.startswith("metric") else f"{lists}{line}"
    with pytest.raises(SuiteError, match="is not for regression; available: rmse"):
        set_metric(read(text, "s", registry), {"yacht": NUMBERS}, registry)


def test_the_estimator_of_the_task_decides_the_key(registry):
    """A classifier that changes computes no regression again."""

    def keys(learner):
        changed = replace(registry)
        changed._records["learner"]["both"] = learner
        planner = Planner(changed, None)
        (cell,) = cells(suite(changed, ["yacht"], ["plain"], ["both"]), changed)
        return {facts.task: planner.cell_key(cell, facts) for facts in (CLASSES, NUMBERS)}

    before = keys(Learner("both", LogisticRegression, Ridge))
    after = keys(Learner("both", FunctionTransformer, Ridge))
    assert before["regression"] == after["regression"]
    assert before["classification"] != after["classification"]


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (
            "cv = 'holdout'\ntrain_size = 140",
            "iris has 150 rows; train_size 140 and test_size 0.3 (the default: 45 rows) need 185",
        ),
        (
            "cv = 'ordered'\ntest_size = 150",
            "iris has 150 rows; train_size (all other rows) and test_size 150 need 151",
        ),
        ("n_folds = 151", "iris: 151 folds need at least as many rows, got 150"),
    ],
)
def test_splits_that_the_rows_do_not_allow_are_refused_with_the_rows(registry, protocol, words):
    given = suite(registry, ["iris"], ["plain"], ["classifier"], f"[protocol]\n{protocol}")
    with pytest.raises(SuiteError) as refused:
        set_metric(given, {"iris": replace(CLASSES, n_samples=150)}, registry)
    assert refused.value.problems == (words,)
    set_metric(given, {"iris": replace(CLASSES, n_samples=1500)}, registry)


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [
        ({}, (800, 200)),
        ({"n_folds": 3}, (666, 334)),
        ({"max_train_rows": 500}, (500, 200)),
        ({"max_train_rows": 5000}, (800, 200)),
        ({"cv": "holdout"}, (700, 300)),
        ({"cv": "ordered", "test_size": 100}, (900, 100)),
        ({"cv": "ordered", "train_size": 0.5, "test_size": 100}, (500, 100)),
        ({"cv": "holdout", "max_train_rows": 10}, (10, 300)),
        ({"cv": "group_duplicates"}, (800, 200)),
        ({"cv": "official"}, (800, 200)),
    ],
)
def test_rows_of_a_task_are_those_of_its_split(sizes, rows):
    assert task_rows(1000, Protocol(**sizes)) == rows
