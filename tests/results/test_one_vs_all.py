"""One method beside all others."""

import math

import pytest

from kbench.records import Metric
from kbench.results.one_vs_all import against, places
from tests.support.report_rows import changed, row

MINE = ("mine", "ridge")
GOOD, BAD = (0.90, 0.92, 0.91), (0.50, 0.52, 0.515)


def rows(n, ours=GOOD, theirs=BAD, other="rff"):
    made = [row(f"data-{i}", "mine", accuracies=ours) for i in range(n)]
    return made + [row(f"data-{i}", other, accuracies=theirs) for i in range(n)]


def test_datasets_are_counted_by_the_test_on_each():
    given = [
        *rows(1),
        *[row("level", kind, accuracies=GOOD) for kind in ("mine", "rff")],
        row("lost", "mine", accuracies=BAD),
        row("lost", "rff", accuracies=GOOD),
        row("once", "mine", accuracies=(0.9,)),
        row("once", "rff", accuracies=(0.8,)),
        row("alone", "mine", accuracies=GOOD),
    ]
    (found,) = against(given, MINE)
    assert found.other == ("rff", "ridge")
    assert (found.won, found.tied, found.lost, found.untested) == (1, 1, 1, 1)
    assert found.n_datasets == 4
    assert found.difference == pytest.approx(0.1 / 4)
    assert found.verdict == "not distinguishable"


@pytest.mark.parametrize(
    ("n", "verdict"), [(4, "not distinguishable"), (5, "better"), (8, "better")]
)
def test_a_verdict_needs_enough_datasets(n, verdict):
    assert against(rows(n), MINE)[0].verdict == verdict
    other_way = {"better": "worse"}.get(verdict, verdict)
    assert against(rows(n), ("rff", "ridge"))[0].verdict == other_way


def test_p_values_are_adjusted_for_the_number_of_others():
    given = rows(6)
    alone = against(given, MINE)[0].p
    for kind in "abc":
        given += [row(f"data-{i}", kind, accuracies=BAD) for i in range(6)]
    found = against(given, MINE)
    assert len(found) == 4
    assert found[0].p >= alone


def test_the_strongest_others_come_first():
    given = rows(6) + [row(f"data-{i}", "best", accuracies=(0.99, 1.0, 0.98)) for i in range(6)]
    assert [each.other[0] for each in against(given, MINE)] == ["best", "rff"]


def test_lower_values_win_where_they_are_better():
    error = Metric("accuracy", "lower")
    (found,) = against(rows(6), MINE, error)
    assert (found.won, found.lost, found.verdict) == (0, 6, "worse")
    assert places(rows(1), MINE, error)[0].rank == 2


def test_units_of_several_datasets_have_no_mean():
    rmse = Metric("accuracy", "lower", task="regression", in_units=True)
    assert math.isnan(against(rows(2), MINE, rmse)[0].difference)
    assert against(rows(1), MINE, rmse)[0].difference == pytest.approx(0.91 - 0.51166667)


def test_cells_that_did_not_finish_do_not_count():
    failed = [row("data-0", "rff", status="timed_out"), row("data-0", "mine", accuracies=GOOD)]
    assert against(failed, MINE) == []
    assert places(failed, MINE) == []
    assert against(rows(2), ("gone", "ridge")) == []


def test_places_are_ranks_among_all_with_the_best_of_the_others():
    given = [*rows(2), row("data-1", "best", accuracies=(0.99, 1.0, 0.98))]
    given.append(row("data-1", "level", accuracies=GOOD))
    first, second = places(given, MINE)
    assert (first.dataset, first.rank, first.of, first.best) == ("data-0", 1, 2, ("rff", "ridge"))
    assert (second.dataset, second.rank, second.of) == ("data-1", 2.5, 4)
    assert (second.best[0], second.best_value) == ("best", pytest.approx(0.99))


def test_means_are_over_the_splits_of_the_method():
    """Others may have more splits: their mean over all of them is one over other rows."""
    ours = row("data-0", "mine", accuracies=(0.8, 0.9))
    more = row("data-0", "more", accuracies=(0.7, 0.8, 0.99, 1.0))
    (found,) = against([ours, more], MINE)
    assert found.difference == pytest.approx(0.1)
    (place,) = places([ours, more], MINE)
    assert (place.rank, place.best_value) == (1, pytest.approx(0.75))
    fewer = row("data-0", "fewer", accuracies=(0.7,))
    assert places([ours, fewer], MINE) == []
    assert against([ours, fewer], MINE)[0].difference == pytest.approx(0.1)


def test_related_datasets_count_once():
    given = [changed(each, dataset_family="one") for each in rows(6)]
    (found,) = against(given, MINE)
    assert (found.won, found.n_datasets) == (6, 6)
    assert (found.p, found.verdict) == (0.5, "not distinguishable")
