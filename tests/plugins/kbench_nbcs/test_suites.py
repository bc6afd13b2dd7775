import pytest

from kbench.planning.cells import cells
from kbench.planning.suite_file import find, read
from kbench.registry.callables import resolve
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build


@pytest.fixture(scope="module")
def registry():
    return build(list_plugins())


@pytest.mark.parametrize("name", ["nbcs-large", "nbcs-medium", "map-curves"])
def test_the_suite_is_read_and_planned(name, registry):
    text, stem = find(name, registry)
    suite = read(text, stem, registry)
    planned = {
        (each.dataset.label, each.feature_map.label, each.learner.label)
        for each in cells(suite, registry)
    }
    assert len(planned) == len(cells(suite, registry))
    for each in suite.published:
        assert (each.dataset, each.feature_map, each.learner) in planned
        assert 0.5 < each.value < 1
    for dataset in {each[0] for each in planned}:
        learners = {(each[1], each[2]) for each in planned if each[0] == dataset}
        assert {("identity", "1-NN"), ("identity", "gradient-boosting")} <= learners


def test_table_1_is_complete_and_names_its_schemes(registry):
    suite = read(*find("nbcs-large", registry), registry)
    datasets = {"letter", "skin-segmentation", "cod-rna", "shuttle", "covertype"}
    maps = {"polynomial-2", "polynomial-3", "identity", "uni-NBCS", "adapt-NBCS"}
    found = {(each.dataset, each.feature_map) for each in suite.published}
    assert found == {(dataset, each) for dataset in datasets for each in maps}
    for block in suite.blocks:
        several = {each.label for each in block.datasets} & {"letter", "shuttle", "covertype"}
        for learner in block.learners:
            if several and learner.name == "linear-svm":
                assert "one-against-" in learner.label


def test_curves_have_every_size_and_most_sets_chose_no_default(registry):
    from kbench_openml._datasets import DEVELOPMENT

    suite = read(*find("map-curves", registry), registry)
    sizes, data_ids = set(), set()
    for block in suite.blocks:
        assert block.protocol.cv == "holdout"
        data_ids |= {each.params["data_id"] for each in block.datasets}
        for each in block.feature_maps:
            sizes |= {
                (each.name, size) for name, size in each.params.items() if name.startswith("n_")
            }
    assert {("simplicial-mesh", n) for n in (1, 4, 12, 32)} <= sizes
    assert {("nbcs-rotated", n) for n in (1, 4, 16)} <= sizes
    for name in ("nystroem", "orthogonal-rff"):
        assert {(name, n) for n in (100, 300, 1000)} <= sizes
    assert len(data_ids - DEVELOPMENT) >= 9
    assert data_ids & DEVELOPMENT == {6, 36}


def test_the_name_nbcs_means_the_papers_method(registry):
    for name in ("nbcs", "nbcs-adaptive"):
        record = registry.get("feature map", name)
        made = resolve(record.make)()
        assert (made.root, made.n_roots, made.rotate) == ("corner", 1, False), name
        assert made.split_point == "nearest"
        assert record.grid == {"depth": (2, 3, 4, 5)}
    ours = resolve(registry.get("feature map", "nbcs-rotated").make)()
    assert ours.n_roots > 1 and ours.rotate


@pytest.mark.parametrize("name", ["uci", "uci-full", "nbcs-medium", "nbcs-large"])
def test_the_papers_map_stands_beside_rotated_roots(name, registry):
    suite = read(*find(name, registry), registry)
    for block in suite.blocks:
        given = {each.name for each in block.feature_maps}
        assert given >= {"nbcs", "nbcs-rotated"} or not given & {"nbcs", "nbcs-rotated"}
        for each in block.feature_maps:
            if each.name == "nbcs":
                assert each.params.keys() <= {"depth"}, "the paper's root is the default"


@pytest.mark.parametrize("name", ["uci", "uci-full", "nbcs-medium"])
def test_the_mesh_is_in_the_comparisons(name, registry):
    suite = read(*find(name, registry), registry)
    assert "simplicial-mesh" in {each.name for block in suite.blocks for each in block.feature_maps}
