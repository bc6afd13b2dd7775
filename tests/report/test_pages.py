"""Pages and pictures are asked of the feature that makes them."""

import pytest

from kbench.errors import FeatureError
from kbench.registry.installed import DISABLED
from kbench.registry.registry import Registry
from kbench.report import pages
from kbench.report.pages import Lead, page, picture
from kbench.report.tables import table_named, table_names
from tests.support.report_rows import content, grid


def test_the_installed_feature_writes_a_page_with_an_answer_and_draws():
    text = page(content(grid(3, 2)), Registry(), Lead(["Use rff."]))
    assert text.startswith("<!doctype html>")
    assert "Use rff." in text
    assert picture("ranks", content(grid(3, 2)), Registry(), "svg").startswith(b"<?xml")


def test_without_it_there_is_a_message(monkeypatch):
    monkeypatch.setenv(DISABLED, "reporting")
    with pytest.raises(FeatureError, match="no feature writes reports"):
        page(content(grid(3, 2)), Registry())
    assert "main" not in table_names()
    assert "variance" in table_names()


def test_why_it_fails_is_said(monkeypatch):
    monkeypatch.setattr("kbench_reporting.page.page", lambda *given: 1 / 0)
    with pytest.raises(FeatureError, match=r"'reporting' is left out: .*ZeroDivisionError"):
        pages.page(content(grid(3, 2)), Registry())


def test_a_table_of_a_function_is_made_alone(monkeypatch):
    monkeypatch.setattr("kbench.report.tables.collect_sections", lambda *given: 1 / 0)
    assert table_named("ranks", content(grid(3, 2))).is_grid


def test_the_templates_of_kbench_need_no_sandbox():
    sandboxed = [pages.environment_of_pages(is_sandbox=each).sandboxed for each in (False, True)]
    assert sandboxed == [False, True]
