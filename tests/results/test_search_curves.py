import json

import pytest

from kbench.evaluation.definitions import METRICS
from kbench.results.search_curves import make_curves, search_curves

LABELS = {"dataset": "iris", "feature_map": "rff", "learner": "linear-svm"}


def candidate(C, values, **more):
    return {"scaling": "minmax", "learner.C": C, "values": values, **more}


def run(*splits):
    return {**LABELS, "search": {str(i): list(split) for i, split in enumerate(splits)}}


def test_a_point_has_the_mean_and_standard_error_of_all_inner_folds():
    first = [candidate(1.0, [0.5, 0.7]), candidate(4.0, [0.8, 0.9])]
    other = [candidate(1.0, [0.6, 0.6]), candidate(4.0, [0.7, 0.8])]
    low, high = search_curves([run(first, other)])
    assert low == {
        **LABELS,
        "metric": "accuracy",
        "parameter": "learner.C",
        "value": 1.0,
        "mean": pytest.approx(0.6),
        "standard_error": pytest.approx(0.0816496580927726 / 2),
        "n": 4,
        "at_boundary": False,
    }
    assert (high["value"], high["mean"]) == (4.0, pytest.approx(0.8))


def test_of_the_other_parameters_each_split_takes_the_best():
    one = [
        candidate(C, [accuracy], **{"feature_map.gamma": gamma})
        for C, gamma, accuracy in ((1, 1, 0.5), (1, 2, 0.7), (2, 1, 0.6), (2, 2, 0.4))
    ]
    rows = search_curves([run(one)])
    assert [(row["parameter"], row["value"], row["mean"]) for row in rows] == [
        ("learner.C", 1.0, 0.7),
        ("learner.C", 2.0, 0.6),
        ("feature_map.gamma", 1.0, 0.6),
        ("feature_map.gamma", 2.0, 0.7),
    ]
    assert {row["standard_error"] for row in rows} == {None}


@pytest.mark.parametrize(
    ("means", "edges"),
    [
        ((0.9, 0.5, 0.4), [True, False, False]),
        ((0.5, 0.5, 0.4), [False, False, False]),
        ((0.4, 0.9, 0.5), [False, False, False]),
        ((0.4, 0.5, 0.9), [False, False, True]),
    ],
)
def test_the_best_value_at_an_end_of_its_grid_is_flagged(means, edges):
    kept = [candidate(C, [mean]) for C, mean in zip((0.5, 2, 3), means, strict=True)]
    assert [row["at_boundary"] for row in search_curves([run(kept)])] == edges


def test_an_edge_is_a_standard_error_better_than_the_next_value():
    better = [candidate(0.5, [0.9, 0.8, 0.9]), candidate(2.0, [0.7, 0.7, 0.6])]
    noise = [candidate(0.5, [0.9, 0.5, 0.9]), candidate(2.0, [0.5, 0.8, 0.9])]
    one_neighbour = [candidate(1, [0.9, 0.9]), candidate(3, [0.7, 0.7])]
    flags = [
        [row["at_boundary"] for row in search_curves([run(kept)])]
        for kept in (better, noise, one_neighbour)
    ]
    assert flags == [[True, False], [False, False], [False, False]]


def test_what_failed_or_did_not_see_all_rows_is_in_no_point():
    kept = [
        candidate(1, [0.6, 0.6]),
        candidate(2, [0.9], error="ValueError: no"),
        candidate(3, [0.9, 0.9], share=1 / 3),
        candidate(4, []),
        candidate(5, [0.7, 0.7], converged=False),
    ]
    assert [row["value"] for row in search_curves([run(kept)])] == [1.0, 5.0]


def test_only_numbers_that_were_searched_have_curves():
    kernels = [
        {"scaling": step, "learner.kernel": kernel, "learner.C": 1.0, "values": [0.5]}
        for step in ("minmax", "none")
        for kernel in ("gaussian", "laplacian")
    ]
    assert search_curves([run(kernels)]) == []
    assert search_curves([run([]), run()]) == []


def test_the_text_of_the_artifact_is_read_as_it_is():
    kept = run([candidate(1, [0.5]), candidate(2, [0.6])])
    assert search_curves([{**kept, "search": json.dumps(kept["search"])}]) == search_curves([kept])


def test_of_an_error_the_lowest_is_the_best():
    one = [
        candidate(C, [error], **{"feature_map.gamma": gamma})
        for C, gamma, error in ((0.5, 1, 30.0), (0.5, 2, 90.0), (2, 1, 80.0), (4, 1, 40.0))
    ]
    rows = search_curves([{**run(one), "task": "regression"}])[:3]
    assert [(row["metric"], row["value"], row["mean"]) for row in rows] == [
        ("rmse", 0.5, 30.0),
        ("rmse", 2.0, 80.0),
        ("rmse", 4.0, 40.0),
    ]
    assert [row["at_boundary"] for row in rows] == [True, False, False]
    (loss, *_) = search_curves([{**run(one), "search_metric": "log_loss"}])
    assert (loss["metric"], loss["mean"]) == ("log_loss", 30.0)


def test_a_metric_of_unknown_direction_has_no_curve():
    one = [candidate(1.0, [20.0]), candidate(4.0, [10.0])]
    assert search_curves([{**run(one), "search_metric": "of_a_plugin"}]) == []
    assert make_curves({"0": one}, None) == {}


def test_small_errors_keep_their_digits():
    one = [candidate(1, [1.25e-9]), candidate(2, [2.5e-9])]
    curve = make_curves({"0": one}, METRICS["rmse"])["learner.C"]
    assert [point[1] for point in curve] == [1.25e-9, 2.5e-9]
