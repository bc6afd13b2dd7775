"""The decision threshold of two classes comes from out-of-fold scores of the training set."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import f1_score, matthews_corrcoef
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from kbench import Dataset, Protocol
from kbench.errors import PluginError
from kbench.evaluation.checked_predictions import Predictions
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method
from kbench.evaluation.metrics._classification import scores_of_classes
from kbench.evaluation.specs import EstimatorSpec
from kbench.evaluation.split_view import assign
from kbench.records.canonical import to_json
from kbench_learners import LogisticClassifier, PathRidgeClassifier
from kbench_tables.export.pipeline import NamedClasses

IDENTITY = EstimatorSpec(FunctionTransformer)
RIDGE = Method(IDENTITY, EstimatorSpec(PathRidgeClassifier))


def rare(n, share, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + rng.normal(0, 0.7, n)
    return Dataset("rare", X, (score > np.quantile(score, 1 - share)).astype(int))


def predicted(data, method, metric):
    protocol = Protocol(threshold_metric=metric)
    return evaluate_split(data, 0, method, protocol).predictions.predicted


@pytest.mark.parametrize("learner", [PathRidgeClassifier, LogisticClassifier])
@pytest.mark.parametrize("metric", ["f1_macro", "mcc"])
@pytest.mark.parametrize("share", [0.08, 0.92])
def test_a_threshold_makes_the_metric_better(learner, metric, share):
    data, method = rare(1500, share), Method(IDENTITY, EstimatorSpec(learner))
    before, after = (
        evaluate_split(data, 0, method, Protocol(threshold_metric=name))
        for name in ("none", metric)
    )
    assert after.metrics[metric] > before.metrics[metric] + 0.05
    assert after.metrics["roc_auc"] == before.metrics["roc_auc"]
    truth = data.y[assign(data, Protocol(), 0).visible.test]
    labels = after.predictions.predicted
    score = {"f1_macro": f1_score(truth, labels, average="macro")}.get(
        metric, matthews_corrcoef(truth, labels)
    )
    assert after.metrics[metric] == pytest.approx(score, abs=1e-12)


def test_few_rows_of_a_class_keep_its_frequency():
    data = rare(900, 0.05)
    assert (data.y == 1).sum() == 45
    shares = [predicted(data, RIDGE, name).mean() for name in ("none", "f1_macro")]
    assert shares[0] == 0
    assert shares[1] == pytest.approx(0.05, abs=0.03)


@pytest.mark.parametrize(("n", "rarer", "seed"), [(3000, 0, 0), (600, 1, 2), (600, 0, 0)])
def test_many_rows_of_one_score_stay_in_their_class(n, rarer, seed):
    rng = np.random.default_rng(seed)
    is_rare = rng.random(n) < 0.06
    X = rng.normal(size=(n, 2)) * 0.1 + is_rare[:, None]
    if n < 1000:  # some of the rare class are among the others
        X[is_rare & (rng.random(n) < 0.3)] -= 1
    data = Dataset("tree", X, (is_rare == rarer).astype(int))
    method = Method(IDENTITY, EstimatorSpec(DecisionTreeClassifier))
    labels = {name: predicted(data, method, name) for name in ("none", "f1_macro")}
    assert (labels["f1_macro"] != labels["none"]).mean() < 0.02


def test_the_larger_of_two_decision_values_decides_as_in_the_evaluation():
    margins = np.array([-3.0, -1.0, 0.0, 2.0])
    learner = SimpleNamespace(
        classes_=[0, 1], decision_function=lambda X: np.stack([1 - X, 1 + X], axis=1)
    )
    model = NamedClasses(names=["no", "yes"])
    model.estimator_, model.threshold_ = learner, -2.5
    found = scores_of_classes(
        np.arange(2), Predictions(np.zeros(4), decision=learner.decision_function(margins))
    )
    assert model.predict(margins).tolist() == ["no", "yes", "yes", "yes"]
    assert (found[:, 1] >= -2.5).tolist() == [False, True, True, True]


def test_labels_without_a_ranking_or_of_more_classes_stay():
    constant = Method(IDENTITY, EstimatorSpec(DummyClassifier))
    assert not predicted(rare(600, 0.2), constant, "f1_macro").any()
    data = rare(600, 0.2)
    three = Dataset("three", data.X, data.y + (data.X[:, 1] > 1))
    none, f1 = (predicted(three, RIDGE, name) for name in ("none", "f1_macro"))
    assert (none == f1).all()


class WithoutScores(LogisticClassifier):
    """Its probabilities are not finite on the inner folds, which have fewer rows."""

    def fit(self, X, y):
        self.is_inner = len(y) < 300
        return super().fit(X, y)

    def predict_proba(self, X):
        return super().predict_proba(X) * (np.nan if self.is_inner else 1.0)


def test_scores_that_are_not_finite_are_an_error():
    method = Method(IDENTITY, EstimatorSpec(WithoutScores, label="learner 'odd'"))
    with pytest.raises(PluginError, match="the scores of learner 'odd' returned the value nan"):
        predicted(rare(400, 0.3), method, "f1_macro")


def test_keys_of_earlier_results_stay():
    assert "threshold_metric" not in to_json(Protocol())
    assert to_json(Protocol(threshold_metric="mcc"))["threshold_metric"] == "mcc"
