"""Columns that tell the target are named in a notice."""

import numpy as np
import pandas as pd
import pytest

from kbench.execution.plugins import load_registry
from kbench_tables.recommend.user_data import alike_classes, prepare_data

pytestmark = pytest.mark.usefixtures("forked_sandboxes")


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60).round(3)
    return pd.DataFrame({"x": x, "y": np.where(rng.random(60) < 0.5, "no", "yes")})


@pytest.fixture
def warnings(tmp_path):
    def of(table, target="y"):
        table.to_csv(tmp_path / "mine.csv", index=False)
        return prepare_data(str(tmp_path / "mine.csv"), load_registry(), target=target).warnings

    return of


def test_the_target_in_other_words(table, warnings):
    table["approved by"] = table["y"].map({"no": "nobody", "yes": "boss"})
    (said,) = warnings(table)
    assert said.startswith("column 'approved by' tells the target of every row")
    assert said.endswith("`drop=['approved by']` leaves it out")


def test_a_number_for_each_class_and_several_columns(table, warnings):
    table["flag"] = (table["y"] == "yes").astype(int)
    table["points"] = 3.5 - table["flag"]
    (said,) = warnings(table)
    assert said.startswith("columns 'flag', 'points' tell the target of every row")
    assert said.endswith("`drop=['flag', 'points']` leave them out")


def test_classes_that_differ_in_capital_letters_are_named(table, warnings):
    table.loc[::7, "y"] = table.loc[::7, "y"].str.upper()
    (said,) = warnings(table)
    assert said.startswith("classes 'NO', 'YES', 'no', 'yes' differ in capital letters only")


def test_classes_of_other_letters_are_no_classes_in_capital_letters():
    assert alike_classes(["straße", "strasse"]) == []
    (said,) = alike_classes(["Straße", "straße", "strasse"])
    assert said.startswith("classes 'Straße', 'straße' differ in capital letters only")


def test_a_target_in_another_unit(table, warnings):
    table["inches"] = table["x"] * 2.54 + 1
    assert warnings(table.drop(columns="y"), "x")[0].startswith("column 'inches' tells")


def test_a_good_column_is_not_the_target(table, warnings):
    table["flag"] = (table["y"] == "yes").astype(int)
    table.loc[0, "flag"] = 1 - table.loc[0, "flag"]
    assert not warnings(table)
    table["near"] = table["x"] + np.random.default_rng(1).normal(0, 1e-3, 60)
    assert not warnings(table, "x")
