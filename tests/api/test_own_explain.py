"""Importances of a table's columns, and where the recommended method errs."""

import json

import numpy as np
import pytest

import kbench
from kbench.report.explanation import Explanation, Importance, residuals
from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of which the city and the day decide, and a number does not."""
    rng = np.random.default_rng(0)
    days = rng.integers(0, 800, 160)
    city = rng.choice(["Oslo", "Rome", "Bern"], 160)
    score = 3.0 * (city == "Rome") + days / 400 + rng.normal(0, 0.1, 160)
    lines = ["day,city,noise,score,late"]
    for i in range(160):
        day = np.datetime64("2019-01-01") + days[i]
        late = ["no", "yes"][int(score[i] > 2)]
        lines.append(f"{day},{city[i]},{rng.normal():.3f},{score[i]:.3f},{late}")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return path


def explained(table, target, ignored, store_uri, capfd):
    words = ["run", table.name, "--target", target, "--ignore", ignored, "--explain", "--json"]
    words += ["--feature-map", "identity", "--learner", "ridge", "--store", store_uri, "-j", "1"]
    code, out, err = command(*words, "-o", "page.html", capfd=capfd)
    assert code == 0, err
    return json.loads(out.splitlines()[-1])["importances"], (table.parent / "page.html").read_text()


def test_columns_of_the_table_have_an_importance(table, store_uri, capfd):
    importances, page = explained(table, "late", "score", store_uri, capfd)
    # the columns of the file, whatever they are encoded as, the largest first
    assert sorted(importances) == ["city", "day", "noise"]
    assert next(iter(importances)) == "city"
    assert importances["city"] > 0.1
    assert abs(importances["noise"]) < 0.05
    assert "Confusion matrix" in page
    assert "<td>city</td>" in page


def test_numbers_have_residuals(table, store_uri, capfd):
    importances, page = explained(table, "score", "late", store_uri, capfd)
    assert importances["city"] > 10 * abs(importances["noise"])
    assert "Residuals by predicted value" in page


def test_what_matters_is_said_and_the_rest_is_counted():
    found = Explanation((Importance("a", 0.2, 0.01), Importance("b", 0.001, 0.01)), 300)
    (sentence,) = found.sentences("accuracy")
    assert "a (0.200)" in sentence
    assert sentence.endswith("No effect is seen of 1 others.")
    none = Explanation((Importance("b", -0.1, 0.01),), 300)
    assert none.sentences("accuracy") == [
        "No column alone changes the accuracy when it is permuted."
    ]


def test_a_plot_of_one_value_is_drawn():
    picture = residuals([(1.0, 0.0), (1.0, 0.0)])
    assert picture.count("<circle") == 2
    assert "nan" not in picture


@pytest.mark.parametrize(
    ("fit_s", "predict_s", "told"),
    [(9.0, 0.0, "fitting the method once more should take 9 s"), (0.0, 900.0, "take too long")],
)
def test_what_would_take_too_long_is_not_explained(monkeypatch, fit_s, predict_s, told):
    from kbench import Cell, Protocol, Ref
    from kbench.api import own_explain
    from kbench.planning.planned import PlannedCell
    from kbench.records import ACCURACY, DatasetFacts, Result
    from kbench.registry.installed import installed
    from kbench.registry.registry import build

    X = np.random.default_rng(0).normal(size=(40, 3))
    data = kbench.Dataset("d", X=X, y=np.arange(40) % 2)
    monkeypatch.setattr(own_explain.DataCache, "load", lambda *_: data)
    monkeypatch.setattr(own_explain, "_chosen", lambda *_: object())
    measures = {"fit_time_s": fit_s, "predict_time_s": predict_s, "n_test": 10.0}
    cell = Cell(Ref("d"), Ref("identity"), Ref("majority"), Protocol())
    facts = DatasetFacts("c" * 64, n_samples=40, n_features=3)
    planned = PlannedCell(cell, "key", facts, 5)
    planned.results = {0: Result("t", "key", 0, "ok", measures=measures)}
    found = own_explain.explain(planned, build(installed()), ACCURACY, 3.0)
    assert told in found
    assert "give a larger --time-limit" in found
