import pytest
from matplotlib.figure import Figure

from kbench_nbcs._figures import figure_curves, front
from tests.benchmarks.count_fronts import pareto_table


def row(feature_map, accuracy, seconds, dataset="a", learner="svm", **more):
    return {
        "dataset": dataset,
        "feature_map": feature_map,
        "learner": learner,
        "status": "ok",
        "accuracy": accuracy,
        "search_time_cpu_s": 0.75 * seconds,
        "fit_time_cpu_s": 0.25 * seconds,
        "n_test": 1000.0,
        "n_splits_done": 1,
        **more,
    }


def test_a_front_has_what_nothing_beats():
    rows = [
        row("mesh, 1 root", 0.8, 1.0),
        row("mesh, 4 roots", 0.9, 2.0),
        row("nystroem, 100", 0.85, 3.0),  # worse and dearer
        row("nystroem, 300", 0.9, 2.0),  # the same: both stay
        row("nbcs-rotated, 1 root", 0.8, 1.5),  # the same accuracy for more
    ]
    assert [each["feature_map"] for each in front(rows)] == [
        "mesh, 1 root",
        "mesh, 4 roots",
        "nystroem, 300",
    ]


@pytest.mark.parametrize(
    ("rival", "on_front", "leads"),
    [
        (row("nystroem, 100", 0.899, 1.0), True, False),  # within an error
        (row("nystroem, 100", 0.85, 1.0), True, True),
        (row("nystroem, 100", 0.95, 3.0), True, True),  # better, but dearer
        (row("nystroem, 100", 0.90, 1.0), False, False),  # as good and cheaper
    ],
)
def test_a_family_is_on_the_front_or_ahead(rival, on_front, leads):
    (found,) = pareto_table([row("mesh, 4 roots", 0.9, 2.0), rival])
    assert (found["on_front"], found["leads"]) == (on_front, leads)
    assert found["best"] == 0.9 and found["best_other"] == rival["accuracy"]


def test_references_count_on_one_front_only():
    rows = [row("mesh, 4 roots", 0.9, 2.0), row("nystroem, 100", 0.8, 1.0)]
    (found,) = pareto_table([*rows, row("identity", 0.95, 0.1, learner="1-NN")])
    assert not found["on_front"] and found["among_maps"]


def test_unfinished_cells_and_lonely_families_are_left_out():
    assert pareto_table([row("mesh, 1 root", 0.9, 1.0)]) == []
    failed = row("nystroem, 100", None, 0.0, status="timed_out")
    assert pareto_table([row("mesh, 1 root", 0.9, 1.0), failed]) == []


def test_curves_are_drawn_for_each_dataset():
    rows = [row("mesh, 1 root", 0.9, 1.0, dataset=name) for name in "abcd"]
    rows += [row("identity", 0.8, 0.5, learner="gradient-boosting", dataset="a")]
    figure = figure_curves(rows)
    assert isinstance(figure, Figure)
    assert [axes.get_title() for axes in figure.axes if axes.axison] == list("abcd")
    with pytest.raises(ValueError, match="no finished cell"):
        figure_curves([])
