"""A planted defect of a regressor is caught by the check that names it."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor

from kbench import FeatureMap, Learner
from kbench_testing import components, run
from tests.support.conformance import failures, sklearn_failure
from tests.support.defective_learners import Centroids
from tests.support.defective_maps import Fourier
from tests.support.defective_regressors import (
    REGRESSOR_DEFECTS,
    REGRESSOR_DEFECTS_OF_SKLEARN,
    Line,
    Summed,
    Texts,
)


class Supervised(Fourier):
    seen: ClassVar[set[str]] = set()

    def fit(self, X, y):
        self.seen.add(np.asarray(y).dtype.kind)
        return super().fit(X, y)


def plugin(plugin_of, **record):
    record = {"regressor": Line, "grid": {"alpha": (1e-3, 10.0)}, "path": "alpha", **record}
    return plugin_of(kbench_learners=[Learner("my-learner", **record)])


@pytest.mark.parametrize("make", [Line, Summed])
def test_a_good_regressor_passes_everything(plugin_of, make):
    record = {"regressor": make, "simpler": {"alpha": "larger"}}
    outcomes = list(run(components(plugin(plugin_of, **record))))
    assert {each.status for each in outcomes} == {"passed"}, outcomes
    checks = {each.check for each in outcomes}
    assert checks >= {
        "check_numbers",
        "check_distribution",
        "check_path",
        "check_sums",
        "check_simpler",
    }
    assert not checks & {"check_labels", "check_probabilities"}


@pytest.mark.parametrize("make", REGRESSOR_DEFECTS, ids=lambda make: make.__name__)
def test_a_defect_of_a_regressor_is_caught_by_its_check(plugin_of, make):
    found = failures(plugin(plugin_of, regressor=make))
    assert list(found) == [REGRESSOR_DEFECTS[make]], found


@pytest.mark.parametrize("make", REGRESSOR_DEFECTS_OF_SKLEARN, ids=lambda make: make.__name__)
def test_a_defect_of_a_regressor_that_scikit_learn_finds_is_explained(plugin_of, make):
    message = sklearn_failure(plugin(plugin_of, regressor=make))
    assert REGRESSOR_DEFECTS_OF_SKLEARN[make] in message


def test_texts_fail_one_check(plugin_of):
    assert list(failures(plugin(plugin_of, regressor=Texts, path=None))) == ["check_numbers"]


def test_the_wrong_order_of_models_is_caught(plugin_of):
    found = failures(plugin(plugin_of, simpler={"alpha": "smaller"}))
    assert "alpha=0.001 fits random numbers better than alpha=10.0" in found["check_simpler"]


def test_a_learner_for_both_tasks_is_checked_for_both(plugin_of):
    def regressor(shrink=0.0):
        return Line(alpha=1e-3 + shrink)

    record = Learner("both", classifier=Centroids, regressor=regressor, grid={"shrink": (0.0, 0.5)})
    found = components(plugin_of(kbench_learners=[record]))[1:]
    assert [str(each) for each in found] == [
        "learner both (classification)",
        "learner both (regression)",
    ]
    assert {each.status for each in run(found, slow=False)} == {"passed"}


def test_a_deviation_of_zero_is_caught_in_a_baseline_too(plugin_of):
    # scikit-learn's own returns zeros
    record = Learner("zeros", regressor=DummyRegressor, baseline=True)
    found = failures(plugin_of(kbench_learners=[record]))
    assert list(found) == ["check_distribution"]
    assert "the standard deviation 0" in found["check_distribution"]


@pytest.mark.parametrize(
    ("tasks", "names"),
    [
        (("classification", "regression"), ["classification", "regression"]),
        (("regression",), ["regression"]),
    ],
)
def test_a_supervised_map_is_checked_for_its_tasks(plugin_of, tasks, names):
    Supervised.seen.clear()
    record = FeatureMap("my-map", make=Supervised, supervised=True, tasks=tasks)
    found = components(plugin_of(kbench_feature_maps=[record]))[1:]
    assert [str(each) for each in found] == [f"feature map my-map ({task})" for task in names]
    assert not [each for each in run(found, slow=False) if each.status == "failed"]
    assert Supervised.seen == {"i" if task == "classification" else "f" for task in names}
