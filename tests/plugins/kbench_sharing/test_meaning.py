"""Authors cannot say what a method is equivalent to, nor how many splits there are."""

import dataclasses

import pytest

from kbench.records import ACCURACY, Protocol
from kbench_sharing.added_bundles import planned_splits, read_meaning, read_rows
from kbench_sharing.bundle_records import Bundle
from kbench_sharing.reading import parse_bundle
from kbench_sharing.site import boards
from tests.support.bundles import files, known

ROTATED = """
datasets = ["iris"]
feature_maps = ["nystroem"]
learners = ["ridge"]
"""


@pytest.fixture(scope="module")
def honest() -> Bundle:
    return parse_bundle(files(author="Ada"))


def of_cells(bundle, **changes):
    return dataclasses.replace(
        bundle, cells=[cell.model_copy(update=changes) for cell in bundle.cells]
    )


def test_an_honest_author_says_what_kbench_says():
    cells = known(1, ROTATED).cells
    said = {cell.key: (cell.equivalence, cell.family) for cell in cells}
    assert said == {cell.key: read_meaning(cell.cell) for cell in cells}
    assert all(equivalence for equivalence, _ in said.values())


def test_a_forged_equivalence_takes_no_place(honest):
    forged = of_cells(honest, equivalence="0" * 64, family="baseline")
    rows = [[each.row for each in read_rows(b, ACCURACY, {})] for b in (honest, forged)]
    assert rows[0] == rows[1]


def test_a_component_that_is_not_built_in_or_has_too_many_spans_has_no_equivalence():
    cell = known(1, ROTATED).cells[0].cell
    map_ = dataclasses.replace(cell.feature_map, name="nosuch")
    assert read_meaning(dataclasses.replace(cell, feature_map=map_)) == ("", "")
    nested = dataclasses.replace(cell.feature_map, params={"gamma": cell.feature_map})
    assert read_meaning(dataclasses.replace(cell, feature_map=nested))[0] == ""


def test_the_splits_of_a_suite_are_those_of_its_file_and_never_of_a_path(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("limits.n_splits = 1")
    assert planned_splits(str(file), Protocol(cv="holdout")) == 10
    assert planned_splits("strong-baselines", Protocol()) == 3


def one_of(bundle, number, n_splits, author):
    """Return a bundle of one cell whose author says that it has so many splits."""
    cell = bundle.cells[number].model_copy(update={"n_splits": n_splits})
    results = {split: bundle.results[cell.key][split] for split in range(n_splits)}
    return dataclasses.replace(
        bundle,
        id=f"{author} {number}",
        cells=[cell],
        results={cell.key: results},
        manifest=bundle.manifest.model_copy(update={"author": author}),
    )


def board(*bundles):
    (found,) = boards((f"results/x/y/{b.id}.jsonl", b, {}) for b in bundles)
    return found


def test_one_split_neither_stands_beside_five_nor_empties_the_leaderboard(honest):
    iris = [i for i, cell in enumerate(honest.cells) if cell.dataset == "iris"]
    own = [one_of(honest, number, 5, "Ada") for number in iris[:1]]
    forged = [one_of(honest, number, 1, "Eve") for number in iris]
    found = board(*own, *forged)
    assert {row.machine for row in found.compared if row.is_complete} == {"Ada on A CPU"}
    shown = {(each.other.author, each.row.n_splits_done, each.row.n_splits) for each in found.rows}
    assert shown == {("Ada", 5, 5), ("Eve", 1, 5)}
    assert not any(each.row.is_complete for each in found.rows if each.other.author == "Eve")


def test_rows_of_a_suite_with_fewer_splits_are_compared_with_each_other(honest):
    bundles = [one_of(honest, number, 2, "Ada") for number in range(len(honest.cells))]
    found = board(*bundles)
    assert len(found.compared) == len(bundles)
    assert all(row.is_complete for row in found.compared)


def test_a_row_that_plans_more_splits_than_it_has_empties_no_leaderboard(honest):
    cell = honest.cells[0].model_copy(update={"n_splits": 90_000})
    forged = dataclasses.replace(one_of(honest, 0, 5, "Eve"), cells=[cell])
    found = board(*(one_of(honest, number, 5, "Ada") for number in range(2)), forged)
    assert {row.machine for row in found.compared if row.dataset == "iris"} == {"Ada on A CPU"}
