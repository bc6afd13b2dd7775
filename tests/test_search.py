import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC

from kbench import Protocol
from kbench.search import Component, Data, Nested, candidates, has_converged, search
from kbench.splits import derive_seed, stratified_folds


class Identity(TransformerMixin, BaseEstimator):
    """Counts how often it is fitted, and on how many rows."""

    fits: list = []  # noqa: RUF012

    def __init__(self, width=1):
        self.width = width

    def fit(self, X, y=None):
        Identity.fits.append((self.width, len(X), y is not None))
        return self

    def transform(self, X):
        return X


class Threshold(ClassifierMixin, BaseEstimator):
    """Predicts ``x > cut``; may refuse to fit, or not converge."""

    def __init__(self, cut=0.5, fail=False, converge=True):
        self.cut = cut
        self.fail = fail
        self.converge = converge

    def fit(self, X, y):
        if self.fail:
            raise ValueError(f"cannot fit with cut={self.cut}")
        if not self.converge:
            warnings.warn("not enough iterations", ConvergenceWarning, stacklevel=2)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return (X[:, 0] > self.cut).astype(int)

    def fit_path(self, X, y, cuts):
        fitted = [Threshold(cut).fit(X, y) for cut in cuts]
        for each in fitted:
            each.on_path_ = len(cuts)
            each.converged_ = each.cut != 0.3
        return fitted


@pytest.fixture
def line():
    rng = np.random.default_rng(0)
    X = rng.random((60, 1))
    return Data(X, (X[:, 0] > 0.5).astype(int))


@pytest.fixture(autouse=True)
def no_fits_yet():
    Identity.fits.clear()


RAW = Protocol(preprocess=("none",))


def test_the_best_candidate_is_found(line):
    learner = Component(Threshold, space={"cut": (0.1, 0.5, 0.9)})
    found = search(Component(Identity), learner, line, RAW, seed=0)
    assert found.best.params == {"preprocess": "none", "learner.cut": 0.5}
    assert [len(score.accuracies) for score in found.scores] == [3, 3, 3]
    assert found.converged == 1.0


def test_nothing_to_choose_costs_nothing(line):
    found = search(Component(Identity), Component(Threshold), line, RAW, seed=0)
    assert found.scores == []
    assert (found.seconds, found.cpu_seconds) == (0.0, 0.0)
    assert not Identity.fits


def test_each_map_is_fitted_once_per_fold_whatever_the_learners(line):
    feature_map = Component(Identity, space={"width": (1, 2)})
    learner = Component(Threshold, space={"cut": (0.1, 0.5, 0.9)})
    search(feature_map, learner, line, RAW, seed=0)
    assert sorted(Identity.fits) == sorted([(1, 40, False), (2, 40, False)] * 3)


def test_only_supervised_maps_see_the_labels(line):
    feature_map = Component(Identity, supervised=True)
    search(feature_map, Component(Threshold, space={"cut": (0.4, 0.5)}), line, RAW, seed=0)
    assert all(saw_labels for _, _, saw_labels in Identity.fits)


def test_maps_are_fitted_on_unlabelled_rows_where_there_are_any(line):
    data = Data(line.X, line.y, unlabelled=np.zeros((7, 1)))
    search(Component(Identity), Component(Threshold, space={"cut": (0.4, 0.5)}), data, RAW, seed=0)
    assert {rows for _, rows, _ in Identity.fits} == {7}


def test_a_path_gives_the_same_choice_as_single_fits(line):
    space = {"cut": (0.1, 0.3, 0.5, 0.9)}
    one = search(Component(Identity), Component(Threshold, space=space), line, RAW, seed=0)
    path = Component(Threshold, space=space, path="cut")
    other = search(Component(Identity), path, line, RAW, seed=0)
    assert other.best == one.best
    assert [s.accuracies for s in other.scores] == [s.accuracies for s in one.scores]
    # each fit of a path says for itself whether it converged
    assert [all(s.converged) for s in other.scores] == [True, False, True, True]
    assert other.converged == 0.75


def test_a_candidate_that_fails_is_out_and_says_why(line):
    learner = Component(Threshold, space={"fail": (True, False)})
    found = search(Component(Identity), learner, line, RAW, seed=0)
    assert found.best.learner == {"fail": False}
    assert found.scores[0].error == "ValueError: cannot fit with cut=0.5"


def test_if_all_fail_the_first_error_is_raised(line):
    learner = Component(Threshold, {"fail": True}, {"cut": (0.1, 0.2)})
    with pytest.raises(ValueError, match=r"cannot fit with cut=0\.1"):
        search(Component(Identity), learner, line, RAW, seed=0)


def test_fits_that_do_not_converge_are_counted(line):
    learner = Component(Threshold, space={"converge": (True, False)})
    assert search(Component(Identity), learner, line, RAW, seed=0).converged == 0.5


def test_the_same_choice_and_scores_as_grid_search_of_a_pipeline():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 4)) * [1, 10, 0.1, 5]
    y = (X[:, 0] * X[:, 2] > 0).astype(int)
    protocol, seed = Protocol(preprocess=("minmax",)), 3
    feature_map = Component(Nystroem, {"n_components": 20}, {"gamma": (0.1, 1.0, 10.0)})
    learner = Component(LinearSVC, {"dual": False}, {"C": (0.1, 10.0)})
    found = search(feature_map, learner, Data(X, y), protocol, seed)

    fold_of = np.empty(len(y), dtype=int)
    for fold, (_, test) in enumerate(stratified_folds(y, 3, derive_seed(seed, "inner"))):
        fold_of[test] = fold
    pipeline = make_pipeline(
        MinMaxScaler(clip=True),
        Nystroem(n_components=20, random_state=derive_seed(seed, "map")),
        LinearSVC(dual=False, random_state=derive_seed(seed, "learner")),
    )
    grid = {"nystroem__gamma": [0.1, 1.0, 10.0], "linearsvc__C": [0.1, 10.0]}
    peer = GridSearchCV(pipeline, grid, cv=PredefinedSplit(fold_of)).fit(X, y)
    ours = {
        (s.candidate.feature_map["gamma"], s.candidate.learner["C"]): s.mean for s in found.scores
    }
    for params, score in zip(
        peer.cv_results_["params"], peer.cv_results_["mean_test_score"], strict=True
    ):
        key = (params["nystroem__gamma"], params["linearsvc__C"])
        assert ours[key] == pytest.approx(score, abs=1e-12)


def test_a_random_search_draws_the_number_asked_for_and_no_candidate_twice():
    protocol = Protocol(search="random", n_candidates=5)
    feature_map = Component(Identity, space={"width": (1, 2, 3)})
    learner = Component(Threshold, space={"cut": (0.1, 0.2, 0.3)})
    drawn = candidates(feature_map, learner, protocol, seed=1)
    assert len(drawn) == 5
    assert len({str(each.params) for each in drawn}) == 5
    assert drawn == candidates(feature_map, learner, protocol, seed=1)
    assert drawn != candidates(feature_map, learner, protocol, seed=2)
    assert len(candidates(feature_map, learner, Protocol(), seed=1)) == 9


def test_the_preprocessing_can_be_searched_too(line):
    protocol = Protocol(preprocess=("none", "minmax"))
    found = search(Component(Identity), Component(Threshold), line, protocol, seed=0)
    assert {score.candidate.preprocess for score in found.scores} == {"none", "minmax"}


def test_the_edge_of_a_numeric_grid_is_flagged(line):
    at_end = Component(Threshold, space={"cut": (0.5, 0.7, 0.9)})
    assert search(Component(Identity), at_end, line, RAW, 0).at_edge == ["learner.cut"]
    inside = Component(Threshold, space={"cut": (0.1, 0.5, 0.9)})
    assert search(Component(Identity), inside, line, RAW, 0).at_edge == []


def test_components_can_be_searched_over_as_numbers_can(line):
    kernels = tuple(Nested(dict, {"a": a}, f"dict(a={a})") for a in (1, 2, 3))
    found = search(
        Component(Identity, space={"width": kernels}), Component(Threshold), line, RAW, seed=0
    )
    assert len(found.scores) == 3
    assert found.at_edge == []


def test_equal_rows_stay_together_in_the_inner_folds_too():
    X = np.repeat(np.arange(20.0), 5)[:, None]
    y = np.random.default_rng(0).integers(0, 2, size=100)
    learner = Component(KNeighborsClassifier, space={"n_neighbors": (1, 15)})
    apart = Protocol(preprocess=("none",), splits="group_duplicates")
    memorised, honest = (
        search(Component(Identity), learner, Data(X, y), protocol, seed=0).scores[0].mean
        for protocol in (RAW, apart)
    )
    assert memorised > honest


def test_a_gram_matrix_is_sliced_in_rows_and_columns():
    gram = np.arange(16.0).reshape(4, 4)
    data = Data(gram, np.array([0, 1, 0, 1]), pairwise=True)
    np.testing.assert_array_equal(data.rows(np.array([0, 2])), gram[np.ix_([0, 2], [0, 2])])
    columns = np.array([0, 2])
    np.testing.assert_array_equal(data.rows(np.array([3]), columns), gram[np.ix_([3], columns)])


def test_a_nested_component_is_made_anew_and_seeds_are_given_only_where_none_is():
    component = Component(
        Nystroem, {"kernel": Nested(dict, {"a": 1}, "dict(a=1)"), "random_state": None}
    )
    one, other = component.build({}, seed=5), component.build({}, seed=5)
    assert one.kernel == {"a": 1}
    assert one.kernel is not other.kernel
    assert one.random_state is None
    assert Component(Nystroem).build({}, seed=5).random_state == 5


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [({}, True), ({"converged_": False}, False), ({"fit_status_": 1}, False)],
)
def test_convergence_is_what_an_estimator_says_of_itself(attributes, expected):
    estimator = Threshold()
    vars(estimator).update(attributes)
    assert has_converged(estimator, []) is expected
