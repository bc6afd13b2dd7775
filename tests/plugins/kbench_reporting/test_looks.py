"""Colours of learners, shapes of families, and the front of a chart."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbench.report.charts import SHAPES, Style, Styles
from kbench_reporting.charts import _CORNERS, outline, pareto_front
from kbench_reporting.pictures import _MARKERS
from tests.support.report_rows import changed, row


def test_a_colour_is_a_learner_and_a_shape_a_family():
    rows = [row("iris", "a", "ridge"), row("iris", "b", "svm"), row("iris", "c", "svm")]
    rows = [changed(each, family=name) for each, name in zip(rows, ("x", "y", "x"), strict=True)]
    rows.append(changed(rows[1], dataset="gone", status="unavailable", family=""))
    looks = Styles(rows)
    assert [looks[each.method] for each in rows[:3]] == [Style(0, 0), Style(1, 1), Style(1, 0)]
    assert (looks.learners, looks.families) == (["ridge", "svm"], ["x", "y"])


@pytest.mark.parametrize("shape", range(SHAPES))
def test_shapes_and_their_halves_are_distinct_and_drawn(shape):
    whole, half = outline(shape, 50, 50, 20, 10), outline(shape, 50, 50, 20, 10, True)
    for drawn in (whole, half):
        ElementTree.fromstring(drawn)
    others = {outline(other, 50, 50, 20, 10) for other in range(SHAPES) if other != shape}
    assert whole not in others
    if shape:
        d = ElementTree.fromstring(half).get("d")
        xs = [float(corner.split()[0]) for corner in d.strip("MZ").split("L")]
        assert max(xs) == 50
        assert min(xs) < 35
    assert len(_MARKERS) == len(_CORNERS) + 1 == SHAPES


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_pareto_front_is_what_nothing_dominates(points):
    cost, gain = zip(*points, strict=True)
    front = {points[i] for i in pareto_front(cost, gain)}
    expected = {
        (c, g)
        for c, g in points
        if not any(a <= c and b >= g and (a, b) != (c, g) for a, b in points)
    }
    assert front == expected
