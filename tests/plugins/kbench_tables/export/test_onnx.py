"""ONNX models of linear and Fourier pipelines agree with the original."""

import sys

import numpy as np
import pytest

from kbench import Cell, Dataset, ExportError, Protocol, Ref
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_tables.export.fit import refit
from kbench_tables.export.onnx import check_onnx, write_onnx

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")


@pytest.fixture(scope="module")
def registry():
    return build(list_plugins())


def data(kind, n=90):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    X[:, 3] = rng.integers(0, 6, n)  # numbers of categories
    y = X[:, 0] + np.sin(2 * X[:, 1]) + (X[:, 3] % 2)
    X[::7, 1] = np.nan
    X[::11, 3] = np.nan
    kinds = ["numeric"] * 3 + ["target_encoded"]
    if kind in ("numbers", "logs"):
        y = y if kind == "numbers" else np.maximum(np.exp(y) - 0.5, 0.0)
        return Dataset("d", X, y, feature_kinds=kinds)
    bounds = {"two": [0.5], "rare": [0.8]}.get(kind, [0.3, 0.6])
    labels = np.digitize(y, np.quantile(y, bounds))
    names = ["no", "yes"] if len(bounds) == 1 else ["3", "5", "7"]
    return Dataset("d", X, labels, feature_kinds=kinds, target_names=names)


@pytest.mark.parametrize("scaling", ["minmax", "standard", "unit_ball"])
@pytest.mark.parametrize(
    ("feature_map", "learner", "kind"),
    [
        ("identity", "ridge", "numbers"),
        ("rff", "bayesian-linear", "numbers"),
        ("identity", "ridge", "logs"),
        ("orthogonal-rff", "linear-svm", "three"),
        ("qmc-rff", "logistic", "three"),
        ("identity", "logistic", "two"),
        ("identity", "logistic balanced", "two"),
        ("identity", "logistic balanced", "three"),
        ("identity", "ridge", "three"),
        ("identity", "linear-svm", "two"),
        ("identity", "linear-svm", "rare"),
        ("identity", "logistic balanced", "rare"),
    ],
)
def test_they_agree(registry, tmp_path, feature_map, learner, kind, scaling):
    protocol = Protocol(
        scaling=(scaling,),
        inner_folds=2,
        search_method="random",
        n_candidates=1,
        missing="impute_with_indicators",
        target_scale="log" if kind == "logs" else "linear",
        threshold_metric="mcc" if kind == "rare" else "none",
    )
    odd = {"n_components": 31} if feature_map != "identity" else {}
    name, *balanced = learner.split()
    of_learner = Ref(name, dict.fromkeys(balanced, True))
    cell = Cell(Ref("d"), Ref(feature_map, odd), of_learner, protocol)
    fitted = refit(cell, data(kind), registry)
    facts = write_onnx(tmp_path / "model.onnx", fitted)
    assert facts["difference"] < 1e-9
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    new = data(kind, 40).X[::-1].copy()
    new[0, 3] = -1  # a new category
    found = dict(zip(facts["outputs"], session.run(facts["outputs"], {"X": new}), strict=True))
    steps = fitted.pipeline[-3:]
    if kind in ("numbers", "logs"):
        np.testing.assert_allclose(found["prediction"], steps.predict(new), rtol=1e-9)
    else:
        assert found["label"].tolist() == steps.predict(new).tolist()
        np.testing.assert_allclose(found["decision"], steps.decision_function(new), atol=1e-9)
        np.testing.assert_allclose(found["probabilities"], steps.predict_proba(new), atol=1e-9)


@pytest.mark.parametrize("threshold", [-5e-324, 0.0, 1.0, np.nextafter(1.0, 2.0)])
def test_probabilities_of_0_and_1_are_thresholds(registry, tmp_path, threshold):
    protocol = Protocol(inner_folds=2, search_method="random", n_candidates=1, missing="impute")
    cell = Cell(Ref("d"), Ref("identity"), Ref("logistic"), protocol)
    fitted = refit(cell, data("two"), registry)
    fitted.pipeline[-1].threshold_ = threshold
    assert write_onnx(tmp_path / "model.onnx", fitted)["difference"] < 1e-9


@pytest.mark.parametrize(
    ("feature_map", "learner", "what"),
    [
        ("nystroem", "ridge", "this map is NystroemMap"),
        ("identity", "knn", "the learner is KNeigh"),
    ],
)
def test_other_pipelines_are_refused_with_a_sentence(
    registry, tmp_path, feature_map, learner, what
):
    protocol = Protocol(inner_folds=2, search_method="random", n_candidates=1, missing="impute")
    cell = Cell(Ref("d"), Ref(feature_map), Ref(learner), protocol)
    with pytest.raises(ExportError, match=rf"ONNX export supports .*{what}"):
        write_onnx(tmp_path / "model.onnx", refit(cell, data("three"), registry))
    assert not (tmp_path / "model.onnx").exists()


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ExportError, match=r"onnxruntime': pip install 'kbench-core\[onnx\]'"):
        check_onnx()
