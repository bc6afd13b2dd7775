"""The task of a user's target: the rule, its sentence, and targets that are refused."""

import numpy as np
import pandas
import pytest

from kbench import DatasetError
from kbench_tables.profile import Role
from kbench_tables.recommend.table_preview import Preview
from kbench_tables.recommend.target import TargetColumn, choose


def chosen(values, asked=None):
    return choose(TargetColumn.from_values(pandas.Series(values)), "y", "file 'mine.csv'", asked)


WHOLE = [number for number in range(20) for _ in range(5)]


@pytest.mark.parametrize(
    ("values", "task", "words"),
    [
        (["no", "yes"] * 5, "classification", "has 2 different strings: classification"),
        ([True, False] * 5, "classification", "has 2 booleans: classification"),
        ([True, None, False] * 5, "classification", "has 2 booleans: classification"),
        (WHOLE, "classification", "has 20 different integers, treated as classes"),
        ([1.0, 2.0, 3.0] * 5, "classification", "has 3 different integers, treated as"),
        # two numbers are classes, however rare one of them is
        ([0] * 99 + [1], "classification", "has 2 different integers, treated as classes"),
        ([*WHOLE, *[20] * 5], "regression", "with 21 different values: regression (`task='class"),
        (WHOLE[:-1], "regression", "one of them in fewer than 5 rows: regression (`task='class"),
        ([0, 1, 2] * 50 + [0.5], "regression", "of which 0.5 is not an integer: regression (`task"),
        (np.arange(0, 100, 0.5), "regression", "is numeric, with 200 different values: regression"),
        # texts that are numbers are numbers, as in parquet files
        (["1.5", "2.5", "7"] * 9, "regression", "with 3 different values, of which 1.5"),
    ],
)
def test_the_values_of_the_target_decide(values, task, words):
    found, sentence = chosen(values)
    assert found == task
    assert sentence.startswith("target 'y' ")
    assert words in sentence


@pytest.mark.parametrize("asked", ["classification", "regression"])
def test_the_user_decides_otherwise(asked):
    task, sentence = chosen(WHOLE, asked)
    assert task == asked
    assert sentence.endswith(f"(`task={asked!r}`)")


def test_an_option_that_would_be_refused_is_not_offered():
    assert "`task" not in chosen(np.arange(0, 60, 0.5))[1]
    # more different values than half of the rows, and more than 50
    assert "`task" not in chosen(np.arange(0, 30, 0.5))[1]
    assert "`task" in chosen(np.arange(0, 25, 0.5))[1]


MONEY = [f"${value:,.2f}" for value in np.linspace(900, 1100, 45)]


@pytest.mark.parametrize(
    ("values", "asked", "words"),
    [
        (MONEY, None, "45 rows have another string, first row 1: '$900.00'. Write plain"),
        (MONEY, "regression", "first row 1: '$900.00'. Write plain numbers, such as"),
        ([f"{v}%" for v in range(30)], None, "30 rows have another string, first row 1: '0%'"),
        ([f"{v},5" for v in range(30)], None, "30 rows have another string, first row 1"),
        ([f"EUR {v}" for v in range(30)], None, "first row 1: 'EUR 0'"),
        (
            [*map(str, range(30)), "unknown", "-"],
            None,
            "2 rows have another string, first row 31: 'unknown'",
        ),
        (pandas.date_range("2020-01-01", periods=9), None, "holds dates. Convert them to numbers"),
        (["2020-01-01", "2020-02-01"] * 9, None, "`task='classification'` treats the 2 dates as"),
        (["1.2.2020", "3.2.2020"], "regression", "holds dates"),
        ([True, False], "regression", "holds booleans. Write them as 0 and 1."),
        ([3.7] * 9, None, "has the same value in all rows; a constant cannot be learned"),
        ([np.nan] * 9, None, "has no value in any row"),
        (np.random.default_rng(0).permutation(30) + 7, None, "is a row number: each of 30"),
        (
            [1.5, 2.5, None, 3.5, None],
            None,
            "is missing in 2 rows of 5 (first row 3). Remove",
        ),
        ([1, 2, None] * 9, "regression", "is missing in 9 rows of 27 (first row 3"),
    ],
)
def test_what_cannot_be_predicted_is_refused_with_what_to_do(values, asked, words):
    with pytest.raises(DatasetError) as caught:
        chosen(values, asked)
    assert str(caught.value).startswith("file 'mine.csv': the target 'y' ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (MONEY, "classification"),
        (["2020-01-01", "2020-02-01"] * 9, "classification"),
        (np.arange(30), "regression"),
        # few texts are classes, whatever they look like
        (["25%", "50%", "100%"] * 9, None),
        ([*map(str, range(5)), "unknown"], None),
        # missing labels are left out
        (["no", "yes", None], None),
        ([1, 2, None] * 9, None),
    ],
)
def test_what_the_user_may_mean_is_taken(values, asked):
    assert chosen(values, asked)[0] == (asked or "classification")


def test_labels_that_a_source_has_read_are_described():
    named = TargetColumn.from_labels(np.array([0, 1, 1]), ("4", "9"))
    assert (named.kind, named.n_different, named.n_rarest) == ("numbers", 2, 1)
    assert TargetColumn.from_labels(np.array([0, 1]), ("ham", "spam")).kind == "strings"
    assert TargetColumn.from_labels(np.array([0.5, 1.0]), ()).fraction == 0.5


def test_what_a_process_describes_is_checked():
    target = {"kind": "strings", "n_different": 2, "odd": chr(27), "fraction": float("nan")}
    role = {"name": "x", "read_as": "numbers", "encoded_as": "number", "n_columns": 1}
    values = {"n_rows": 9, "n_unlabelled": 0, "roles": [role], "target": target}
    values |= {"params": {"decimal": ",", "drop": ["id"]}, "warnings": ["a doubt"]}
    found = Preview.from_json(values)
    assert found.target.odd == chr(0xFFFD)
    assert (found.roles, found.warnings) == ((Role(**role),), ("a doubt",))
    assert found.params == {"decimal": ",", "drop": ("id",)}
    for wrong in (
        {"kind": "poems"},
        {"n_rows": None},
        {"n_missing": "2"},
        {"n_missing": True},
        {"n_different": -2},
        {"odd": 3},
    ):
        with pytest.raises(ValueError, match="validation error"):
            Preview.from_json({**values, "target": {**target, **wrong}})
    with pytest.raises(ValueError, match="validation error"):
        Preview.from_json({**values, "params": {"decimal": 3}})
