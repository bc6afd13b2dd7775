import time

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler
from sklearn.svm import SVC, LinearSVC

from kbench import Dataset, PluginError, Protocol, Split
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench.evaluation.split_view import assign
from kbench.evaluation.splits import derive_seed, row_groups, stratified_folds
from kbench_learners import KernelSVM, LinearSVM, PathRidgeClassifier

IDENTITY = EstimatorSpec(FunctionTransformer)
SIGMOID = Protocol(calibration="sigmoid")


def loaded(load):
    X, y = load(return_X_y=True)
    return Dataset(load.__name__, X, y)


IRIS, CANCER = loaded(load_iris), loaded(load_breast_cancer)


def weighted(data):
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(data.y))
    return Dataset(data.name, data.X, data.y, sample_weight=weight)


def of_scikit_learn(data, pipeline, protocol, index=0, groups=None, **weights):
    """Probabilities of the test part by CalibratedClassifierCV on the same inner folds."""
    rows = assign(data, protocol, index).visible
    seed = derive_seed(protocol.seed, data.checksum, index)
    X, y = data.X[rows.train], data.y[rows.train]
    apart = None if groups is None else groups(X)
    folds = stratified_folds(y, protocol.inner_folds, derive_seed(seed, "inner"), apart)
    peer = CalibratedClassifierCV(
        pipeline, method=protocol.calibration, cv=list(folds), ensemble=False
    )
    return peer.fit(X, y, **weights).predict_proba(data.X[rows.test])


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("data", [IRIS, CANCER], ids=lambda data: data.name)
@pytest.mark.parametrize("make", [LinearSVM, PathRidgeClassifier])
def test_probabilities_are_those_of_scikit_learn_on_the_same_folds(make, data, calibration):
    protocol = Protocol(calibration=calibration, inner_folds=4)
    found = evaluate_split(data, 1, Method(IDENTITY, EstimatorSpec(make)), protocol)
    expected = of_scikit_learn(data, make_pipeline(MinMaxScaler(clip=True), make()), protocol, 1)
    np.testing.assert_allclose(found.predictions.probabilities, expected, rtol=0, atol=1e-12)
    y_test = assign(data, protocol, 1).y_test
    # an isotonic calibration may give a label the probability 0
    clipped = np.clip(expected, np.finfo(float).eps, 1.0)
    right = clipped[np.arange(len(y_test)), y_test]
    assert found.metrics["log_loss"] == pytest.approx(np.mean(-np.log(right)), rel=1e-9)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("data", [IRIS, CANCER], ids=lambda data: data.name)
def test_the_option_changes_no_label_and_adds_what_needs_probabilities(data, calibration):
    learner = EstimatorSpec(LinearSVM, {}, {"C": (0.1, 10.0)}, path="C")
    method = Method(IDENTITY, learner)
    plain = evaluate_split(data, 0, method, Protocol())
    found = evaluate_split(data, 0, method, Protocol(calibration=calibration))
    assert plain.predictions.probabilities is None
    np.testing.assert_array_equal(found.predictions.predicted, plain.predictions.predicted)
    np.testing.assert_array_equal(found.predictions.decision, plain.predictions.decision)
    assert found.details.chosen == plain.details.chosen
    assert found.details.search == plain.details.search
    added = set(found.metrics) - set(plain.metrics)
    expected = {"log_loss", "calibration_converged"}
    assert added >= expected | {"calibration_time_s", "calibration_time_cpu_s"}
    same = [name for name in plain.metrics if not name.endswith("_s")]
    assert {n: found.metrics[n] for n in same} == {n: plain.metrics[n] for n in same}


def test_the_chosen_candidate_and_map_are_fitted_on_the_inner_folds():
    feature_map = EstimatorSpec(Nystroem, {"n_components": 20}, {"gamma": (0.01, 3.0)})
    method = Method(feature_map, EstimatorSpec(LinearSVC, {}, {"C": (0.01, 100.0)}))
    found = evaluate_split(IRIS, 0, method, SIGMOID)
    chosen = found.details.chosen
    seed = derive_seed(SIGMOID.seed, IRIS.checksum, 0)
    pipeline = make_pipeline(
        MinMaxScaler(clip=True),
        Nystroem(
            n_components=20,
            gamma=chosen["feature_map.gamma"],
            random_state=derive_seed(seed, "map"),
        ),
        LinearSVC(C=chosen["learner.C"], random_state=derive_seed(seed, "learner")),
    )
    expected = of_scikit_learn(IRIS, pipeline, SIGMOID)
    np.testing.assert_allclose(found.predictions.probabilities, expected, atol=1e-10)


class Overconfident(ClassifierMixin, BaseEstimator):
    """A logistic regression whose decision values are read as if they were larger."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y, sample_weight=None):
        self._model = LogisticRegression().fit(X, y, sample_weight)
        self.classes_ = self._model.classes_
        return self

    def decision_function(self, X):
        return self.factor * self._model.decision_function(X)

    def predict(self, X):
        return self._model.predict(X)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_a_calibration_improves_the_log_loss_of_misleading_decision_values(calibration):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    data = Dataset("noisy", X, y)
    method = Method(IDENTITY, EstimatorSpec(Overconfident, {"factor": 30.0}))
    found = evaluate_split(data, 0, method, Protocol(calibration=calibration))
    taken_at_face_value = 1.0 / (1.0 + np.exp(-found.predictions.decision))
    y_test = assign(data, Protocol(), 0).y_test
    assert found.metrics["log_loss"] < 0.6 < log_loss(y_test, taken_at_face_value)


@pytest.mark.parametrize("data", [weighted(IRIS), weighted(CANCER)], ids=lambda data: data.name)
def test_weights_are_those_of_the_fits_and_of_the_calibration(data):
    found = evaluate_split(data, 0, Method(IDENTITY, EstimatorSpec(Overconfident)), SIGMOID)
    assignment = assign(data, SIGMOID, 0)
    rows, w = assignment.visible, assignment.visible.weight_train
    seed = derive_seed(SIGMOID.seed, data.checksum, 0)
    folds = list(stratified_folds(rows.y_train, 3, derive_seed(seed, "inner")))
    X = data.X[rows.train]
    values = np.empty((len(w), *found.predictions.decision.shape[1:]))
    for train, test in folds:
        scaler = MinMaxScaler(clip=True).fit(X[train])
        fitted = Overconfident().fit(scaler.transform(X[train]), rows.y_train[train], w[train])
        values[test] = fitted.decision_function(scaler.transform(X[test]))

    class Known(Overconfident):
        """Has the decision values of the rows, which are their numbers."""

        def fit(self, X, y, sample_weight=None):
            self.classes_ = np.unique(y)
            return self

        def decision_function(self, X):
            return self.factor[X[:, 0]]

    n = len(w)
    factor = np.concatenate([values, found.predictions.decision])
    everything = np.arange(len(factor))[:, None]
    peer = CalibratedClassifierCV(
        Known(factor), method="sigmoid", cv=[(np.arange(n), np.arange(n))], ensemble=False
    ).fit(everything[:n], rows.y_train, sample_weight=w)
    expected = peer.predict_proba(everything[n:])
    np.testing.assert_allclose(found.predictions.probabilities, expected, atol=1e-12)


def test_sparse_inputs_are_calibrated_as_they_are():
    X = scipy.sparse.csr_matrix(np.where(CANCER.X > 20, CANCER.X, 0))
    data = Dataset("sparse", X, CANCER.y)
    found = evaluate_split(data, 0, Method(IDENTITY, EstimatorSpec(LinearSVM)), SIGMOID)
    pipeline = make_pipeline(MaxAbsScaler(clip=True), LinearSVM())
    expected = of_scikit_learn(data, pipeline, SIGMOID)
    np.testing.assert_allclose(found.predictions.probabilities, expected, atol=1e-9)


def test_a_gram_matrix_is_calibrated_like_the_data_behind_it():
    K = rbf_kernel(IRIS.X, gamma=0.5)
    gram = Dataset("gram", K, IRIS.y, checksum=IRIS.checksum, pairwise=True)
    of_gram = Method(IDENTITY, EstimatorSpec(SVC, {"kernel": "precomputed"}))
    of_data = Method(IDENTITY, EstimatorSpec(SVC, {"gamma": 0.5}))
    ours = evaluate_split(gram, 0, of_gram, SIGMOID).predictions
    peer = evaluate_split(
        IRIS, 0, of_data, Protocol(calibration="sigmoid", scaling=("none",))
    ).predictions
    np.testing.assert_allclose(ours.probabilities, peer.probabilities, atol=1e-9)


def test_a_learner_with_a_kernel_is_calibrated():
    found = evaluate_split(IRIS, 0, Method(IDENTITY, EstimatorSpec(KernelSVM)), SIGMOID)
    pipeline = make_pipeline(MinMaxScaler(clip=True), KernelSVM())
    expected = of_scikit_learn(IRIS, pipeline, SIGMOID)
    np.testing.assert_allclose(found.predictions.probabilities, expected, atol=1e-9)


def test_equal_rows_stay_together_in_the_folds_of_the_calibration():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 40, 200)
    data = Dataset("copies", rng.normal(size=(40, 3))[rows], rows % 2)
    protocol = Protocol(calibration="sigmoid", cv="group_duplicates")
    found = evaluate_split(data, 0, Method(IDENTITY, EstimatorSpec(LinearSVM)), protocol)
    pipeline = make_pipeline(MinMaxScaler(clip=True), LinearSVM())
    expected = of_scikit_learn(data, pipeline, protocol, groups=row_groups)
    np.testing.assert_allclose(found.predictions.probabilities, expected, atol=1e-9)


def test_probabilities_of_a_learner_are_left_alone():
    method = Method(IDENTITY, EstimatorSpec(LogisticRegression))
    plain = evaluate_split(IRIS, 0, method, Protocol())
    found = evaluate_split(IRIS, 0, method, SIGMOID)
    np.testing.assert_array_equal(found.predictions.probabilities, plain.predictions.probabilities)
    assert set(found.metrics) == set(plain.metrics)
    assert found.details == plain.details


class Silent(DummyClassifier):
    """Says labels only."""

    predict_proba = property()


def test_a_learner_without_decision_values_is_noted():
    found = evaluate_split(IRIS, 0, Method(IDENTITY, EstimatorSpec(Silent)), SIGMOID)
    assert found.predictions.probabilities is None
    assert "log_loss" not in found.metrics
    (note,) = found.details.notes
    expected = "the learner has neither probabilities nor decision values"
    assert note == f"no calibrated probabilities: {expected}"


class Pairs(SVC):
    """One decision value for each pair of four classes."""

    def __init__(self):
        super().__init__(decision_function_shape="ovo")


def test_decision_values_of_pairs_are_not_calibrated():
    rng = np.random.default_rng(0)
    data = Dataset("four", rng.normal(size=(80, 2)), np.arange(80) % 4)
    found = evaluate_split(data, 0, Method(IDENTITY, EstimatorSpec(Pairs)), SIGMOID)
    expected = "no calibrated probabilities: 6 decision values per row, not 4"
    assert expected in found.details.notes
    assert "log_loss" not in found.metrics


def with_rare_class(n_rare):
    """Return data and official splits of which all rows of class 2 are in training."""
    rng = np.random.default_rng(0)
    y = np.array([0, 1] * 20 + [2] * n_rare)
    train = np.arange(10, len(y))
    parts = [Split(0, train, np.arange(10))]
    X = rng.normal(size=(len(y), 2)) + y[:, None]
    return Dataset("rare", X, y, splits=parts)


def test_a_class_of_one_row_has_no_calibration_and_a_note_says_so():
    protocol = Protocol(calibration="sigmoid", cv="official")
    method = Method(IDENTITY, EstimatorSpec(LinearSVM))
    found = evaluate_split(with_rare_class(1), 0, method, protocol)
    assert found.predictions.probabilities is None
    (note,) = found.details.notes
    assert note == (
        "no calibrated probabilities: all training rows of class 2 (numbered from 0) "
        "are in one inner fold"
    )
    assert 0 <= found.metrics["accuracy"] <= 1


def test_a_class_with_fewer_rows_than_folds_is_calibrated_and_noted():
    protocol = Protocol(calibration="sigmoid", cv="official")
    method = Method(IDENTITY, EstimatorSpec(LinearSVM))
    data = with_rare_class(2)
    found = evaluate_split(data, 0, method, protocol)
    pipeline = make_pipeline(MinMaxScaler(clip=True), LinearSVM())
    np.testing.assert_allclose(
        found.predictions.probabilities, of_scikit_learn(data, pipeline, protocol), atol=1e-9
    )
    assert found.details.notes == [
        "calibrated with fewer than 3 training rows of class 2 (numbered from 0)"
    ]


class Stubborn(Overconfident):
    """Converges on many rows only."""

    def fit(self, X, y, sample_weight=None):
        self.converged_ = len(y) > 100
        return super().fit(X, y, sample_weight)


def test_fits_that_did_not_converge_are_reported():
    found = evaluate_split(IRIS, 0, Method(IDENTITY, EstimatorSpec(Stubborn)), SIGMOID)
    assert found.metrics["converged"] == 1.0
    assert found.metrics["calibration_converged"] == 0.0
    assert "3 of 3 fits of the calibration did not converge" in found.details.notes


class Slow(Overconfident):
    """Takes 50 ms for each fit."""

    def fit(self, X, y, sample_weight=None):
        time.sleep(0.05)
        return super().fit(X, y, sample_weight)


def test_the_time_of_the_calibration_is_in_no_other_time():
    found = evaluate_split(IRIS, 0, Method(IDENTITY, EstimatorSpec(Slow)), SIGMOID).metrics
    assert found["calibration_time_s"] >= 3 * 0.05
    assert found["calibration_time_cpu_s"] < found["calibration_time_s"]
    assert found["search_time_s"] == 0.0
    assert found["fit_time_s"] < 3 * 0.05
    assert found["predict_time_s"] < 0.05


class Broken(Overconfident):
    """Returns decision values of another number of rows from small fits."""

    def fit(self, X, y, sample_weight=None):
        self.is_small = len(y) < 100
        return super().fit(X, y, sample_weight)

    def decision_function(self, X):
        return super().decision_function(X)[int(self.is_small) :]


def test_decision_values_on_the_inner_folds_are_checked():
    method = Method(IDENTITY, EstimatorSpec(Broken, label="learner 'broken'"))
    with pytest.raises(PluginError, match="learner 'broken' returned an array of shape"):
        evaluate_split(IRIS, 0, method, SIGMOID)
