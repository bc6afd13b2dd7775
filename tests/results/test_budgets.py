import pytest

from kbench.evaluation.definitions import METRICS
from kbench.records import ACCURACY
from kbench.report.tables import leaderboard_table
from kbench.report.text import write
from kbench.results.budgets import budgets
from kbench.results.leaderboard import leaderboard
from tests.support.report_rows import row


def searched(dataset, feature_map, n, learner="ridge", family="fourier", seconds=1.0, **more):
    return row(
        dataset,
        feature_map,
        learner,
        n_candidates=n,
        search_time_cpu_s=seconds,
        family=family,
        **more,
    )


def test_a_budget_is_over_datasets():
    rows = [
        searched("iris", "rff", 8, seconds=1.0, search_at_boundary=0.0, search_space=("map.g",)),
        searched("wine", "rff", 16, seconds=4.0, search_at_boundary=1, search_space=("learner.C",)),
        searched("digits", "rff", 99, seconds=99.0),
    ]
    (found,) = budgets(rows, ["iris", "wine"])
    assert (found.method, found.family) == (("rff", "ridge"), "fourier")
    assert (found.least, found.most, found.is_searched) == (8, 16, True)
    assert found.search_s == pytest.approx(2.0)
    assert found.parameters == ("map.g", "learner.C")
    assert found.at_boundary == 0.5
    assert found.default is None


def test_a_search_of_the_whole_grid_is_said():
    rows = [
        *(searched(name, "rff", 30, grid_size=30) for name in ("iris", "wine")),
        *(searched(name, "few", 30, grid_size=98) for name in ("iris", "wine")),
        *(searched(name, "mixed", 30, grid_size=n) for name, n in (("iris", 30), ("wine", 98))),
        *(searched(name, "old", 30) for name in ("iris", "wine")),
    ]
    notes = {found.method[0]: found.note for found in budgets(rows, ["iris", "wine"])}
    assert notes == {"rff": "whole grid", "few": "", "mixed": "", "old": ""}
    assert "30 (whole grid)" in write(leaderboard_table(leaderboard(rows)), "markdown")


def test_where_nothing_was_searched_there_are_no_seconds():
    rows = [searched("iris", "rff", 1, seconds=0.0), row("iris", "old")]
    one, old = budgets(rows, ["iris"])
    assert (one.is_searched, one.search_s, one.at_boundary, one.most) == (False, None, None, 1)
    assert (old.is_searched, old.most, old.candidates) == (False, None, {})
    # a dataset without a choice does not count
    rows = [searched("iris", "rff", 1, seconds=0.0), searched("wine", "rff", 4, seconds=3.0)]
    assert budgets(rows, ["iris", "wine"])[0].search_s == pytest.approx(3.0)


def test_unfinished_cells_do_not_count():
    rows = [searched("iris", "rff", 8, status="timed_out"), searched("wine", "rff", 4)]
    assert budgets(rows, ["iris", "wine"])[0].candidates == {"wine": 4}


def test_default_and_tuned_are_over_the_datasets_that_have_both():
    rows = [
        searched("iris", "rff", 8, accuracies=(0.9, 0.9), default_accuracy=0.8),
        searched("wine", "rff", 8, accuracies=(0.7, 0.7), default_accuracy=0.7),
        searched("wdbc", "rff", 8, accuracies=(0.1, 0.1)),
    ]
    (found,) = budgets(rows, ["iris", "wine", "wdbc"], ACCURACY)
    assert (found.default, found.tuned) == (pytest.approx(0.75), pytest.approx(0.8))
    units = [searched(d, "rff", 8, rmse=2.0, default_rmse=3.0) for d in ("a", "b")]
    assert budgets(units, ["a", "b"], METRICS["rmse"])[0].default is None
    assert budgets(units, ["a"], METRICS["rmse"])[0].default == 3.0
