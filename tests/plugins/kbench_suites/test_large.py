"""The suite `large`, all of its methods, on few rows."""

from dataclasses import replace

import pytest

from kbench.api.inputs import select_suite
from kbench.evaluation import passes
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method, learner_side, map_side
from kbench.execution.plugins import load_registry
from kbench.machine import physical_cores
from kbench.planning.cells import cells
from kbench_datasets import hypersphere_shells


@pytest.fixture(scope="module")
def registry():
    return load_registry()


@pytest.fixture(scope="module")
def suite(registry):
    return select_suite("large", registry)


def test_a_task_has_all_cores_and_one_embedding_for_all_folds(suite):
    for block in suite.blocks:
        assert block.protocol.threads == physical_cores()
        assert not block.protocol.refit_maps_in_inner_folds
        assert block.protocol.block_dtype == "float32"
        assert (block.protocol.cv, block.protocol.test_size) == ("holdout", 0.2)


def test_every_method_runs_on_a_small_variant(suite, registry, monkeypatch):
    monkeypatch.setattr(passes, "WHOLE_BYTES", 0)  # all embeddings are taken in blocks
    data = hypersphere_shells(n_samples=600, n_features=4)
    found = {}
    for cell in cells(suite, registry):
        if cell.dataset.label != "shells":
            continue
        feature_map, protocol = cell.feature_map, cell.protocol
        if "n_components" in feature_map.params:
            feature_map = replace(feature_map, params={**feature_map.params, "n_components": 64})
        if protocol.train_size is not None:
            protocol = replace(protocol, train_size=protocol.train_size // 100)
        method = Method(
            **map_side(feature_map, registry), **learner_side(cell.learner, registry, data.task)
        )
        metrics = evaluate_split(data, 0, method, protocol).metrics
        found[f"{cell.feature_map.label} + {cell.learner.label}"] = metrics
    assert len(found) == 14
    assert all(metrics["accuracy"] <= 0.97 for metrics in found.values())  # 0.9 and noise
    assert found["rff-1024 + ridge (ovr)"]["accuracy"] > 0.75
    assert found["rff-1024 + ridge (ovr)"]["shared_pass"] == 1
    # the sphere is no hyperplane
    assert found["identity + ridge (ovr)"]["accuracy"] < 0.65
    assert found["identity + knn, 20,000 rows"]["n_train"] == 200
    assert found["identity + kernel-svm (ovo), 10,000 rows"]["n_train"] == 100
