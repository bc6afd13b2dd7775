"""The run that the documentation keeps: its tables have numbers, and are drawn as tables."""

import importlib.util
import sys
from pathlib import Path

import pytest

from kbench.report.tables import leaderboard_table, table_named
from kbench.results.leaderboard import leaderboard

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def stored():
    spec = importlib.util.spec_from_file_location("stored", DOCS / "extensions" / "stored.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("stored", None)


def test_every_method_has_its_place_and_its_numbers(stored):
    content = stored.stored(DOCS / "measured" / "uci.json")
    board = leaderboard(content.rows, content.metric)
    assert len(board.datasets) == 11
    assert [line.place for line in board.lines] == list(range(1, len(content.methods) + 1))
    for line in board.lines:
        assert 0.3 < line.mean < 1
        assert line.fit_time_s > 0
    assert board.lines[-1].method == ("identity", "dummy-majority")
    assert {line.family for line in board.lines} >= {"fourier", "landmarks"}


def test_the_best_values_are_strong_in_the_page(stored):
    from docutils import nodes

    content = stored.stored(DOCS / "measured" / "uci.json")
    main = stored.drawn(table_named("scores", content))
    assert len(list(main.findall(nodes.strong))) >= len(content.datasets)
    first = stored.drawn(leaderboard_table(leaderboard(content.rows, content.metric), ["mean"]))
    assert [entry.astext() for entry in next(iter(first.findall(nodes.row)))] == [
        "rank", "feature map", "learner", "mean accuracy"
    ]  # fmt: skip
