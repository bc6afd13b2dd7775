"""How own results agree with published figures: numbers, sentences and pictures."""

import math
from xml.etree import ElementTree

import numpy as np
import pytest

from kbench.records import Metric, Published
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench.report.content import ReportData
from kbench.results.rows import Row
from kbench_claims.pictures import histogram, scatter, sentences
from kbench_claims.published import agreements, beside_published
from kbench_reporting.page import page

ERROR = Metric("gram_error_frobenius", "lower")
N = 60


def rows_and_figures(shift=0.0, wrong=0):
    """Results of `N` maps with ten splits each, and figures drawn from the same law."""
    rng = np.random.default_rng(0)
    rows, figures = [], []
    for i in range(N):
        true = 0.02 * 1.05**i
        ours, theirs = rng.normal(true, 0.1 * true, size=(2, 10))
        name = f"map-{i}"
        values = {"gram_error_frobenius": ours.mean() + (5 * 0.1 * true if i < wrong else shift)}
        values["gram_error_frobenius_sd"] = ours.std(ddof=1)
        rows.append(Row("letter", name, "dummy-majority", "ok", 10, 10, values))
        figures.append(
            Published(
                *("letter", name, "dummy-majority", "gram_error_frobenius"),
                value=theirs.mean(),
                sd=theirs.std(ddof=1),
                n_runs=10,
                source="a <paper>",
            )
        )
    return rows, figures


def found_in(**how):
    (found,) = agreements(beside_published(*rows_and_figures(**how)))
    return found


def test_z_is_welchs():
    rows, figures = rows_and_figures()
    each = beside_published(rows, figures)[0]
    ours, sd = (rows[0].metrics[f"gram_error_frobenius{end}"] for end in ("", "_sd"))
    expected = (ours - figures[0].value) / math.sqrt(sd**2 / 10 + figures[0].sd ** 2 / 10)
    assert each.z == pytest.approx(expected)


def test_results_of_one_law_agree_and_shifted_ones_do_not():
    same, shifted = found_in(), found_in(shift=0.05)
    assert same.share >= 0.9 and abs(same.mean) < 0.5 and 0.8 < same.sd < 1.4
    assert shifted.mean > 2 and shifted.share < 0.9


def test_exceptions_are_named_the_furthest_first():
    found = found_in(wrong=3)
    assert len(found.exceptions) == sum(abs(each.z) > 2 for each in found.compared) >= 3
    z = [each.z for each in found.exceptions]
    assert [abs(each) for each in z] == sorted(map(abs, z), reverse=True)
    said = " ".join(sentences(found))
    assert f"{len(z)} of 60 published values of gram_error_frobenius" in said
    assert all(f"map-{i} + dummy-majority on letter" in said for i in range(3))
    assert "more" in " ".join(sentences(found_in(shift=1.0)))


def test_few_figures_are_not_summarised():
    rows, figures = rows_and_figures()
    assert not agreements(beside_published(rows, figures[:9]))


def test_pictures_are_svg_with_one_point_a_figure():
    found = found_in(wrong=2)
    points = ElementTree.fromstring(scatter(found)).iter("{http://www.w3.org/2000/svg}circle")
    points = list(points) or list(ElementTree.fromstring(scatter(found)).iter("circle"))
    assert len(points) == N
    assert sum(point.get("class") == "dot" for point in points) == len(found.exceptions)
    bars = scatter(found), histogram(found)
    assert "z from" in bars[1] and "nan" not in "".join(bars)


def test_the_page_has_the_section_and_all_figures():
    rows, figures = rows_and_figures(wrong=1)
    content = ReportData("museum", rows, figures, metric=ERROR)
    html = page(content, build(list_plugins()))
    assert "more than two standard errors (|z| &gt; 2)" in html
    assert html.index('id="published"') < html.index('id="leaders"')
    assert 'class="n worse"' in html
    assert html.count('class="scatter"') >= 2
    assert "All published values" in html and "a &lt;paper&gt;" in html
