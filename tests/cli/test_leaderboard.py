"""`kbench results --leaderboard` and methods in focus, from the runs of a store."""

import csv
import io
import json
import re

import pytest

from kbench.api.inputs import find_plugin_methods
from kbench.errors import KbenchError
from kbench.records import FeatureMap
from kbench.registry.installed import Plugin
from kbench.registry.registry import Registry, build
from kbench.results.leaderboard import leaderboard
from kbench_mlflow.tracking.store import Store
from tests.plugins.kbench_reporting.test_report import STORE, call, runs
from tests.support.report_rows import NASTY, changed, grid, nasty_rows, row

BOARD = ("results", "trial", "--leaderboard")


@pytest.fixture(autouse=True)
def store(monkeypatch, tmp_path):
    monkeypatch.setattr(Store, "read", lambda self, name, superseded=False: runs(4, 3))
    monkeypatch.setattr(Store, "tags", lambda self, name: {})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_line_per_method_in_order_of_places():
    done = call(*BOARD, *STORE)
    lines = done.stdout.splitlines()
    expected = [line.method[0] for line in leaderboard(grid(4, 3)).lines]
    assert [line.split()[1] for line in lines if line.split()[:1] and line.split()[0] in "123"] == (
        expected
    )
    assert "over the 4 datasets that all methods finished" in done.stdout


@pytest.mark.parametrize("form", ["csv", "json", "latex", "markdown"])
def test_it_is_written_in_each_form(form):
    text = call(*BOARD, "--format", form, *STORE).stdout
    best = leaderboard(grid(4, 3)).lines[0]
    if form == "csv":
        first = next(csv.DictReader(io.StringIO(text)))
        assert (first["feature_map"], float(first["mean"])) == (best.method[0], best.mean)
    elif form == "json":
        assert json.loads(text)[0]["mean"] == best.mean
    else:
        assert best.method[0] in text
        assert f"{best.mean:.4f}" in text
        assert text.count("map-") == 3


def test_columns_are_chosen_and_ordered():
    text = call(*BOARD, "--format", "csv", "--columns", "front,mean", *STORE).stdout
    assert text.splitlines()[0] == "place,feature_map,learner,front,dominated_by,mean"


def test_mistakes_are_named_and_computed_from_nothing():
    for more, message in (
        (["--columns", "mena"], r"--columns: .*'mena'; did you mean 'mean'"),
        (["--family", "Furier"], "--family: .*'Furier'"),
        (["--highlight", "mapp-1"], "did you mean 'map-1'"),
        (["--machine", "all"], "one machine"),
    ):
        with pytest.raises(KbenchError, match=message):
            call(*BOARD, *more, *STORE)
    with pytest.raises(KbenchError, match="--columns is for --leaderboard"):
        call("results", "trial", "--columns", "mean", *STORE)


def test_a_focus_has_its_table_in_reports_and_is_drawn_in_plots(store):
    text = call("report", "trial", "--table", "highlighted", "--highlight", "map-1", *STORE).stdout
    assert [line.split(" | ")[1] for line in text.splitlines()[2:]] != []
    assert all("| map-1 + ridge | " in line for line in text.splitlines()[2:])
    for kind in ("ranks", "metric-vs-fit-time"):
        for more in ((), ("--highlight", "map-1")):
            name = f"{kind}{len(more)}.svg"
            call("plot", "trial", kind, "-o", name, *more, *STORE)
        plain, focused = ((store / f"{kind}{n}.svg").read_text() for n in (0, 2))
        assert plain != focused
        is_bold = re.compile(r"font(-weight)?: (bold|700)")
        assert is_bold.search(focused)
        assert not is_bold.search(plain)


def test_methods_of_own_plugins_are_in_focus_by_default():
    def given(name, distribution):
        return Plugin(name, distribution, "1", load=lambda: None)

    def collect(plugin):
        kind = "feature map"
        return [(kind, plugin.name, FeatureMap(plugin.name, make=dict))]

    registry = build([given("rff", "kbench-core"), given("mine", "my-plugin")], collect)
    rows = [row("iris", label) for label in ("rff", "rff(10)", "mine", "mine(n=3)", "miner")]
    assert find_plugin_methods(rows, registry) == [("mine", "ridge"), ("mine(n=3)", "ridge")]
    assert find_plugin_methods(rows[2:4], registry) == []
    assert find_plugin_methods(rows, Registry()) == []


def test_hostile_names_stay_text_in_every_form():
    from kbench.report import write
    from kbench.report.tables import leaderboard_table

    rows = [changed(each, family=NASTY[0]) for each in nasty_rows()]
    rows.append(row(NASTY[0], "=1+1", "@cmd"))
    made = leaderboard_table(leaderboard(rows), families=[NASTY[0]], focus=[rows[0].method])
    assert len(made.rows) > 3
    for form in ("csv", "latex", "markdown", "json"):
        assert write(made, form)
    lines = list(csv.DictReader(io.StringIO(write(leaderboard_table(leaderboard(rows)), "csv"))))
    assert {"'=1+1", "'@cmd"} <= {value for line in lines for value in line.values()}
