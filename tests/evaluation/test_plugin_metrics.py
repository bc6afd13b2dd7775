"""Metrics of plugins get the arguments of scikit-learn's metrics, and return one number."""

import numpy as np
import pytest
from sklearn import metrics

from kbench import Metric, PluginError
from kbench.evaluation.checked_predictions import Predictions
from kbench.evaluation.metrics import Criterion
from kbench.evaluation.targets import Truth

Y = np.array([0, 2, 2])
CLASSES = np.array([0, 2])
PROBABILITIES = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])


def compute(function, needs="predictions", truth=None, n_classes=3, **given):
    metric = Metric("m", "lower", "d", needs=needs, function=function)
    truth = truth or Truth(Y, "classification", CLASSES)
    given = Predictions(given.pop("predicted", np.array([0, 2, 0])), **given)
    return Criterion.from_plugin(metric, function, n_classes).compute(truth, given)


def test_predictions_are_labels():
    assert compute(metrics.accuracy_score) == pytest.approx(2 / 3)


def test_probabilities_have_a_column_for_each_class_of_the_dataset():
    seen = []

    def function(y, p):
        seen.append(p)
        return metrics.log_loss(y, p, labels=[0, 1, 2])

    value = compute(function, "probabilities", probabilities=PROBABILITIES)
    np.testing.assert_array_equal(seen[0][:, [0, 2]], PROBABILITIES)
    np.testing.assert_array_equal(seen[0][:, 1], 0.0)
    assert value == pytest.approx(-np.log([0.9, 0.8, 0.6]).mean())


@pytest.mark.parametrize("given", ["probabilities", "decision"])
def test_scores_of_two_classes_are_one_column(given):
    truth = Truth(np.array([0, 1, 1]), "classification", np.arange(2))
    scores = {"probabilities": PROBABILITIES, "decision": PROBABILITIES[:, 1] - 0.5}[given]
    value = compute(metrics.roc_auc_score, "scores", truth, 2, predicted=truth.y, **{given: scores})
    assert value == 1.0


def test_scores_of_pairs_are_none():
    truth = Truth(np.array([0, 1, 2, 3]), "classification", np.arange(4))
    decision = np.zeros((4, 6))
    assert compute(len, "scores", truth, 4, predicted=truth.y, decision=decision) is None


def test_a_distribution_is_mean_and_deviation():
    truth = Truth(np.array([1.0, 2.0]), "regression", np.empty(0))
    value = compute(
        lambda y, mean, sd: np.mean((y - mean) / sd),
        "distribution",
        truth,
        0,
        predicted=np.array([0.0, 0.0]),
        sd=np.array([1.0, 2.0]),
    )
    assert value == 1.0


def test_weights_are_passed_on_and_rows_without_weight_left_out():
    truth = Truth(Y, "classification", CLASSES, weight=np.array([1.0, 0.0, 3.0]))
    assert compute(metrics.accuracy_score, truth=truth) == 0.25
    with pytest.raises(PluginError, match="metric 'm' has no parameter sample_weight"):
        compute(lambda y, predicted: 0.5, truth=truth)


def raising(y, predicted):
    raise ZeroDivisionError("by zero")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (raising, "metric 'm' raised ZeroDivisionError: by zero"),
        (lambda y, p: float("nan"), "metric 'm' returned nan; expected one finite number"),
        (lambda y, p: np.inf, "returned inf"),
        (lambda y, p: np.zeros(1), "returned a ndarray; expected one"),
        (lambda y, p: None, "returned a NoneType"),
        (lambda y, p: "0.5", "returned a str"),
        (lambda y, p: True, "returned a bool"),
        (lambda y, p: 1j, "returned a complex"),
    ],
)
def test_what_is_not_one_finite_number_is_refused(function, words):
    with pytest.raises(PluginError, match=words):
        compute(function)


@pytest.mark.parametrize("value", [np.float32(0.5), np.array(0.5), 0.5])
def test_numbers_of_numpy_are_numbers(value):
    assert compute(lambda y, p: value) == 0.5


def test_a_function_cannot_change_the_truth():
    def spoil(y, predicted):
        y[:] = 9
        predicted[:] = 9
        return 0.0

    truth, predicted = Truth(Y.copy(), "classification", CLASSES), np.array([0, 2, 0])
    compute(spoil, truth=truth, predicted=predicted)
    assert truth.y.tolist() == [0, 2, 2]
    assert predicted.tolist() == [0, 2, 0]


def test_what_a_metric_raises_is_one_line():
    def function(y_true, predicted):
        raise RuntimeError("no\n  way")

    with pytest.raises(PluginError, match=r"^metric 'm' raised RuntimeError: no way$"):
        compute(function)
