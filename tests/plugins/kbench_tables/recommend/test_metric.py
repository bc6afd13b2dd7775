"""The metric by which methods are compared on a user's file."""

import pytest

from kbench import Cell, Protocol, Ref, SuiteError
from kbench.records import DatasetFacts
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_tables.recommend.metric import comparison, list_shares


@pytest.fixture(scope="module")
def registry():
    return build(list_plugins())


def facts(*counts, task="classification"):
    names = tuple(f"k{i}" for i in range(len(counts)))
    return DatasetFacts(
        "c", task=task, n_samples=sum(counts), n_classes=len(counts), class_counts=counts,
        target_names=names,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((50, 50), None),
        ((80, 20), None),  # 0.4 / 2 of the rows
        ((81, 19), "balanced_accuracy"),
        ((953, 47), "balanced_accuracy"),
        ((40, 46, 14), None),
        ((40, 47, 13), "balanced_accuracy"),
    ],
)
def test_a_rare_class_changes_the_default(registry, counts, expected):
    found = comparison(None, False, facts(*counts), registry)
    assert (found.metric and found.metric.name) == expected
    assert ("`metric='accuracy'`" in found.sentence) == (expected is not None)


def test_the_text_says_why(registry):
    sentence = comparison(None, False, facts(953, 47), registry).sentence
    assert "the rarest class, 'k1', has 4.7 % of the rows, less than 0.4/2 = 20 %" in sentence
    assert "ROC AUC next to it" in sentence


@pytest.mark.parametrize(
    ("name", "counts", "searched", "calibration"),
    [
        ("accuracy", (50, 50), "accuracy", "none"),
        # the threshold is optimised after the search
        ("f1_macro", (50, 50), "roc_auc", "none"),
        ("f1_macro", (50, 50, 50), "f1_macro", "none"),
        ("roc_auc", (50, 50), "roc_auc", "none"),
        # decision values of pairs of classes are not scores of classes
        ("roc_auc", (50, 50, 50), None, "sigmoid"),
        ("average_precision", (50, 50), "average_precision", "none"),
        ("log_loss", (50, 50), None, "sigmoid"),
    ],
)
def test_the_search_uses_the_metric_where_all_learners_have_it(
    registry, name, counts, searched, calibration
):
    found = comparison(name, False, facts(*counts), registry)
    protocol = found.protocol(Protocol(), len(counts))
    assert found.metric.name == name
    assert (protocol.search_metric, protocol.calibration) == (searched, calibration)


def test_ranks_decide_a_search_with_a_rare_class(registry):
    protocol = comparison(None, False, facts(95, 5), registry).protocol(Protocol(), 2)
    assert protocol.search_metric == "roc_auc"
    protocol = comparison(None, False, facts(95, 95, 5), registry).protocol(Protocol(), 3)
    assert protocol.search_metric == "balanced_accuracy"


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((50, 50), {"ridge": {}, "linear-svm": {}, "knn": {}}),
        (
            (95, 5),
            {"ridge": {"balanced": True}, "linear-svm": {"balanced": True}, "knn": {}},
        ),
    ],
)
def test_a_rare_class_has_the_weight_of_the_others(registry, counts, expected):
    cells = [
        Cell(Ref("d"), Ref("identity"), Ref(name), Protocol())
        for name in ("ridge", "linear-svm", "knn")
    ]
    weighted = comparison(None, False, facts(*counts), registry).weigh(cells, registry)
    assert {cell.learner.name: dict(cell.learner.params) for cell in weighted} == expected
    given = Cell(Ref("d"), Ref("identity"), Ref("ridge", {"balanced": False}), Protocol())
    assert comparison(None, False, facts(95, 5), registry).weigh([given], registry) == [given]


def test_probabilities_are_calibrated_where_they_are_asked_for(registry):
    found = comparison(None, True, facts(50, 50), registry)
    assert found.protocol(Protocol(), 2).calibration == "sigmoid"
    with pytest.raises(SuiteError, match="`probabilities` is for classification"):
        comparison(None, True, facts(task="regression"), registry)


@pytest.mark.parametrize(
    ("name", "task", "words"),
    [
        ("acuracy", "classification", "no metric is named 'acuracy'; did you mean 'accuracy'"),
        (
            "rmse",
            "classification",
            "`metric='rmse'` is not for classification; available: accuracy",
        ),
        ("accuracy", "regression", "`metric='accuracy'` is not for regression; available: "),
        ("ece", "classification", "never for ranking"),
    ],
)
def test_other_metrics_are_refused(registry, name, task, words):
    with pytest.raises(SuiteError) as error:
        comparison(name, False, facts(50, 50, task=task), registry)
    assert words in str(error.value)


def test_shares_of_many_classes_are_those_of_the_first_and_the_last():
    text = list_shares(facts(*range(1, 11)))
    assert text.startswith("'k9' 18.2 %, 'k8' 16.4 %, ")
    assert text.endswith("4 others between, 'k0' 1.82 %")


def test_a_metric_of_labels_gets_a_threshold(registry):
    for name in ("f1_macro", "mcc"):
        found = comparison(name, False, facts(95, 5), registry)
        protocol = found.protocol(Protocol(), 2)
        assert (protocol.threshold_metric, protocol.search_metric) == (name, "roc_auc")
        # with few rows of a class it is not the best one
        words = f"the decision threshold for {found.metric.words} comes from out-of-fold scores"
        assert found.sentence == words
    several = comparison("f1_macro", False, facts(90, 5, 5), registry)
    assert several.protocol(Protocol(), 3).threshold_metric == "none"
    assert not several.sentence
