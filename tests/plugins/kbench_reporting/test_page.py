"""The page says what the rows say, and nothing in a name becomes markup."""

import csv
import dataclasses
import html
import io
import itertools
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure as Drawn

from kbench.errors import PluginError, SuiteError
from kbench.evaluation.definitions import METRICS
from kbench.records import ACCURACY, Metric, Published
from kbench.registry.registry import Registry
from kbench.report import charts, write
from kbench.report.tables import table_named, table_names
from kbench.results.imported import Check, ImportedRow
from kbench.results.stats import corrected_t, on_dataset
from kbench_mlflow.reading import row_of_run
from kbench_reporting import diagram, pictures
from kbench_reporting.charts import scatter
from kbench_reporting.findings import decimals_for, entries, growth
from kbench_reporting.page import page, splits_by_cell
from tests.support.report_rows import (
    NASTY,
    changed,
    content,
    grid,
    nasty_rows,
    row,
    with_figures,
)
from tests.support.tracking_runs import as_stored

VOID = {"meta", "img", "br", "input", "link"}
SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """The elements of a page: well nested, with their attributes and texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.open = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)


def told(text):
    return " ".join(" ".join(Page(text).text).split())


# -- what it says


def test_every_mean_of_the_rows_is_on_the_page():
    rows = grid(4, 3)
    text = page(content(rows), Registry())
    values = {
        attributes["data-v"] for _, attributes in Page(text).elements if "data-v" in attributes
    }
    for each in rows:
        assert str(each.value("accuracy")) in values
        of_dataset = [other for other in rows if other.dataset == each.dataset]
        digits = decimals_for(of_dataset, ACCURACY)
        assert f"{each.value('accuracy'):.{digits}f} <i>±" in text


def test_the_best_of_a_dataset_is_marked_and_what_no_test_tells_from_it():
    rows = [
        row("iris", "a", accuracies=(0.90, 0.91, 0.92)),
        row("iris", "b", accuracies=(0.905, 0.90, 0.924)),
        row("iris", "c", accuracies=(0.50, 0.515, 0.52)),
        row("iris", "d", accuracies=(0.99, 0.99, 0.99), n_splits=4),
    ]
    ((dataset, line),) = entries(content(rows))
    assert dataset == "iris"
    marks = {entry.row.feature_map: entry.mark for entry in line}
    assert marks == {"a": "best", "b": "tie", "c": "", "d": ""}


def test_equal_accuracies_are_both_best():
    ((_, line),) = entries(content([row("iris", "a"), row("iris", "b")]))
    assert [entry.mark for entry in line] == ["best", "best"]


@pytest.mark.parametrize("splits", [(0.9,), (0.9, 0.8), (0.9, 0.8, 0.7)])
def test_equal_differences_and_one_split_are_no_test(splits):
    lower = [value - 1 / 30 for value in splits]
    rows = [row("iris", "a", accuracies=splits), row("iris", "b", accuracies=lower)]
    ((_, line),) = entries(content(rows))
    assert [entry.mark for entry in line] == ["best", "untested"]
    text = page(content(rows), Registry())
    assert 'class="untested"' in text
    assert "no test: one common split, or all differences are equal" in told(text)
    # the page tests pairs itself: digits that it lacks would make equal differences differ
    data = splits_by_cell(content(rows))
    first, second = (list(cell[-1].values()) for cell in data["cells"])
    assert np.ptp(np.subtract(first, second)) < data["equal"]


def test_rows_on_other_splits_are_not_paired():
    first = row("iris", "a", accuracies=(0.9, 0.8, 0.7))
    second = row("iris", "b", accuracies=(0.8, 0.8, 0.8))
    assert on_dataset(first, second) == corrected_t([0.1, 0.0, -0.1], 0.5)
    assert on_dataset(first, changed(second, split_hash={"0": "x", "1": "y", "2": "z"})) is None


def test_standings_are_over_what_all_finished():
    rows = [
        row("iris", "a", accuracies=(0.9, 0.9, 0.9), fit_time_s=1.0),
        row("iris", "b", accuracies=(0.8, 0.8, 0.8), fit_time_s=2.0),
        row("wine", "a", accuracies=(0.1, 0.1, 0.1), fit_time_s=4.0),
        row("wine", "b", accuracies=(0.2, 0.2, 0.2), fit_time_s=8.0),
        row("zoo", "a"),
        row("zoo", "b", status="timed_out", error="limit of 1 s"),
    ]
    made = content(rows)
    first, second = made.standings
    assert (first.method[0], first.rank, first.fit_time_s) == ("a", 1.5, pytest.approx(2.0))
    assert (second.method[0], second.rank, second.mean) == ("b", 1.5, pytest.approx(0.5))
    text = told(page(made, Registry()))
    assert "did not finish them: zoo" in text
    assert "limit of 1 s" in text


def test_a_method_can_be_kept_out_of_the_comparison():
    made = content(grid(6, 3), without=[("map-1", "ridge")])
    assert {each.method[0] for each in made.standings} == {"map-0", "map-2"}
    assert "Excluded methods: map-1 + ridge" in told(page(made, Registry()))


@pytest.mark.parametrize(
    "rows",
    [
        [row("iris", "a")],
        [row("iris", "a", status="error", error="boom")],
        [row("iris", "a", status="unavailable", error="offline"), row("wine", "b")],
        [row("iris", "a", accuracies=(0.9, 0.9)), row("iris", "b", accuracies=(0.9, 0.9))],
        [
            row("iris", "a", values_by_split={}, split_hash={}),
            row("iris", "b", values_by_split={}),
        ],
    ],
)
def test_a_page_of_little_is_a_page(rows):
    text = page(content(rows), Registry())
    assert "<h1>trial</h1>" in text
    assert "All cells" in told(text)


def test_published_figures_stand_beside_ours():
    figure = Published("iris", "a", "ridge", "accuracy", 0.95, n_runs=10, source="Paper, Table 1")
    text = told(page(content([row("iris", "a")], published=[figure]), Registry()))
    assert "Paper, Table 1" in text
    assert "0.9500" in text


def test_doubts_are_told():
    rows = [
        row("iris", "a", converged=False, contention="steal", notes="few rows", at_boundary="C"),
        row("iris", "b", n_splits=9),
    ]
    text = told(page(content(rows), Registry()))
    for part in ("did not converge", "loaded", "few rows", "boundary of its grid: C", "3 of 9"):
        assert part in text


def test_unequal_numbers_of_splits_are_told():
    rows = [row("iris", "a"), row("iris", "b", accuracies=(0.9, 0.8)), row("wine", "a")]
    text = told(page(content(rows), Registry()))
    assert "differ in their splits" in text
    assert "iris (2 to 3 splits)" in text
    assert "wine (" not in text


def test_the_headline_names_the_best_group_or_says_why_there_is_none():
    few, many = (told(page(content(grid(n, 4, seed=1)), Registry())) for n in (4, 12))
    assert "4 independent datasets cannot exclude any method" in few
    assert "Best group" not in few
    assert "Best group (5 % level, 12 independent datasets): " in many


def test_a_page_without_doubts_says_so():
    assert "None: every cell has results" in told(page(content([row("iris", "a")]), Registry()))


# -- nothing becomes markup, nothing is asked of anybody


def test_commands_can_be_copied_whatever_the_suite_is_called():
    made = dataclasses.replace(content([row("iris", "a")]), suite="my data.csv; ls")
    text = html.unescape(page(made, Registry()))
    assert "kbench suite 'my data.csv; ls'" in text
    assert "kbench report 'my data.csv; ls'" in text


def test_names_come_out_as_text_everywhere():
    rows = nasty_rows()
    figure = Published(NASTY[0], NASTY[0], NASTY[-1], "accuracy", 0.9, source=NASTY[1])
    made = content(rows, suite=NASTY[1], published=[figure], machine={"cpu": NASTY[0]})
    registry = with_figures((NASTY[0], lambda results: 1 / 0, ()))
    plain = Page(page(content(grid(2, 2), published=[]), Registry()))
    attacked = page(made, registry)
    found = Page(attacked)
    text = html.unescape(" ".join(" ".join(found.text).split()))
    for name in NASTY:
        assert " ".join(name.split()) in text or len(name) == 200
    assert "49 + " not in text
    tags = [tag for tag, _ in found.elements]
    assert tags.count("script") == [tag for tag, _ in plain.elements].count("script")
    assert "img" not in tags
    for _, attributes in found.elements:
        assert not any(name.startswith("on") for name in attributes)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', attacked).group(1)
    assert json.loads(data)["datasets"][:7] == NASTY


def test_the_page_refers_to_nothing_outside_it():
    made = content(grid(3, 3))
    registry = with_figures(("shape", lambda results: Drawn(), ()))
    found = Page(page(made, registry))
    for tag, attributes in found.elements:
        assert tag not in ("link", "iframe", "object", "base")
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(("#", "data:image/"))
    policy = next(a["content"] for t, a in found.elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")


def test_points_at_one_place_show_all_their_numbers():
    drawn = scatter(
        ["a", "b", "c"],
        [300.0, 4.0, 300.0],
        [0.9, 0.8, 0.9],
        ACCURACY,
        "components",
        str,
        ["dominated", "undecided", "frontier"],
        [charts.Style()] * 3,
    )
    groups = [each for each in ElementTree.fromstring(drawn).iter(f"{SVG}g") if each.get("class")]
    numbers = {each.find(f"{SVG}text").text: each for each in groups}
    assert set(numbers) == {"1, 3", "2"}
    assert numbers["1, 3"].get("class") == "point frontier c0"
    assert numbers["2"].get("class") == "point undecided c0"
    told = numbers["1, 3"].find(f"{SVG}title").text
    assert told.startswith("a: accuracy 0.9000")
    assert "; c: accuracy 0.9000" in told


def test_svg_is_well_formed_and_names_are_whole():
    drawn = diagram.draw(NASTY, [1 + 0.5 * i for i in range(7)], [0, 2])
    tree = ElementTree.fromstring(drawn)
    written = [each.text for each in tree.iter(f"{SVG}text")]
    for name in NASTY:
        assert name.replace(" ", "") in "".join(written).replace(" ", "")
    costs, values = [10.0**i for i in range(7)], [0.5] * 7
    looks = ["undecided"] * 7, [charts.Style()] * 7
    ElementTree.fromstring(scatter(NASTY, costs, values, ACCURACY, "time <s>", str, *looks))
    drawn = [charts.Line(name, [(1.0, 2.0), (9.0, 3.0)], i + 1) for i, name in enumerate(NASTY)]
    ElementTree.fromstring(charts.draw_lines(drawn, "rows <n>", "time <s>", str, str))


def test_names_of_a_diagram_lie_within_it_and_apart():
    names = [f"feature-map-{i}(n_components=300, gamma=0.5) + linear-svm" for i in range(9)]
    plan = diagram.layout(names, list(np.linspace(1.5, 8.5, 9)))
    for one, other in itertools.pairwise(plan.labels):
        assert other.y - one.y >= 9 * (len(one.lines) + len(other.lines))
    assert all(each.y + 9 * len(each.lines) <= plan.height for each in plan.labels)
    assert plan.x(9) < plan.width


# -- pictures


@pytest.mark.filterwarnings("ignore:Glyph", "ignore:constrained_layout")
@pytest.mark.parametrize("form", ["pdf", "png", "svg"])
@pytest.mark.parametrize("kind", pictures.KINDS)
def test_pictures_for_a_paper(kind, form):
    rows = nasty_rows() if form == "svg" else grid(3, 2)
    data = pictures.picture(kind, content(rows), Registry(), form)
    assert data.startswith({"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}[form])
    if form == "svg":
        ElementTree.fromstring(data)


def test_a_formula_in_a_name_is_no_formula_and_no_tick_is_raw():
    rows = [
        row(d, m, n_train=100.0 * n, fit_time_s=0.01 * n)
        for d, n in (("iris", 1), ("wine", 2), ("zoo", 9))
        for m in ("$x^2$", "$\\frac{$")
    ]
    for kind in pictures.KINDS:
        tree = ElementTree.fromstring(pictures.picture(kind, content(rows), Registry(), "svg"))
        written = "".join(tree.itertext())
        assert "$x^2$ + ridge" in written
        assert "mathdefault" not in written


def test_an_unknown_picture_is_an_error_that_says_what_there_is():
    with pytest.raises(SuiteError, match="did you mean 'ranks'"):
        pictures.picture("rank", content(grid(2, 2)), Registry(), "svg")
    with pytest.raises(SuiteError, match="nothing to draw"):
        pictures.picture("ranks", content([row("iris", "a")]), Registry(), "svg")


def test_figures_of_plugins_get_all_metrics_and_stand_in_their_suites_only():
    seen = []

    def draw(results):
        seen.extend(results)
        return Drawn()

    rows = [row("iris", "a", margin_error=0.25), row("iris", "b", margin_error=0.5)]
    registry = with_figures(("here", draw, ("trial",)), ("elsewhere", draw, ("other",)))
    text = page(content(rows), registry)
    assert [each["margin_error"] for each in seen] == [0.25, 0.5]
    assert "Title of here" in text
    assert "Title of elsewhere" not in text
    assert "data:image/svg+xml;base64," in text


def test_a_figure_of_a_plugin_keeps_its_formulas():
    def draw(results):
        figure = Drawn()
        figure.subplots().set(xscale="log", xlim=(1, 100), xlabel="$x$")
        return figure

    registry = with_figures(("here", draw, ()))
    tree = ElementTree.fromstring(pictures.picture("here", content(grid(2, 2)), registry, "svg"))
    assert "$" not in "".join(tree.itertext())


def test_a_figure_that_fails_is_said_and_stops_nothing():
    registry = with_figures(
        ("bad", lambda results: {}["x"], ()), ("none", lambda results: None, ())
    )
    text = told(page(content(grid(2, 2)), registry))
    assert "figure 'bad': KeyError" in text
    assert "draw returned NoneType" in text
    with pytest.raises(PluginError, match="figure 'bad'"):
        pictures.picture("bad", content(grid(2, 2)), registry, "svg")


# -- size


def test_a_page_of_400_cells_is_small():
    text = page(content(grid(40, 10)), Registry())
    assert len(text.encode()) < 1_500_000


def test_many_methods_are_compared_with_the_best_only():
    made = content(grid(3, 30))
    assert "Only pairs with the best method are listed" in page(made, Registry())
    assert len(table_named("pairs", made).rows) == 29


# -- from MLflow's runs


def test_a_run_in_full_has_all_metrics_and_what_tests_need():
    run = as_stored(
        key="k",
        machine="m1",
        name="rff + ridge on iris",
        status="ok",
        n_splits_done=2,
        params={
            "dataset": "iris",
            "feature_map": "rff",
            "learner": "ridge",
            "protocol.cv": "stratified",
        },
        tags={
            "kbench.dataset_family": "flowers",
            "kbench.n_splits": "2",
            "kbench.accuracy_by_split": '{"0": 0.5, "1": 0.75}',
            "kbench.split_hash": '{"0": "a", "1": "b"}',
            "kbench.notes": "note",
        },
        metrics={"accuracy": 0.625, "margin_error": 0.3, "converged": 0.5},
        start_ms=1,
        end_ms=2,
    )
    found = row_of_run(run)
    assert (found.dataset_family, found.converged) == ("flowers", False)
    assert found.value("margin_error") == 0.3
    assert found.by_split("accuracy") == {"0": 0.5, "1": 0.75}
    assert found.protocol == {"cv": "stratified"}
    bare = row_of_run(dataclasses.replace(run, tags={"kbench.cell_key": "k"}))
    assert (bare.dataset_family, bare.by_split("accuracy"), bare.notes) == ("iris", {}, "")


# -- its tables in other forms


@pytest.fixture(scope="module")
def nasty_content():
    rows = [
        changed(row, at_boundary=NASTY[0], notes="=1+1", contention=NASTY[2])
        for row in nasty_rows()
    ]
    figure = Published(NASTY[0], NASTY[0], NASTY[-1], "accuracy", 0.9, source="@" + NASTY[1])
    focus = [rows[0].method]
    checks = [Check(0, "equal", NASTY[0], 1)]
    others = [ImportedRow(each, ACCURACY, NASTY[1], NASTY[2], checks=checks) for each in rows[:3]]
    made = content(rows, suite=NASTY[1], published=[figure], focus=focus)
    return dataclasses.replace(made, imported=others)


@pytest.mark.parametrize("name", table_names())
def test_no_name_breaks_out_of_a_table(nasty_content, name):
    if name == "scores-default-metric":  # beside another metric
        nasty_content = dataclasses.replace(nasty_content, metric=Metric("log_loss", "lower"))
    table = table_named(name, nasty_content)
    assert table.rows
    csv_rows = list(csv.reader(io.StringIO(write(table, "csv"))))
    assert {len(line) for line in csv_rows} == {len(table.columns)}
    for line in csv_rows:
        for field, column in zip(line, table.columns, strict=True):
            risky = field[:1] in ("=", "+", "-", "@")
            assert not risky or column.numeric, field
    assert len(json.loads(write(table, "json"))) == len(table.rows)
    lines = write(table, "markdown").splitlines()
    narrowed, equal = table.narrowed
    lines = lines[2 if equal else 0 :]
    assert len(lines) == len(table.rows) + 2
    for line in lines:
        assert re.sub(r"\\\\|\\\|", "", line).count("|") == len(narrowed.visible) + 1
        assert not re.search(r"(?<!\\)<", line)
    latex = write(table, "latex")
    shown = [column for column in narrowed.visible if not column.wide]
    for line in latex.partition("\\midrule\n")[2].splitlines()[:-2]:
        # what is left when escapes are taken away: separators of columns, mathematics of ours
        bare = line.replace(r"$\pm$", "").replace(r"\textbackslash{}", "")
        bare = re.sub(r"\\[&%$#_{}]", "", bare)
        assert line == r"\midrule" or bare.count("&") == len(shown) - 1
        assert not re.search(r"[%$#_~^<>]", bare)
        assert bare.count("{") == bare.count("}")


def test_two_methods_that_read_the_same_have_columns_of_their_own():
    rows = [
        row(d, m, learner, (a, a))
        for d in ("iris", "wine")
        for m, learner, a in (("a", "b + c", 0.5), ("a + b", "c", 0.75), ("a", "b + c (sd)", 0.25))
    ]
    table = table_named("scores", content(rows))
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names) == 7
    values = {table.rows[0][name] for name in names[1:]}
    assert {0.5, 0.75, 0.25} <= values


def test_growth_is_fitted_where_sizes_vary_only():
    rows = [
        row(f"data-{n}", name, n_train=float(n), fit_time_s=factor * n**power)
        for n in (100, 1000, 10_000)
        for name, factor, power in (("a", 1e-5, 1.0), ("b", 1e-9, 2.0))
    ]
    found = {each.method[0]: each for each in growth(content(rows))}
    assert found["a"].exponent == pytest.approx(1.0)
    assert found["b"].exponent == pytest.approx(2.0)
    assert found["b"].r2 == pytest.approx(1.0)
    assert growth(content(rows[:4])) == []
    assert growth(content([changed(each, n_train=100.0) for each in rows])) == []


def test_an_error_is_better_where_it_is_lower():
    rows = [
        row(
            d,
            name,
            expected_error=value,
            expected_error_sd=0.01,
            values_by_split={"expected_error": {str(i): value + 0.001 * i for i in (-1, 0, 1)}},
        )
        for d in ("iris", "wine", "zoo")
        for name, value in (("a", 0.2), ("b", 0.1))
    ]
    made = content(rows, metric=METRICS["expected_error"])
    assert [each.method[0] for each in made.standings] == ["b", "a"]
    ((_, line), *_) = entries(made)
    assert [entry.mark for entry in line] == ["best", "untested"]
    (pair,) = table_named("pairs", made).rows
    assert (pair["first"], pair["won"]) == ("b + ridge", 3)
    assert pair["difference"] == pytest.approx(-0.1)
    assert pair["better"] > 0.9
    text = told(page(made, Registry()))
    assert "best mean expected error 0.1000" in text
    assert "lower is better" in text
    assert "Expected error" in text


def test_a_rotation_is_left_out_with_a_note():
    rows = [
        row(d, m, equivalence=e)
        for d in ("iris", "wine")
        for m, e in (("nystroem", "x"), ("f2", "x"), ("rff", ""))
    ]
    text = told(page(content(rows), Registry()))
    assert "f2 + ridge is excluded: it equals nystroem + ridge up to a rotation" in text


def test_a_row_without_a_time_is_in_no_growth():
    rows = grid(4, 2)
    metrics = {name: each for name, each in rows[0].metrics.items() if name != "fit_time_s"}
    rows[0] = dataclasses.replace(rows[0], metrics=metrics)
    assert growth(content(rows))
    page(content(rows), Registry())


def test_hashes_that_somebody_has_edited_break_no_report():
    rows = grid(4, 2)
    rows[0] = dataclasses.replace(rows[0], split_hash={"0": 5, "1": None})
    page(content(rows), Registry())
