"""The conformance kit finds what is wrong with a metric, and passes metrics of scikit-learn."""

import itertools

import numpy as np
import pytest
from sklearn import metrics

from kbench import Metric
from tests.support.conformance import failures


def plugin(plugin_of, function, **fields):
    given = {"better": "lower", "definition": "d", "task": "classification", **fields}
    return plugin_of(kbench_metrics=[Metric("ours", function=function, **given)])


def crps(y, mean, sd):
    return float(np.mean(np.abs(y - mean)))


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        (metrics.hamming_loss, {}),
        (metrics.cohen_kappa_score, {"better": "higher"}),
        (metrics.log_loss, {"needs": "probabilities"}),
        (metrics.median_absolute_error, {"task": "regression"}),
        (crps, {"task": "regression", "needs": "distribution"}),
    ],
)
def test_metrics_of_scikit_learn_conform(plugin_of, function, fields):
    assert failures(plugin(plugin_of, function, **fields)) == {}


calls = itertools.count()


@pytest.mark.parametrize(
    ("function", "check", "words"),
    [
        (lambda y, p: float("nan"), "check_number", "returned nan; expected one finite number"),
        (lambda y, p: p, "check_number", "returned a ndarray"),
        (lambda y, p: 1 / 0, "check_number", "raised ZeroDivisionError"),
        (metrics.accuracy_score, "check_direction", "change `better` or the function"),
        (
            lambda y, p: float((y != p) @ np.arange(len(y))),
            "check_order_of_rows",
            "for the same rows in another order",
        ),
        (lambda y, p: float(next(calls)), "check_order_of_rows", "on chance"),
        (
            lambda y, p, sample_weight=None: 0.0 if sample_weight is None else 1.0,
            "check_weights",
            "sample_weight=1 for all rows",
        ),
    ],
)
def test_a_defect_is_found(plugin_of, function, check, words):
    found = failures(plugin(plugin_of, function))
    assert words in found[check], found
