"""Several slots begin with the longest tasks."""

from kbench.planning.planned import longest_first
from kbench.planning.planner import Planner
from kbench.planning.suite_file import read
from kbench.records import DatasetFacts, Problem
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build

SMALL = DatasetFacts("a" * 64, n_samples=100, n_features=4, n_classes=2)
LARGE = DatasetFacts("b" * 64, n_samples=5000, n_features=4, n_classes=2)
TEXT = """
datasets = ["iris", "digits"]
feature_maps = ["identity", { name = "rff", gamma = { tune = [0.1, 1.0, 10.0] } }]
learners = [{ name = "ridge", alpha = 1.0 }]
"""


class NoCache:
    def recall(self, *args):
        return None


def names(datasets, text=TEXT):
    registry = build(list_plugins())
    planned = Planner(registry, NoCache()).plan(read(text, "s", registry), datasets)
    return [
        (cell.cell.dataset.label, cell.cell.feature_map.name)
        for cell in longest_first(planned, registry)
    ]


def test_more_rows_and_more_candidates_come_first():
    assert names({"iris": SMALL, "digits": LARGE}) == [
        ("digits", "rff"),
        ("digits", "identity"),
        ("iris", "rff"),
        ("iris", "identity"),
    ]


def test_a_random_search_counts_its_candidates():
    more = DatasetFacts("c" * 64, n_samples=200, n_features=4, n_classes=2)
    text = TEXT + '[protocol]\nsearch_method = "random"\nn_candidates = 1\n'
    assert names({"iris": SMALL, "digits": more}, text)[0][0] == "digits"
    assert names({"iris": SMALL, "digits": more}, text)[1][0] == "digits"


def test_cells_without_data_come_last():
    found = names({"iris": Problem("unavailable", "offline"), "digits": SMALL})
    assert [dataset for dataset, _ in found] == ["digits", "digits", "iris", "iris"]
