"""A search by a metric that is not defined on each inner fold."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import FunctionTransformer

from kbench import DatasetError, Protocol
from kbench.evaluation.embedding import Data
from kbench.evaluation.specs import EstimatorSpec
from tests.support.searches import search

PROTOCOL = Protocol(search_metric="roc_auc")
LEARNER = EstimatorSpec(GaussianNB, {}, {"var_smoothing": (1e-9, 1.0)})
MAP = EstimatorSpec(FunctionTransformer)


def test_inner_folds_of_one_class_are_left_out():
    # two rows of class 1: one of three folds has none
    X = np.arange(12.0)[:, None]
    y = np.array([0] * 10 + [1] * 2)
    found = search(MAP, LEARNER, Data(X, y), PROTOCOL, 0)
    assert [len(score.values) for score in found.scores] == [2, 2]
    assert all(0.0 <= value <= 1.0 for score in found.scores for value in score.values)


def test_a_search_whose_metric_is_defined_on_no_fold_says_so():
    X, y = np.arange(6.0)[:, None], np.zeros(6, dtype=int)
    with pytest.raises(DatasetError, match="'roc_auc' is not defined on any inner fold"):
        search(MAP, LEARNER, Data(X, y), PROTOCOL, 0)
