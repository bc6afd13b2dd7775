"""Predicted memory of a GPU, against the tensors that torch holds on the CPU."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from kbench import Dataset, FeatureMap, Learner, Protocol
from kbench.evaluation import block_fits, device, gram_sums, lazy_rows
from kbench.evaluation.embedding import Embedding
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench.features import CallOutcome
from kbench.planning.planned import PlannedCell
from kbench.planning.suite_file import read
from kbench.records import Cell, DatasetFacts, Limits, Ref, Tune
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench.runner import Options, Run, Watcher, execute
from kbench_baselines import NystroemMap, PolynomialSketch, RandomFourierFeatures
from kbench_costs import costs, trials
from kbench_learners import LinearSVM, LogisticClassifier, PathRidge, PathRidgeClassifier, _descent

MAPS = {"rff": RandomFourierFeatures, "nystroem": NystroemMap, "sketch": PolynomialSketch}
VALUES = (1.0, 0.1)
LEARNERS = {
    "ridge": (PathRidgeClassifier, "alpha", ""),
    "regressor": (PathRidge, "alpha", ""),
    "ovo": (LinearSVM, "C", "ovo"),
    "logistic": (partial(LogisticClassifier, max_iter=30), "C", "multinomial"),
}
SHARED = {"refit_maps_in_inner_folds": False, "cv": "holdout", "test_size": 0.1}


class Records:
    """A registry of the maps and learners above."""

    def get(self, kind, name):
        if kind == "feature map":
            return FeatureMap(name, make=MAPS[name])
        make, path, multiclass = LEARNERS[name]
        grid = {path: VALUES}
        return Learner(name, classifier=make, grid=grid, path=path, multiclass=multiclass)


def planned(name, learner, protocol, shape=(1500, 10), n_classes=2, width=256, **params):
    cell = Cell(Ref("made"), Ref(name, {"n_components": width}), Ref(learner, params), protocol)
    n_rows, n_columns = shape
    sizes = {"n_samples": n_rows, "n_features": n_columns, "n_classes": n_classes}
    return PlannedCell(cell, "key", DatasetFacts("c" * 64, **sizes), 5)


def predicted(*args, in_passes=False, width=256, **more):
    cell = planned(*args, **more)
    return trials.gpu_memory(cell, Records(), in_passes, width).value


def make_dataset(shape, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    signal = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=shape[0])
    cuts = np.quantile(signal, np.linspace(0, 1, max(n_classes, 2) + 1)[1:-1])
    return Dataset("made", X, np.digitize(signal, cuts) if n_classes else signal)


def counted_mib(monkeypatch, name, learner, protocol, shape, n_classes, width):
    """Return the peak of the bytes of all tensors in the evaluation of a split."""
    torch = pytest.importorskip("torch", reason="torch (the extra gpu) is not installed")
    from tests.support.tensors import CountedBytes, copied_to_host

    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    monkeypatch.setattr(torch.Tensor, "cpu", copied_to_host)
    map_ = EstimatorSpec(MAPS[name], {"n_components": width})
    make, path, multiclass = LEARNERS[learner]
    params = {"multiclass": multiclass} if multiclass else {}
    spec = EstimatorSpec(make, params, {path: VALUES}, path=path)
    data = make_dataset(shape, n_classes)
    with CountedBytes() as counted:
        found = evaluate_split(data, 0, Method(map_, spec), protocol)
    assert "transfer_time_s" in found.metrics
    return counted.peak / 2**20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "learner", "n_classes", "changes"),
    [
        ("rff", "ridge", 2, {}),
        ("rff", "ridge", 5, {"inner_folds": 5}),
        ("rff", "ridge", 2, {"refit_maps_in_inner_folds": True}),
        ("rff", "regressor", 0, {"block_dtype": "float32"}),
        ("nystroem", "ridge", 2, {}),
        ("sketch", "ridge", 2, {}),
        ("rff", "ovo", 2, {}),
        ("rff", "ovo", 4, {}),
        ("rff", "ovo", 2, {"refit_maps_in_inner_folds": True}),
        ("rff", "logistic", 2, {}),
        ("rff", "logistic", 4, {}),
    ],
)
def test_predictions_are_within_a_fifth_of_what_torch_holds(
    monkeypatch, name, learner, n_classes, changes
):
    for module in (lazy_rows, trials):
        monkeypatch.setattr(module, "BLOCK_ROWS", 64)
    block_bytes = {"float64": 8, "float32": 4}[changes.get("block_dtype", "float64")] * 128 * 256
    monkeypatch.setattr(device, "BLOCK_BYTES", block_bytes)

    def of_gpu(shared, X):
        return device.gpu_block_rows(shared.embed(X[:1]).shape[1], shared.dtype)

    monkeypatch.setattr(Embedding, "block_rows", of_gpu)
    monkeypatch.setattr(gram_sums, "STRIP", 64)
    for module in (block_fits, trials):
        monkeypatch.setattr(module, "SAMPLE_BYTES", 2**20)
    monkeypatch.setattr(_descent, "_SAMPLE_ROWS", 128)
    protocol = Protocol(device="torch-cpu", **{**SHARED, **changes})
    sizes = {"shape": (1500, 10), "n_classes": n_classes, "width": 256}
    held = counted_mib(monkeypatch, name, learner, protocol, **sizes)
    in_passes = learner in ("ovo", "logistic")
    assert predicted(name, learner, protocol, in_passes=in_passes, **sizes) == pytest.approx(
        held, rel=0.2
    )


def test_bounds_are_those_of_the_fits():
    assert trials.SAMPLE_BYTES == block_fits.SAMPLE_BYTES
    assert trials.KEPT_BYTES == device.TorchDevice.fits_bytes == _descent._DEVICE_BYTES


def test_sizes_add_up():
    shared, alone = Protocol(**SHARED), Protocol()
    gram = 8 * 4096**2 / 2**20
    many = {"shape": (10**6, 10), "width": 4096}
    of_map = 8 * 10 * 4096 / 2**20
    for protocol, n_grams in ((shared, 8), (alone, 6), (Protocol(**SHARED, inner_folds=5), 10)):
        mib = predicted("rff", "ridge", protocol, **many)
        assert mib == pytest.approx(n_grams * gram + of_map)
    one = planned("rff", "ridge", shared, **many, alpha=1.0)  # no search
    mib = trials.gpu_memory(one, Records(), False, 4096).value
    assert mib == pytest.approx(6 * gram + of_map)


def test_blocks_have_their_type():
    few = {"shape": (10**4, 10), "width": 100}
    double, single = (
        predicted("rff", "ridge", Protocol(**SHARED, block_dtype=name), **few)
        for name in ("float64", "float32")
    )
    assert 1.8 < double / single < 2.0


def test_narrow_blocks_have_many_rows():
    assert device.gpu_block_rows(1024, "float32") == 32_768
    assert device.gpu_block_rows(4096, "float64") == lazy_rows.BLOCK_ROWS
    narrow, wide = (
        predicted("rff", "ridge", Protocol(**SHARED), shape=(10**6, 10), width=width)
        for width in (256, 512)
    )
    assert wide == pytest.approx(narrow, rel=0.7)
    assert wide == pytest.approx(4 * 128, rel=0.1)


def test_hessians_are_bounded():
    many = {"shape": (10**6, 10), "width": 4096, "in_passes": True}
    few, more, all_pairs = (
        predicted("rff", "ovo", Protocol(**SHARED), **many, **given)
        for given in ({"C": 1.0}, {"C": Tune((1.0, 0.1))}, {"n_classes": 10})
    )
    assert few < more
    assert all_pairs < 2.5 * 1024 + 700


def test_small_cells_are_not_tried():
    on_gpu = Protocol(device="cuda", **SHARED)
    registry = Records()
    assert not trials.needs_trials(planned("rff", "ridge", on_gpu), registry, 4096.0)
    wide = planned("rff", "ridge", on_gpu, width=6000)  # few rows, but sums of all columns
    assert trials.needs_trials(wide, registry, 4096.0)
    wide.cell = planned("rff", "ridge", Protocol(**SHARED), width=6000).cell
    assert not trials.needs_trials(wide, registry, 4096.0)


def predict_on_gpu(value, **sizes):
    """Predict a cell whose narrow fit has a value."""

    def trial(subject, n_rows):
        cell = subject.cell
        assert cell.protocol.device == "torch-cpu"
        assert cell.feature_map.params["n_components"] == costs.NARROW
        subject.last = CallOutcome("ok" if value else "error", value)

    machine = SimpleNamespace(
        _limits=Limits(task_memory_mib=1024.0),
        _run=SimpleNamespace(registry=Records()),
        _subject=lambda key, cell, task, samples: SimpleNamespace(cell=cell, last=None),
        _trial=trial,
    )
    cell = planned("rff", "ridge", Protocol(device="cuda"), shape=(10**6, 10), **sizes)
    return costs._Costs._on_gpu(machine, cell, None, SimpleNamespace(n_rows=10**6))


def found(n_components):
    notes = ["fitted from sums over blocks of 4,096 embedded rows in float64"]
    metrics = {"transfer_time_s": 0.1, "n_components": n_components}
    return {"metrics": metrics, "details": {"notes": notes}}


def test_a_cell_too_large_for_a_gpu_is_refused():
    refused = predict_on_gpu(found(64), width=20_000)
    assert refused.refusal == (
        "on a GPU, a task needs 18 GiB, the limit is 1 GiB; n_components up to about 4,100 "
        "should fit"
    )
    assert refused.cost.seconds is None


def test_a_cell_that_fits_has_a_cost():
    fits = predict_on_gpu(found(64), width=4000)
    assert fits.refusal == ""
    assert 700 < fits.cost.memory_mib.value < 800


def test_columns_that_a_map_makes_of_a_component_count():
    refused = predict_on_gpu(found(128), width=20_000)
    assert "needs 72 GiB" in refused.refusal
    assert "n_components up to about 2,000 should fit" in refused.refusal


@pytest.mark.parametrize("value", [None, {"metrics": {"n_components": 64}, "details": {}}])
def test_methods_on_the_host_and_failures_are_not_refused(value):
    assert predict_on_gpu(value, width=20_000) is None


SUITE = """
datasets = ["wdbc"]
feature_maps = [{ name = "rff", n_components = 20000 }]
learners = ["ridge"]
[protocol]
device = "cuda"
[limits]
n_splits = 1
task_memory_mib = 1024
"""


@pytest.mark.slow
@pytest.mark.usefixtures("forked_sandboxes")
def test_a_narrow_fit_shows_where_a_method_is_computed(monkeypatch, store_uri):
    pytest.importorskip("torch", reason="torch (the extra gpu) is not installed")
    of, gpu = device.Device.of, SimpleNamespace(n_slots=1)
    monkeypatch.setattr(
        device.Device, "of", staticmethod(lambda name: gpu if name == "cuda" else of(name))
    )
    registry = build(list_plugins())
    suite = read(SUITE, "trial", registry)
    run = Run(suite, registry, Options(given={"store": store_uri}), Watcher())
    (cell,) = execute(run).cells
    assert cell.problem.reason.startswith("on a GPU, a task needs 18 GiB, the limit is 1 GiB")
