"""Importances of a table's columns, and where the recommended method errs."""

import json
from dataclasses import replace

import numpy as np
import pytest

import kbench
from kbench import Cell, Protocol, Ref
from kbench.planning.planned import PlannedCell
from kbench.records import ACCURACY, DatasetFacts, Details, Result
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_tables.recommend import explain as own_explain
from kbench_tables.recommend.explain import Explanation, Importance
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
    words = [
        "recommend",
        table.name,
        "--target",
        target,
        "--drop",
        ignored,
        "--explain",
        "--json",
    ]
    words += ["--feature-map", "identity", "--learner", "ridge", "--store", store_uri, "-j", "1"]
    code, out, err = command(*words, "-o", "page.html", capfd=capfd)
    assert code == 0, err
    return json.loads(out.splitlines()[-1])["importances"], (table.parent / "page.html").read_text()


@pytest.mark.slow
def test_columns_of_the_table_have_an_importance(table, store_uri, capfd):
    importances, page = explained(table, "late", "score", store_uri, capfd)
    # the columns of the file, whatever they are encoded as, the largest first
    assert sorted(importances) == ["city", "day", "noise"]
    assert next(iter(importances)) == "city"
    assert importances["city"] > 0.1
    assert abs(importances["noise"]) < 0.05
    assert "Confusion matrix" in page
    assert '<td class="name">city</td>' in page


def test_columns_have_an_importance_for_numbers(table, store_uri, capfd):
    importances, _ = explained(table, "score", "late", store_uri, capfd)
    assert importances["city"] > 10 * abs(importances["noise"])


def test_what_matters_is_said_and_the_rest_is_counted():
    found = Explanation((Importance("a", 0.2, 0.01), Importance("b", 0.001, 0.01)), 300)
    (sentence,) = found.sentences("accuracy")
    assert "a (0.200)" in sentence
    assert sentence.endswith("No effect of 1 other.")
    none = Explanation((Importance("b", -0.1, 0.01),), 300)
    assert none.sentences("accuracy") == ["No column alone changes the accuracy if it is permuted."]


def measured(n_train, fit_s, predict_s, n_test=1000, width=0):
    """A cell with a result of these times."""
    metrics = {"n_train": float(n_train), "fit_time_s": fit_s, "predict_time_s": predict_s}
    metrics |= {"n_test": float(n_test), "n_components": float(width)}
    cell = Cell(Ref("d"), Ref("identity"), Ref("ridge"), Protocol())
    planned = PlannedCell(cell, "key", DatasetFacts("c" * 64, n_samples=40, n_features=3), 5)
    planned.results = {0: Result("t", "key", 0, "ok", metrics=metrics)}
    return planned


def test_the_effort_fits_into_the_time():
    within = own_explain.Effort.within
    # 0.1 s of fit, 1 ms a row
    planned = measured(20_000, 0.1, 1.0)
    assert within(np.inf, planned, 10, 2000) == own_explain.Effort(20_000, 2000, 3)
    assert within(100.0, planned, 10, 2000) == own_explain.Effort(20_000, 2000, 3)
    assert within(31.1, planned, 10, 2000) == own_explain.Effort(20_000, 1000, 3)
    # fewer permutations rather than fewer than 200 rows, then fewer rows
    assert within(3.1, planned, 10, 2000) == own_explain.Effort(20_000, 272, 1)
    assert within(0.65, planned, 10, 2000) == own_explain.Effort(20_000, 50, 1)
    # half of the time is for a fit, on a sample where that is too short
    slow = measured(20_000, 100.0, 0.1)
    assert within(20.0, slow, 10, 2000) == own_explain.Effort(2000, 2000, 3)
    assert within(1.0, slow, 10, 2000).n_train == own_explain.MIN_FITTED
    assert within(1.0, measured(20_000, 100.0, 0.1, width=1000), 10, 100).n_train == 2000
    # for a good explanation there is as much as `wanted_seconds`
    seconds = own_explain.seconds_to_explain(planned, 10)
    assert within(seconds + 0.01, planned, 10, 2000) == own_explain.Effort(20_000, 200, 3)


@pytest.fixture
def of_columns(monkeypatch):
    """An explanation of ridge on a set of which the first column decides, in some seconds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = (X[:, 0] > 0).astype(int)
    y[:3] = 2  # a class that a sample may miss
    data = kbench.Dataset("d", X=X, y=y)
    monkeypatch.setattr(own_explain.features.DataCache, "load", lambda *_: data)

    def explain(planned, seconds):
        planned.results[0] = replace(
            planned.results[0],
            details=Details(chosen={"scaling": "minmax", "learner.alpha": 1.0}),
        )
        return own_explain.explain(planned, build(list_plugins()), ACCURACY, seconds)

    return explain


def test_a_slow_fit_is_made_on_a_sample_that_is_named(of_columns):
    found = of_columns(measured(3200, 300.0, 0.1), 60.0)
    assert not isinstance(found, str), found
    assert found.fitted == (500, 3200)
    assert found.importances[0].column == "x0"
    (sentence,) = found.sentences("accuracy")
    assert "fitted on 500 of 3,200 rows" in sentence
    said = of_columns(measured(3200, 3000.0, 0.1), 60.0)
    assert "a fit on 500 rows" in said
    found = of_columns(measured(3200, 0.01, 0.1), 60.0)
    assert not found.fitted
    assert "to save time" not in found.sentences("accuracy")[0]


def test_one_permutation_of_each_column_names_the_columns_that_matter(of_columns):
    found = of_columns(measured(3200, 0.01, 800.0, n_test=800), 200.0)
    assert (found.repeats, found.importances[0].column) == (1, "x0")
    assert "(once, to save time)" in found.sentences("accuracy")[0]


def test_predictions_that_would_take_too_long_are_not_made(of_columns):
    found = of_columns(measured(3200, 0.0, 90_000.0, n_test=10), 3.0)
    assert "take longer" in found
    assert "increase `time_limit`" in found


def test_half_of_the_time_is_for_the_work_whatever_reading_takes(of_columns, monkeypatch):
    clock = iter([0.0, 1000.0])
    monkeypatch.setattr("kbench_tables.recommend.explain.time.monotonic", lambda: next(clock))
    found = of_columns(measured(3200, 0.01, 0.001), 4.0)
    assert not isinstance(found, str), found
