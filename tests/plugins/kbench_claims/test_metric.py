"""Learned metrics: what is read of a row, and the picture."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from kbench.results.rows import Row
from kbench_claims.pictures import draw_metric, learned_metrics
from kbench_claims.sections import sections
from tests.support.report_rows import content

DETAILS = {
    "split": 0,
    "metric": "full",
    "round": 2,
    "errors": [0.5, 0.4, 0.3, 0.35],
    "columns": [0, 2],
    "matrix": [[0.25, -0.1], [-0.1, 1.0]],
    "feature_names": ["age", "height", "<b>"],
}
ROW = Row("iris", "rff-learned", "ridge", "ok", 2, 2, map_details=DETAILS)


def test_weights_have_the_names_of_their_columns():
    (metric,) = learned_metrics([ROW])
    assert metric.weights == [("<b>", 1.0), ("age", 0.25)]


def test_columns_without_a_name_are_numbered():
    (metric,) = learned_metrics([replace(ROW, map_details={**DETAILS, "feature_names": []})])
    assert metric.names == ["x0", "x2"]


def test_a_full_metric_has_a_heat_map_and_a_diagonal_one_only_bars():
    (metric,) = learned_metrics([ROW])
    rects = [
        len(list(_parsed(m).iter("{http://www.w3.org/2000/svg}rect")))
        for m in (metric, replace(metric, form="diagonal"))
    ]
    assert rects == [2 + 4, 2]
    assert "<b>" not in draw_metric(metric)
    assert "height" not in draw_metric(metric).replace("height=", "")


@pytest.mark.parametrize(
    ("pattern", "labels"),
    [
        ("{} of the measurements at the station", ["0 of the measurements a…", "2 of the mea"]),
        ("mean of the measurements, part {}", ["mean of the mea…, part 0", "…, part 2"]),
        ("the {} of all measurements at the station", ["the 0 of all measuremen…", "the 2 of"]),
        ("measurements at the station {} of all stations", ["… (1)", "… (2)"]),
    ],
)
def test_shortened_names_differ(pattern, labels):
    names = [pattern.format(i) for i in range(3)]
    (metric,) = learned_metrics([replace(ROW, map_details={**DETAILS, "feature_names": names})])
    drawn = [each.text for each in _parsed(metric).iter("{http://www.w3.org/2000/svg}text")]
    for label in labels:
        assert any(label in text for text in drawn)
    assert len({text for text in drawn if "…" in text}) == 2


def _parsed(metric):
    return ElementTree.fromstring(draw_metric(metric))


@pytest.mark.parametrize(
    "changed",
    [
        {"round": 0},  # nothing was learned
        {"matrix": [[1.0]]},
        {"matrix": "none"},
        {"matrix": [[0.25, float("nan")], [0.0, 1.0]]},
        {"columns": []},
        {"columns": [0, "b"]},
        {"errors": None},
        {"feature_names": None},
    ],
)
def test_what_a_store_says_wrongly_is_not_drawn(changed):
    assert learned_metrics([replace(ROW, map_details={**DETAILS, **changed})]) == []
    assert learned_metrics([replace(ROW, map_details={})]) == []


def test_the_section_of_metrics_has_a_picture_for_each():
    (found,) = (each for each in sections(content([ROW])) if each.name == "metrics")
    assert (
        found.parts[1].title == "rff-learned + ridge on iris: full, round 2, error 0.500 to 0.300"
    )
    (empty,) = (
        each for each in sections(content([replace(ROW, map_details={})])) if each.name == "metrics"
    )
    assert not empty.parts
