"""What suites say of their searches and fits, whatever the method."""

import gzip
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_iris
from threadpoolctl import threadpool_limits

from kbench import Dataset, Ref
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method, learner_side, map_side
from kbench.planning.cells import cells
from kbench.planning.suite_file import find, read
from kbench.records import Protocol, Result
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench.results import row_builders
from kbench_files._files import load_arff
from tests.support.paths import MIRROR

registry = cache(lambda: build(list_plugins()))


@pytest.fixture(scope="module")
def small_iris():
    X, y = load_iris(return_X_y=True)
    rows = np.r_[50:80, 100:130]
    return Dataset("small-iris", X[rows], y[rows] - 1)


def methods(name):
    """Feature maps and learners of a suite, each pair once."""
    suite = read(*find(name, registry()), registry())
    pairs = {(c.feature_map.label, c.learner.label): c for c in cells(suite, registry())}
    return list(pairs.values())


def row_of(dataset, feature_map, learner, protocol):
    method = Method(
        **map_side(feature_map, registry()), **learner_side(learner, registry(), dataset.task)
    )
    with threadpool_limits(1):
        found = evaluate_split(dataset, 0, method, protocol)
    return row_builders.means([Result("t", "c", 0, "ok", found.metrics)])


@pytest.mark.parametrize(
    ("name", "task"),
    [(name, task) for name, each in registry().all("learner").items() for task in each.tasks],
)
def test_every_learner_says_whether_it_converged(name, task, small_iris):
    protocol = Protocol(search_method="random", n_candidates=2, inner_folds=2)
    data = small_iris
    if task == "regression":
        data = Dataset("petals", data.X[:, :3], data.X[:, 3], task=task)
    few = {"random-forest": {"n_estimators": 10}, "mlp": {"max_iter": 20}}
    row = row_of(data, Ref("identity"), Ref(name, few.get(name, {})), protocol)
    assert row["converged"] in (0.0, 1.0)
    assert 0.0 <= row["search_converged"] <= 1.0
    assert row["search_complete"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["uci", "balcan-uci", "nbcs-medium"])
def test_no_method_of_a_suite_is_reported_without_its_convergence(suite, small_iris):
    protocol = Protocol(search_method="random", n_candidates=2, inner_folds=2)
    for cell in methods(suite):
        row = row_of(small_iris, cell.feature_map, cell.learner, protocol)
        assert row["converged"] in (0.0, 1.0), cell.name
        assert 0.0 <= row["search_converged"] <= 1.0, cell.name


def test_the_strong_baselines_are_planned_beside_their_published_figures():
    suite = read(*find("strong-baselines", registry()), registry())
    planned = {
        (c.dataset.label, c.feature_map.label, c.learner.label): c for c in cells(suite, registry())
    }
    assert len(planned) == len(cells(suite, registry()))
    for figure in suite.published:
        assert (figure.dataset, figure.feature_map, figure.learner) in planned
        assert 0.85 < figure.value < 1
        assert figure.source
    sizes = {
        (c.dataset.label, c.protocol.cv, c.protocol.train_size, c.protocol.test_size)
        for c in planned.values()
    }
    assert sizes == {
        ("letter", "holdout", 15000, 5000),
        ("satimage", "holdout", 4430, 2000),
        ("pendigits", "ordered", 7494, 3498),
        ("shuttle", "ordered", 43500, 14500),
        ("skin-segmentation", "holdout", None, 0.3),
    }


PENDIGITS = MIRROR / "data" / "32.arff.gz"


@pytest.mark.slow
@pytest.mark.skipif(not PENDIGITS.exists(), reason="needs the files of OpenML beside the checkout")
@pytest.mark.parametrize(("k", "published"), [(1, 0.9774), (3, 0.9780)])
def test_the_ordered_split_of_pendigits_is_the_official_one(k, published, tmp_path):
    path = tmp_path / "pendigits.arff"
    path.write_bytes(gzip.decompress(PENDIGITS.read_bytes()))
    data = load_arff(str(path), target="class")
    protocol = Protocol(cv="ordered", train_size=7494, test_size=3498)
    row = row_of(data, Ref("identity"), Ref("knn", {"n_neighbors": k}), protocol)
    assert row["accuracy"] == pytest.approx(published, abs=5e-5)
