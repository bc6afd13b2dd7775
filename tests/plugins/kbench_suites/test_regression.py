"""The suites `regression` and `gp-uci`."""

from pathlib import Path

import numpy as np
import pytest

from kbench import SuiteError
from kbench.api.inputs import select_suite
from kbench.execution.plugins import load_registry
from kbench.planning.cells import cells
from kbench_files import load_csv
from tests.support.paths import SHARED

SETS = SHARED / "regression"


@pytest.fixture(scope="module")
def registry():
    return load_registry()


def test_all_datasets_of_the_suite_regression_name_their_task(registry):
    suite = select_suite("regression", registry)
    offline = [ref.label for ref in suite.datasets if ref.name != "openml"]
    assert offline == ["diabetes", "friedman1", "friedman2", "friedman3"]
    assert {ref.params["task"] for ref in suite.datasets if ref.name == "openml"} == {"regression"}
    planned = cells(suite, registry)
    for cell in planned:
        assert "regression" in registry.get("learner", cell.learner.name).tasks
    # cubic costs are for small sets only
    large = {cell.learner.name for cell in planned if cell.dataset.label == "kin8nm"}
    assert large == {"ridge", "bayesian-linear", "knn", "gradient-boosting", "dummy-mean"}


def test_gp_uci_without_its_folder_says_where_the_data_are(registry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SuiteError) as error:
        select_suite("gp-uci", registry)
    message = str(error.value)
    assert f"looked for {tmp_path / 'servo' / 'data.csv.gz'} and" in message
    assert "their folder with `data='FOLDER'`" in message
    assert "https://github.com/treforevans/uci_datasets" in message


@pytest.mark.skipif(
    not SETS.exists(), reason="needs the sets next to the checkout (../shared/regression)"
)
def test_gp_uci_finds_the_twenty_sets(registry):
    suite = select_suite("gp-uci", registry, data=str(SETS))
    assert len(suite.datasets) == 20
    for ref in suite.datasets:
        assert Path(ref.params["path"]) == SETS / ref.label / "data.csv.gz"
        assert Path(ref.params["path"]).exists()
        assert Path(ref.params["split_file"]).exists()
    yacht = next(ref for ref in suite.datasets if ref.label == "yacht")
    data = load_csv(**yacht.params)
    assert (data.name, data.X.shape, data.task) == ("yacht", (308, 6), "regression")
    assert len(data.splits) == 10
    tested = np.concatenate([split.test for split in data.splits])
    assert sorted(tested) == list(range(308))


def test_learned_maps_stand_beside_the_same_maps_without_learning(registry):
    suite = select_suite("learned-maps", registry)
    planned = cells(suite, registry)
    maps = {cell.feature_map.label for cell in planned}
    assert {f"{name}-learned" for name in ("rff", "nystroem")} <= maps
    assert {name.removesuffix("-learned") for name in maps} <= maps
    # cubic costs are for small sets only
    learners = {cell.learner.name for cell in planned if cell.dataset.label == "pendigits"}
    assert learners == {"ridge", "gradient-boosting"}
