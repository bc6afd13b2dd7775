"""The filter of a site's page: words, a part of the rows at a time, and an address to share."""

import os
import shutil

import pytest

from kbench_sharing.site import pages
from tests.support.boards import board_of
from tests.support.report_rows import NASTY, grid, nasty_rows

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright, of the extra [test], drives the browser"
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser: neither chromium nor google-chrome is on the PATH"
)
expect = playwright.expect


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield found
        found.close()


@pytest.fixture
def tab(browser):
    """A page on which an error, a dialog or a request fails the test."""
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    page.on(
        "request",
        lambda request: (
            errors.append(request.url)
            if "://" in request.url and not request.url.startswith("file:")
            else None
        ),
    )
    yield page
    page.close()
    assert not errors


def opened(tab, folder, board):
    for name, text in pages([board]):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    tab.goto(next((folder / "suites").glob("*/index.html")).as_uri())


def test_the_filter_shows_rows_with_all_words(tab, tmp_path):
    opened(tab, tmp_path, board_of(grid(100, 4)))
    count, rows = tab.locator("#count"), tab.locator("#rows tbody tr")
    expect(count).to_have_text("400 of 400 rows, 200 shown")
    expect(rows).to_have_count(200)
    tab.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(400)
    tab.get_by_label("Filter").fill("MAP-3 data-7")
    expect(count).to_have_text("11 of 400 rows")
    expect(rows).to_have_count(11)
    tab.reload()
    expect(count).to_have_text("11 of 400 rows")
    tab.get_by_label("Filter").fill("nothing")
    expect(rows).to_have_count(0)


@pytest.mark.slow
def test_hostile_names_are_shown_and_found(tab, tmp_path):
    rows = nasty_rows()
    opened(tab, tmp_path, board_of(rows, NASTY[0], NASTY[1]))
    expect(tab.locator("h1")).to_have_text(NASTY[0])
    tab.get_by_label("Filter").fill("<script>alert")
    expect(tab.locator("#rows tbody tr")).not_to_have_count(0)
    expect(tab.locator("#rows tbody td").first).to_have_text(NASTY[0])
