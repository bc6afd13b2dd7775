import pytest

from kbench import DatasetSource, FeatureMap, Learner, SuiteError
from kbench.planning.suite_file import read
from kbench.planning.tasks import set_metric
from kbench.records import DatasetFacts
from kbench.registry.registry import build

SUITE = """
datasets = ["houses"]
feature_maps = ["identity"]
learners = ["dummy-mean"]

[protocol]
calibration = "isotonic"

[[block]]

[[block]]
learners = [{ name = "dummy-mean", label = "again" }]
"""


@pytest.fixture
def registry(plugin_of):
    make = "sklearn.dummy:DummyClassifier"
    return build(
        [
            plugin_of(
                kbench_datasets=[DatasetSource("houses", load="houses:load")],
                kbench_feature_maps=[FeatureMap("identity", make=make)],
                kbench_learners=[
                    Learner("dummy-mean", classifier=make, regressor="sklearn.dummy:DummyRegressor")
                ],
            )
        ]
    )


def facts(task):
    return {"houses": DatasetFacts("x", task=task)}


def test_a_calibration_of_a_regression_suite_is_refused_once(registry):
    suite = read(SUITE, "s", registry)
    with pytest.raises(SuiteError) as refused:
        set_metric(suite, facts("regression"), registry)
    message = 'calibration = "isotonic" in [protocol] is for classification, not for regression'
    assert str(refused.value) == message


def test_a_calibration_of_a_classification_suite_is_taken(registry):
    suite = set_metric(read(SUITE, "s", registry), facts("classification"), registry)
    assert suite.blocks[0].protocol.calibration == "isotonic"


def test_a_regression_suite_without_calibration_is_taken(registry):
    plain = read(SUITE.replace('"isotonic"', '"none"'), "s", registry)
    assert set_metric(plain, facts("regression"), registry).metric.name == "rmse_standardized"
