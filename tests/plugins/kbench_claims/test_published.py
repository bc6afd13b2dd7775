"""Own results beside the figures that papers print."""

import math

import pytest

from kbench.evaluation.definitions import METRICS
from kbench.records import Published
from kbench.report import write
from kbench.report.paper import transpose_table
from kbench_claims.published import beside_published, published_grid, published_values
from tests.support.report_rows import content, regression_row, row

ROWS = [
    row("wine", "rff", "ridge (ovr)", (0.91, 0.93)),
    row("wine", "nystroem(rank=5, k=a,b)", "ridge (ovr)", (0.97, 0.99)),
    row("iris", "rff", "ridge (ovr)", (0.99, 0.95)),
    row("iris", "nystroem(rank=5, k=a,b)", "ridge (ovr)", (0.93, 0.93)),
    row("iris", "identity", "linear-svm", (0.5, 0.6)),
]


def test_ours_stand_beside_what_papers_print():
    rows = [
        row("iris", "rff", accuracies=(0.8, 0.9, 1.0), gram_error=0.2),
        row("wine", "rff", status="timed_out"),
    ]
    figures = [
        Published("iris", "rff", "ridge", "accuracy", 0.95, n_runs=10, source="Table 1"),
        Published("iris", "rff", "ridge", "gram_error", 0.1),
        Published("wine", "rff", "ridge", "accuracy", 0.9),
        Published("wine", "rff", "ridge", "nobody_metrics_it", 0.9),
        Published("zoo", "rff", "ridge", "accuracy", 0.9),
    ]
    first, other, failed = beside_published(rows, figures)
    assert [each.published for each in (first, other, failed)] == figures[:3]
    assert (first.ours, first.n) == (pytest.approx(0.9), 3)
    assert first.standard_error == pytest.approx(0.1 / math.sqrt(3))
    assert first.z == pytest.approx((0.9 - 0.95) / (0.1 * math.sqrt(1 / 3 + 1 / 10)))
    assert (other.ours, other.standard_error, other.z) == (0.2, None, None)
    assert (failed.ours, failed.standard_error, failed.n, failed.z) == (None, None, 0, None)


def test_figures_of_a_paper_stand_on_its_grid():
    figures = [
        Published("wine", "rff", "ridge (ovr)", "accuracy", 0.9, source="Paper"),
        Published("iris", "rff", "ridge (ovr)", "accuracy", 0.94, source="Paper"),
        Published("iris", "identity", "linear-svm", "accuracy", 0.55, source="Paper"),
        Published("wine", "identity", "linear-svm", "accuracy", 0.7, source="Paper"),
    ]
    failed = row("wine", "identity", "linear-svm", status="error")
    table = published_grid(content([*ROWS, failed], published=figures, digits=2))
    assert "of Paper" in table.title
    assert write(table, "markdown").splitlines()[2:] == [
        "| wine | 0.92 (0.90) | (0.70) |",
        "| iris | 0.97 (0.94) | 0.55 (0.55) |",
    ]
    assert len(transpose_table(table).rows) == 2
    assert "rff + ridge (ovr),rff + ridge (ovr) (published)" in write(table, "csv")
    two = [*figures, Published("iris", "rff", "ridge (ovr)", "accuracy", 0.9, source="Other")]
    table = published_grid(content([*ROWS, failed], published=two))
    assert [line["source"] for line in table.rows] == ["Paper"] * 2 + ["Other"]
    assert published_grid(content(ROWS)).rows == []


def test_published_figures_are_written_by_their_own_metric():
    figure = Published("big", "good", "ridge", "rmse", 200_000.0, source="a paper")
    rows = [regression_row("big", "good", (0.20, 0.21, 0.22), 1e6)]
    metric = METRICS["rmse_standardized"]
    table = published_values(content(rows, metric=metric, published=[figure]))
    assert table.value(0, next(c for c in table.columns if c.name == "ours")) == "210000"
