"""The suite to start with, and its larger relative."""

import pytest

from kbench.execution.plugins import load_registry
from kbench.planning.cells import cells
from kbench.planning.suite_file import find, read
from kbench.registry.callables import resolve

NOT_THERE = {50, 3, 46, 1501, 38, 1120, 1590}
"""OpenML ids of the sets on which the grids and the budgets were chosen."""


REGISTRY = load_registry()


@pytest.fixture
def uci():
    return read(*find("uci", REGISTRY), REGISTRY)


@pytest.fixture
def large():
    return read(*find("uci-large", REGISTRY), REGISTRY)


def test_eleven_unrelated_datasets_without_a_network(uci, monkeypatch):
    monkeypatch.setenv("KBENCH_OFFLINE", "1")
    sources = {ref.label: REGISTRY.get("dataset", ref.name) for ref in uci.datasets}
    data = {ref.label: resolve(sources[ref.label].load)(**ref.params) for ref in uci.datasets}
    assert len(data) == 11
    assert len({each.dataset_family for each in data.values()}) == 11
    assert all(each.task == "classification" for each in data.values())


def test_vowel_is_split_by_speaker(uci):
    for cell in cells(uci, REGISTRY):
        own = cell.dataset.label == "vowel"
        assert (cell.protocol.cv == "official") == own
        assert (cell.protocol.inner_cv == "official") == own


def test_no_set_on_which_grids_were_chosen(uci, large):
    for suite in (uci, large):
        assert not NOT_THERE & {ref.params.get("data_id") for ref in suite.datasets}


def test_both_have_the_same_methods_and_protocols(uci, large):
    def methods(suite, dataset):
        return [
            (cell.feature_map, cell.learner, cell.protocol)
            for cell in cells(suite, REGISTRY)
            if cell.dataset.label == dataset
        ]

    assert methods(uci, "iris") == methods(large, "spambase")
