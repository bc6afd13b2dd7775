"""The inner cross-validation with maps that all folds share, in memory and in blocks."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder

from kbench import Dataset, DatasetError, PluginError, Protocol
from kbench.evaluation import block_fits, embedding, lazy_rows, passes
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench.evaluation.split_view import assign
from kbench.evaluation.splits import derive_seed, stratified_folds
from kbench_learners import LinearSVM, LogisticClassifier, PathRidge, PathRidgeClassifier, _descent

BLOCK_ROWS = 97  # five blocks of the training rows, the last one shorter
OUTER = Protocol(refit_maps_in_inner_folds=False)
IN_FLOAT32 = replace(OUTER, block_dtype="float32")
ALPHAS = (1e-3, 0.1, 1.0, 10.0, 1000.0)
RFF = EstimatorSpec(RBFSampler, {"n_components": 30, "gamma": 0.5}, label="feature map 'rff'")
RIDGE = EstimatorSpec(PathRidgeClassifier, {}, {"alpha": ALPHAS}, path="alpha")
REGRESSOR = EstimatorSpec(PathRidge, {}, {"alpha": ALPHAS}, path="alpha")
SVM = EstimatorSpec(LinearSVM, {}, {"C": (1.0, 0.1, 10.0)}, path="C", label="learner 'linear-svm'")
LOGISTIC = EstimatorSpec(LogisticClassifier, {}, {"C": (1.0, 0.1, 10.0)}, path="C")


def dataset(kind, weighted=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    signal = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))
    weight = rng.uniform(0.1, 2.0, len(X)) if weighted else None
    if kind == "numbers":
        y = 50.0 + 7.0 * signal
    else:
        y = np.digitize(signal, [0.0] if kind == "two" else [-0.5, 0.5])
    return Dataset(kind, X, y, sample_weight=weight)


DATA = {kind: dataset(kind) for kind in ("two", "three", "numbers")}


@pytest.fixture
def in_blocks(monkeypatch):
    """Hold no embedding as one matrix, and take it in small blocks."""
    monkeypatch.setattr(lazy_rows, "BLOCK_ROWS", BLOCK_ROWS)
    monkeypatch.setattr(passes, "WHOLE_BYTES", 0)
    monkeypatch.setattr(block_fits, "SAMPLE_BYTES", 60 * 8 * 30)


def method_for(data, feature_map=RFF, **learner):
    spec = REGRESSOR if data.task == "regression" else RIDGE
    return Method(feature_map, replace(spec, **learner))


def both(monkeypatch, *given):
    """Evaluate a split in memory, and in blocks."""
    in_memory = evaluate_split(*given)
    with monkeypatch.context() as patched:
        patched.setattr(lazy_rows, "BLOCK_ROWS", BLOCK_ROWS)
        patched.setattr(passes, "WHOLE_BYTES", 0)
        patched.setattr(block_fits, "SAMPLE_BYTES", 60 * 8 * 30)
        return in_memory, evaluate_split(*given)


def values(found):
    return np.array([row["values"] for row in found.details.search])


def outputs(found):
    given = found.predictions
    return given.predicted if given.decision is None else given.decision


def peer_of(data, learner, scoring, index=0):
    """scikit-learn's search on the embedding by one map, and the embedded test rows."""
    visible = assign(data, OUTER, index).visible
    seed = derive_seed(OUTER.seed, data.checksum, index)
    X, y, weight = data.X[visible.train], data.y[visible.train], visible.weight_train
    scaler = MinMaxScaler(clip=True).fit(X)
    sampler = RBFSampler(n_components=30, gamma=0.5, random_state=derive_seed(seed, "map"))
    Z = sampler.fit_transform(scaler.transform(X))
    strata = y if data.task == "classification" else np.zeros(len(y), dtype=int)
    folds = list(stratified_folds(strata, OUTER.inner_folds, derive_seed(seed, "inner")))
    peer = GridSearchCV(learner, {"alpha": ALPHAS}, cv=folds, scoring=scoring)
    peer.fit(Z, y, **({} if weight is None else {"sample_weight": weight}))
    scores = [peer.cv_results_[f"split{k}_test_score"] for k in range(len(folds))]
    return peer, np.transpose(scores), sampler.transform(scaler.transform(data.X[visible.test]))


@pytest.mark.parametrize("kind", ["two", "three"])
@pytest.mark.parametrize("blocks", [False, True])
def test_classifiers_are_those_of_scikit_learn_on_one_embedding(kind, blocks, request):
    if blocks:
        request.getfixturevalue("in_blocks")
    data = DATA[kind]
    found = evaluate_split(data, 0, method_for(data), OUTER)
    peer, scores, Z_test = peer_of(data, RidgeClassifier(), "accuracy")
    np.testing.assert_allclose(values(found), scores, rtol=1e-12)
    assert found.details.chosen["learner.alpha"] == peer.best_params_["alpha"]
    expected = peer.decision_function(Z_test)
    np.testing.assert_allclose(outputs(found), expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(found.predictions.predicted, peer.predict(Z_test))


@pytest.mark.parametrize("kind", ["two", "numbers"])
def test_further_seeds_of_the_map_have_passes_of_their_own(monkeypatch, kind):
    method, data = method_for(DATA[kind]), DATA[kind]
    in_memory, found = both(monkeypatch, data, 0, method, replace(OUTER, map_seeds=3))
    assert any(note.startswith("fitted from sums") for note in found.details.notes)
    for number, (ours, peer) in enumerate(zip(found.of_seeds, in_memory.of_seeds, strict=True)):
        spec = replace(method.feature_map, draw=number)
        alone = evaluate_split(data, 0, replace(method, feature_map=spec), OUTER)
        np.testing.assert_allclose(ours.predicted, peer.predicted, rtol=1e-6)
        # the search of the first seed chooses; that of another may choose otherwise
        if alone.details.chosen == found.details.chosen:
            np.testing.assert_array_equal(peer.predicted, alone.predictions.predicted)
    assert not np.array_equal(found.of_seeds[0].predicted, found.of_seeds[1].predicted)


@pytest.mark.parametrize("blocks", [False, True])
def test_regressors_are_those_of_scikit_learn_on_one_embedding(blocks, request):
    if blocks:
        request.getfixturevalue("in_blocks")
    data = DATA["numbers"]
    found = evaluate_split(data, 0, method_for(data), OUTER)
    peer, scores, Z_test = peer_of(data, Ridge(), "neg_root_mean_squared_error")
    np.testing.assert_allclose(values(found), -scores, rtol=1e-8)
    assert found.details.chosen["learner.alpha"] == peer.best_params_["alpha"]
    np.testing.assert_allclose(found.predictions.predicted, peer.predict(Z_test), rtol=1e-8)


@pytest.mark.parametrize("kind", ["two", "three", "numbers"])
@pytest.mark.parametrize(
    "protocol",
    [
        OUTER,
        replace(OUTER, unlabeled_size=0.2, scaling=("standard", "minmax")),
        replace(OUTER, cv="group_duplicates", n_folds=3),
        replace(OUTER, scaling=("unit_ball",), one_standard_error=True),
    ],
    ids=["plain", "unlabeled", "groups", "unit ball"],
)
def test_blocks_change_no_number(kind, protocol, monkeypatch):
    data = dataset(kind, weighted=True)
    searched = replace(RFF, params={"n_components": 30}, space={"gamma": (5.0, 0.5)})
    given = data, 1, method_for(data, searched), protocol
    in_memory, found = both(monkeypatch, *given)
    assert found.details.chosen == in_memory.details.chosen
    np.testing.assert_allclose(values(found), values(in_memory), rtol=1e-8)
    np.testing.assert_allclose(outputs(found), outputs(in_memory), rtol=1e-8, atol=1e-9)
    added = {"shared_pass", "embedding_passes"}
    assert set(found.metrics) - set(in_memory.metrics) == added
    for name, value in in_memory.metrics.items():
        if not name.endswith("_s"):
            assert found.metrics[name] == pytest.approx(value, rel=1e-7), name


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("two", "roc_auc"),
        ("three", "f1_macro"),
        ("numbers", "mae"),
        ("numbers", "r2"),
        ("numbers", "rmse_standardized"),
    ],
)
def test_every_metric_is_searched_in_blocks(kind, metric, monkeypatch):
    protocol = replace(OUTER, search_metric=metric)
    in_memory, found = both(monkeypatch, DATA[kind], 0, method_for(DATA[kind]), protocol)
    np.testing.assert_allclose(values(found), values(in_memory), rtol=1e-8)


@pytest.mark.parametrize("kind", ["two", "three"])
@pytest.mark.parametrize(
    ("learner", "params"),
    [
        (SVM, {"tol": 1e-12}),
        (SVM, {"tol": 1e-12, "multiclass": "ovr", "intercept_scaling": 2.0}),
        (SVM, {"tol": 1e-12, "fit_intercept": False}),
        (LOGISTIC, {"tol": 1e-9}),
        (LOGISTIC, {"tol": 1e-9, "multiclass": "ovr"}),
        (LOGISTIC, {"tol": 1e-9, "fit_intercept": False}),
    ],
    ids=["svm", "svm-ovr", "svm-through-zero", "logistic", "logistic-ovr", "logistic-through-zero"],
)
def test_passes_over_blocks_find_the_solution_in_memory(kind, learner, params, monkeypatch):
    method = Method(RFF, replace(learner, params=params))
    in_memory, found = both(monkeypatch, DATA[kind], 0, method, OUTER)
    assert found.details.chosen == in_memory.details.chosen
    np.testing.assert_array_equal(values(found), values(in_memory))
    np.testing.assert_array_equal(found.predictions.predicted, in_memory.predictions.predicted)
    given = [each.predictions for each in (found, in_memory)]
    soft = [each.decision if each.decision is not None else each.probabilities for each in given]
    np.testing.assert_allclose(*soft, atol=1e-5)
    assert found.metrics["converged"] == found.metrics["search_converged"] == 1.0
    assert found.metrics["shared_pass"] == 0.0
    assert 5 < found.metrics["embedding_passes"] < 80
    assert any("fitted in passes over blocks" in note for note in found.details.notes)
    begun = [note for note in found.details.notes if note.startswith("begun on ")]
    n_classes = len(np.unique(DATA[kind].y))
    assert begun == [f"begun on a sample of {block_fits.ROWS_OF_CLASS * n_classes} rows"]


def test_the_gap_is_that_of_the_fit_in_memory(in_blocks, monkeypatch):
    fitted = []
    before = block_fits._BlockFit.learners

    def kept(self):
        fitted.append(before(self))
        return fitted[-1]

    monkeypatch.setattr(block_fits._BlockFit, "learners", kept)
    evaluate_split(DATA["two"], 0, Method(RFF, replace(SVM, space={})), OUTER)
    (((learner, converged),),) = fitted
    assert converged
    assert 0.0 < learner.gap_ <= 1e-6


@pytest.mark.parametrize("learner", [SVM, LOGISTIC], ids=["svm", "logistic"])
def test_problems_wait_where_their_matrices_have_no_room(learner, in_blocks, monkeypatch):
    together = evaluate_split(DATA["three"], 0, Method(RFF, learner), OUTER)
    before = _descent.Descent.__init__
    at_a_time = []

    def narrow(self, *given):
        before(self, *given, max_bytes=1)
        at_a_time.append(len(self._running))

    monkeypatch.setattr(_descent.Descent, "__init__", narrow)
    found = evaluate_split(DATA["three"], 0, Method(RFF, learner), OUTER)
    assert set(at_a_time) == {1}
    assert found.details.chosen == together.details.chosen
    np.testing.assert_allclose(values(found), values(together), rtol=1e-12)
    assert found.metrics["embedding_passes"] > 1.5 * together.metrics["embedding_passes"]


def test_a_fit_in_passes_that_does_not_converge_is_reported(in_blocks):
    learner = replace(SVM, params={"max_iter": 1})
    found = evaluate_split(DATA["two"], 0, Method(RFF, learner), OUTER)
    assert found.metrics["converged"] == found.metrics["search_converged"] == 0.0


def test_passes_in_float32_have_the_same_gap(in_blocks):
    exact = evaluate_split(DATA["three"], 0, Method(RFF, SVM), OUTER)
    found = evaluate_split(DATA["three"], 0, Method(RFF, SVM), IN_FLOAT32)
    assert any("rows in float32" in note for note in found.details.notes)
    assert found.metrics["converged"] == 1.0
    np.testing.assert_allclose(outputs(found), outputs(exact), atol=1e-3)


def test_a_fit_that_float32_is_too_coarse_for_is_made_again_in_float64(in_blocks):
    strict = replace(SVM, params={"tol": 1e-20}, space={})
    found = evaluate_split(DATA["two"], 0, Method(RFF, strict), IN_FLOAT32)
    notes = "\n".join(found.details.notes)
    assert "a fit over blocks in float32 did not converge" in notes
    assert "embedded rows in float64" in notes


@pytest.mark.parametrize(
    ("learner", "metric"), [(SVM, "roc_auc"), (LOGISTIC, "roc_auc"), (LOGISTIC, "log_loss")]
)
def test_soft_metrics_are_searched_in_passes(learner, metric, monkeypatch):
    protocol = replace(OUTER, search_metric=metric)
    in_memory, found = both(monkeypatch, DATA["three"], 0, Method(RFF, learner), protocol)
    np.testing.assert_allclose(values(found), values(in_memory), rtol=1e-3)


def test_learners_without_weights_are_refused_in_blocks_too(in_blocks):
    with pytest.raises(PluginError, match=r"^learner 'linear-svm' does not take the weights"):
        evaluate_split(dataset("two", weighted=True), 0, Method(RFF, SVM), OUTER)


def test_losses_that_are_not_fitted_in_passes_get_the_whole_embedding(in_blocks):
    method = Method(RFF, replace(SVM, params={"loss": "hinge"}, space={}))
    assert "shared_pass" not in evaluate_split(DATA["three"], 0, method, OUTER).metrics


def test_a_class_that_some_folds_lack_is_no_obstacle(monkeypatch):
    y = DATA["three"].y.copy()
    y[y == 1] = np.where(np.arange((y == 1).sum()) < 2, 1, 0)
    data = Dataset("rare", DATA["three"].X, y)
    for method in (method_for(data), Method(RFF, SVM), Method(RFF, LOGISTIC)):
        in_memory, found = both(monkeypatch, data, 0, method, OUTER)
        np.testing.assert_array_equal(values(found), values(in_memory))


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_calibrated_probabilities_are_the_same_in_blocks(calibration, monkeypatch):
    protocol = replace(OUTER, calibration=calibration)
    for method, atol in ((method_for(DATA["three"]), 1e-6), (Method(RFF, SVM), 0.02)):
        in_memory, found = both(monkeypatch, DATA["three"], 0, method, protocol)
        np.testing.assert_allclose(
            found.predictions.probabilities, in_memory.predictions.probabilities, atol=atol
        )


class Counting(TransformerMixin, BaseEstimator):
    """Records the rows of its fits and of its transformations."""

    fits: list = []  # noqa: RUF012
    blocks: list = []  # noqa: RUF012

    def __init__(self, width=1):
        self.width = width

    def fit(self, X, y=None):
        Counting.fits.append((self.width, len(X), y is not None))
        return self

    def transform(self, X):
        Counting.blocks.append(len(X))
        return np.hstack([X] * self.width)


@pytest.fixture
def counting():
    Counting.fits.clear()
    Counting.blocks.clear()
    return EstimatorSpec(Counting, {}, {"width": (1, 2)})


def test_a_map_is_fitted_on_all_training_rows_without_labels(counting):
    evaluate_split(DATA["two"], 0, method_for(DATA["two"], counting), OUTER)
    assert {fit[1:] for fit in Counting.fits if fit[1] > 200} == {(400, False)}


def test_no_inputs_are_copied_as_one_matrix(counting, in_blocks, monkeypatch):
    monkeypatch.setattr(lazy_rows, "BLOCK_ROWS", 37)
    monkeypatch.setattr(embedding, "FIT_BYTES", 50 * 8 * 4)
    monkeypatch.setattr("kbench.evaluation.fitting.MEASURED_ROWS", 20)
    taken = []

    class Watched(np.ndarray):
        def __getitem__(self, key):
            part = np.asarray(self).__getitem__(key)
            taken.append(len(part))
            return part

    data = DATA["two"]
    watched = replace(data, X=data.X.view(Watched))
    # duplicates are looked for in the whole matrix, outside the task
    monkeypatch.setattr("kbench.evaluation.split_view.row_groups", lambda X: np.arange(len(X)))
    method = method_for(data, replace(counting, space={}, params={"width": 2}))
    monkeypatch.setattr("kbench.evaluation.evaluate._warm_up", lambda *given: None)
    found = evaluate_split(watched, 0, method, OUTER)
    assert max(Counting.blocks) <= 37
    assert 0 < max(taken) <= 50
    assert {fit[1] for fit in Counting.fits} == {50}
    assert "the map was fitted on 50 of 400 rows" in found.details.notes


def test_a_pass_is_shared_by_the_search_and_the_fit(in_blocks):
    found = {
        kind: evaluate_split(DATA[kind], 0, method_for(DATA[kind]), OUTER).metrics
        for kind in ("two", "numbers")
    }
    assert [found[kind]["shared_pass"] for kind in found] == [1.0, 1.0]
    # labels need a second pass, squared errors do not
    assert [found[kind]["embedding_passes"] for kind in found] == [2.0, 1.0]
    plain = method_for(DATA["two"], space={}, params={"alpha": 1.0})
    metrics = evaluate_split(DATA["two"], 0, plain, OUTER).metrics
    assert (metrics["shared_pass"], metrics["embedding_passes"]) == (0.0, 1.0)
    assert metrics["search_time_s"] == 0.0


def test_the_time_of_a_shared_pass_is_that_of_the_fit(in_blocks, monkeypatch):
    method, before = method_for(DATA["two"]), passes.Pass.over

    def slow(self, data, parts):
        before(self, data, parts)
        self.transform.wall += 100.0

    monkeypatch.setattr(passes.Pass, "over", slow)
    metrics = evaluate_split(DATA["two"], 0, method, OUTER).metrics
    assert metrics["map_transform_time_s"] > 100.0
    assert metrics["fit_time_s"] > 100.0
    assert metrics["search_time_s"] < 0.0  # the pass was taken off


def test_a_learner_without_sums_gets_the_whole_embedding(in_blocks):
    learner = EstimatorSpec(LogisticRegression, {"max_iter": 1000}, {"C": (0.1, 10.0)})
    found = evaluate_split(DATA["three"], 0, Method(RFF, learner), OUTER)
    assert "shared_pass" not in found.metrics
    assert found.metrics["accuracy"] > 0.5


def test_maps_that_use_the_targets_are_refused():
    method = method_for(DATA["two"], replace(RFF, supervised=True))
    with pytest.raises(PluginError, match=r"^feature map 'rff' uses the targets"):
        evaluate_split(DATA["two"], 0, method, OUTER)
    with pytest.raises(PluginError, match="uses the targets"):
        evaluate_split(DATA["two"], 0, replace(method, learner=replace(RIDGE, space={})), OUTER)


@pytest.mark.parametrize("learner", [RIDGE, SVM], ids=["ridge", "linear-svm"])
def test_a_map_that_does_not_work_row_by_row_gets_all_rows(learner, in_blocks):
    centring = EstimatorSpec(FunctionTransformer, {"func": lambda X: X - X.mean(axis=0)})
    found = evaluate_split(DATA["two"], 0, Method(centring, learner), OUTER)
    assert "shared_pass" not in found.metrics


@pytest.mark.parametrize("learner", [RIDGE, SVM], ids=["ridge", "linear-svm"])
def test_a_value_that_is_no_number_in_some_block_is_refused(learner, in_blocks):
    largest = np.unique(DATA["two"].X[:, 0])[-2]  # of one row, in the middle of the data

    def rooted(X):
        with np.errstate(invalid="ignore"):
            return np.hstack([X, np.sqrt(largest - X[:, :1])])

    method = Method(
        EstimatorSpec(FunctionTransformer, {"func": rooted}, label="map 'root'"), learner
    )
    with pytest.raises(PluginError, match=r"map 'root' returned the value nan from transform"):
        evaluate_split(DATA["two"], 0, method, replace(OUTER, scaling=("none",)))


def test_missing_values_are_refused_before_a_pass(in_blocks, counting):
    X = DATA["two"].X.copy()
    X[250, 1] = np.nan
    with pytest.raises(DatasetError, match="missing"):
        evaluate_split(Dataset("hole", X, DATA["two"].y), 0, Method(counting, SVM), OUTER)
    assert Counting.blocks == []


@pytest.mark.parametrize("learner", ["ridge", "linear-svm"])
def test_sparse_embeddings_are_taken_in_blocks(learner, monkeypatch):
    codes = np.random.default_rng(0).integers(0, 5, (300, 3)).astype(float)
    data = Dataset("codes", codes, (codes.sum(axis=1) > 6).astype(int))
    onehot = EstimatorSpec(OneHotEncoder, {"handle_unknown": "ignore"})
    method = method_for(data, onehot) if learner == "ridge" else Method(onehot, SVM)
    protocol = replace(OUTER, scaling=("none",), block_dtype="float32")
    in_memory, found = both(monkeypatch, data, 0, method, protocol)
    # sums of sparse rows are not shifted
    assert any("rows in float64" in note for note in found.details.notes)
    precise = {"rtol": 1e-8, "atol": 1e-9} if learner == "ridge" else {"atol": 1e-3}
    np.testing.assert_allclose(outputs(found), outputs(in_memory), **precise)


def test_sparse_inputs_with_a_dense_embedding_are_taken_in_blocks(monkeypatch):
    X = scipy.sparse.random(300, 20, 0.3, "csr", random_state=0)
    data = Dataset("sparse", X, (np.asarray(X.sum(axis=1)).ravel() > 3).astype(int))
    in_memory, found = both(monkeypatch, data, 0, method_for(data), OUTER)
    np.testing.assert_allclose(outputs(found), outputs(in_memory), rtol=1e-8, atol=1e-9)


def test_missing_values_are_imputed_in_blocks(monkeypatch):
    X = DATA["two"].X.copy()
    X[::7, 1] = np.nan
    data = Dataset("holes", X, DATA["two"].y)
    in_memory, found = both(
        monkeypatch, data, 0, method_for(data), replace(OUTER, missing="impute")
    )
    np.testing.assert_allclose(outputs(found), outputs(in_memory), rtol=1e-8, atol=1e-9)


def test_float32_is_used_where_all_penalties_are_large(in_blocks):
    exact = evaluate_split(DATA["two"], 0, method_for(DATA["two"]), OUTER)
    protocol = IN_FLOAT32
    found = evaluate_split(DATA["two"], 0, method_for(DATA["two"]), protocol)
    assert any("rows in float32" in note for note in found.details.notes)
    assert 0 < np.abs(outputs(found) - outputs(exact)).max() < 1e-3


def test_an_embedding_far_from_zero_keeps_its_digits_in_float32(in_blocks):
    far = EstimatorSpec(FunctionTransformer, {"func": lambda X: np.hstack([X, X**2]) + 1000.0})
    method = method_for(DATA["numbers"], far, space={"alpha": (1.0, 10.0)})
    raw = replace(OUTER, scaling=("none",))
    exact, found = (
        evaluate_split(DATA["numbers"], 0, method, replace(raw, block_dtype=dtype))
        for dtype in ("float64", "float32")
    )
    assert any("rows in float32" in note for note in found.details.notes)
    np.testing.assert_allclose(outputs(found), outputs(exact), atol=1e-3 * 7.0)


def test_float64_is_used_instead_where_a_penalty_is_too_small(in_blocks):
    learner = {"space": {"alpha": (1e-6, 1.0)}}
    exact = evaluate_split(DATA["two"], 0, method_for(DATA["two"], **learner), OUTER)
    protocol = IN_FLOAT32
    found = evaluate_split(DATA["two"], 0, method_for(DATA["two"], **learner), protocol)
    notes = "\n".join(found.details.notes)
    assert "float64 instead of float32: alpha 1e-06 is less than 1e-05 of the largest" in notes
    np.testing.assert_array_equal(outputs(found), outputs(exact))
    # a pass in vain, another one, and the pass of the labels
    assert found.metrics["embedding_passes"] == 3.0


def test_an_embedding_in_one_matrix_is_float64():
    protocol = IN_FLOAT32
    found = evaluate_split(DATA["two"], 0, method_for(DATA["two"]), protocol)
    exact = evaluate_split(DATA["two"], 0, method_for(DATA["two"]), OUTER)
    assert "float64 instead of float32: the embedding is one matrix" in found.details.notes
    np.testing.assert_array_equal(outputs(found), outputs(exact))


def test_metrics_of_plugins_get_rows_that_belong_together(in_blocks, monkeypatch):
    monkeypatch.setattr("kbench.evaluation.fitting.MEASURED_ROWS", 20)

    def of_map(fitted, X, y, *, learner, X_train, y_train):
        assert len(X) == len(y) == len(X_train) == len(y_train) == 20
        return {"agreement": np.mean(learner.predict(fitted.transform(X_train)) == y_train)}

    def of_learner(fitted, Z, y):
        return {"right": np.mean(fitted.predict(Z) == y)}

    method = replace(method_for(DATA["two"]), map_metrics=of_map, learner_metrics=of_learner)
    found = evaluate_split(DATA["two"], 0, method, OUTER)
    assert found.metrics["agreement"] > 0.5
    y_test = assign(DATA["two"], OUTER, 0).y_test[:20]
    assert found.metrics["right"] == np.mean(found.predictions.predicted[:20] == y_test)


def test_a_budget_stops_between_maps(in_blocks):
    searched = replace(RFF, params={"n_components": 30}, space={"gamma": (5.0, 0.5, 0.1)})
    protocol = replace(OUTER, search_timeout_s=1e-9)
    found = evaluate_split(DATA["two"], 0, method_for(DATA["two"], searched), protocol)
    assert found.metrics["search_complete"] == 0.0
    assert [len(each) for each in (row["values"] for row in found.details.search)].count(3) == 5


def test_a_gram_matrix_is_searched_as_with_a_map_for_each_fold():
    X = DATA["two"].X
    data = Dataset("gram", X @ X.T, DATA["two"].y, pairwise=True)
    method = Method(EstimatorSpec(FunctionTransformer), RIDGE)
    found, usual = (evaluate_split(data, 0, method, p) for p in (OUTER, Protocol()))
    np.testing.assert_array_equal(values(found), values(usual))
