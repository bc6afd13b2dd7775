"""The suites `study` and `study-regression`, and the page that was written before their results."""

import json
import re
import tomllib
from collections import defaultdict

import pytest

from kbench import SuiteError
from kbench.api.inputs import select_suite
from kbench.execution.plugins import load_registry
from kbench.planning.cells import cells
from kbench.planning.suite_file import find, read
from kbench_openml._datasets import DEVELOPMENT
from tests.benchmarks.study.__main__ import LISTS
from tests.benchmarks.study.table import read_lists
from tests.support.paths import ROOT

REGISTRY = load_registry()
SUITES = ("study", "study-regression")
PAGE = ROOT / "docs/studies/study.md"
CHOSEN_ON = {50, 3, 46, 1501, 38, 1120, 1590, 37}
"""OpenML ids of the sets on which grids and budgets were chosen, and of a copy of `diabetes`."""


@pytest.fixture(scope="module", params=SUITES)
def suite(request):
    return read(*find(request.param, REGISTRY), REGISTRY)


def listed(heading):
    """Return the names in backquotes of the paragraph that begins with a phrase in bold."""
    text = PAGE.read_text()
    found = re.search(rf"\*\*{heading}\.\*\*(.*?)\n\n", text, re.DOTALL)
    assert found, heading
    return re.findall(r"`([\w-]+)`", found[1])


def names():
    return [ref.label for name in SUITES for ref in read(*find(name, REGISTRY), REGISTRY).datasets]


def test_no_set_on_which_grids_were_chosen_and_no_name_twice(suite):
    assert not CHOSEN_ON & {ref.params.get("data_id") for ref in suite.datasets}
    assert len(names()) == len(set(names())) == 38


def test_a_map_has_one_grid_at_all_widths(suite):
    grids = defaultdict(set)
    for cell in cells(suite, REGISTRY):
        size = {"n_components", "n_roots"}
        params = {k: v for k, v in cell.feature_map.params.items() if k not in size}
        if size & {*cell.feature_map.params}:
            method = cell.feature_map.label.split("(")[0], cell.learner.name
            grids[method].add(repr((params, cell.learner.params)))
            assert cell.protocol.max_train_rows == 1000
    assert {len(each) for each in grids.values()} == {1}
    assert len({name for name, _ in grids} - {"rff-one-bandwidth"}) == 10


def test_the_control_of_learned_directions_differs_in_the_learning_only(suite):
    labels = {
        cell.feature_map.label: cell.feature_map.params
        for cell in cells(suite, REGISTRY)
        if cell.dataset.label in ("iris", "diabetes") and cell.learner.name == "ridge"
    }
    for width in (64, 256):
        learned, control = (
            labels[f"{name}(n_components={width})"] for name in ("rff-learned", "rff-one-bandwidth")
        )
        assert learned == control == {"n_components": width, "bandwidth_factor": 1.0}


def test_rows_of_a_group_are_split_by_it_and_searched_by_it(suite):
    grouped = {ref.label for ref in suite.datasets if "groups" in ref.params}
    for cell in cells(suite, REGISTRY):
        is_grouped = cell.dataset.label in grouped
        assert (cell.protocol.cv == "official") == is_grouped
        assert (cell.protocol.inner_cv == "official") == is_grouped


def test_splits_beyond_the_folds_are_repeats(suite):
    assert suite.limits.n_splits == 3 * max(protocol.n_folds for protocol in suite.protocols)


def test_the_page_lists_every_dataset_once():
    parts = [
        *listed("Seen during development"),
        *listed("Held out for the rule"),
    ]
    assert sorted(parts) == sorted(names())


def test_the_analysis_has_the_lists_of_the_page():
    lists = read_lists(LISTS)
    assert lists.seen == {*listed("Seen during development")}
    assert lists.held_out == {*listed("Held out for the rule")}
    assert len(lists.held_out) == 10


def sets_of_the_level():
    """Return the regression datasets on which the level of learned maps was chosen."""
    text = (ROOT / "docs/studies/learned-maps.md").read_text()
    return re.search(r"bench_learned\.py FOLDER rule --sets ([\w,]+)", text)[1].split(",")


def test_no_default_was_chosen_on_what_is_held_out(suite):
    """A suite has datasets of both kinds, so that the test can fail."""
    held_out = {*listed("Held out for the rule")}
    chosen_on = {*sets_of_the_level(), "friedman1", "friedman2"}
    chosen_on |= {r.label for r in suite.datasets if r.params.get("data_id") in DEVELOPMENT}
    labels = {ref.label for ref in suite.datasets}
    assert len(chosen_on & labels) >= 7
    assert len(held_out & labels) >= 2
    assert not chosen_on & held_out


def test_the_page_says_where_results_of_held_out_datasets_were_seen():
    """Every page with a result of one of the ten is in the table of what was seen."""
    held_out = "|".join({*listed("Held out for the rule")} - {"diabetes"})
    pages = {
        path.name
        for path in [*PAGE.parent.glob("*.md"), PAGE.parents[1] / "gpu.md"]
        if re.search(rf"^\| *({held_out})\b|\| (pendigits|spambase) \|", path.read_text(), re.M)
    }
    assert pages >= {"learned-maps.md", "learned-fourier-maps.md", "mesh.md", "gpu.md"}
    text = PAGE.read_text()
    assert [name for name in sorted(pages) if f"{name})" not in text] == []


def test_without_its_folder_the_regression_half_says_where_the_data_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SuiteError, match=r"github\.com/treforevans"):
        select_suite("study-regression", REGISTRY)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_recommend_tries_maps_in_the_order_of_the_study(task):
    numbers = json.loads((ROOT / "docs/measured/study.json").read_text())
    order = numbers["tasks"][task]["rule"]["maps_to_1024"]
    suite = tomllib.loads((ROOT / f"suites/kbench_suites/recommend-{task}.toml").read_text())
    maps = [each["name"] for each in suite["feature_maps"]]
    assert len(maps) > 1
    assert maps == [name for name in order if name in maps]
