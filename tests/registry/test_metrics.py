"""Metrics of plugins: their names, what they must have, and how they cross processes."""

import json
from dataclasses import replace

import pytest

from kbench import Dataset, Metric
from kbench.evaluation.definitions import METRICS
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench.records import RESERVED, Protocol
from kbench.registry.callables import Reference
from kbench.registry.collecting import collect
from kbench.registry.described import describe_records, read_records
from kbench.registry.installed import Plugin
from kbench.registry.registry import build

GINI = Metric(
    "gini",
    "lower",
    "Gini coefficient",
    "classification",
    "scores",
    function="collections:Counter",
    depends=["numpy.linalg"],
    env_vars=["MODE"],
)


def reason(plugin_of, metric):
    return build([plugin_of(kbench_metrics=[metric])]).plugins[0].reason


def test_a_metric_is_found_by_its_name(plugin_of):
    registry = build([plugin_of(kbench_metrics=[GINI])])
    assert registry.get("metric", "gini") is GINI
    assert not registry.plugins[0].reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "Gini"}, "names of metrics are lower case letters, digits and underscores"),
        ({"name": "my-gini"}, "lower case letters, digits and underscores"),
        ({"name": "a" * 101}, "more than 100 characters"),
        ({"name": "accuracy"}, "'accuracy': kbench reports a number of that name"),
        ({"name": "default_accuracy"}, "'default_accuracy': names that begin with 'default_'"),
        ({"name": "fit_time_s"}, "'fit_time_s': kbench reports a number of that name"),
        ({"name": "gini_sd"}, "names that end in '_sd'"),
        ({"better": "more"}, "better of 'gini' must be 'higher', 'lower', got 'more'"),
        ({"task": "ranking"}, "must be 'classification', 'regression', None, got 'ranking'"),
        ({"needs": "labels"}, "needs of 'gini' must be 'predictions', 'scores'"),
        ({"function": None}, "the metric 'gini' has no function"),
        ({"definition": ""}, "definition of 'gini' must be a string of one line"),
        ({"definition": "two\nlines"}, "must be a string of one line"),
        ({"needs": "distribution"}, "its task must be 'regression', got 'classification'"),
        ({"depends": "numpy"}, "depends of 'gini' must be a list"),
    ],
)
def test_a_wrong_metric_excludes_its_plugin_with_the_reason(plugin_of, changes, words):
    assert words in reason(plugin_of, replace(GINI, **changes))


def test_two_plugins_cannot_give_one_metric(plugin_of):
    registry = build([plugin_of(kbench_metrics=[GINI]), plugin_of(kbench_metrics=[GINI])])
    assert "gives a metric called 'gini', as does" in registry.plugins[1].reason


def test_a_metric_crosses_processes_as_json(plugin_of):
    described = json.loads(json.dumps(describe_records(collect(plugin_of(kbench_metrics=[GINI])))))
    ((kind, name, record),) = read_records(described, Plugin("p", "d", "1", dict), print)
    assert (kind, name) == ("metric", "gini")
    assert isinstance(record.function, Reference)
    plain = replace(record, function=GINI.function)
    assert vars(plain) == vars(replace(GINI, depends=("numpy.linalg",), env_vars=("MODE",)))


def test_a_description_that_was_changed_is_refused(plugin_of):
    described = describe_records(collect(plugin_of(kbench_metrics=[GINI])))
    described[0]["fields"]["name"] = "accuracy"
    with pytest.raises(Exception, match="kbench reports a number of that name"):
        read_records(described, Plugin("p", "d", "1", dict), print)


@pytest.mark.parametrize("scale", [1, 0.37])
def test_no_number_that_kbench_reports_can_be_taken(scale):
    import numpy as np
    from sklearn.linear_model import BayesianRidge
    from sklearn.preprocessing import FunctionTransformer
    from sklearn.svm import LinearSVC

    y = np.arange(40) % 2 * scale
    X = np.random.default_rng(0).normal(size=(40, 2)) + y[:, None]
    learner = LinearSVC if scale == 1 else BayesianRidge
    data = Dataset("d", X, y if scale != 1 else y.astype(int))
    made = evaluate_split(
        data,
        0,
        Method(
            EstimatorSpec(FunctionTransformer),
            EstimatorSpec(learner),
            kernel=lambda map_, X, Y: X @ Y.T,
        ),
        Protocol(calibration="sigmoid"),
    )
    reported = made.metrics.keys() | METRICS.keys() | {"peak_memory_mib"}
    assert reported <= RESERVED, reported - RESERVED
