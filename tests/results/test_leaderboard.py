"""The leaderboard: one line per method, over datasets that all methods finished."""

import math

import pytest

from kbench.records import Metric
from kbench.results import stats
from kbench.results.leaderboard import NO_FAMILY, Certainty, leaderboard, make_leaderboard
from tests.support.report_rows import changed, grid, nasty_rows, row

GOOD, BAD = (0.90, 0.92, 0.91), (0.50, 0.52, 0.515)


def by_map(board):
    return {line.method[0]: line for line in board.lines}


def test_places_means_wins_and_costs_are_those_of_the_rows():
    rows = [
        row("a", "x", accuracies=GOOD, fit_time_s=0.1, n_components=10),
        row("a", "y", accuracies=BAD, fit_time_s=0.4, n_components=20),
        row("b", "x", accuracies=GOOD, fit_time_s=0.4, n_components=30),
        row("b", "y", accuracies=BAD, fit_time_s=0.4, n_components=20),
    ]
    rows = [changed(each, n_candidates=5.0, search_time_cpu_s=2.0) for each in rows]
    board = leaderboard(rows)
    x, y = board.lines
    assert (x.method, x.place, x.rank, x.wins) == (("x", "ridge"), 1, 1.0, 2)
    assert (y.place, y.rank, y.wins) == (2, 2.0, 0)
    assert x.mean == pytest.approx(0.91)
    assert x.fit_time_s == pytest.approx(0.2)
    assert x.predict_time_per_row_s == pytest.approx(0.001 / 50)
    assert x.n_components == pytest.approx(20)
    assert (x.search_s, x.candidates) == (pytest.approx(2.0), 5.0)
    assert (board.datasets, board.left_out, board.n_groups) == (("a", "b"), (), 2)


@pytest.mark.parametrize("status", ["error", "skipped", "not_run", "unavailable"])
def test_a_bad_dataset_that_one_method_lacks_does_not_raise_its_mean(status):
    rows = [row("easy", kind, accuracies=GOOD) for kind in "xy"]
    rows.append(row("hard", "x", status=status))
    rows.append(row("hard", "y", accuracies=BAD))
    board = leaderboard(rows)
    x, y = by_map(board)["x"], by_map(board)["y"]
    assert x.mean == y.mean == pytest.approx(0.91)
    assert board.left_out == ("hard",)
    assert (x.n_datasets, x.n_finished) == (2, 1)
    skipped, failed = status in ("skipped", "not_run"), status == "error"
    assert (x.n_skipped, x.n_failed) == (int(skipped), int(failed))
    assert y.n_finished == 2


def test_too_few_splits_count_as_not_measured():
    rows = [row("a", kind, accuracies=GOOD) for kind in "xy"]
    rows += [row("b", "x", accuracies=GOOD), changed(row("b", "y", accuracies=GOOD), n_splits=9)]
    y = by_map(leaderboard(rows))["y"]
    assert (y.n_finished, y.n_skipped, y.n_failed) == (1, 1, 0)


def test_a_method_without_a_rank_stands_last_and_has_no_mean():
    rows = [*grid(4, 3), *[row(f"data-{i}", "broken", status="error") for i in range(4)]]
    last = leaderboard(rows).lines[-1]
    assert last.method[0] == "broken"
    assert (last.place, last.rank, last.mean, last.wins, last.n_failed) == (None,) * 4 + (4,)


def test_a_verdict_and_an_interval_need_several_datasets():
    for line in leaderboard(grid(8, 5)).lines:
        assert (line.verdict == "worse") == (line.worse_than is not None)
        assert line.low < line.mean < line.high
    for line in leaderboard(grid(1, 5)).lines:
        assert (line.verdict, line.low) == (None, None)
        assert line.place is not None


def test_datasets_of_a_group_count_once():
    rows = [changed(each, dataset_family="one") for each in grid(3, 2)] + grid(4, 2)[-2:]
    board = leaderboard(rows)
    assert (len(board.datasets), board.n_groups) == (4, 2)
    assert sum(line.wins for line in board.lines) == 2


def test_one_method_has_a_mean_and_no_rank():
    (line,) = leaderboard(grid(3, 1)).lines
    values = [each.metrics["accuracy"] for each in grid(3, 1)]
    assert line.mean == pytest.approx(sum(values) / 3)
    assert line.rank is line.place is None


def test_metrics_in_different_units_are_not_averaged():
    metric = Metric("rmse", "lower", in_units=True)
    rows = [changed(each, rmse=3.0) for each in grid(3, 2)]
    assert {line.mean for line in leaderboard(rows, metric).lines} == {None}


def test_lower_is_better_where_the_metric_says_so():
    rows = [changed(row("a", kind), log_loss=loss) for kind, loss in (("x", 0.5), ("y", 0.1))]
    best = leaderboard(rows, Metric("log_loss", "lower")).lines[0]
    assert (best.method[0], best.mean) == ("y", 0.1)


def test_families_filter_lines_and_keep_places():
    rows = [
        changed(each, family="fourier" if each.feature_map == "map-1" else "")
        for each in grid(5, 3)
    ]
    board = leaderboard(rows)
    assert set(board.families) == {"fourier", NO_FAMILY}
    (line,) = board.select_families(["fourier"]).lines
    assert line == by_map(board)["map-1"]


def test_a_method_left_out_has_no_rank():
    rows = grid(4, 3)
    scores = stats.scores(rows, without=[("map-2", "ridge")])
    board = make_leaderboard(Certainty(rows, scores, stats.standings(scores, rows)))
    assert by_map(board)["map-2"].place is None
    assert [line.place for line in board.lines] == [1, 2, None]


def test_unknown_numbers_are_none_never_nan():
    rows = [changed(each, n_components=None) for each in grid(3, 2)]
    for line in [*leaderboard(rows).lines, *leaderboard(nasty_rows()).lines]:
        values = [value for value in vars(line).values() if isinstance(value, float)]
        assert all(map(math.isfinite, values))
    assert leaderboard(rows).lines[0].n_components is None


def test_no_rows_no_lines():
    assert leaderboard([]).lines == ()
