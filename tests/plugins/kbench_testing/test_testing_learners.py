"""A planted defect of a learner is caught by the check that names it, and by no other."""

import numpy as np
import pytest

from kbench_testing import components, run
from tests.support.conformance import failures, learner_plugin, sklearn_failure
from tests.support.defective_learners import (
    LEARNER_DEFECTS,
    LEARNER_DEFECTS_OF_SKLEARN,
    Centroids,
    Indicators,
    Streamed,
)


@pytest.mark.parametrize("make", [Centroids, Indicators, Streamed])
def test_a_good_learner_passes_everything(plugin_of, make):
    outcomes = list(run(components(learner_plugin(plugin_of, make))))
    assert {each.status for each in outcomes} == {"passed"}


@pytest.mark.parametrize("make", LEARNER_DEFECTS, ids=lambda make: make.__name__)
def test_a_defect_of_a_learner_is_caught_by_its_check(plugin_of, make):
    found = failures(learner_plugin(plugin_of, make))
    assert list(found) == [LEARNER_DEFECTS[make]], found


@pytest.mark.parametrize("make", LEARNER_DEFECTS_OF_SKLEARN, ids=lambda make: make.__name__)
def test_a_defect_of_a_learner_that_scikit_learn_finds_is_explained(plugin_of, make):
    assert LEARNER_DEFECTS_OF_SKLEARN[make] in sklearn_failure(learner_plugin(plugin_of, make))


def test_a_random_learner_is_caught(plugin_of):
    class Random(Centroids):
        def fit(self, X, y):
            super().fit(X, y)
            self.swap_ = np.random.permutation(40)[:3]  # noqa: NPY002
            return self

        def predict(self, X):
            chosen = self.nearest(X)
            chosen[self.swap_] = 0
            return self.classes_[chosen]

    found = failures(learner_plugin(plugin_of, Random, path=None))
    assert "check_determinism" in found


def test_a_kernelized_learner_without_a_kernel_is_caught(plugin_of):
    found = failures(learner_plugin(plugin_of, Centroids, uses_kernel=True))
    assert list(found) == ["check_kernelized"]

    class Combined(Centroids):
        def __init__(self, kernels=("linear",), shrink=0.0, random_state=None):
            super().__init__(shrink, random_state)
            self.kernels = kernels

    found = failures(learner_plugin(plugin_of, Combined, uses_kernel=True))
    assert "check_kernelized" not in found


@pytest.mark.parametrize(
    ("simpler", "words"),
    [
        ({"shrunk": "larger"}, "'shrunk', which is not a parameter; did you mean 'shrink'?"),
        ({"shrink": "bigger"}, "says 'bigger' of 'shrink'"),
    ],
)
def test_an_order_of_models_that_is_none_is_caught(plugin_of, simpler, words):
    found = failures(learner_plugin(plugin_of, Centroids, simpler=simpler))
    assert list(found) == ["check_simpler"]
    assert words in found["check_simpler"]


def test_values_without_an_order_are_caught(plugin_of):
    given = {"simpler": {"shrink": "larger"}, "path": None}
    found = failures(learner_plugin(plugin_of, Centroids, **given, grid={"shrink": (0.5, True)}))
    assert "its grid has True, which is not a Python number" in found["check_simpler"]


@pytest.mark.parametrize(("direction", "right"), [("larger", True), ("smaller", False)])
def test_the_wrong_order_of_models_is_caught(plugin_of, direction, right):
    given = {"grid": {"shrink": (0.0, 1.0)}, "simpler": {"shrink": direction}, "path": None}
    found = failures(learner_plugin(plugin_of, Centroids, **given))
    assert list(found) == ([] if right else ["check_simpler"])
    assert right or "'shrink' make simpler models, but shrink=0.0 fits random" in str(found)
