"""The page as it is used: in a sandboxed frame, by assistive tools, folded, sorted, printed."""

import csv
import html
import io
import os
import re
import shutil
from importlib.resources import files
from xml.etree import ElementTree

import pytest

from kbench.registry.registry import Registry
from kbench_reporting.page import page
from tests.support.report_rows import NASTY, changed, content, grid, nasty_rows, row, searched

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
    # handles, as parts that are drawn meanwhile would change the numbers of the others
    for summary in tab.locator("summary").element_handles():
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


def test_points_that_overlap_are_seen_through_each_other(opened):
    # all cells are there: a missing one would leave the front undecided
    tab = opened(page(content(grid(6, 4)), Registry()))
    for kind in (".frontier .shape", ".undecided .shape", ".half"):
        style = tab.locator(kind).first.evaluate(
            "each => [getComputedStyle(each).fillOpacity, getComputedStyle(each).stroke]"
        )
        assert 0 < float(style[0]) < 1
        assert style[1] != "none" or kind == ".half"


def test_filters_hide_datasets_and_methods(opened, text):
    tab = opened(text)
    tab.get_by_label("dataset contains").fill("data-3")
    tab.get_by_label("method contains").fill("MAP-2 ridge")
    expect(tab.locator("#main tbody tr:visible")).to_have_count(1)
    expect(tab.locator("#main thead th:visible")).to_have_count(2)


@pytest.mark.slow
def test_all_cells_sort_and_filter_beyond_what_is_drawn(opened):
    rows = grid(70, 20)
    tab = opened(page(content(rows), Registry()))
    tab.locator("#all-cells summary").click()
    expect(tab.locator("#all tbody tr")).to_have_count(1000)
    tab.locator("#all thead button", has_text="accuracy").first.click()
    lowest = f"{min(row.metrics['accuracy'] for row in rows):.4f}"
    expect(tab.locator("#all tbody tr").first.locator("td").nth(6)).to_have_text(lowest)
    tab.locator("#all-more").click()
    expect(tab.locator("#all tbody tr")).to_have_count(1400)
    tab.get_by_label("dataset, map, learner or status contains").fill("data-69 map-19")
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
    tab.locator("#leaderboard tbody tr[data-m='2'] td:visible").last.click()
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


def saved(tab, button):
    with tab.expect_download() as download:
        button.click()
    return download.value.suggested_filename, download.value.path().read_text(encoding="utf-8")


def test_each_chart_has_its_numbers_as_csv_and_latex_and_its_picture(opened, text):
    tab = opened(text)
    figure = tab.locator("#times figure").first
    expect(tab.locator("figure:has(details.data)")).not_to_have_count(0)
    assert tab.locator("figure .tools").count() == tab.locator("details.data").count() > 3
    name, numbers = saved(tab, figure.get_by_role("button", name="CSV of"))
    assert name == "methods.csv"
    lines = numbers.splitlines()
    assert lines[0].startswith("rank,feature map,learner,mean accuracy,")
    assert len(lines) == 1 + tab.locator("#leaderboard tbody tr").count()
    name, latex = saved(tab, figure.get_by_role("button", name="LaTeX of"))
    assert name == "methods.tex"
    assert latex.count(r" \\") == len(lines)
    name, picture = saved(tab, figure.get_by_role("button", name="SVG of"))
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    style = root.find("{http://www.w3.org/2000/svg}style").text
    assert "--c0:" in style
    assert ".point .shape" in style


def test_hostile_names_stay_text_in_downloads(opened):
    rows = [*nasty_rows(), row(NASTY[0], "-1+cmd|' /C calc'!A0", "=1+1")]
    tab = opened(page(content(rows), Registry()))
    tools = tab.locator("#leaders .tools button")
    _, numbers = saved(tab, tools.nth(0))
    cells = [cell for line in csv.reader(io.StringIO(numbers)) for cell in line]
    assert "'=1+1" in cells
    assert "'-1+cmd|' /C calc'!A0" in cells
    assert not [cell for cell in cells if cell[:1] in "=@|" and cell]
    _, latex = saved(tab, tools.nth(1))
    body = latex.split(r"\midrule")[1]
    assert re.search(r"(?<!\\)[$%#]|(?<!\\)_", body) is None
    _, picture = saved(tab, tab.locator("#search").get_by_role("button", name="SVG of"))
    tags = {each.tag.split("}")[1] for each in ElementTree.fromstring(picture).iter()}
    assert not tags & {"script", "img", "foreignObject"}


def test_methods_are_reached_and_pressed_by_keys(opened, text):
    tab = opened(text)
    picked = tab.locator("#leaderboard button.pick").first
    picked.focus()
    tab.keyboard.press("Enter")
    expect(picked).to_have_attribute("aria-pressed", "true")
    expect(tab.locator("#main th.lit")).to_have_attribute("data-m", "0")
    svg = tab.locator("#times svg.scatter").first
    expect(svg.locator("[tabindex='0']")).to_have_count(1)
    svg.locator("[tabindex='0']").focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    expect(tab.locator("#main th.lit")).to_have_attribute("data-m", "1")
    expect(svg.locator("[data-m='1']")).to_have_attribute("aria-pressed", "true")
    expect(picked).to_have_attribute("aria-pressed", "false")
    tab.keyboard.press("Escape")
    expect(tab.locator("#main th.lit")).to_have_count(0)


def test_what_was_chosen_is_in_the_address_and_restored(opened, text):
    tab = opened(text)
    tab.get_by_label("dataset contains").fill("data-3")
    tab.locator("#leaders-filter").fill("map")
    tab.check("#as-error")
    tab.locator("#leaderboard thead button", has_text="fit time").click()
    tab.locator("#leaderboard button.pick").nth(1).click()
    lit = tab.locator("#leaderboard tr.lit").text_content()
    order = tab.locator("#leaderboard tbody tr").all_text_contents()
    address = tab.url
    assert "main-rows=data-3" in address
    again = tab.context.new_page()
    again.goto("about:blank")
    again.goto(address)
    expect(again.get_by_label("dataset contains")).to_have_value("data-3")
    expect(again.locator("#main tbody tr:visible")).to_have_count(1)
    expect(again.locator("#as-error")).to_be_checked()
    expect(again.locator("#times figure .error").first).to_be_visible()
    assert again.locator("#leaderboard tr.lit").text_content() == lit
    assert again.locator("#leaderboard tbody tr").all_text_contents() == order


@pytest.mark.parametrize(
    "fragment",
    [
        "?lit=%3Cscript%3Ealert(1)%3C%2Fscript%3E&main-rows=%22%3E%3Cimg%20src%3Dx%3E",
        "results?sort-main=9999u&sort-leaderboard=-1u&leaders-family=none&two-a=__proto__&lit=0",
        "?%E0%A4%A&&&==&as-error=2&column-mean=x",
    ],
)
def test_no_fragment_breaks_the_page(opened, text, fragment):
    tab = opened(text)
    tab.goto("about:blank")
    tab.go_back()
    tab.goto(tab.url.partition("#")[0] + "#" + fragment)
    tab.reload()
    expect(tab.locator("#two-body tr")).to_have_count(6)
    expect(tab.locator("img")).to_have_count(0)
    expect(tab.locator("tr.lit")).to_have_count(0)


def test_an_empty_filter_says_so(opened, text):
    tab = opened(text)
    tab.locator("#main-methods").fill("no such method")
    said = tab.locator("#results .empty")
    expect(said).to_have_text("Nothing fits this filter.")
    tab.locator("#main-methods").fill("")
    expect(said).to_have_text("")
    tab.locator("#leaders-filter").fill("no such method")
    expect(tab.locator("#leaders .empty")).to_have_text("Nothing fits this filter.")


def test_the_leaderboard_has_columns_and_families_to_choose(opened):
    rows = [changed(each, family=f"family {each.feature_map[-1]}") for each in grid(5, 3)]
    tab = opened(page(content(rows), Registry()))
    heading = tab.locator("#leaderboard th", has_text="n features")
    expect(heading).to_be_hidden()
    tab.locator("#leaders-columns summary").click()
    tab.check("#column-n_components")
    expect(heading).to_be_visible()
    tab.locator("#leaders-family").select_option("family 1")
    expect(tab.locator("#leaderboard tbody tr:visible")).to_have_count(1)


def test_each_dataset_and_method_has_a_part_drawn_when_unfolded(opened, text):
    tab = opened(text)
    expect(tab.locator("#each table")).to_have_count(0)
    tab.locator("#by-dataset > summary").click()
    parts = tab.locator("#by-dataset details")
    expect(parts).to_have_count(6)
    parts.nth(1).locator("summary").click()
    expect(parts.nth(1).locator("tbody tr")).to_have_count(4)
    tab.locator("#by-method > summary").click()
    tab.locator("#by-method details summary").first.click()
    expect(tab.locator("#by-method details").first.locator("tbody tr")).to_have_count(6)


def test_one_dataset_has_its_methods_as_rows(opened):
    tab = opened(page(content(grid(1, 5)), Registry()))
    expect(tab.locator("#main tbody tr")).to_have_count(5)
    tab.get_by_label("method contains").fill("map-3")
    expect(tab.locator("#main tbody tr:visible")).to_have_count(1)


@pytest.mark.slow
def test_the_matrix_is_as_wide_as_the_window_and_keeps_its_head(opened):
    tab = opened(page(content(grid(40, 24)), Registry()))
    tab.set_viewport_size({"width": 1900, "height": 700})
    box = tab.locator("#results .matrix")
    assert box.bounding_box()["width"] > 1800
    box.evaluate("each => { each.scrollTop = 500; each.scrollLeft = 300; }")
    top = box.bounding_box()["y"]
    assert round(tab.locator("#main thead th").nth(3).bounding_box()["y"] - top) == 0
    assert tab.evaluate("document.documentElement.scrollWidth") == 1900


def test_cells_link_to_the_runs_of_a_server_only(opened):
    rows = grid(3, 2)
    address = "http://h/#/experiments/1/runs/a"
    links = {rows[0].labels: address, rows[1].labels: "javascript:alert(1)"}
    tab = opened(page(content(rows, links=links), Registry()))
    expect(tab.locator("#main a")).to_have_count(1)
    expect(tab.locator("#main a")).to_have_attribute("href", address)


@pytest.mark.slow
def test_a_method_in_focus_is_lit_from_the_start(opened):
    made = content(grid(6, 4), focus=[("map-1", "ridge")])
    tab = opened(page(made, Registry()))
    expect(tab.locator("#leaderboard tr.lit")).to_contain_text("map-1")
    expect(tab.locator("#focus tbody tr")).to_have_count(3)


@pytest.mark.slow
def test_a_large_suite_prints_on_few_sheets(opened):
    tab = opened(page(content(searched(grid(19, 24))), Registry()))
    sheets = re.findall(rb"/Type\s*/Page\b", tab.pdf(prefer_css_page_size=True))
    assert 1 < len(sheets) <= 6
