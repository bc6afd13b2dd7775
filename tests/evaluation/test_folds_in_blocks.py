"""Maps of their own in inner folds, whose embedding is taken in blocks."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from kbench import Dataset, Protocol
from kbench.evaluation import block_fits, embedding, evaluate, lazy_rows, passes
from kbench.evaluation.embedding import Data, Fitting
from kbench.evaluation.method import Method
from kbench.evaluation.search import _blocks, candidates
from kbench.evaluation.specs import EstimatorSpec
from kbench_baselines import _fourier
from kbench_learners import (
    LinearSVM,
    LogisticClassifier,
    PathRidge,
    PathRidgeClassifier,
    StochasticClassifier,
)

PROTOCOL = Protocol()
ALPHAS = {"alpha": (1e-3, 0.1, 1.0, 10.0, 1000.0)}
RIDGE = EstimatorSpec(PathRidgeClassifier, {}, ALPHAS, path="alpha")
REGRESSOR = EstimatorSpec(PathRidge, {}, ALPHAS, path="alpha")
SVM = EstimatorSpec(LinearSVM, {"tol": 1e-12}, {"C": (1.0, 0.1, 10.0)}, path="C")
LOGISTIC = EstimatorSpec(LogisticClassifier, {"tol": 1e-9}, {"C": (1.0, 0.1)}, path="C")
RFF = EstimatorSpec(
    _fourier.RandomFourierFeatures, {"n_components": 30}, {"bandwidth_factor": (2.0, 1.0)}
)

rng = np.random.default_rng(0)
INPUTS = rng.normal(size=(500, 4))
SIGNAL = np.sin(INPUTS[:, 0]) + INPUTS[:, 1] * INPUTS[:, 2] + 0.3 * rng.normal(size=500)
HOLES = INPUTS.copy()
HOLES[::7, 1] = HOLES[::5, 2] = HOLES[::7, 3] = np.nan
CODES = np.column_stack([rng.integers(0, 6, 500), INPUTS])
KINDS = ("target_encoded", *["numeric"] * 4)
CODES_HOLES = np.column_stack([CODES[:, 0], HOLES])
OF = {
    "numbers": lambda: (INPUTS, {}),
    "far": lambda: (INPUTS + 1e3, {}),
    "holes": lambda: (HOLES, {}),
    "categories": lambda: (CODES, {"feature_kinds": KINDS}),
    "categories, holes": lambda: (CODES_HOLES, {"feature_kinds": KINDS}),
    "sparse": lambda: (scipy.sparse.csr_matrix(np.where(abs(INPUTS) > 1, INPUTS, 0)), {}),
}
WEIGHTS = rng.uniform(0.1, 2.0, 500)


def make_dataset(kind="numbers", n_classes=2, weighted=False):
    X, facts = OF[kind]()
    y = 50.0 + 7.0 * SIGNAL if n_classes == 0 else np.digitize(SIGNAL, [0.0, 0.5][: n_classes - 1])
    return Dataset(kind, X, y, sample_weight=WEIGHTS if weighted else None, **facts)


def evaluated(*given, block=0, fit_bytes=0):
    """Evaluate a split, and return the fitted method too; with `block`, in blocks of rows."""
    kept = []
    fit = evaluate.fit

    def keep(*args, **options):
        kept.append(fit(*args, **options))
        return kept[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(evaluate, "fit", keep)
        if block:
            patched.setattr(lazy_rows, "BLOCK_ROWS", block)
            patched.setattr(passes, "WHOLE_BYTES", 0)
            patched.setattr(_blocks, "WHOLE_BYTES", 2**20)
            patched.setattr(embedding, "FIT_BYTES", fit_bytes)
            patched.setattr(block_fits, "SAMPLE_BYTES", 60 * 8 * 30)
        return evaluate.evaluate_split(*given), kept[0]


def assert_equal(found, expected, precision=1e-10):
    found, expected = (np.ravel(np.concatenate(list(each))) for each in (found, expected))
    assert np.linalg.norm(found - expected) <= precision * np.linalg.norm(expected)


def inner_scores(result):
    return [row["values"] for row in result.details.search]


def check_blocks(kind, n_classes, weighted, block, fit_bytes, **protocol):
    """Compare a split in memory with the same in blocks."""
    data = make_dataset(kind, n_classes, weighted)
    missing = "impute_with_indicators" if "holes" in kind else "error"
    method = Method(RFF, RIDGE if n_classes else REGRESSOR)
    given = data, 1, method, replace(PROTOCOL, missing=missing, **protocol)
    expected, in_memory = evaluated(*given)
    found, in_blocks = evaluated(*given, block=block, fit_bytes=fit_bytes)
    assert (in_memory.is_in_blocks, in_blocks.is_in_blocks) == (False, True)
    assert found.details.chosen == expected.details.chosen
    assert_equal(inner_scores(found), inner_scores(expected))
    assert_equal([in_blocks.learner.coef_], [in_memory.learner.coef_])


@pytest.mark.parametrize(
    ("kind", "n_classes", "scaling"),
    [
        ("far", 0, "standard"),
        ("holes", 2, "minmax"),
        ("categories", 2, "minmax"),
        ("categories, holes", 2, "minmax"),
        ("sparse", 3, "unit_ball"),
    ],
)
def test_blocks_change_numbers_by_rounding_only(kind, n_classes, scaling):
    check_blocks(kind, n_classes, True, 100, 0, scaling=(scaling,))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(sorted(OF)),
    n_classes=st.sampled_from([0, 2, 3]),
    weighted=st.booleans(),
    scaling=st.sampled_from([("minmax",), ("standard", "none"), ("unit_ball",)]),
    unlabeled_size=st.sampled_from([0, 0.2]),
    search_method=st.sampled_from(["grid", "racing"]),
    search_timeout_s=st.sampled_from([None, 1e6]),
    block=st.sampled_from([19, 37, 200]),
    fit_bytes=st.sampled_from([0, 2**28]),
)
def test_blocks_change_numbers_of_any_protocol_by_rounding_only(**drawn):
    check_blocks(**drawn)


@pytest.mark.parametrize("learner", [SVM, LOGISTIC], ids=["svm", "logistic"])
def test_passes_find_the_solution_in_memory(learner):
    given = make_dataset("numbers", 2), 0, Method(replace(RFF, space={}), learner), PROTOCOL
    expected, _ = evaluated(*given)
    found, fitted = evaluated(*given, block=200)
    assert fitted.is_in_blocks
    assert found.details.chosen == expected.details.chosen
    np.testing.assert_array_equal(inner_scores(found), inner_scores(expected))
    assert found.metrics["converged"] == found.metrics["search_converged"] == 1.0


@pytest.mark.parametrize(
    ("learner", "few", "is_large"),
    [(RIDGE, 30, True), (RIDGE, 29, False), (SVM, 30, False)],
    ids=["few columns", "more columns", "no sums"],
)
@pytest.mark.parametrize("shared", [False, True])
def test_sums_of_few_columns_replace_smaller_matrices(monkeypatch, learner, few, is_large, shared):
    """Which way is taken depends on shapes and on the learner, and on no limit."""
    monkeypatch.setattr(passes, "WHOLE_BYTES", 2 * 500 * 30 * 8 - 1)
    monkeypatch.setattr(passes, "FEW_COLUMNS", few)
    method = Method(replace(RFF, space={}), learner)
    protocol = replace(PROTOCOL, refit_maps_in_inner_folds=not shared)
    fitting = Fitting(method, Data(INPUTS, (SIGNAL > 0).astype(int)), protocol, 0)
    compared = candidates(method.feature_map, learner, protocol, 0)
    assert passes.fit_map(fitting, compared)[2] == is_large


class SmallSteps(StochasticClassifier):
    """Takes in memory the steps that it takes in passes."""

    def fit_path(self, X, y, values, sample_weight=None):
        fit = self.begin_fit(block_fits.Sample(X[:1], y[:1], np.unique(y), ()), values)
        codes = np.unique(y, return_inverse=True)[1]
        while not fit.is_done:
            for rows in np.array_split(fit.order(len(y)), 3):
                weight = () if sample_weight is None else (sample_weight[rows],)
                fit.add(X[rows], codes[rows], *weight)
            fit.step()
        return fit.estimators()

    def fit(self, X, y, sample_weight=None):
        return self.fit_path(X, y, [self.alpha], sample_weight)[0]


@pytest.mark.parametrize(("weighted", "shared"), [(False, True), (True, False)])
def test_steps_in_passes_are_those_in_memory(weighted, shared):
    sgd = {"loss": "log_loss", "max_iter": 4, "tol": None}
    learner = EstimatorSpec(SmallSteps, sgd, {"alpha": (1e-3, 1e-2)}, path="alpha")
    given = make_dataset("numbers", 3, weighted), 0, Method(replace(RFF, space={}), learner)
    given = *given, replace(PROTOCOL, refit_maps_in_inner_folds=not shared)
    expected, in_memory = evaluated(*given)
    found, fitted = evaluated(*given, block=100, fit_bytes=shared * 2**28)
    assert fitted.is_in_blocks
    assert_equal([fitted.learner.coef_], [in_memory.learner.coef_])
    assert_equal([found.predictions.probabilities], [expected.predictions.probabilities])
    assert_equal(inner_scores(found), inner_scores(expected))


def test_calibrated_probabilities_are_those_in_memory():
    given = make_dataset(n_classes=3), 0, Method(RFF, RIDGE)
    given = *given, replace(PROTOCOL, calibration="sigmoid")
    expected, found = (evaluated(*given, block=block)[0] for block in (0, 37))
    assert_equal([found.predictions.probabilities], [expected.predictions.probabilities])


@pytest.mark.parametrize("metric", ["rmse", "mae"])
def test_errors_are_in_the_units_of_the_targets(metric):
    given = make_dataset(n_classes=0), 0, Method(RFF, REGRESSOR)
    given = *given, replace(PROTOCOL, search_metric=metric)
    assert_equal(*(inner_scores(evaluated(*given, block=block)[0]) for block in (37, 0)))


def test_a_pass_is_made_for_each_fold():
    given = make_dataset(), 0, Method(replace(RFF, space={}), RIDGE), PROTOCOL
    found, _ = evaluated(*given, block=37)
    # two thirds and one third of the rows in three folds, and the fit
    assert found.metrics["embedding_passes"] == pytest.approx(4.0, abs=0.01)
    assert found.metrics["shared_pass"] == 0.0


class Counting(TransformerMixin, BaseEstimator):
    """Records the rows of its fits and of its transformations."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y=None):
        Counting.seen.append(len(X))
        return self

    def transform(self, X):
        Counting.seen.append(len(X))
        return X


def test_inputs_and_embeddings_are_taken_in_blocks(monkeypatch):
    copied = []
    take = lazy_rows.Rows.__getitem__

    def counted(self, rows):
        found = take(self, rows)
        copied.append(len(found))
        return found

    class Partial(Counting):
        takes_lazy_rows = True

        def fit(self, X, y=None):
            return super().fit(X[np.arange(0, len(X), 9)])

    monkeypatch.setattr(lazy_rows.Rows, "__getitem__", counted)
    monkeypatch.setattr("kbench.evaluation.fitting.MEASURED_ROWS", 20)
    monkeypatch.setattr(Counting, "seen", [])
    evaluated(make_dataset(), 0, Method(EstimatorSpec(Partial), RIDGE), PROTOCOL, block=37)
    assert max(Counting.seen) < 50
    assert max(copied) == 37


class Centred(TransformerMixin, BaseEstimator):
    """Embeds rows by their distance from the mean of their block."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X - X.mean(axis=0)


@pytest.mark.parametrize(
    ("feature_map", "learner"),
    [
        (EstimatorSpec(Centred), RIDGE),  # embeds no row alone
        (RFF, EstimatorSpec(LogisticRegression)),  # is fitted neither from sums nor in passes
    ],
)
def test_what_takes_no_blocks_has_one_matrix(feature_map, learner):
    given = make_dataset(), 0, Method(feature_map, learner), replace(PROTOCOL, scaling=("none",))
    expected, _ = evaluated(*given)
    found, fitted = evaluated(*given, block=37, fit_bytes=2**28)
    assert not fitted.is_in_blocks
    np.testing.assert_array_equal(found.predictions.decision, expected.predictions.decision)


def test_maps_that_use_the_targets_are_fitted_on_those_of_the_fold():
    class Clusters(KMeans):
        def fit(self, X, y):
            assert len(X) == len(y)
            return super().fit(X * (1 + np.asarray(y))[:, None])

    spec = EstimatorSpec(Clusters, {"n_clusters": 5, "random_state": 0}, supervised=True)
    given = make_dataset(n_classes=2), 0, Method(spec, RIDGE), PROTOCOL
    expected, _ = evaluated(*given)
    found, fitted = evaluated(*given, block=37)
    assert fitted.is_in_blocks
    assert_equal(inner_scores(found), inner_scores(expected))
