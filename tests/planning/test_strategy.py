"""The order of tasks: the longest first, and repeated folds split by split."""

import pytest

from kbench.planning.planned import InOrder, longest_first
from kbench.planning.planner import Planner
from kbench.planning.suite_file import find, read
from kbench.records import DatasetFacts, Problem, Result
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


def plan(n_splits):
    registry = build(list_plugins())
    text = f"{TEXT}[limits]\nn_splits = {n_splits}\n"
    facts = {"iris": SMALL, "digits": LARGE}
    return Planner(registry, NoCache()).plan(read(text, "s", registry), facts)


@pytest.mark.parametrize("by_split", [False, True])
def test_all_tasks_are_computed_once_in_the_order_of_cells_or_splits(by_split):
    cells = plan(n_splits=3)
    strategy = InOrder([*cells, cells[0]], by_split)
    steps = [(cell.key, index) for cell, index in strategy.steps()]
    assert strategy.n_tasks == len(steps) == len(set(steps)) == 12
    keys = [cell.key for cell in cells]
    by_cell = [(key, index) for key in keys for index in range(3)]
    assert steps == (sorted(by_cell, key=lambda step: step[1]) if by_split else by_cell)


def test_a_cell_that_was_stopped_has_no_further_steps():
    cells = plan(n_splits=2)
    seen = []
    for cell, index in InOrder(cells, by_split=True).steps():
        seen.append(index)
        cell.results[index] = Result("", "", index, "timed_out" if cell is cells[0] else "ok")
    assert seen == [0, 0, 0, 0, 1, 1, 1]


FOLDS, GROUPS = "cv = 'stratified'", "cv = 'group_duplicates'"
HOLDOUT, OFFICIAL = "cv = 'holdout'", "cv = 'official'"
WACKER = ("wacker-2022", "wacker-2022-regression")


@pytest.mark.parametrize(
    ("limit", "protocols", "is_by_split"),
    [
        ("", [FOLDS], False),
        ("n_splits = 5", [FOLDS], False),
        ("n_splits = 6", [FOLDS], True),
        ("n_splits = 6", [GROUPS], True),
        ("n_splits = 10", [f"{FOLDS}, n_folds = 10"], False),
        ("n_splits = 10", [HOLDOUT], False),
        ("n_splits = 10", [OFFICIAL], False),
        ("n_splits = 10", [HOLDOUT, "cv = 'ordered'"], False),
        ("n_splits = 10", [HOLDOUT, FOLDS], True),
        ("n_splits = 5", [HOLDOUT, FOLDS], False),
        # the folds of one are repeated, those of the other are not
        ("n_splits = 6", [f"{FOLDS}, n_folds = 10", f"{GROUPS}, n_folds = 3"], True),
    ],
)
def test_more_splits_than_folds_are_computed_split_by_split(limit, protocols, is_by_split):
    blocks = "".join(
        f"[[block]]\ndatasets = ['{data}']\nfeature_maps = ['identity']\nlearners = ['knn']\n"
        f"protocol = {{ {protocol} }}\n"
        for data, protocol in zip(("iris", "digits"), protocols, strict=False)
    )
    suite = read(f"{blocks}[limits]\n{limit}\n", "s", build(list_plugins()))
    assert suite.repeats_folds is is_by_split


def test_suites_of_holdouts_are_computed_cell_by_cell():
    registry = build(list_plugins())
    for name in ("nbcs-medium", "nbcs-large", "balcan-uci", "balcan-synthetic", *WACKER):
        assert not read(*find(name, registry), registry).repeats_folds, name
    for name in ("study", "study-regression"):
        assert read(*find(name, registry), registry).repeats_folds, name
