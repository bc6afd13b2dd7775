"""What maps and learners return is checked before anything is computed from it."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

from kbench import Dataset, PluginError, Protocol
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec

IRIS = Dataset("iris", *load_iris(return_X_y=True))


class Learner(LogisticRegression):
    """Right in all it says; what its methods return may be spoilt."""

    spoil = None

    def predict(self, X):
        labels = super().predict(X)
        return self.spoil[1](labels) if self.spoil[0] == "predict" else labels

    def predict_proba(self, X):
        values = super().predict_proba(X)
        return self.spoil[1](values) if self.spoil[0] == "predict_proba" else values


class DecisionLearner(Learner):
    predict_proba = property()

    def predict(self, X):
        return self.classes_[super().decision_function(X).argmax(axis=1)]

    def decision_function(self, X):
        return self.spoil[1](super().decision_function(X))


class Map(TransformerMixin, BaseEstimator):
    spoil = None

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return self.spoil(X)


def spoilt(base, method, change):
    return type("Spoilt", (base,), {"spoil": (method, change)})


def with_nan(values):
    values = np.array(values, dtype=float)
    values.flat[len(values) // 3 :: 3] = np.nan
    return values


def evaluated(learner, feature_map=FunctionTransformer, **space):
    method = Method(
        EstimatorSpec(feature_map, label="feature map 'bad-map'"),
        EstimatorSpec(learner, space=space, label="learner 'bad-learner'"),
    )
    return evaluate_split(IRIS, 0, method, Protocol())


@pytest.mark.parametrize(
    ("change", "returned"),
    [
        (lambda y: y[:, None], r"an array of shape \(30, 1\) and dtype int64"),
        (lambda y: y[:1], r"an array of shape \(1,\) and dtype int64"),
        (lambda y: y[0], r"an array of shape \(\) and dtype int64"),
        (lambda y: y.astype(str), r"an array of shape \(30,\) and dtype <U21"),
        (lambda y: y.astype(float), r"an array of shape \(30,\) and dtype float64"),
        (with_nan, r"an array of shape \(30,\) and dtype float64"),
        (lambda y: y + 1, r"the label (np\.int64\()?3"),
        (lambda y: None, "a NoneType"),
        (lambda y: [*list(y), 0], "a list of length 31"),
    ],
)
def test_labels_that_are_not_one_class_per_row(change, returned):
    learner = spoilt(Learner, "predict", change)
    with pytest.raises(
        PluginError, match=rf"^learner 'bad-learner' returned {returned}.* 30 labels"
    ):
        evaluated(learner)


@pytest.mark.parametrize(
    ("change", "returned"),
    [
        (lambda p: np.full_like(p, 50.0), "50"),
        (lambda p: -p, "-"),
        (lambda p: p * 0.999, "a row with the sum 0.999"),
        (lambda p: p[:, :2], r"an array of shape \(30, 2\)"),
        (lambda p: p[:-1], r"an array of shape \(29, 3\)"),
        (with_nan, "the value nan"),
        (lambda p: p.astype(str), "an array of shape"),
        (lambda p: (p > 0.5).astype(int), "an array of shape .* and dtype int64"),
    ],
)
def test_probabilities_that_are_not_distributions(change, returned):
    learner = spoilt(Learner, "predict_proba", change)
    message = rf"^predict_proba of learner 'bad-learner' returned {returned}.*rows sum to 1$"
    with pytest.raises(PluginError, match=message):
        evaluated(learner)


@pytest.mark.parametrize("factor", [0.9, 1.01])
def test_one_row_that_is_no_distribution_is_enough(factor):
    def change(p):
        p = p / 2 + 1 / 6  # away from 1
        p[7] *= factor
        return p

    with pytest.raises(PluginError, match=f"returned a row with the sum {factor}; expected"):
        evaluated(spoilt(Learner, "predict_proba", change))


def test_probabilities_are_rounded_as_their_type_is():
    exact = evaluated(spoilt(Learner, "predict_proba", lambda p: p)).metrics["log_loss"]
    for change in (lambda p: p.astype(np.float32) * np.float32(1.0005), lambda p: p * (1 + 5e-7)):
        near = evaluated(spoilt(Learner, "predict_proba", change)).metrics["log_loss"]
        assert near == pytest.approx(exact, abs=1e-3)
    for change in (lambda p: p.astype(np.float32) * np.float32(1.002), lambda p: p * (1 + 5e-6)):
        with pytest.raises(PluginError, match="a row with the sum 1"):
            evaluated(spoilt(Learner, "predict_proba", change))


@pytest.mark.parametrize(
    ("change", "returned"),
    [
        (with_nan, "the value nan"),
        (lambda d: d / 0.0, "the value -?inf"),
        (lambda d: d[1:], r"an array of shape \(29, 3\)"),
        (lambda d: d + 1j, "an array of shape .* and dtype complex128"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_decision_values_that_are_not_finite_numbers(change, returned):
    learner = spoilt(DecisionLearner, "decision_function", change)
    message = rf"^learner 'bad-learner' returned {returned}.* from decision_function; expected 30"
    with pytest.raises(PluginError, match=message):
        evaluated(learner)


@pytest.mark.parametrize(
    ("change", "returned"),
    [
        (with_nan, "the value nan"),
        (lambda X: X[:-1], r"an array of shape \((119|29), 4\)"),
        (lambda X: X[:, 0], r"an array of shape \((120|30),\)"),
        (lambda X: X + 1j, "an array of shape .* and dtype complex128"),
        (lambda X: scipy.sparse.csr_matrix(with_nan(X)), "the value nan"),
        (lambda X: X.astype(object), "an array of shape .* and dtype object"),
        (lambda X: X.tolist(), "a list of length (120|30)"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_embeddings_that_are_not_finite_rows(change, returned):
    feature_map = type("Spoilt", (Map,), {"spoil": staticmethod(change)})

    class Lenient(LogisticRegression):
        """Takes whatever a map gives."""

        def fit(self, X, y):
            return super().fit(np.zeros((len(y), 2)), y)

        def predict(self, X):
            return super().predict(np.zeros((X.shape[0], 2)))

    with pytest.raises(PluginError, match=rf"^feature map 'bad-map' returned {returned}.* rows of"):
        evaluated(Lenient, feature_map)


def test_a_search_refuses_the_same_predictions():
    learner = spoilt(Learner, "predict", lambda y: y[:, None])
    with pytest.raises(
        PluginError, match=r"learner 'bad-learner' returned an array of shape \(\d+, 1\)"
    ):
        evaluated(learner, C=(0.1, 1.0))


def test_large_but_finite_values_pass():
    huge = type("Huge", (Map,), {"spoil": staticmethod(lambda X: X * 1e307)})

    class Constant(BaseEstimator):
        def fit(self, X, y):
            self.label_ = y[0]
            return self

        def predict(self, X):
            return np.full(len(X), self.label_)

    assert evaluated(Constant, huge).metrics["accuracy"] == pytest.approx(1 / 3)
