"""Splits that are computed on a device: by array-api-strict, and by torch where it is installed."""

import os
import time
import weakref
from dataclasses import replace
from types import SimpleNamespace

import array_api_strict
import numpy as np
import pytest
import scipy.sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression

from kbench import Dataset, KbenchError, PluginError, Protocol, SuiteError
from kbench.arrays import like, namespace, to_numpy
from kbench.evaluation import block_fits, device, embedding, gram_sums, lazy_rows, passes
from kbench.evaluation.device import Device
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench_learners import LinearSVM, LogisticClassifier, PathRidge, PathRidgeClassifier

ALPHAS = {"alpha": (1.0, 1e-3, 0.1, 10.0)}
C = {"C": (1.0, 0.1, 10.0)}


class Strict(Device):
    """A device with nothing but the standard."""

    name = "strict"
    is_host = False
    fits_bytes = 2**16

    def __init__(self):
        self.n_rows, self.n_waits = 0, 0

    def put(self, X, dtype):
        self.n_rows += len(X)
        return array_api_strict.asarray(np.array(X, dtype))

    def synchronise(self):
        self.n_waits += 1


class Waves(TransformerMixin, BaseEstimator):
    """Cosine features of a width that its training data decide."""

    def __init__(self, n_components=20, factor=1.0, random_state=0):
        self.n_components, self.factor, self.random_state = n_components, factor, random_state

    def fit(self, X, y=None):
        rng = np.random.default_rng(self.random_state)
        width = float(namespace(X).std(X)) * self.factor
        draws = rng.normal(size=(X.shape[1], self.n_components)) / width
        self.frequencies_ = like(draws, X)
        self.phases_ = like(rng.uniform(0.0, 6.0, self.n_components), X)
        return self

    def transform(self, X):
        waves = X @ like(self.frequencies_, X) + like(self.phases_, X)
        return namespace(X).cos(waves)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags


WAVES = EstimatorSpec(Waves, {}, {"factor": (2.0, 1.0)}, label="feature map 'waves'")
LEARNERS = {
    "ridge": EstimatorSpec(PathRidgeClassifier, {}, ALPHAS, path="alpha"),
    "regressor": EstimatorSpec(PathRidge, {}, ALPHAS, path="alpha"),
    "ovo": EstimatorSpec(LinearSVM, {"tol": 1e-12}, C, path="C"),
    "svm-ovr": EstimatorSpec(LinearSVM, {"multiclass": "ovr"}, C, path="C"),
    "logistic": EstimatorSpec(LogisticClassifier, {}, C, path="C"),
    "logistic-ovr": EstimatorSpec(LogisticClassifier, {"multiclass": "ovr"}, C, path="C"),
}


def make_dataset(n_classes=2, n=240, weighted=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    signal = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    cuts = np.quantile(signal, np.linspace(0, 1, max(n_classes, 2) + 1)[1:-1])
    y = np.digitize(signal, cuts) if n_classes else 50.0 + 7.0 * signal
    return Dataset("made", X, y, sample_weight=rng.uniform(0.1, 2.0, n) if weighted else None)


@pytest.fixture(params=["strict", "torch-cpu", "cuda"])
def name(request, monkeypatch):
    """Name of a device, on which blocks are small."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    monkeypatch.setattr(lazy_rows, "BLOCK_ROWS", 61)
    monkeypatch.setattr(block_fits, "SAMPLE_BYTES", 60 * 8 * 20)
    monkeypatch.setattr(gram_sums, "STRIP", 7)
    monkeypatch.setattr(device, "BLOCK_BYTES", 0)
    if request.param == "strict":
        of = Device.of
        made = Strict()
        monkeypatch.setattr(
            device.Device, "of", staticmethod(lambda name: of(name) if name == "cpu" else made)
        )
        return "torch-cpu"
    torch = pytest.importorskip("torch", reason="torch (the extra gpu) is not installed")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    return request.param


def both(monkeypatch, data, method, protocol, name, index=0):
    """Evaluate a split over blocks on the host, and on the device."""
    with monkeypatch.context() as patched:
        patched.setattr(passes, "WHOLE_BYTES", 0)
        expected = evaluate_split(data, index, method, protocol)
    return expected, evaluate_split(data, index, method, replace(protocol, device=name))


def values(found):
    return np.concatenate([row["values"] for row in found.details.search])


def outputs(found):
    given = found.predictions
    scores = [given.decision, given.probabilities]
    return next((each for each in scores if each is not None), given.predicted)


def assert_equal(found, expected, precision=1e-8):
    assert found.details.chosen == expected.details.chosen
    np.testing.assert_allclose(values(found), values(expected), rtol=precision)
    scale = np.abs(outputs(expected)).max()
    np.testing.assert_allclose(outputs(found), outputs(expected), rtol=0, atol=precision * scale)


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize(
    ("learner", "n_classes"),
    [
        ("ridge", 2),
        ("ridge", 7),
        ("regressor", 0),
        ("ovo", 3),
        ("svm-ovr", 3),
        ("logistic", 2),
        ("logistic", 7),
        ("logistic-ovr", 3),
    ],
)
def test_a_device_changes_numbers_by_rounding_only(name, monkeypatch, learner, n_classes, refit):
    weighted = learner in ("ridge", "regressor")
    data = make_dataset(n_classes, weighted=weighted)
    protocol = Protocol(refit_maps_in_inner_folds=refit)
    expected, found = both(monkeypatch, data, Method(WAVES, LEARNERS[learner]), protocol, name)
    assert_equal(found, expected)
    assert found.metrics["converged"] == found.metrics["search_converged"] == 1
    assert found.metrics["transfer_time_s"] > 0


@pytest.mark.parametrize("learner", ["ridge", "ovo", "logistic"])
def test_the_route_in_memory_and_a_device_agree(name, learner):
    """Fits in memory have other algorithms, so that tolerances are tighter than the default."""
    data, spec = make_dataset(2), LEARNERS[learner]
    tol = {} if learner == "ridge" else {"tol": 1e-14 if learner == "ovo" else 1e-11}
    method = Method(WAVES, replace(spec, params=tol))
    expected = evaluate_split(data, 1, method, Protocol())
    found = evaluate_split(data, 1, method, Protocol(device=name))
    assert_equal(found, expected, 1e-7)


def test_float32_is_close_where_the_problem_is_well_conditioned(name, monkeypatch):
    method = Method(WAVES, replace(LEARNERS["ridge"], space={"alpha": (1.0, 10.0)}))
    protocol = Protocol(refit_maps_in_inner_folds=False, block_dtype="float32")
    expected = evaluate_split(make_dataset(3), 0, method, replace(protocol, block_dtype="float64"))
    found = evaluate_split(make_dataset(3), 0, method, replace(protocol, device=name))
    assert_equal(found, expected, 1e-4)
    assert any("embedded rows in float32 on the device" in note for note in found.details.notes)


def test_penalties_too_small_for_float32_are_computed_in_float64_on_the_device(name, monkeypatch):
    method = Method(WAVES, replace(LEARNERS["regressor"], space={"alpha": (1e-9, 1e-3, 1.0)}))
    protocol = Protocol(refit_maps_in_inner_folds=False, block_dtype="float32")
    expected, found = both(monkeypatch, make_dataset(0), method, protocol, name)
    assert_equal(found, expected, 1e-7)
    (note,) = [note for note in found.details.notes if note.startswith("fitted from sums")]
    assert "in float64 on the device" in note


@pytest.mark.parametrize("learner", ["ridge", "regressor"])
def test_more_columns_than_rows_and_a_penalty_of_nearly_nothing(name, monkeypatch, learner):
    waves = EstimatorSpec(Waves, {"n_components": 200}, {})
    method = Method(waves, replace(LEARNERS[learner], space={"alpha": (1e-14, 1.0)}))
    data = make_dataset(0 if learner == "regressor" else 3, n=150)
    _, found = both(monkeypatch, data, method, Protocol(), name)
    assert np.isfinite(outputs(found)).all()
    assert found.metrics["search_failures"] == 0


@pytest.mark.parametrize(
    ("feature_map", "learner", "X", "reason"),
    [
        (Waves, LogisticRegression, None, "learner 'x' does not compute on devices"),
        (None, PathRidgeClassifier, None, "feature map 'x' does not compute on devices"),
        (Waves, PathRidgeClassifier, "sparse", "its inputs are a Gram matrix or sparse"),
    ],
)
def test_a_method_without_a_device_path_is_computed_on_the_host(
    name, feature_map, learner, X, reason
):
    class Plain(Waves):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.array_api_support = False
            return tags

        def transform(self, X):
            return np.cos(X @ self.frequencies_)

    class Sparse(Waves):
        def fit(self, X, y=None):
            return super().fit(X.toarray())

    map_ = Sparse if X else feature_map or Plain
    data = make_dataset(2)
    if X:
        data = replace(data, X=scipy.sparse.csr_matrix(data.X))
    method = Method(
        EstimatorSpec(map_, label="feature map 'x'"),
        EstimatorSpec(learner, label="learner 'x'", path="alpha"),
    )
    expected = evaluate_split(data, 0, method, Protocol())
    found = evaluate_split(data, 0, method, Protocol(device=name))
    np.testing.assert_array_equal(found.predictions.predicted, expected.predictions.predicted)
    assert f"computed on the host, not on the device: {reason}" in found.details.notes
    assert "transfer_time_s" not in found.metrics


def test_a_method_without_a_device_path_is_left_out_if_the_protocol_says_so(name):
    protocol = Protocol(device=name, other_methods="skip")
    learner = EstimatorSpec(LogisticRegression, label="learner 'x'")
    with pytest.raises(KbenchError, match=r"left out.*learner 'x' does not compute on devices"):
        evaluate_split(make_dataset(2), 0, Method(WAVES, learner), protocol)
    assert evaluate_split(make_dataset(2), 0, Method(WAVES, LEARNERS["ridge"]), protocol).metrics


def test_a_map_that_needs_all_rows_together_is_computed_on_the_host(name):
    class Centred(Waves):
        def transform(self, X):
            Z = super().transform(X)
            return Z - namespace(Z).mean(Z, axis=0)

    method = Method(EstimatorSpec(Centred), LEARNERS["ridge"])
    found = evaluate_split(make_dataset(2), 0, method, Protocol(device=name))
    reason = "the map needs all rows together"
    assert f"computed on the host, not on the device: {reason}" in found.details.notes


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_a_map_returns_on_a_device_is_checked(name, value):
    class Broken(Waves):
        def transform(self, X):
            Z = super().transform(X)
            Z[0, 0] = value
            return Z

    method = Method(EstimatorSpec(Broken, label="feature map 'x'"), LEARNERS["ridge"])
    with pytest.raises(PluginError, match=f"feature map 'x' returned the value {value}"):
        evaluate_split(make_dataset(2), 0, method, Protocol(device=name))


def test_metrics_of_plugins_and_kernels_get_arrays_of_the_host(name):
    seen = []

    def measure(map_, X, y, *, learner, X_train, y_train):
        seen.extend([map_.frequencies_, X, y, learner.coef_, X_train, y_train])
        return {"mine": 1.0}

    def kernel(map_, X, Y):
        seen.append(map_.transform(X))
        return X @ Y.T

    method = Method(
        WAVES,
        LEARNERS["ridge"],
        kernel,
        map_metrics=measure,
        learner_metrics=lambda learner, Z, y: {"other": float(np.abs(Z).max())},
    )
    found = evaluate_split(make_dataset(2), 0, method, Protocol(device=name))
    assert {type(each) for each in seen} == {np.ndarray}
    assert found.metrics["mine"] == 1.0
    # frequencies, phases; coefficients and an intercept; the labels
    assert found.metrics["n_stored_floats"] == 4 * 20 + 20 + 20 + 1 + 2


@pytest.mark.parametrize(
    "changes",
    [
        {"calibration": "sigmoid"},
        {"calibration": "isotonic", "refit_maps_in_inner_folds": False},
        {"search_metric": "roc_auc"},
        {"map_seeds": 2},
        {"search_method": "racing", "n_candidates": 3},
        {"scaling": ("standard", "none")},
        {"unlabeled_size": 0.2},
    ],
)
def test_what_else_a_protocol_asks_for(name, monkeypatch, changes):
    method = Method(WAVES, LEARNERS["ovo"])
    expected, found = both(monkeypatch, make_dataset(3), method, Protocol(**changes), name)
    assert_equal(found, expected)
    of_device = {"transfer_time_s"} | ({"device_memory_mib"} if name == "cuda" else set())
    assert found.metrics.keys() - expected.metrics.keys() == of_device


def test_one_candidate_is_warmed_up_where_it_is_timed(name):
    waves, ridge = EstimatorSpec(Waves, {}), EstimatorSpec(PathRidgeClassifier, {}, path="alpha")
    found = evaluate_split(make_dataset(2), 0, Method(waves, ridge), Protocol(device=name))
    assert found.metrics["embedding_passes"] == 1
    assert found.metrics["map_transform_time_s"] > 0


def test_logarithmic_targets(name, monkeypatch):
    method, protocol = Method(WAVES, LEARNERS["regressor"]), Protocol(target_scale="log")
    assert_equal(*reversed(both(monkeypatch, make_dataset(0), method, protocol, name)))


def test_what_is_fitted_on_lazy_rows_goes_to_the_device_once(name, monkeypatch):
    class Lazy(Waves):
        takes_lazy_rows = True

        def transform(self, X):
            assert namespace(self.frequencies_) is namespace(X)
            return super().transform(X)

    monkeypatch.setattr(embedding, "FIT_BYTES", 0)
    method = Method(EstimatorSpec(Lazy), LEARNERS["ridge"])
    found = evaluate_split(make_dataset(2), 0, method, Protocol(device=name))
    assert found.metrics["search_failures"] == 0


def test_a_failed_candidate_leaves_its_memory_to_the_others(name):
    failed = []

    class Failing(Waves):
        def transform(self, X):
            Z = super().transform(X)
            if self.factor == 2.0:
                failed.append(weakref.ref(Z))
                raise MemoryError("CUDA out of memory")
            assert {ref() for ref in failed} == {None}
            return Z

    method = Method(replace(WAVES, make=Failing), LEARNERS["ridge"])
    found = evaluate_split(make_dataset(2), 0, method, Protocol(device=name))
    assert 0 < found.metrics["search_failures"] < found.metrics["n_candidates"]


def test_a_descent_keeps_nothing_of_its_sample():
    torch = pytest.importorskip("torch", reason="torch (the extra gpu) is not installed")
    Z = torch.ones((50, 3), dtype=torch.float64)
    sample = block_fits.Sample(Z, np.arange(50) % 2, np.arange(2), np.full(2, 25))
    fit = LogisticClassifier().begin_fit(sample, [1.0])
    assert fit._like.untyped_storage().nbytes() < Z.untyped_storage().nbytes()


def test_estimators_of_scikit_learn_compute_whatever_the_environment_says(monkeypatch):
    pytest.importorskip("torch", reason="torch (the extra gpu) is not installed")
    monkeypatch.setenv("SCIPY_ARRAY_API", "0")
    torch_cpu = Device.of("torch-cpu")
    assert os.environ["SCIPY_ARRAY_API"] == "0"  # other runs of the process keep theirs
    torch_cpu.begin()
    with torch_cpu.dispatch():
        assert get_config()["array_api_dispatch"]


def test_a_library_of_cuda_that_is_missing_is_named(monkeypatch):
    def fail(name):
        raise OSError("libcudart.so: cannot open shared object file")

    monkeypatch.setattr(device.importlib, "import_module", fail)
    with pytest.raises(SuiteError, match=r"needs torch.*libcudart"):
        Device.of("cuda")


def test_clocks_wait_for_the_device(name):
    if not isinstance(made := Device.of(name), Strict):
        pytest.skip("torch on the CPU waits always")
    evaluate_split(make_dataset(2), 0, Method(WAVES, LEARNERS["ridge"]), Protocol(device=name))
    assert made.n_waits > 2 * made.n_rows / lazy_rows.BLOCK_ROWS


@pytest.mark.parametrize("learner", ["ridge", "ovo", "logistic"])
def test_transfers_are_in_no_other_time(monkeypatch, learner):
    now = [0.0]

    class Slow(Strict):
        def put(self, X, dtype):
            now[0] += 1.0
            return super().put(X, dtype)

    made, of = Slow(), Device.of
    monkeypatch.setattr(
        device.Device, "of", staticmethod(lambda name: of(name) if name == "cpu" else made)
    )
    for clock in ("perf_counter", "process_time"):
        monkeypatch.setattr(time, clock, lambda: now[0])
    method = Method(WAVES, LEARNERS[learner])
    metrics = evaluate_split(make_dataset(3), 0, method, Protocol(device="torch-cpu")).metrics
    assert metrics["transfer_time_s"] >= 3.0  # rows of the map, of training and of the test
    steps = ("map_fit", "map_transform", "learner_fit", "fit", "predict")
    assert {metrics[f"{step}_time_s"] for step in steps} == {0.0}


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["ridge", "regressor", "ovo", "logistic"])
def test_many_rows(name, monkeypatch, learner):
    monkeypatch.setattr(lazy_rows, "BLOCK_ROWS", 4096)
    data = make_dataset(0 if learner == "regressor" else 3, n=60_000)
    expected, found = both(monkeypatch, data, Method(WAVES, LEARNERS[learner]), Protocol(), name)
    assert_equal(found, expected)


def test_the_host_needs_no_device():
    host = Device.of("cpu")
    host.begin()
    X = np.ones((2, 2))
    assert host.put(X, np.dtype(np.float64)) is X
    assert host.put(X, np.dtype(np.float32)).dtype == np.float32
    assert (host.is_host, host.wait(3), host.metrics) == (True, 3, {})


def test_rows_of_a_read_only_file_go_to_torch_as_copies():
    torch = pytest.importorskip("torch", reason="torch (the extra gpu) is not installed")
    rows = np.ones((2, 3))
    rows.flags.writeable = False
    put = Device.of("torch-cpu").put(rows, np.dtype(np.float32))
    put += 1
    assert (put.dtype, to_numpy(put).max(), rows.max()) == (torch.float32, 2.0, 1.0)


def test_blocks_of_a_gpu_are_small_in_inputs_too(monkeypatch):
    monkeypatch.setattr(lazy_rows, "BLOCK_ROWS", 4096)
    gpu = SimpleNamespace(name="cuda")
    made = SimpleNamespace(device=gpu, dtype=np.float64, embed=lambda X: np.ones((len(X), 2)))
    many = np.broadcast_to(0.0, (10**7, 784))
    rows = embedding.Embedding.block_rows(made, many)
    assert 8 * 784 * rows <= device.BLOCK_BYTES < 2 * 8 * 784 * rows
    assert embedding.Embedding.block_rows(made, many[:5]) == 5
