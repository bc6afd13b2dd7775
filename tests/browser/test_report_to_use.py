"""The page as it is used: in a sandboxed frame, by assistive tools, folded, sorted, printed."""

import html
import os
import shutil
from importlib.resources import files

import pytest

from kbench.registry.registry import Registry
from kbench.report.page import page
from tests.support.report_rows import changed, content, grid, nasty_rows

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright, of the extra [test], drives the browser"
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser: neither chromium nor google-chrome is on the PATH"
)
# `expect` waits, as a table is drawn after the click that unfolds it has returned
expect = playwright.expect
expect.set_options(timeout=30_000)


def unfold(tab):
    """Unfold everything, and wait until its tables are drawn."""
    for summary in tab.locator("summary").all():
        summary.click()
    expect(tab.locator("#all tbody tr")).not_to_have_count(0)
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield found
        found.close()


@pytest.fixture(scope="module")
def text():
    rows = grid(6, 4)
    rows[0] = changed(rows[0], converged=False, notes="few rows")
    rows[1] = changed(rows[1], status="error", error="first\nlast", accuracy=None)
    return page(content(rows), Registry())


@pytest.fixture
def opened(browser, tmp_path):
    """Open pages; none may ask a server, and no console may complain."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    said, asked = [], []

    def open_page(text):
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        tab = context.new_page()
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(file.as_uri())
        return tab

    yield open_page
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []


def test_it_works_in_a_sandboxed_frame(opened, text):
    frame = '<iframe sandbox="allow-scripts" style="width:800px;height:600px" srcdoc="{}">'
    tab = opened(f"<body>{frame.format(html.escape(text))}</iframe></body>")
    inner = tab.frames[1]
    inner.get_by_role("button", name="dataset").first.click()
    first = inner.locator("#main tbody th").first
    expect(first).to_have_text("data-0")
    inner.locator("#all-cells summary").click()
    expect(inner.locator("#all tbody tr")).to_have_count(24)
    expect(inner.locator("#two-body tr")).to_have_count(6)


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("unfolded", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_axe_finds_nothing_serious(opened, text, scheme, unfolded):
    axe = pytest.importorskip(
        "axe_playwright_python", reason="axe-playwright-python, of the extra [test], brings axe"
    )
    tab = opened(text)
    tab.emulate_media(color_scheme=scheme)
    if unfolded:
        unfold(tab)
    script = next(each for each in files(axe).iterdir() if each.name == "axe.min.js")
    tab.evaluate(script.read_text(encoding="utf-8"))
    found = tab.evaluate("axe.run()")["violations"]
    grave = [
        (each["id"], each["help"], [node["target"] for node in each["nodes"]][:3])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert grave == []


def test_charts_have_tables_behind_a_button_that_sort(opened, text):
    tab = opened(text)
    figures = tab.locator("figure:has(details.data)")
    expect(figures).to_have_count(4)
    figure = figures.first
    expect(figure.locator("table")).to_have_count(0)
    figure.locator("summary").click()
    heading = figure.get_by_role("button", name="mean accuracy")
    heading.click()
    shown = [float(v) for v in figure.locator("tbody td:nth-child(4)").all_text_contents()]
    assert shown == sorted(shown)
    heading.click()
    again = [float(v) for v in figure.locator("tbody td:nth-child(4)").all_text_contents()]
    assert again == shown[::-1]


def test_on_a_telephone_tables_scroll_by_themselves_and_what_names_a_row_stays(opened, text):
    tab = opened(text)
    tab.set_viewport_size({"width": 375, "height": 800})
    unfold(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") == 375
    scrolled = tab.evaluate(
        """[...document.querySelectorAll(".scroll:has(tbody tr)")].map(box => {
          box.scrollLeft = 10000;
          const left = cell => cell.getBoundingClientRect().left - box.getBoundingClientRect().left;
          return [...box.querySelectorAll("tr")].flatMap(row => {
            const [first, name] = row.cells;
            const both = first.classList.contains("n");
            return [left(first), both ? left(name) - first.offsetWidth : 0, box.scrollLeft];
          });
        })"""
    )
    assert sum(places[2] > 0 for places in scrolled) > 3
    for places in scrolled:
        assert [round(each) for each in places[0::3]] == [0] * (len(places) // 3)
        assert [round(each) for each in places[1::3]] == [0] * (len(places) // 3)


def test_points_that_overlap_are_seen_through_each_other(opened, text):
    tab = opened(text)
    for kind in (".frontier .shape", ".undecided .shape", ".half"):
        style = tab.locator(kind).first.evaluate(
            "each => [getComputedStyle(each).fillOpacity, getComputedStyle(each).stroke]"
        )
        assert 0 < float(style[0]) < 1
        assert style[1] != "none" or kind == ".half"


def test_filters_hide_datasets_and_methods(opened, text):
    tab = opened(text)
    tab.get_by_label("datasets with").fill("data-3")
    tab.get_by_label("methods with").fill("MAP-2 ridge")
    expect(tab.locator("#main tbody tr:visible")).to_have_count(1)
    expect(tab.locator("#main thead th:visible")).to_have_count(2)


@pytest.mark.slow
def test_all_cells_sort_and_filter_beyond_what_is_drawn(opened):
    rows = grid(70, 20)
    tab = opened(page(content(rows), Registry()))
    tab.locator("#all-cells summary").click()
    expect(tab.locator("#all tbody tr")).to_have_count(1000)
    tab.locator("#all thead button", has_text="accuracy").first.click()
    lowest = f"{min(row.measures['accuracy'] for row in rows):.4f}"
    expect(tab.locator("#all tbody tr").first.locator("td").nth(6)).to_have_text(lowest)
    tab.locator("#all-more").click()
    expect(tab.locator("#all tbody tr")).to_have_count(1400)
    tab.get_by_label("filter by dataset").fill("data-69 map-19")
    expect(tab.locator("#all tbody tr")).to_have_count(1)
    expect(tab.locator("#all-count")).to_have_text("1 of 1400 cells")


def test_what_searches_saw_is_drawn_by_method_and_parameter(opened, text):
    tab = opened(text)
    chart = tab.locator("#search-chart")
    expect(chart.locator("g.line")).to_have_count(6)
    tab.locator("#search-parameter").select_option("feature_map.gamma")
    assert "feature_map.gamma" in chart.text_content()
    expect(chart.locator("circle.ring")).to_have_count(6)
    tab.locator("#search summary").click()
    expect(tab.locator("#search-body tr")).to_have_count(18)
    expect(tab.locator("#search-body tr").nth(2)).to_contain_text("0.9000")


def test_a_nasty_name_is_text_in_what_scripts_write(opened):
    tab = opened(page(content(nasty_rows()), Registry()))
    unfold(tab)
    expect(tab.locator("img")).to_have_count(0)
    assert "<script>alert" in tab.locator("#all").text_content()
    assert "<script>alert" in tab.locator("#search-body").text_content()


def test_print_shows_tables_and_no_buttons(opened, text):
    tab = opened(text)
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(tab.locator("#main")).to_be_visible()
    expect(tab.locator("#all tbody tr").first).to_be_visible()
    expect(tab.locator("nav")).to_be_hidden()
    expect(tab.locator("#two-a")).to_be_hidden()
    assert tab.locator("#two-names").text_content().startswith("first: map-2 + ridge; second: ")
    expect(tab.locator("#ranks details tbody tr")).not_to_have_count(0)
    wide = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert wide == "rgb(255, 255, 255)"


def test_a_click_on_a_method_highlights_it_everywhere(opened, text):
    tab = opened(text)
    tab.locator("#ranks tbody tr[data-m='2']").first.click()
    lit = "[...document.querySelectorAll('svg g.lit')].map(each => each.dataset.m)"
    assert set(tab.evaluate(lit)) == {"2"}
    assert tab.locator("#main th.lit").get_attribute("data-m") == "2"
    expect(tab.locator("#main td.lit")).to_have_count(tab.locator("#main tbody tr").count())
    tab.locator("#times svg .line[data-m='0'] circle").first.click(force=True)
    assert set(tab.evaluate(lit)) == {"0"}
    tab.keyboard.press("Escape")
    assert tab.evaluate(lit) == []


def test_the_pointer_shows_the_numbers_of_a_point(opened, text):
    tab = opened(text)
    point = tab.locator("#times .point").first
    point.hover(force=True)
    assert tab.locator(".tip").inner_text() == point.locator("title").text_content()
    tab.locator("h1").hover()
    expect(tab.locator(".tip")).to_be_hidden()


def test_shares_can_be_drawn_as_logarithmic_errors(opened, text):
    tab = opened(text)
    figure = tab.locator("#times figure").first
    expect(figure.locator(".error")).to_be_hidden()
    tab.check("#as-error")
    expect(figure.locator(".error")).to_be_visible()
    expect(figure.locator(".plain")).to_be_hidden()


def test_each_chart_has_its_numbers_as_csv(opened, text):
    tab = opened(text)
    buttons = tab.locator("button.csv")
    assert buttons.count() == tab.locator("details.data").count() > 3
    with tab.expect_download() as download:
        buttons.first.click()
    assert download.value.suggested_filename == "methods.csv"
    lines = download.value.path().read_text().splitlines()
    assert lines[0].startswith("no.,feature map,learner,mean accuracy,")
    assert len(lines) == 1 + tab.locator("#ranks tbody").first.locator("tr").count()
