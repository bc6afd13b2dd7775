"""Sections that features add to a report: where they stand, and what cannot harm it."""

import re
import subprocess
import sys
import types

import pytest
from markupsafe import Markup

from kbench.errors import FeatureError, SuiteError
from kbench.features import hookimpl
from kbench.records import Published
from kbench.registry.features import Feature, Metadata, ReportTable, features
from kbench.registry.registry import Registry
from kbench.registry.verbs import Verbs
from kbench.report import tables
from kbench.report.pages import Chart, Folded, Heading, Note, Section
from kbench.report.svg import document, element, text
from kbench.report.text import Column, Table
from kbench_reporting.page import page
from tests.support.report_rows import NASTY, content, grid, nasty_rows, searched


def table(name="weather", value="sunny"):
    return Table(name, "The weather", [Column("day"), Column("sky")], [{"day": 1, "sky": value}])


REPORTING = next(each for each in features() if each.name == "reporting")


@pytest.fixture
def feature(monkeypatch):
    """Return a function that makes a feature whose sections are what a function returns."""

    def make(sections, name="ours", **more):
        module = types.ModuleType(f"{name}_feature")

        @hookimpl
        def kbench_report_sections(data):
            return sections(data)

        module.kbench_report_sections = kbench_report_sections
        monkeypatch.setitem(sys.modules, module.__name__, module)
        metadata = Metadata(hooks=("kbench_report_sections",), **more)
        return Feature(name, module.__name__, name, metadata=metadata)

    return make


def written(made, *features):
    """Return a page with the sections of features, and what is said of these."""
    said = []
    return page(made, Registry(), verbs=Verbs(said.append, features)), said


def of(*sections):
    return lambda data: list(sections)


ALONE = content(grid(4, 3))


@pytest.mark.parametrize(
    ("after", "before"),
    [("results", "ranks"), ("pairs", "two"), ("search", "budgets"), ("figures", "warnings")],
)
def test_a_section_follows_another_one_on_the_page_and_above_it(feature, after, before):
    section = Section("weather", "On the weather", ["It rained."], link="Weather", after=after)
    text, said = written(ALONE, feature(of(section)))
    assert said == []
    assert '<section id="weather" class="added"><h2>On the weather</h2>' in text
    order = re.findall(r'<section id="([a-z]+)"', text)
    assert order[order.index("weather") + 1] == before
    links = re.findall(r'<a href="#([a-z]+)">([^<]*)</a>', text.partition("</nav>")[0])
    assert links[[name for name, _ in links].index(before) - 1] == ("weather", "Weather")


def test_its_place_is_there_where_the_section_before_it_is_not(feature):
    section = Section("weather", "The weather", ["It rained."], after="pairs")
    text, _ = written(content(grid(1, 1)), feature(of(section)))
    assert 'id="pairs"' not in text
    assert text.index('id="results"') < text.index('id="weather"') < text.index('id="two"')


def test_text_tables_and_charts_are_escaped(feature):
    svg = document(90.0, 30.0, [text(NASTY[0], 3, 9), element("path", d="M0 0H9")], NASTY[1])
    parts = [
        NASTY[0],
        Heading(NASTY[1]),
        Note(f"of n_{{test}} rows {NASTY[1]}"),
        Folded(NASTY[0], table("folded", NASTY[1])),
        Chart(NASTY[2], svg, table("numbers", NASTY[0])),
        Chart(NASTY[0], svg),
    ]
    section = Section("weather", NASTY[1], parts, [table(value=NASTY[0])], link=NASTY[2])
    text_, said = written(content(nasty_rows()), feature(of(section)))
    assert said == []
    (shown,) = re.findall(r'<section id="weather".*?</section>', text_, re.DOTALL)
    assert "<script" not in shown
    assert "<img" not in shown
    assert 'onload="' not in shown
    assert shown.count("&lt;script&gt;alert") >= 5
    assert "of n<sub>test</sub> rows &lt;/title&gt;" in shown
    for name in ("folded", "numbers", "weather"):
        assert f'data-name="{name}"' in shown


def test_parts_of_sections_of_the_core_stand_in_them(feature):
    svg = document(9.0, 9.0, [], "a chart")
    sections = [
        Section("a", "", [Chart("of seconds", svg, table()), Note("In a note.")], within="times"),
        Section("b", "To doubt", ["One.", "Two."], [table()], within="warnings"),
        Section("c", "the weather", ["It rained.", "It stopped."], within="run"),
        Section("d", "In a terminal", ["Not here."], within="terminal"),
    ]
    text, said = written(content(searched(grid(8, 3))), feature(of(*sections)))
    assert said == []
    part = dict(re.findall(r'(?s)<section id="(\w+)"(.*?)</section>', text))
    titles = re.findall("<figcaption>([^<]*)<", part["times"])
    assert titles[-2:] == ["of seconds", "Fit time against training rows"]
    assert '<p class="note">In a note.</p>' in part["times"]
    before, _, after = part["warnings"].partition("<h3>To doubt</h3>")
    assert "<p>" not in before
    assert after.count("<li>") >= 2
    assert "<summary>The weather</summary><template>" in after
    line = '<th scope="row">the weather</th><td>It rained. It stopped.</td>'
    assert line in part["run"]
    assert "Not here." not in text


# -- what goes wrong


def raises(data):
    raise RuntimeError("no <signal>")


def later(data):
    yield Section("weather", "The weather", ["It rained."])
    raise RuntimeError("no signal")


def bad_chart(script):
    return Section("weather", "", [Chart("", document(9.0, 9.0, [script], ""))])


BAD_COLUMN = Table("t", "T", [Column("x", written=lambda value: 1 / 0)], [{"x": 1}])


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        (raises, "RuntimeError: no <signal>"),
        (later, "RuntimeError: no signal"),
        (lambda data: 5, "TypeError: 'int' object is not iterable"),
        (of("text"), "str is not a Section"),
        (lambda data: [Section("weather", "", [Markup("<b>")])], "Markup is not a part"),
        (lambda data: [Section("weather", "", [5])], "int is not a part"),
        (lambda data: [Section("weather", "", "text")], "got a string"),
        (lambda data: [Section("The Weather", "")], "lower case letters"),
        (lambda data: [Section("weather", "", after="pair")], "after must be one of"),
        (lambda data: [Section("weather", "", within="page")], "within must be one of"),
        (of(Section("data", "Data", ["text"])), "another section has the name 'data'"),
        (of(*[Section("weather", "", ["text"])] * 2), "another section has the name 'weather'"),
        (of(Section("weather", "", tables=[BAD_COLUMN])), "ZeroDivisionError"),
        (of(bad_chart("<script>alert(1)</script>")), "it has script"),
        (of(bad_chart('<path onclick="alert(1)"/>')), "it has onclick"),
        (of(bad_chart('<g style="x"><rect/></g>')), "it has style"),
        (of(bad_chart("<![CDATA[<b>]]>")), "it has <!"),
        (of(bad_chart("<g>")), "not well-formed"),
    ],
)
def test_a_feature_that_fails_is_named_and_the_page_is_as_without_it(feature, sections, words):
    other = feature(of(Section("other", "Another", ["It is fine."])), "other")
    expected, _ = written(ALONE, other)
    found, said = written(ALONE, feature(sections), other)
    assert found == expected
    (notice,) = said
    assert notice.startswith("the feature 'ours' is left out: ")
    assert words in notice


def test_sections_without_anything_to_show_are_left_out(feature):
    empty = Table("weather", "The weather", [Column("day")], [])
    text, said = written(ALONE, feature(of(Section("weather", "The weather", tables=[empty]))))
    assert said == []
    assert "weather" not in text


# -- tables


def test_the_tables_of_features_are_named_without_importing_them():
    code = (
        "import sys; from kbench.report.tables import table_names; names = table_names();"
        "print(*names); print(*(name for name in sys.modules if name.startswith('kbench_')));"
        "assert {'scores', 'cells', 'variance'} < set(names)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, imported = done.stdout.split("\n")[:2]
    assert imported == ""
    assert names.split() == [
        *(
            "leaderboard",
            "scores",
            "scores-default-metric",
            "highlighted",
            "methods",
            "ranks",
            "pairs",
            "published",
        ),
        *("published-grid", "imported", "scaling", "search-curves", "budgets", "variance"),
        *(
            "variance-components",
            "optimism",
            "search-time",
            "warnings",
            "leakage",
            "failures",
            "skipped",
            "unavailable",
        ),
        "cells",
    ]


@pytest.fixture
def installed(monkeypatch):
    """Return a function that has reports know some features only."""

    def only(*features):
        monkeypatch.setattr(tables, "working", lambda: [REPORTING, *features])

    return only


def test_a_table_is_made_by_the_feature_that_has_it(feature, installed):
    asked = []

    def asks(data):
        asked.append("other")
        return []

    named = {"weather": ReportTable("the weather", after="scores")}
    ours = feature(of(Section("w", "", [Folded("", table())], [table("not-named")])), tables=named)
    installed(ours, feature(asks, "other", tables={"tides": ReportTable("the tides")}))
    names = list(tables.table_names())
    assert names[names.index("scores") + 1] == "weather"
    assert names[-1] == "tides"
    assert tables.table_names()["weather"] == "the weather"
    assert tables.table_named("weather", ALONE).rows == table().rows
    assert tables.table_named("scores", ALONE).name == "scores"
    assert asked == []
    with pytest.raises(SuiteError, match=r"no table 'not-named'"):
        tables.table_named("not-named", ALONE)
    with pytest.raises(FeatureError, match="no table 'tides': the feature 'other' did not make it"):
        tables.table_named("tides", ALONE)


def test_a_table_of_a_feature_that_fails_is_an_error_and_all_others_are_made(feature, installed):
    broken = feature(raises, "broken", tables={"tides": ReportTable("the tides")})
    ours = feature(of(Section("w", "", tables=[table()])), tables={"weather": ReportTable("w")})
    installed(broken, ours)
    with pytest.raises(FeatureError, match=r"(?s)'tides'.*'broken' is left out.*no <signal>"):
        tables.table_named("tides", ALONE)
    said = []
    made = tables.make_tables(ALONE, Verbs(said.append, [REPORTING, broken, ours]))
    assert list(made) == [*REPORTING.metadata.tables, "weather"]
    assert len(said) == 1


# -- without features


@pytest.mark.parametrize(
    "rows", [grid(4, 3), searched(grid(8, 3)), grid(1, 1)], ids=["grid", "searched", "one"]
)
def test_without_features_the_page_is_complete_and_says_nothing_false(rows):
    figure = Published("data-0", "map-0", "ridge", "accuracy", 0.9)
    text, said = written(content(rows, published=[figure]))
    assert said == []
    ids = re.findall(r'\bid="([\w-]+)"', text)
    assert len(ids) == len(set(ids))
    for name in re.findall(r'<a href="#([\w-]+)"', text):
        assert name in ids
    for name in ("leaders", "results", "two", "warnings", "run", "each", "cells"):
        assert name in ids
    for name in ("variance", "optimism", "published"):
        assert name not in ids
    for words in ("Where the variance comes from", "Before you quote", "seconds of search", "z ="):
        assert words not in text
    assert "predicted before the run" not in text
