"""Regression: scaled targets, plain folds, predictive distributions, weights."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import FunctionTransformer

from kbench import Dataset, DatasetError, PluginError, Protocol
from kbench.evaluation.embedding import Data
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench.evaluation.split_view import assign
from kbench.evaluation.splits import make_split, strata, stratified_folds
from kbench.evaluation.targets import Scale
from kbench.storage.datacache import check_dataset
from tests.support.searches import search

IDENTITY = EstimatorSpec(FunctionTransformer)
RAW = Protocol(scaling=("none",), inner_folds=3)


@pytest.fixture(scope="module")
def prices():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = 1e5 + 2e4 * (X @ [1.0, -2.0, 0.5]) + 5e3 * rng.normal(size=120)
    return check_dataset(Dataset("prices", X, y))


def parts(data, protocol=RAW, index=0):
    rows = make_split(data, protocol, index)
    return rows.train, rows.test


class Recorder(RegressorMixin, BaseEstimator):
    """Remembers the targets and weights that it was given."""

    seen: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        Recorder.seen.append((y, sample_weight))
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


def test_the_task_is_found_from_the_targets():
    X = np.zeros((4, 1))
    assert Dataset("d", X, np.array([0.0, 1.0, 1.0, 0.0])).task == "classification"
    assert Dataset("d", X, np.array([0.0, 1.0, 1.0, 0.5])).task == "regression"
    given = Dataset("d", X, np.array([0.0, 1.0, 1.0, 0.0]), task="regression")
    assert (given.task, given.target_names) == ("regression", ())


def test_targets_are_part_of_the_checksum_in_their_own_type():
    X = np.zeros((2, 1))
    small, large = (Dataset("d", X, np.array(y)) for y in ([0.1, 0.2], [0.9, 0.5]))
    assert small.checksum != large.checksum
    labels, numbers = (
        Dataset("d", X, np.array([0.0, 1.0]), task=task)
        for task in ("classification", "regression")
    )
    assert labels.checksum != numbers.checksum
    weighted = Dataset("d", X, np.array([0.1, 0.2]), sample_weight=np.array([1.0, 2.0]))
    assert weighted.checksum != small.checksum


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": np.array([0.5, np.inf, 1.0])}, "1 of 3 are not, the first in row 1: inf"),
        ({"y": np.array([0.5, np.nan, 1.0])}, "1 of 3 are not, the first in row 1: nan"),
        ({"y": np.array([0.5, 0.5, 0.5])}, "all rows have the target 0.5"),
        ({"y": np.array(["a", "b", "c"]), "task": "regression"}, "must be numbers, got dtype <U1"),
        ({"sample_weight": np.array([1.0, -1.0, 1.0])}, "not negative, got -1.0 in row 1"),
        ({"sample_weight": np.array([1.0, np.nan, 1.0])}, "not negative, got nan in row 1"),
        ({"sample_weight": np.zeros(3)}, "all weights are 0"),
        ({"sample_weight": np.ones(2)}, "one number per row, shape (3,), got shape (2,)"),
        ({"task": "ranking"}, "'regression'"),
    ],
)
def test_a_wrong_target_or_weight_is_one_message(change, words):
    given = {"y": np.array([0.5, 1.0, 1.5]), **change}
    with pytest.raises(DatasetError) as raised:
        check_dataset(Dataset("d", X=np.zeros((3, 1)), **given))
    assert words in str(raised.value)


def test_stratified_folds_of_targets_are_plain_folds(prices):
    folds = list(stratified_folds(strata(prices.y, "regression"), 5, seed=0))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(120))
    assert {len(test) for _, test in folds} == {24}
    # sorted targets are not dealt in their order
    ordered = check_dataset(Dataset("o", prices.X, np.sort(prices.y)))
    train, test = parts(ordered)
    assert not np.array_equal(np.diff(test), np.full(len(test) - 1, 5))
    assert len(np.intersect1d(train, test)) == 0


def test_learners_are_given_standardised_targets_and_predictions_are_in_units(prices):
    Recorder.seen.clear()
    found = evaluate_split(prices, 0, Method(IDENTITY, EstimatorSpec(Recorder)), RAW)
    train, test = parts(prices)
    for y, weight in Recorder.seen[1:]:  # the first fit is the untimed one
        assert (np.mean(y), np.std(y)) == (pytest.approx(0, abs=1e-12), pytest.approx(1))
        assert weight is None
    mean = prices.y[train].mean()
    np.testing.assert_allclose(found.predictions.predicted, mean)
    rmse = np.sqrt(mean_squared_error(prices.y[test], np.full(len(test), mean)))
    assert found.metrics["rmse"] == pytest.approx(rmse)
    assert found.metrics["rmse_standardized"] == pytest.approx(rmse / prices.y[train].std())
    assert not {"accuracy", "expected_error", "log_loss"} & set(found.metrics)


def test_metrics_of_plugins_see_standardised_targets(prices):
    method = Method(
        IDENTITY,
        EstimatorSpec(LinearRegression),
        map_metrics=lambda fitted, X, y: {"sd_of_map": float(np.std(y))},
        learner_metrics=lambda fitted, X, y: {
            "error": float(np.sqrt(np.mean((fitted.predict(X) - y) ** 2)))
        },
    )
    found = evaluate_split(prices, 0, method, RAW).metrics
    assert found["sd_of_map"] < 10
    assert found["error"] == pytest.approx(found["rmse_standardized"])


def test_a_predictive_distribution_comes_back_in_the_targets_units(prices):
    found = evaluate_split(prices, 0, Method(IDENTITY, EstimatorSpec(BayesianRidge)), RAW)
    train, test = parts(prices)
    scale = Scale.fit(prices.y[train], "regression")
    peer = BayesianRidge().fit(prices.X[train], scale.standardise(prices.y[train]))
    mean, sd = peer.predict(prices.X[test], return_std=True)
    np.testing.assert_allclose(found.predictions.predicted, scale.mean + scale.sd * mean)
    np.testing.assert_allclose(found.predictions.sd, scale.sd * sd)


class Returns(Recorder):
    """Predicts what is wrong."""

    what = None

    def predict(self, X):
        return type(self).what(len(X))


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda n: np.zeros((n, 1)), "an array of shape (24, 1) and dtype float64; expected 24"),
        (lambda n: np.full(n, np.nan), "returned the value nan"),
        (lambda n: np.zeros(n - 1), "shape (23,)"),
        (lambda n: ["a"] * n, "a list of length 24"),
    ],
)
def test_a_regressor_that_returns_anything_else_than_numbers_is_refused(prices, what, words):
    learner = type("Wrong", (Returns,), {"what": staticmethod(what)})
    with pytest.raises(PluginError) as raised:
        evaluate_split(prices, 0, Method(IDENTITY, EstimatorSpec(learner)), RAW)
    assert words in str(raised.value)


@pytest.mark.parametrize("sd", [0.0, -1.0, np.inf, np.nan])
def test_a_deviation_that_is_not_positive_is_refused(prices, sd):
    class Sure(Recorder):
        def predict(self, X, return_std=False):
            mean = np.zeros(len(X))
            return (mean, np.full(len(X), sd)) if return_std else mean

    with pytest.raises(PluginError, match="return_std"):
        evaluate_split(prices, 0, Method(IDENTITY, EstimatorSpec(Sure)), RAW)


def test_an_ignored_return_std_is_named(prices):
    class Ignoring(Recorder):
        def predict(self, X, return_std=False):
            return np.zeros(len(X))

    with pytest.raises(PluginError, match=r"Ignoring returned an array .* expected a tuple of"):
        evaluate_split(prices, 0, Method(IDENTITY, EstimatorSpec(Ignoring)), RAW)


def test_the_search_is_that_of_grid_search_with_plain_folds(prices):
    """The scale of the targets is refitted in every fold; ridge without it is the same."""
    alphas = (1e-3, 1.0, 30.0, 1e3)
    train, _ = parts(prices)
    data = Data(prices.X[train], prices.y[train], task="regression")
    found = search(IDENTITY, EstimatorSpec(Ridge, space={"alpha": alphas}), data, RAW, seed=0)
    peer = GridSearchCV(
        Ridge(), {"alpha": alphas}, cv=KFold(3), scoring="neg_root_mean_squared_error"
    ).fit(data.X, data.y)
    assert found.best.learner == peer.best_params_
    assert [score.metric.name for score in found.scores] == ["rmse"] * 4
    # other folds: near, not equal
    means = [np.mean(score.values) for score in found.scores]
    np.testing.assert_allclose(means, -peer.cv_results_["mean_test_score"], rtol=0.1)


def test_a_search_goes_in_the_direction_of_its_metric(prices):
    data = Data(prices.X, prices.y, task="regression")
    space = {"n_neighbors": (1, 5, 90)}
    for metric in (None, "mae", "rmse_standardized"):
        protocol = Protocol(scaling=("none",), search_metric=metric)
        learner = EstimatorSpec(KNeighborsRegressor, space=space)
        assert search(IDENTITY, learner, data, protocol, 0).best.learner == {"n_neighbors": 5}


def test_a_search_by_log_loss_needs_probabilities():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    protocol = Protocol(scaling=("none",), search_metric="log_loss")
    learner = EstimatorSpec(LogisticRegression, space={"C": (1e-3, 1.0)})
    found = search(IDENTITY, learner, Data(X, y), protocol, 0)
    best = min(found.scores, key=lambda score: np.mean(score.values))
    assert found.best == best.candidate
    from sklearn.svm import LinearSVC

    with pytest.raises(PluginError, match="has no probabilities, which the search_metric"):
        search(
            IDENTITY, EstimatorSpec(LinearSVC, space={"C": (1e-3, 1.0)}), Data(X, y), protocol, 0
        )


def test_a_race_goes_by_errors(prices):
    protocol = Protocol(scaling=("none",), search_method="racing")
    data = Data(prices.X, prices.y, task="regression")
    learner = EstimatorSpec(Ridge, space={"alpha": tuple(np.geomspace(1e-3, 1e6, 10))})
    found = search(IDENTITY, learner, data, protocol, 0)
    assert {score.share for score in found.scores} == {1 / 3, 2 / 3, 1.0}
    assert found.best.learner["alpha"] < 100


def test_weights_reach_learners_and_metrics(prices):
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, size=len(prices.y)).astype(float)
    weighted = check_dataset(Dataset("w", prices.X, prices.y, sample_weight=weight))
    learner = EstimatorSpec(Ridge, {"alpha": 1.0}, {})
    found = evaluate_split(weighted, 0, Method(IDENTITY, learner), RAW)
    train, test = parts(weighted)
    # weights that are whole numbers are repeated rows
    often = np.repeat(train, weight[train].astype(int))
    scale = Scale.fit(prices.y[often], "regression")
    peer = Ridge(alpha=1.0).fit(prices.X[often], scale.standardise(prices.y[often]))
    predicted = scale.restore(peer.predict(prices.X[test]))
    np.testing.assert_allclose(found.predictions.predicted, predicted)
    rmse = np.sqrt(mean_squared_error(prices.y[test], predicted, sample_weight=weight[test]))
    assert found.metrics["rmse"] == pytest.approx(rmse)


def test_a_learner_without_weights_is_refused_by_name(prices):
    weighted = check_dataset(
        Dataset("w", prices.X, prices.y, sample_weight=np.arange(1.0, len(prices.y) + 1))
    )
    learner = EstimatorSpec(KNeighborsRegressor, label="learner 'knn'")
    with pytest.raises(PluginError, match="learner 'knn' does not take the weights"):
        evaluate_split(weighted, 0, Method(IDENTITY, learner), RAW)


def test_weights_of_classes_count_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] + 0.8 * rng.normal(size=80) > 0).astype(int)
    weight = rng.integers(1, 5, size=80).astype(float)
    data = check_dataset(Dataset("w", X, y, sample_weight=weight))
    found = evaluate_split(data, 0, Method(IDENTITY, EstimatorSpec(LogisticRegression)), RAW)
    train, test = parts(data)
    peer = LogisticRegression().fit(X[train], y[train], sample_weight=weight[train])
    right = peer.predict(X[test]) == y[test]
    assert found.metrics["accuracy"] == pytest.approx(np.average(right, weights=weight[test]))


def test_equal_targets_or_no_weight_in_a_training_part_are_refused():
    X = np.arange(10.0)[:, None]
    y = np.where(np.arange(10) < 8, 1.5, 2.5)
    protocol = Protocol(cv="ordered", train_size=8, test_size=2)
    with pytest.raises(DatasetError, match=r"all targets of the training set are 1\.5"):
        assign(check_dataset(Dataset("d", X, y)), protocol, 0)
    weight = (np.arange(10) >= 8).astype(float)
    data = check_dataset(Dataset("d", X, y + np.arange(10), sample_weight=weight))
    with pytest.raises(DatasetError, match="all weights of the training set are 0"):
        assign(data, protocol, 0)


def test_only_targets_of_rows_that_count_decide_the_scale():
    y, weight = np.array([1.5, 1.5, 9.0, 1.5]), np.array([1.0, 2.0, 0.0, 1.0])
    with pytest.raises(DatasetError, match=r"all targets of the training set are 1\.5"):
        Scale.fit(y, "regression", weight)
    y[0] = 3.5
    assert Scale.fit(y, "regression", weight) == Scale(2.0, np.sqrt(3) / 2)
    with pytest.raises(DatasetError, match="all weights of the training set are 0"):
        Scale.fit(y, "regression", np.zeros(4))
    with pytest.raises(DatasetError, match="too small for float64"):
        Scale.fit(np.array([0.0, 1e-200]), "regression")


def test_large_targets_of_small_spread_keep_their_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = 1e9 + X @ [1.0, 2.0]
    found = evaluate_split(
        check_dataset(Dataset("d", X, y)),
        0,
        Method(IDENTITY, EstimatorSpec(LinearRegression)),
        Protocol(scaling=("standard",)),
    )
    assert found.metrics["rmse_standardized"] < 1e-6


def test_targets_in_other_units_have_the_same_standardised_error(prices):
    learner = EstimatorSpec(Ridge, {}, {"alpha": (0.1, 10.0)})
    cents = check_dataset(Dataset("prices", prices.X, 100 * prices.y + 7))
    cents = replace(cents, checksum=prices.checksum)  # of which splits and seeds are made
    ours, theirs = (
        evaluate_split(data, 0, Method(IDENTITY, learner), RAW).metrics for data in (prices, cents)
    )
    assert theirs["rmse_standardized"] == pytest.approx(ours["rmse_standardized"])
    assert theirs["rmse"] == pytest.approx(100 * ours["rmse"])
