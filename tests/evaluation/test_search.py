import warnings
from dataclasses import replace

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

from kbench import DatasetError, Protocol
from kbench.evaluation.embedding import Data, has_converged
from kbench.evaluation.search import candidates
from kbench.evaluation.search._racing import survivors
from kbench.evaluation.search._result import Score, SearchResult, choose_score
from kbench.evaluation.specs import Candidate, EstimatorSpec, Nested
from kbench.evaluation.splits import derive_seed, stratified_folds
from kbench.records import ACCURACY
from kbench_learners import LinearSVM
from tests.support.searches import search


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


RAW = Protocol(scaling=("none",))


def test_the_best_candidate_is_found(line):
    learner = EstimatorSpec(Threshold, space={"cut": (0.1, 0.5, 0.9)})
    found = search(EstimatorSpec(Identity), learner, line, RAW, seed=0)
    assert found.best.params == {"scaling": "none", "learner.cut": 0.5}
    assert [len(score.values) for score in found.scores] == [3, 3, 3]
    assert found.converged == 1.0


def test_nothing_to_choose_costs_nothing(line):
    found = search(EstimatorSpec(Identity), EstimatorSpec(Threshold), line, RAW, seed=0)
    assert found.scores == []
    assert (found.seconds, found.cpu_seconds) == (0.0, 0.0)
    assert not Identity.fits


def test_each_map_is_fitted_once_per_fold_whatever_the_learners(line):
    feature_map = EstimatorSpec(Identity, space={"width": (1, 2)})
    learner = EstimatorSpec(Threshold, space={"cut": (0.1, 0.5, 0.9)})
    search(feature_map, learner, line, RAW, seed=0)
    assert sorted(Identity.fits) == sorted([(1, 40, False), (2, 40, False)] * 3)


def test_only_supervised_maps_see_the_labels(line):
    feature_map = EstimatorSpec(Identity, supervised=True)
    search(feature_map, EstimatorSpec(Threshold, space={"cut": (0.4, 0.5)}), line, RAW, seed=0)
    assert all(saw_labels for _, _, saw_labels in Identity.fits)


def test_maps_are_fitted_on_unlabelled_rows_where_there_are_any(line):
    data = Data(line.X, line.y, unlabeled=np.zeros((7, 1)))
    search(
        EstimatorSpec(Identity),
        EstimatorSpec(Threshold, space={"cut": (0.4, 0.5)}),
        data,
        RAW,
        seed=0,
    )
    assert {rows for _, rows, _ in Identity.fits} == {7}


def test_a_path_gives_the_same_choice_as_single_fits(line):
    space = {"cut": (0.1, 0.3, 0.5, 0.9)}
    one = search(EstimatorSpec(Identity), EstimatorSpec(Threshold, space=space), line, RAW, seed=0)
    path = EstimatorSpec(Threshold, space=space, path="cut")
    other = search(EstimatorSpec(Identity), path, line, RAW, seed=0)
    assert other.best == one.best
    assert [s.values for s in other.scores] == [s.values for s in one.scores]
    # each fit of a path says for itself whether it converged
    assert [all(s.converged) for s in other.scores] == [True, False, True, True]
    assert other.converged == 0.75


def test_a_candidate_that_fails_is_out_and_says_why(line):
    learner = EstimatorSpec(Threshold, space={"fail": (True, False)})
    found = search(EstimatorSpec(Identity), learner, line, RAW, seed=0)
    assert found.best.learner == {"fail": False}
    assert found.scores[0].error == "ValueError: cannot fit with cut=0.5"


def test_a_value_that_fails_does_not_fail_the_others_of_its_path(line, monkeypatch):
    def fit_path(self, X, y, cuts):
        if 0.9 in cuts:
            raise ValueError("cut=0.9 is too much")
        return [Threshold(cut).fit(X, y) for cut in cuts]

    monkeypatch.setattr(Threshold, "fit_path", fit_path)
    monkeypatch.setattr(Threshold, "fit", fit_unless_too_high)
    learner = EstimatorSpec(Threshold, space={"cut": (0.9, 0.1, 0.5)}, path="cut")
    found = search(EstimatorSpec(Identity), learner, line, RAW, seed=0)
    assert found.best.learner == {"cut": 0.5}
    assert [bool(score.error) for score in found.scores] == [True, False, False]
    assert [score.error for score in found.failures] == ["ValueError: cut=0.9 is too much"]


def fit_unless_too_high(self, X, y):
    if self.cut == 0.9:
        raise ValueError("cut=0.9 is too much")
    self.classes_ = np.unique(y)
    return self


def test_a_candidate_whose_features_are_not_finite_is_out(line):
    class Scaled(Identity):
        def transform(self, X):
            with np.errstate(over="ignore"):
                return X * self.width

    feature_map = EstimatorSpec(Scaled, space={"width": (np.inf, 1.0)}, label="map 'scaled'")
    found = search(feature_map, EstimatorSpec(Threshold), line, RAW, seed=0)
    assert found.best.feature_map == {"width": 1.0}
    (failure,) = found.failures
    assert failure.error.startswith("PluginError: map 'scaled' returned ")


def test_if_all_fail_the_first_error_is_raised(line):
    learner = EstimatorSpec(Threshold, {"fail": True}, {"cut": (0.1, 0.2)})
    with pytest.raises(ValueError, match=r"cannot fit with cut=0\.1"):
        search(EstimatorSpec(Identity), learner, line, RAW, seed=0)


def test_fits_that_do_not_converge_are_counted(line):
    learner = EstimatorSpec(Threshold, space={"converge": (True, False)})
    assert search(EstimatorSpec(Identity), learner, line, RAW, seed=0).converged == 0.5


def test_the_same_choice_and_scores_as_grid_search_of_a_pipeline():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 4)) * [1, 10, 0.1, 5]
    y = (X[:, 0] * X[:, 2] > 0).astype(int)
    protocol, seed = Protocol(scaling=("minmax",)), 3
    feature_map = EstimatorSpec(Nystroem, {"n_components": 20}, {"gamma": (0.1, 1.0, 10.0)})
    learner = EstimatorSpec(LinearSVC, {"dual": False}, {"C": (0.1, 10.0)})
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
        (s.candidate.feature_map["gamma"], s.candidate.learner["C"]): s.gain for s in found.scores
    }
    for params, score in zip(
        peer.cv_results_["params"], peer.cv_results_["mean_test_score"], strict=True
    ):
        key = (params["nystroem__gamma"], params["linearsvc__C"])
        assert ours[key] == pytest.approx(score, abs=1e-12)


def test_a_random_search_draws_the_number_asked_for_and_no_candidate_twice():
    protocol = Protocol(search_method="random", n_candidates=5)
    feature_map = EstimatorSpec(Identity, space={"width": (1, 2, 3)})
    learner = EstimatorSpec(Threshold, space={"cut": (0.1, 0.2, 0.3)})
    drawn = candidates(feature_map, learner, protocol, seed=1)
    assert len(drawn) == 5
    assert len({str(each.params) for each in drawn}) == 5
    assert drawn == candidates(feature_map, learner, protocol, seed=1)
    assert drawn != candidates(feature_map, learner, protocol, seed=2)
    assert len(candidates(feature_map, learner, Protocol(), seed=1)) == 9


def test_the_preprocessing_can_be_searched_too(line):
    protocol = Protocol(scaling=("none", "minmax"))
    found = search(EstimatorSpec(Identity), EstimatorSpec(Threshold), line, protocol, seed=0)
    assert {score.candidate.scaling for score in found.scores} == {"none", "minmax"}


def test_the_edge_of_a_numeric_grid_is_flagged(line):
    at_end = EstimatorSpec(Threshold, space={"cut": (0.5, 0.7, 0.9)})
    assert search(EstimatorSpec(Identity), at_end, line, RAW, 0).at_boundary == ["learner.cut"]
    inside = EstimatorSpec(Threshold, space={"cut": (0.1, 0.5, 0.9)})
    assert search(EstimatorSpec(Identity), inside, line, RAW, 0).at_boundary == []


def test_components_can_be_searched_over_as_numbers_can(line):
    kernels = tuple(Nested(dict, {"a": a}, "dict", f"dict(a={a})") for a in (1, 2, 3))
    found = search(
        EstimatorSpec(Identity, space={"width": kernels}),
        EstimatorSpec(Threshold),
        line,
        RAW,
        seed=0,
    )
    assert [score.candidate.params["feature_map.width.a"] for score in found.scores] == [1, 2, 3]


def test_components_whose_labels_are_equal_are_told_apart(line):
    """Numbers in labels are rounded."""
    values = (0.12345678, 0.12345679)
    kernels = tuple(Nested(dict, {"a": a}, "dict", "dict(a=0.123457)") for a in values)
    search(
        EstimatorSpec(Identity, space={"width": kernels}),
        EstimatorSpec(Threshold),
        line,
        RAW,
        seed=0,
    )
    widths = [width["a"] for width, _, _ in Identity.fits]
    assert widths == [0.12345678] * 3 + [0.12345679] * 3


def test_equal_rows_stay_together_in_the_inner_folds_too():
    X = np.repeat(np.arange(20.0), 5)[:, None]
    y = np.random.default_rng(0).integers(0, 2, size=100)
    learner = EstimatorSpec(KNeighborsClassifier, space={"n_neighbors": (1, 15)})
    apart = Protocol(scaling=("none",), cv="group_duplicates")
    memorised, honest = (
        search(EstimatorSpec(Identity), learner, Data(X, y), protocol, seed=0).scores[0].gain
        for protocol in (RAW, apart)
    )
    assert memorised > honest


def test_a_gram_matrix_is_sliced_in_rows_and_columns():
    gram = np.arange(16.0).reshape(4, 4)
    data = Data(gram, np.array([0, 1, 0, 1]), pairwise=True)
    rows = np.array([0, 2])
    np.testing.assert_array_equal(data.rows(rows, rows), gram[np.ix_([0, 2], [0, 2])])
    columns = np.array([0, 2])
    np.testing.assert_array_equal(data.rows(np.array([3]), columns), gram[np.ix_([3], columns)])


def test_a_nested_component_is_made_anew_and_seeds_are_given_only_where_none_is():
    component = EstimatorSpec(
        Nystroem, {"kernel": Nested(dict, {"a": 1}, "dict", "dict(a=1)"), "random_state": None}
    )
    one, other = component.build({}, seed=5), component.build({}, seed=5)
    assert one.kernel == {"a": 1}
    assert one.kernel is not other.kernel
    assert one.random_state is None
    assert EstimatorSpec(Nystroem).build({}, seed=5).random_state == 5


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [({}, True), ({"converged_": False}, False), ({"fit_status_": 1}, False)],
)
def test_convergence_is_what_an_estimator_says_of_itself(attributes, expected):
    estimator = Threshold()
    vars(estimator).update(attributes)
    assert has_converged(estimator, []) is expected


def test_a_fold_without_the_second_class_says_so():
    y = np.zeros(12, dtype=int)
    y[3] = 1
    data = Data(np.random.default_rng(0).random((12, 2)), y)
    with pytest.raises(ValueError, match="y has 1 class"):
        search(
            EstimatorSpec(Identity), EstimatorSpec(LinearSVM, {}, {"C": (1.0, 8.0)}), data, RAW, 0
        )


def test_a_class_that_is_missing_in_one_fold_only_costs_its_row():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    y = (X[:, 0] > 0.5).astype(int)
    y[3] = 2
    learner = EstimatorSpec(LinearSVM, {}, {"C": (1.0, 8.0)}, path="C")
    found = search(EstimatorSpec(Identity), learner, Data(X, y), RAW, 0)
    assert not any(score.error for score in found.scores)
    assert found.converged == 1.0


def test_fewer_rows_than_inner_folds_are_refused():
    data = Data(np.random.default_rng(0).random((3, 2)), np.array([0, 1, 0]))
    learner = EstimatorSpec(LinearSVM, {}, {"C": (1.0, 8.0)}, path="C")
    folds = Protocol(scaling=("none",), inner_folds=5)
    with pytest.raises(DatasetError, match="5 folds need at least as many rows, got 3"):
        search(EstimatorSpec(Identity), learner, data, folds, 0)


def test_raw_inputs_of_huge_scale_are_searched_with_their_convergence():
    rng = np.random.default_rng(0)
    X = 1e6 * rng.random((90, 3))
    y = (X[:, 0] > 5e5).astype(int)
    learner = EstimatorSpec(LinearSVM, {}, {"C": (1e-8, 1.0, 2.0**11)}, path="C")
    found = search(EstimatorSpec(Identity), learner, Data(X, y), RAW, 0)
    assert found.scores[0].gain > 0.9
    assert all(len(score.converged) == 3 for score in found.scores)


class Counting(Threshold):
    """Remembers on how many rows it was fitted."""

    fits: list = []  # noqa: RUF012

    def fit(self, X, y):
        Counting.fits.append((self.cut, len(X)))
        return super().fit(X, y)

    def fit_path(self, X, y, cuts):
        return [Counting(cut).fit(X, y) for cut in cuts]


@pytest.fixture
def long_line():
    Counting.fits.clear()
    rng = np.random.default_rng(0)
    X = rng.random((540, 1))
    return Data(X, (X[:, 0] > 0.5).astype(int))


CUTS = tuple(np.linspace(0.05, 0.6, 12).round(2).tolist())
RACING = Protocol(scaling=("none",), search_method="racing")


def test_a_race_scores_all_candidates_on_one_fold_and_the_better_half_on_the_next(long_line):
    learner = EstimatorSpec(Counting, space={"cut": CUTS})
    raced, plain = (
        search(EstimatorSpec(Identity), learner, long_line, protocol, 0)
        for protocol in (RACING, RAW)
    )
    assert raced.best.learner == plain.best.learner == {"cut": 0.5}
    # the default stays beside the better half
    assert [len(score.values) for score in raced.scores].count(1) == 12 - 7
    assert [len(score.values) for score in raced.scores].count(3) == 5
    assert len(Counting.fits) == (12 + 7 + 5) + 3 * 12
    assert {n for _, n in Counting.fits} == {360}
    for one, other in zip(raced.scores, plain.scores, strict=True):
        assert one.candidate.params == other.candidate.params
        assert one.values == other.values[: len(one.values)]
        assert len(one.converged) == len(one.values) == 3 * one.share
    assert raced.n_compared == 12


def test_a_race_treats_a_learner_with_a_path_as_one_without(long_line):
    one = EstimatorSpec(Counting, space={"cut": CUTS})
    path = EstimatorSpec(Counting, space={"cut": CUTS}, path="cut")
    first, other = (
        search(EstimatorSpec(Identity), learner, long_line, RACING, 0) for learner in (one, path)
    )
    assert first.best == other.best
    assert list(first.scores) == list(other.scores)


def test_a_race_draws_the_candidates_of_a_random_search():
    space = {"cut": CUTS}
    feature_map, learner = EstimatorSpec(Identity), EstimatorSpec(Threshold, space=space)
    few = {"n_candidates": 5}
    drawn = [
        candidates(feature_map, learner, Protocol(search_method=way, **few), 0)
        for way in ("random", "racing")
    ]
    assert len(drawn[0]) == 5
    assert drawn[0] == drawn[1]


def raced(*means, error=""):
    scores = [score([mean] if mean is not None else [], C=i) for i, mean in enumerate(means)]
    scores[-1].error = error
    return [each.candidate.learner["C"] for each in survivors(scores, scores[0].candidate)]


def test_those_who_equal_the_last_survivor_stay_in_a_race_and_those_who_failed_do_not():
    assert raced(0.1, 0.9, 0.8, 0.7, 0.6, 0.5) == [0, 1, 2, 3]
    assert raced(0.9, 0.7, 0.7, 0.7, 0.6) == [0, 1, 2, 3]
    assert raced(0.2, 0.9, 0.8) == [0, 1, 2]
    assert raced(0.9, None, 0.8, 0.7, 0.6, 0.5, 0.4) == [0, 1, 2, 3, 4]
    assert raced(0.1, 0.8, 0.7, 0.9, error="cannot fit") == [0, 1, 2]
    assert raced(0.1, error="cannot fit") == []


def test_a_race_without_a_finisher_raises_the_first_error(line):
    learner = EstimatorSpec(Threshold, {"fail": True}, {"cut": (0.4, 0.5, 0.6)})
    with pytest.raises(ValueError, match=r"cannot fit with cut=0\.4"):
        search(EstimatorSpec(Identity), learner, line, RACING, 0)


def score(mean, **learner):
    candidate = Candidate("none", {"width": learner.pop("width", 1)}, learner)
    return Score(candidate, ACCURACY, mean, [True])


def test_the_simplest_candidate_within_one_standard_error_is_chosen():
    scores = [
        score([0.70, 0.72], C=0.1),
        score([0.79, 0.81], C=1.0),
        score([0.80, 0.82], C=2.0),
        score([0.80, 0.84], C=4.0),  # the best: 0.82, standard error 0.02
        score([0.80, 0.82], C=8.0),
        score([0.80, 0.82], C=0.2, width=2),  # another map
    ]
    assert choose_score(scores, {"C": "smaller"}) is scores[3]
    assert choose_score(scores, {"C": "smaller"}, one_standard_error=True) is scores[1]
    assert choose_score(scores, {"C": "larger"}, one_standard_error=True) is scores[4]
    assert choose_score(scores, {"n_neighbors": "larger"}, one_standard_error=True) is scores[3]
    assert choose_score(scores, {}, one_standard_error=True) is scores[3]
    scores[1].error = "ValueError: no"
    assert choose_score(scores, {"C": "smaller"}, one_standard_error=True) is scores[2]


def test_of_equal_candidates_the_most_regularised_is_chosen():
    # one third and two thirds in another order: the sums differ by rounding
    folds = [1 / 3, 2 / 3, 0.1]
    scores = [
        score([0.1, 0.2], C=0.01),
        *(score(folds, C=C) for C in (8.0, 2.0)),
        score(folds[::-1], C=1.0),
    ]
    assert choose_score(scores, {"C": "smaller"}) is scores[3]
    assert choose_score(scores, {"C": "larger"}) is scores[1]
    assert choose_score(scores, {}) is scores[1]
    # a map has no order: the first of equals
    scores = [score(folds, width=2, C=1.0), score(folds, width=1, C=1.0)]
    assert choose_score(scores, {"C": "smaller"}) is scores[0]


def edges(*scores, best=0, ends=None):
    if ends is None:
        params = [each.candidate.learner for each in scores]
        ends = {
            f"learner.{name}": (min(p[name] for p in params), max(p[name] for p in params))
            for name in params[0]
        }
    return SearchResult(scores[best].candidate, list(scores), ends=ends).at_boundary


def test_an_edge_is_told_where_it_beats_its_inner_neighbour_clearly():
    inner = score([0.70, 0.72, 0.71], C=2.0)
    assert edges(score([0.80, 0.82, 0.81], C=1.0), inner) == ["learner.C"]
    # a difference of 0.01 with a standard error of 0.0115
    assert edges(score([0.71, 0.75, 0.70], C=1.0), inner) == []
    assert edges(score([0.70, 0.72, 0.71], C=1.0), inner) == []
    # the neighbour is the next value, not the far end
    far = score([0.10, 0.10, 0.10], C=4.0)
    assert edges(score([0.70, 0.72, 0.71], C=1.0), inner, far) == []
    # at its best: with another width it is as good
    wide = score([0.80, 0.82, 0.81], C=2.0, width=2)
    assert edges(score([0.80, 0.82, 0.81], C=1.0), inner, wide) == []
    assert edges(score([0.1, 0.1, 0.1], C=1.0), score([0.9, 0.9, 0.9], C=2.0), far, best=1) == []


def test_a_neighbour_that_left_a_race_is_compared_on_the_folds_until_then():
    best, far = score([0.80, 0.82, 0.99], C=1.0), score([0.70, 0.72, 0.89], C=4.0)
    worse, better = score([0.75, 0.77], C=2.0), score([0.85, 0.84], C=2.0)
    worse.share = better.share = 2 / 3
    assert edges(best, worse, far) == ["learner.C"]
    assert edges(best, better, far) == []
    # of several with the next value, the last one to leave
    early = score([0.81], C=2.0, width=2)
    early.share = 1 / 3
    assert edges(best, early, worse, far) == ["learner.C"]
    assert edges(best, early, far) == []


def test_the_last_value_that_was_drawn_is_not_an_edge():
    one, two = score([0.9, 0.9], C=1.0), score([0.5, 0.5], C=2.0)
    assert edges(one, two, ends={"learner.C": (0.1, 2.0)}) == []
    assert edges(one, two, ends={"learner.C": (1.0, 8.0)}) == ["learner.C"]


def test_a_natural_bound_is_not_an_edge():
    one, three = score([0.9, 0.9], n_neighbors=1), score([0.5, 0.5], n_neighbors=3)
    assert edges(one, three) == []
    assert edges(one, three, best=1) == []
    five = score([0.99, 0.99], n_neighbors=5)
    assert edges(five, one, three) == ["learner.n_neighbors"]
    assert edges(score([0.9, 0.9], epsilon=0.0), score([0.5, 0.5], epsilon=0.1)) == []
    # a penalty of 1 is a value like others
    assert edges(score([0.9, 0.9], C=1.0), score([0.5, 0.5], C=3.0)) == ["learner.C"]


def test_candidates_begin_with_the_default_and_smaller_searches_are_parts_of_larger_ones():
    feature_map = EstimatorSpec(Identity, space={"width": (3, 1, 2), "kind": ("a", "b")})
    learner = EstimatorSpec(Identity, space={"alpha": (1.0, 0.1), "C": (5.0, 0.5, 50.0)}, path="C")

    def drawn(n, seed):
        protocol = Protocol(search_method="random", n_candidates=n)
        return [c.params for c in candidates(feature_map, learner, protocol, seed)]

    default = {
        "scaling": "minmax",
        "feature_map.width": 3,
        "feature_map.kind": "a",
        "learner.alpha": 1.0,
    }
    assert [p["learner.C"] for p in drawn(3, 0)] == [5.0, 0.5, 50.0]
    assert all(default.items() <= p.items() for p in drawn(3, 0))
    for n in range(1, 36):
        found = drawn(n, 7)
        assert len({repr(p) for p in found}) == len(found) == n
        assert found == drawn(35, 7)[:n]
    assert len(drawn(100, 7)) == 36
    assert drawn(9, 1) != drawn(9, 2)
    grid = candidates(feature_map, learner, Protocol(), 0)
    assert len(grid) == 36
    assert default.items() <= grid[0].params.items()


def test_the_one_standard_error_rule_is_an_option_of_the_protocol(line):
    noisy = line.y.copy()
    noisy[:4] = 1 - noisy[:4]
    line = replace(line, y=noisy)
    learner = EstimatorSpec(Threshold, space={"cut": (0.5, 0.47)}, simpler={"cut": "smaller"})
    rule = Protocol(scaling=("none",), one_standard_error=True)
    plain, simple = (
        search(EstimatorSpec(Identity), learner, line, protocol, 0) for protocol in (RAW, rule)
    )
    assert plain.best.learner == {"cut": 0.5}
    assert simple.best.learner == {"cut": 0.47}
    assert [s.values for s in plain.scores] == [s.values for s in simple.scores]


class Clock:
    """A second passes whenever somebody looks."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.fixture
def ticking(monkeypatch):
    monkeypatch.setattr("time.monotonic", Clock())


def budget(seconds, **more):
    return Protocol(scaling=("none",), search_timeout_s=seconds, **more)


def test_a_budget_stops_the_search_with_the_best_so_far(line, ticking):
    learner = EstimatorSpec(Threshold, space={"cut": (0.1, 0.3, 0.5, 0.9)})
    # the clock is read once for each of three folds
    found = search(EstimatorSpec(Identity), learner, line, budget(7.5), 0)
    assert not found.complete
    assert found.n_compared == 2
    assert [len(s.values) for s in found.scores] == [3, 3, 0, 0]
    assert found.best.learner == {"cut": 0.3}
    assert Identity.fits == [(1, 40, False)] * 3


def test_a_budget_leaves_no_candidate_half_judged(line, ticking):
    learner = EstimatorSpec(Threshold, space={"cut": (0.1, 0.3, 0.5, 0.9)})
    found = search(EstimatorSpec(Identity), learner, line, budget(8.5), 0)
    assert [len(s.values) for s in found.scores] == [3, 3, 0, 0]
    assert found.converged == 1.0


def test_a_budget_that_is_enough_changes_nothing(line):
    feature_map = EstimatorSpec(Identity, space={"width": (1, 2)})
    learner = EstimatorSpec(Threshold, space={"cut": (0.1, 0.3, 0.5, 0.9)})
    plain, bounded = (
        search(feature_map, learner, line, protocol, 0) for protocol in (RAW, budget(600.0))
    )
    assert bounded.complete
    assert plain.best == bounded.best
    assert list(plain.scores) == list(bounded.scores)


def test_however_small_the_budget_one_candidate_is_judged(line, ticking):
    learner = EstimatorSpec(Threshold, {"fail": False}, {"fail": (True, False), "cut": (0.5, 0.9)})
    found = search(EstimatorSpec(Identity), learner, line, budget(1e-9), 0)
    assert found.best.learner == {"fail": False, "cut": 0.5}
    assert found.n_compared == 3
    assert not found.complete


def test_a_budget_tries_the_maps_in_no_order_of_the_grid(line, ticking):
    feature_map = EstimatorSpec(Identity, space={"width": tuple(range(20))})
    search(feature_map, EstimatorSpec(Threshold), line, budget(13.5), 0)
    tried = list(dict.fromkeys(width for width, _, _ in Identity.fits))
    assert len(tried) > 2
    assert tried != sorted(tried)


def test_a_round_of_a_race_that_was_stopped_does_not_count(long_line, ticking):
    learner = EstimatorSpec(Threshold, space={"cut": CUTS})
    protocol = budget(13.5, search_method="racing")
    found = search(EstimatorSpec(Identity), learner, long_line, protocol, 0)
    # 12 fits of the first round, and one of the second
    assert {s.share for s in found.scores} == {1 / 3}
    assert found.n_compared == 12
    assert not found.complete


@pytest.mark.parametrize("learner_path", [None, "cut"])
def test_convergence_is_seen_where_warnings_are_hidden(line, learner_path):
    class Warning_(Identity):
        def fit(self, X, y=None):
            if self.width == 2:
                warnings.warn("not enough iterations", ConvergenceWarning, stacklevel=2)
            return super().fit(X)

    learner = EstimatorSpec(Threshold, space={"converge": (True, False)}, path=learner_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of_learner = search(EstimatorSpec(Identity), learner, line, RAW, seed=0)
        of_map = search(
            EstimatorSpec(Warning_, space={"width": (1, 2)}),
            EstimatorSpec(Threshold),
            line,
            RAW,
            seed=0,
        )
    assert [s.converged for s in of_learner.scores] == [[True] * 3, [False] * 3]
    assert [s.converged for s in of_map.scores] == [[True] * 3, [False] * 3]


def test_unlabelled_rows_are_preprocessed_in_every_fold():
    largest = []

    class Noting(Identity):
        def fit(self, X, y=None):
            largest.append(float(X.max()))
            return super().fit(X)

    rng = np.random.default_rng(0)
    data = Data(rng.random((30, 1)), np.arange(30) % 2, unlabeled=np.array([[5.0], [8.0]]))
    learner = EstimatorSpec(Threshold, space={"cut": (0.4, 0.5)})
    search(EstimatorSpec(Noting), learner, data, Protocol(scaling=("minmax",)), seed=0)
    assert largest == pytest.approx([1.0] * 3)


def test_components_in_a_sequence_are_made_too():
    inner = Nested(dict, {}, "dict", "dict")
    component = Nested(dict, {"a": (inner, 1)}, "dict", "dict(a=[dict, 1])")
    spec = EstimatorSpec(Identity, {"width": (component, 2)})
    assert spec.build({}, seed=0).width == [{"a": [{}, 1]}, 2]


@pytest.mark.parametrize("path", [None, "cut"])
def test_candidates_have_the_seconds_of_the_search_between_them(line, path):
    learner = EstimatorSpec(Threshold, space={"cut": (0.1, 0.5, 0.9)}, path=path)
    found = search(EstimatorSpec(Identity, space={"width": (1, 2)}), learner, line, RAW, seed=0)
    seconds = [score.seconds for score in found.scores]
    assert len(seconds) == 6
    assert min(seconds) > 0
    assert sum(seconds) <= found.seconds
