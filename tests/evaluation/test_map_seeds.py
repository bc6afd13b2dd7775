"""Several seeds of the map on one split: their mean is the score, and labels stay hidden."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from kbench import Dataset, Protocol
from kbench.evaluation.checked_predictions import Committed
from kbench.evaluation.evaluate import evaluate_split, run_split
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench.evaluation.split_view import assign
from kbench.records import Inputs

CLASSES = Dataset("cancer", *load_breast_cancer(return_X_y=True))
NUMBERS = Dataset("diabetes", *load_diabetes(return_X_y=True), task="regression")
SAMPLER = EstimatorSpec(RBFSampler, {"n_components": 4, "gamma": 0.5})
LOGISTIC = EstimatorSpec(LogisticRegression, space={"C": (0.01, 1.0)})
SEEDS = Protocol(map_seeds=3, inner_folds=2)


def drawn(method, draw):
    return replace(method, feature_map=replace(method.feature_map, draw=draw))


def of_scores(found):
    return {k: v for k, v in found.metrics.items() if "time" not in k and k != "n_map_seeds"}


@pytest.mark.parametrize(
    ("data", "learner", "protocol"),
    [
        (CLASSES, EstimatorSpec(LogisticRegression), {}),
        (CLASSES, EstimatorSpec(LogisticRegression), {"refit_maps_in_inner_folds": False}),
        (CLASSES, EstimatorSpec(LinearSVC), {"calibration": "sigmoid"}),
        (NUMBERS, EstimatorSpec(Ridge), {}),
    ],
)
def test_scores_are_means_of_runs_with_one_seed_each(data, learner, protocol):
    method, once = Method(SAMPLER, learner), Protocol(inner_folds=2, **protocol)
    found = evaluate_split(data, 0, method, replace(once, map_seeds=3))
    alone = [evaluate_split(data, 0, drawn(method, k), once) for k in range(3)]
    assert found.metrics["n_map_seeds"] == 3
    for name, values in found.details.by_seed.items():
        assert list(values) == [each.metrics[name] for each in alone]
        assert found.metrics[name] == pytest.approx(np.mean(values), rel=1e-12)
    name = "rmse" if data is NUMBERS else "accuracy"
    assert len(set(found.details.by_seed[name])) > 1
    assert {"log_loss", "accuracy"} <= found.details.by_seed.keys() or data is NUMBERS
    for number, each in enumerate(alone):
        np.testing.assert_array_equal(found.of_seeds[number].predicted, each.predictions.predicted)


def test_one_seed_gives_what_the_first_of_several_gives():
    method = Method(SAMPLER, LOGISTIC)
    one, several = (
        evaluate_split(CLASSES, 0, method, p) for p in (replace(SEEDS, map_seeds=1), SEEDS)
    )
    assert one.details.by_seed == {}
    assert "n_map_seeds" not in one.metrics
    assert several.details.chosen == one.details.chosen
    np.testing.assert_array_equal(several.predictions.predicted, one.predictions.predicted)
    for name, values in several.details.by_seed.items():
        assert values[0] == one.metrics[name]


def test_the_default_candidate_has_the_same_seeds():
    learner = EstimatorSpec(LogisticRegression, space={"C": (1e-4, 10.0)})
    found = evaluate_split(CLASSES, 0, Method(SAMPLER, learner), SEEDS)
    untuned = Method(SAMPLER, EstimatorSpec(LogisticRegression, {"C": 1e-4}))
    assert found.details.chosen["learner.C"] == 10.0
    alone = evaluate_split(CLASSES, 0, untuned, SEEDS)
    assert found.metrics["default_log_loss"] == alone.metrics["log_loss"]
    # the default may be the best: its scores are then those of the choice
    best = EstimatorSpec(LogisticRegression, space={"C": (10.0, 1e-4)})
    found = evaluate_split(CLASSES, 0, Method(SAMPLER, best), SEEDS)
    assert found.metrics["default_log_loss"] == found.metrics["log_loss"]


class Counting(FunctionTransformer):
    fits = 0

    def fit(self, X, y=None):
        Counting.fits += 1
        return super().fit(X, y)


@pytest.mark.parametrize(
    "spec",
    [
        EstimatorSpec(FunctionTransformer),
        replace(SAMPLER, params={**SAMPLER.params, "random_state": 7}),
        replace(SAMPLER, space={"random_state": (7,)}),
    ],
    ids=["no seed", "given", "searched"],
)
def test_a_map_without_a_seed_of_kbench_has_one(spec):
    method = Method(spec, EstimatorSpec(LogisticRegression))
    found, one = (
        evaluate_split(CLASSES, 0, method, p) for p in (SEEDS, replace(SEEDS, map_seeds=1))
    )
    assert found.metrics["n_map_seeds"] == 1
    assert len(found.of_seeds) == 1
    assert of_scores(found) == of_scores(one)
    assert found.details.by_seed == {}


def test_a_map_without_a_seed_is_fitted_as_often_as_with_one(monkeypatch):
    monkeypatch.setattr("kbench.evaluation.timing.SHORT_S", 0.0)
    fits = []
    for protocol in (replace(SEEDS, map_seeds=1), SEEDS):
        Counting.fits = 0
        evaluate_split(CLASSES, 0, Method(EstimatorSpec(Counting), LOGISTIC), protocol)
        fits.append(Counting.fits)
    assert fits[0] == fits[1] > 0


def test_all_seeds_are_predicted_before_labels_are_revealed():
    assignment, order = assign(CLASSES, SEEDS, 0), []

    class Spy(LogisticRegression):
        def predict(self, X):
            order.append("predict")
            return super().predict(X)

    def reveal(committed):
        order.append("reveal")
        assert isinstance(committed, Committed)
        assert (len(committed.chosen), len(committed.default)) == (3, 3)
        return assignment.y_test

    learner = EstimatorSpec(Spy, space={"C": (1e-4, 10.0)})
    run_split(Inputs.make(CLASSES), assignment.visible, Method(SAMPLER, learner), SEEDS, reveal)
    assert order.index("reveal") == len(order) - 1


def test_a_seed_whose_fit_fails_is_a_failure_of_the_method():
    class Fragile(RBFSampler):
        def fit(self, X, y=None):
            if self.random_state != first.random_state:
                raise ValueError("an unlucky draw")
            return super().fit(X, y)

    first = evaluate_first_map()
    method = Method(EstimatorSpec(Fragile), EstimatorSpec(LogisticRegression))
    with pytest.raises(ValueError, match="an unlucky draw"):
        evaluate_split(CLASSES, 0, method, SEEDS)
    evaluate_split(CLASSES, 0, method, replace(SEEDS, map_seeds=1))


def evaluate_first_map():
    """Return the map that a split fits with its first seed."""
    made = []

    class Kept(RBFSampler):
        def fit(self, X, y=None):
            made.append(self)
            return super().fit(X, y)

    method = Method(EstimatorSpec(Kept), EstimatorSpec(LogisticRegression))
    evaluate_split(CLASSES, 0, method, replace(SEEDS, map_seeds=1))
    return made[0]


def test_details_are_plain_values():
    found = evaluate_split(CLASSES, 0, Method(SAMPLER, LOGISTIC), SEEDS)
    details = type(found.details).from_json(asdict(found.details))
    assert details.by_seed == found.details.by_seed
