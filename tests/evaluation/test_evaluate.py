import time
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler
from sklearn.svm import SVC, LinearSVC

from kbench import Dataset, DatasetError, PluginError, Protocol, Split
from kbench.evaluation.evaluate import evaluate_split, gram_error, run_split
from kbench.evaluation.fitting import count_stored_numbers
from kbench.evaluation.method import Method
from kbench.evaluation.metrics import METRICS
from kbench.evaluation.specs import EstimatorSpec, Nested
from kbench.evaluation.split_view import assign
from kbench.evaluation.splits import make_split
from kbench.evaluation.timing import time_step
from kbench.records import Inputs


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return Dataset("iris", X, y)


PLAIN = Method(EstimatorSpec(FunctionTransformer), EstimatorSpec(LogisticRegression))


def test_scores_are_those_of_scikit_learn_on_the_same_rows(iris):
    found = evaluate_split(iris, 1, PLAIN, Protocol())
    rows = make_split(iris, Protocol(), 1)
    scaler = MinMaxScaler(clip=True).fit(iris.X[rows.train])
    peer = LogisticRegression().fit(scaler.transform(iris.X[rows.train]), iris.y[rows.train])
    X_test, y_test = scaler.transform(iris.X[rows.test]), iris.y[rows.test]
    predicted = peer.predict(X_test)
    np.testing.assert_array_equal(found.predictions.predicted, predicted)
    expected = {
        "accuracy": accuracy_score(y_test, predicted),
        "balanced_accuracy": balanced_accuracy_score(y_test, predicted),
        "log_loss": log_loss(y_test, peer.predict_proba(X_test)),
        "expected_error": 1 - accuracy_score(y_test, predicted),
        "n_train": 120,
        "n_test": 30,
    }
    for name, value in expected.items():
        assert found.metrics[name] == pytest.approx(value, rel=1e-9), name
    assert found.details.split_hash == rows.digest


def test_the_same_call_gives_the_same_numbers(iris):
    method = Method(
        EstimatorSpec(Nystroem, {"n_components": 20}, {"gamma": (0.1, 1.0)}),
        EstimatorSpec(LinearSVC, {"dual": True}, {"C": (1.0, 10.0)}),
    )
    one, other = (evaluate_split(iris, 0, method, Protocol()) for _ in range(2))
    timeless = [
        {k: v for k, v in each.metrics.items() if not k.endswith("_s")} for each in (one, other)
    ]
    assert timeless[0] == timeless[1]
    assert one.details == other.details


def test_adding_a_candidate_changes_no_number_of_the_others(iris):
    def scores(cs):
        method = Method(
            EstimatorSpec(Nystroem, {"n_components": 9}), EstimatorSpec(LinearSVC, {}, {"C": cs})
        )
        rows = evaluate_split(iris, 0, method, Protocol()).details.search
        return {row["learner.C"]: row["values"] for row in rows}

    few, many = scores((1.0, 10.0)), scores((0.5, 1.0, 10.0))
    assert all(many[c] == few[c] for c in few)


class Slow(ClassifierMixin, BaseEstimator):
    """Takes a known time for each step."""

    def __init__(self, fit_s=0.0, predict_s=0.0, candidate=0):
        self.fit_s = fit_s
        self.predict_s = predict_s
        self.candidate = candidate

    def fit(self, X, y):
        time.sleep(self.fit_s)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        time.sleep(self.predict_s)
        return np.zeros(len(X), dtype=int)


def test_times_are_apart_and_the_search_is_in_none_of_them(iris):
    learner = EstimatorSpec(Slow, {"fit_s": 0.06, "predict_s": 0.05}, {"candidate": (0, 1)})
    found = evaluate_split(
        iris, 0, Method(EstimatorSpec(FunctionTransformer), learner), Protocol()
    ).metrics
    # two candidates in three folds
    assert found["search_time_s"] >= 6 * 0.11
    assert 0.06 <= found["learner_fit_time_s"] < 6 * 0.06
    assert 0.05 <= found["predict_time_s"] < 6 * 0.05
    parts = ("map_fit_time_s", "map_transform_time_s", "learner_fit_time_s")
    assert found["fit_time_s"] == pytest.approx(sum(found[name] for name in parts))
    # sleeping is wall clock, not CPU
    assert found["fit_time_cpu_s"] < 0.06
    assert 0.0 < found["search_time_cpu_s"] < 6 * 0.11


def test_candidates_that_failed_are_counted_and_noted(iris):
    learner = EstimatorSpec(Slow, {"fit_s": 0.0}, {"fit_s": (0.0, "long", "longer")})
    found = evaluate_split(iris, 0, Method(EstimatorSpec(FunctionTransformer), learner), Protocol())
    assert found.metrics["search_failures"] == 2.0
    assert found.metrics["grid_size"] == 3.0
    (note,) = [note for note in found.details.notes if "failed" in note]
    assert note.startswith("2 of 3 candidates of the search failed, the first with TypeError: ")
    assert evaluate_split(iris, 0, PLAIN, Protocol()).metrics["search_failures"] == 0.0


def test_a_search_that_was_stopped_says_so(iris):
    learner = EstimatorSpec(Slow, {"fit_s": 0.02}, {"candidate": (0, 1, 2, 3)})
    method = Method(EstimatorSpec(FunctionTransformer), learner)
    found = evaluate_split(iris, 0, method, Protocol(search_timeout_s=0.01))
    assert found.metrics["search_complete"] == 0.0
    assert found.metrics["n_candidates"] == 1.0
    assert "search stopped by its budget of 0.01 s after 1 of 4 candidates" in found.details.notes
    rows = found.details.search
    assert [len(row["values"]) for row in rows] == [3, 0, 0, 0]
    assert [row["converged"] for row in rows] == [True, False, False, False]
    assert evaluate_split(iris, 0, PLAIN, Protocol()).metrics["search_complete"] == 1.0


def test_scores_on_a_part_of_the_folds_are_told_from_those_on_all(iris):
    learner = EstimatorSpec(LogisticRegression, {}, {"C": (0.01, 0.1, 1.0, 10.0)})
    method = Method(EstimatorSpec(FunctionTransformer), learner)
    rows = evaluate_split(iris, 0, method, Protocol(search_method="racing")).details.search
    shares = [row.get("share", 1.0) for row in rows]
    assert [len(row["values"]) for row in rows] == [round(3 * share) for share in shares]
    assert min(shares) < max(shares) == 1.0


def test_a_short_step_is_repeated_and_a_long_one_is_not():
    calls = []
    found = time_step(lambda: calls.append(1))
    assert len(calls) == 5
    assert found.wall < 0.05
    calls.clear()
    time_step(lambda: (calls.append(1), time.sleep(0.06)))
    assert len(calls) == 1


def test_how_often_a_step_is_repeated_decides_no_number():
    drawn = iter(range(100))
    assert time_step(lambda: next(drawn)).value == 0


def test_a_fit_that_did_not_converge_is_said_so(iris):
    learner = EstimatorSpec(LogisticRegression, {"max_iter": 1})
    found = evaluate_split(iris, 0, Method(EstimatorSpec(FunctionTransformer), learner), Protocol())
    assert found.metrics["converged"] == 0.0
    assert any("converge" in note for note in found.details.notes)
    assert evaluate_split(iris, 0, PLAIN, Protocol()).metrics["converged"] == 1.0


def test_missing_values_follow_the_protocol():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[::7, 1] = np.nan
    data = Dataset("holes", X, (X[:, 0] > 0).astype(int))
    with pytest.raises(DatasetError, match="missing values in x1"):
        evaluate_split(data, 0, PLAIN, Protocol())
    dropped = evaluate_split(data, 0, PLAIN, Protocol(missing="drop_rows")).metrics
    assert dropped["n_train"] + dropped["n_test"] == 60 - 9
    imputed = evaluate_split(data, 0, PLAIN, Protocol(missing="impute")).metrics
    assert imputed["n_train"] + imputed["n_test"] == 60
    assert imputed["accuracy"] > 0.8


def test_rows_seen_in_training_are_counted_and_scored_apart():
    X = np.repeat(np.arange(10.0), 10)[:, None]
    data = Dataset("copies", X, np.tile([0, 1], 50))
    found = evaluate_split(data, 0, PLAIN, Protocol()).metrics
    assert found["duplicate_test_fraction"] == 1.0
    assert "accuracy_non_duplicates" not in found
    X = np.arange(100.0)[:, None]
    found = evaluate_split(Dataset("unique", X, np.tile([0, 1], 50)), 0, PLAIN, Protocol()).metrics
    assert found["duplicate_test_fraction"] == 0.0
    assert found["accuracy_non_duplicates"] == found["accuracy"]


def test_rows_seen_without_their_labels_are_seen():
    X = np.array([0.0, 1, 2, 0, 1, 5])[:, None]
    parts = Split(0, train=np.array([0, 2]), test=np.array([3, 4, 5]), unlabeled=np.array([1]))
    data = Dataset("d", X, np.array([0, 0, 1, 0, 0, 1]), splits=[parts])
    protocol = Protocol(cv="official")
    assert assign(data, protocol, 0).seen.tolist() == [True, True, False]
    metrics = evaluate_split(data, 0, PLAIN, protocol).metrics
    assert metrics["duplicate_test_fraction"] == pytest.approx(2 / 3)


def test_a_class_absent_from_training_is_noted():
    y = np.array([0, 1] * 10 + [2])
    data = Dataset("rare", np.arange(21.0)[:, None], y, target_names=["a", "b", "once"])
    notes = [evaluate_split(data, i, PLAIN, Protocol()).details.notes for i in range(5)]
    assert all("fewer than 5 rows of class once" in each for each in notes)
    assert sum("no training row of class once, which is in the test set" in n for n in notes) == 1


def test_a_gram_matrix_is_scored_like_the_data_behind_it(iris):
    K = rbf_kernel(iris.X, gamma=0.5)
    gram = Dataset("gram", K, iris.y, checksum=iris.checksum, pairwise=True)
    identity = EstimatorSpec(FunctionTransformer)
    ours = evaluate_split(
        gram, 0, Method(identity, EstimatorSpec(SVC, {"kernel": "precomputed"})), Protocol()
    )
    peer = evaluate_split(
        iris,
        0,
        Method(identity, EstimatorSpec(SVC, {"gamma": 0.5})),
        Protocol(scaling=("none",)),
    )
    np.testing.assert_array_equal(ours.predictions.predicted, peer.predictions.predicted)


def test_sparse_data_stay_sparse(iris):
    X = scipy.sparse.csr_matrix(np.where(iris.X > 2, iris.X, 0))
    seen = []
    look = EstimatorSpec(
        FunctionTransformer, {"func": lambda X: seen.append(X) or X, "accept_sparse": True}
    )
    found = evaluate_split(
        Dataset("s", X, iris.y), 0, Method(look, EstimatorSpec(LinearSVC)), Protocol()
    )
    assert all(scipy.sparse.issparse(each) for each in seen)
    assert 0 < found.metrics["nnz_per_row"] < 4


def test_metrics_of_plugins_are_taken_on_the_test_part(iris):
    method = Method(
        EstimatorSpec(FunctionTransformer),
        EstimatorSpec(LogisticRegression),
        map_metrics=lambda fitted, X, y: {"rows_of_map": len(X)},
        learner_metrics=lambda fitted, X, y: {"hits": float((fitted.predict(X) == y).mean())},
    )
    found = evaluate_split(iris, 0, method, Protocol()).metrics
    assert found["rows_of_map"] == 30
    assert found["hits"] == found["accuracy"]


@pytest.mark.filterwarnings("error")
def test_a_gram_matrix_of_zeros_has_no_relative_error():
    """All features are constant, and the preprocessing has made them 0."""
    X = np.zeros((4, 2))
    found = gram_error(lambda map_, X, Y: X @ Y.T, FunctionTransformer().fit(X), X)
    assert found == {"effective_dimension": 0.0}


def test_the_gram_error_of_an_exact_map_is_zero_and_of_a_constant_one(iris):
    kernel = lambda fitted, X, Y: X @ Y.T  # noqa: E731
    X = MinMaxScaler().fit_transform(iris.X)
    exact = gram_error(kernel, FunctionTransformer().fit(X), X)
    assert exact["gram_error_frobenius"] == pytest.approx(0, abs=1e-12)
    assert exact["gram_error_spectral"] == pytest.approx(0, abs=1e-12)
    nothing = gram_error(kernel, FunctionTransformer(lambda X: 0 * X).fit(X), X)
    assert nothing["gram_error_frobenius"] == pytest.approx(1)
    assert nothing["gram_error_spectral"] == pytest.approx(1)
    assert exact["effective_dimension"] < 4


def test_stored_numbers_counts_arrays_once_and_sparse_ones_by_their_values():
    class Model:
        pass

    model = Model()
    model.a = np.zeros((3, 4))
    model.again = model.a
    model.parts = [np.zeros(5), {"x": scipy.sparse.eye(7, format="csr")}]
    model.itself = model
    assert count_stored_numbers([model]) == 12 + 5 + 7


def test_the_majority_class_has_the_accuracy_of_its_share():
    y = np.array([0] * 70 + [1] * 30)
    data = Dataset("skewed", np.arange(100.0)[:, None], y)
    method = Method(EstimatorSpec(FunctionTransformer), EstimatorSpec(DummyClassifier))
    found = evaluate_split(data, 0, method, Protocol()).metrics
    assert found["accuracy"] == pytest.approx(0.7)
    assert found["balanced_accuracy"] == pytest.approx(0.5)


class Drawn(DummyClassifier):
    """Draws a label of two with equal chances, and knows what that comes to."""

    def predict(self, X):
        return np.random.default_rng(0).choice(self.classes_, size=len(X))

    def label_probabilities(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


def test_the_expected_error_of_a_rule_that_draws_is_exact(iris):
    method = Method(EstimatorSpec(FunctionTransformer), EstimatorSpec(Drawn))
    found = evaluate_split(iris, 0, method, Protocol())
    assert found.metrics["expected_error"] == pytest.approx(2 / 3)
    assert found.metrics["accuracy"] != pytest.approx(1 / 3, abs=1e-3)


@pytest.mark.parametrize("name", ["expected_error", "accuracy", "fit_time_s", "n_test"])
def test_metrics_of_a_plugin_cannot_overwrite_those_of_kbench(iris, name):
    method = Method(
        EstimatorSpec(FunctionTransformer),
        EstimatorSpec(LogisticRegression),
        learner_metrics=lambda fitted, X, y: {name: 0.125},
    )
    with pytest.raises(PluginError, match=rf"return '{name}', which kbench measures itself"):
        evaluate_split(iris, 0, method, Protocol())


def test_labels_of_the_test_part_are_revealed_after_the_predictions(iris):
    assignment = assign(iris, Protocol(), 0)
    secret = np.arange(len(assignment.y_test)) % 3
    assignment = replace(assignment, y_test=secret)
    order = []

    class Spy(LogisticRegression):
        def predict(self, X):
            order.append("predict")
            return super().predict(X)

    def metrics(fitted, X, y):
        order.append("metrics")
        return {"hits": float((y == secret).all())}

    def reveal(committed):
        order.append("reveal")
        return assignment.y_test

    method = Method(EstimatorSpec(FunctionTransformer), EstimatorSpec(Spy), learner_metrics=metrics)
    found, _ = run_split(
        Inputs.make(iris), assignment.visible, method, Protocol(inner_folds=2), reveal
    )
    assert order[-2:] == ["reveal", "metrics"]
    assert "reveal" not in order[:-2]
    assert found["hits"] == 1.0
    assert "accuracy" not in found


class Recorded(BaseEstimator):
    """Map and learner in one: notes its calls and the largest value that each one gets."""

    calls: list = []  # noqa: RUF012

    def __init__(self, part=None):
        self.part = part

    def note(self, call, X, y=None):
        classes = 0 if y is None else len(np.unique(y))
        Recorded.calls.append((call, len(X), float(X.max()), classes))

    def fit(self, X, y=None):
        self.note("fit map" if y is None else "fit learner", X, y)
        return self

    def transform(self, X):
        self.note("transform", X)
        return X + 10.0

    def predict(self, X):
        self.note("predict", X)
        return np.zeros(len(X), dtype=int)


@pytest.fixture
def calls(monkeypatch):
    # a long step is not repeated
    monkeypatch.setattr("kbench.evaluation.timing.SHORT_S", 0.0)
    Recorded.calls.clear()
    return Recorded.calls


RECORDED = Method(EstimatorSpec(Recorded), EstimatorSpec(Recorded))


def test_a_warm_up_runs_every_step_on_a_few_rows_of_every_class(calls):
    y = np.repeat([0, 1, 2], [300, 194, 6])
    data = Dataset("sorted", np.arange(500.0)[:, None], y)
    evaluate_split(data, 0, RECORDED, Protocol())
    steps = [(call, rows, classes) for call, rows, _, classes in calls]
    few = steps[0][1]
    assert 195 <= few <= 200
    assert steps[:5] == [
        ("fit map", few, 0),
        ("transform", few, 0),
        ("fit learner", few, 3),
        ("transform", few, 0),
        ("predict", few, 0),
    ]
    assert steps[5:] == [
        ("fit map", 400, 0),
        ("transform", 400, 0),
        ("fit learner", 400, 3),
        ("transform", 100, 0),
        ("predict", 100, 0),
    ]
    # the learner gets what the map returns, in the warm-up too
    assert all(most >= 10.0 for call, _, most, _ in calls if call in ("fit learner", "predict"))


def test_a_warm_up_has_some_of_many_columns(monkeypatch):
    widths = []

    class Wide(FunctionTransformer):
        def fit(self, X, y=None):
            widths.append(X.shape[1])
            return super().fit(X, y)

    X = np.random.default_rng(0).normal(size=(40, 2500))
    data = Dataset("wide", X, np.arange(40) % 2)
    monkeypatch.setattr("kbench.evaluation.timing.SHORT_S", 0.0)
    evaluate_split(data, 0, Method(EstimatorSpec(Wide), EstimatorSpec(Recorded)), Protocol())
    assert widths == [1000, 2500]


def test_unlabelled_rows_are_preprocessed_as_the_others(calls):
    X = np.arange(60.0)[:, None]
    parts = Split(0, np.arange(20), np.arange(20, 30), np.arange(30, 60))
    data = Dataset("line", X, np.arange(60) % 2, splits=[parts])
    evaluate_split(data, 0, RECORDED, Protocol(cv="official"))
    fits = [(rows, most) for call, rows, most, _ in calls if call == "fit map"]
    # scaled by training and unlabeled rows together
    assert fits == [(30, 1.0), (30, 1.0)]


def test_details_show_components_by_name_and_parameters_and_in_lists_by_label(iris):
    scale = Nested(dict, {"factor": 0.5}, "scale", "scale(factor=0.5)")
    spec = EstimatorSpec(Recorded, space={"part": ((1, scale), scale, None)})
    found = evaluate_split(iris, 0, Method(spec, EstimatorSpec(Recorded)), Protocol()).details
    assert found.chosen == {"scaling": "minmax", "feature_map.part": [1, "scale(factor=0.5)"]}
    shown = [row["feature_map.part"] for row in found.search]
    assert shown == [[1, "scale(factor=0.5)"], "scale", None]
    factors = [row.get("feature_map.part.factor") for row in found.search]
    assert factors == [None, 0.5, None]


def test_the_default_candidate_is_scored_on_the_test_part(iris):
    learner = EstimatorSpec(
        LogisticRegression, {"tol": 1e-10}, {"C": (1e-4, 1e-2, 10.0)}, path=None
    )
    found = evaluate_split(iris, 0, Method(EstimatorSpec(FunctionTransformer), learner), Protocol())
    untuned = EstimatorSpec(LogisticRegression, {"tol": 1e-10, "C": 1e-4})
    alone = evaluate_split(iris, 0, Method(EstimatorSpec(FunctionTransformer), untuned), Protocol())
    of_default = {k.removeprefix("default_") for k in found.metrics if k.startswith("default_")}
    assert of_default == METRICS.keys() & found.metrics.keys()
    for name in of_default:
        assert found.metrics[f"default_{name}"] == alone.metrics[name]
    assert found.metrics["default_accuracy"] < found.metrics["accuracy"]
    # nothing was searched: there is nothing to compare
    assert not any(name.startswith("default_") for name in alone.metrics)


def test_the_default_candidate_may_be_the_best(iris):
    learner = EstimatorSpec(LogisticRegression, space={"C": (10.0, 1e-4)})
    metrics = evaluate_split(
        iris, 0, Method(EstimatorSpec(FunctionTransformer), learner), Protocol()
    ).metrics
    assert metrics["default_accuracy"] == metrics["accuracy"]
    assert metrics["default_log_loss"] == metrics["log_loss"]


def test_a_default_that_cannot_be_fitted_is_a_note(iris):
    wide = EstimatorSpec(SelectKBest, space={"k": ("none", 2)}, supervised=True)
    found = evaluate_split(iris, 0, Method(wide, EstimatorSpec(LogisticRegression)), Protocol())
    assert any(note.startswith("the default parameters fail: ") for note in found.details.notes)
    assert "accuracy" in found.metrics
    assert "default_accuracy" not in found.metrics


def test_a_default_learner_that_cannot_be_fitted_is_a_note(iris):
    learner = EstimatorSpec(LogisticRegression, space={"C": (-1.0, 1.0)})
    method = Method(EstimatorSpec(FunctionTransformer), learner)
    found = evaluate_split(iris, 0, method, Protocol())
    assert any(note.startswith("the default parameters fail: ") for note in found.details.notes)
    assert "default_accuracy" not in found.metrics


def test_the_default_candidate_shares_the_map_and_a_search_is_the_warm_up(calls, iris):
    learner = EstimatorSpec(LogisticRegression, space={"C": (1e-4, 10.0)})
    found = evaluate_split(iris, 0, Method(EstimatorSpec(Recorded), learner), Protocol())
    assert found.details.chosen["learner.C"] == 10.0
    assert "default_accuracy" in found.metrics
    assert [rows for call, rows, _, _ in calls if call == "fit map"] == [80, 80, 80, 120]


def test_a_search_of_one_candidate_takes_the_default(iris):
    learner = EstimatorSpec(LogisticRegression, space={"C": (0.01, 10.0)})
    one = Protocol(search_method="random", n_candidates=1)
    found = evaluate_split(iris, 0, Method(EstimatorSpec(FunctionTransformer), learner), one)
    assert found.details.chosen["learner.C"] == 0.01
    assert found.details.at_boundary == []
    assert found.metrics["n_candidates"] == 1


class Talkative(FunctionTransformer):
    """A map that says something of itself."""

    said: ClassVar = {"weights": [1.0, 0.5]}

    def fit(self, X, y=None):
        self.details_ = self.said
        return super().fit(X, y)


class Garrulous(Talkative):
    """A map that says what no journal can hold."""

    said: ClassVar = {"weights": np.ones(2)}


def test_details_have_what_a_fitted_map_says_of_itself(iris):
    learner = EstimatorSpec(LogisticRegression)
    protocol = Protocol(n_folds=2)
    evaluation = evaluate_split(iris, 0, Method(EstimatorSpec(Talkative), learner), protocol)
    assert evaluation.details.map_details == {"weights": [1.0, 0.5]}
    with pytest.raises(PluginError, match="must be plain JSON values"):
        evaluate_split(iris, 0, Method(EstimatorSpec(Garrulous), learner), protocol)
