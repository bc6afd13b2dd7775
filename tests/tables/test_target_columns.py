"""Targets and weights of tables: labels, numbers, and what is neither."""

import re

import numpy as np
import pytest

from kbench import DatasetError
from kbench.tables.table import Column, Table, to_dataset
from kbench.tables.target_columns import read_target, read_weights

NAN, INF = np.nan, np.inf


def numeric(*values):
    return Column("y", "numeric", (), np.array(values, dtype=float))


def nominal(categories, codes):
    return Column("y", "nominal", categories, np.array(codes))


def test_one_number_that_is_not_whole_makes_a_regression_task():
    assert read_target(numeric(1, 2, 1), "t").task == "classification"
    found = read_target(numeric(1, 2, 1.5), "t")
    assert (found.task, found.values.tolist(), found.names) == ("regression", [1, 2, 1.5], ())
    assert found.values.dtype == np.float64


def test_the_task_may_be_named():
    found = read_target(numeric(3, 1, 2), "t", "regression")
    assert (found.task, found.values.tolist()) == ("regression", [3, 1, 2])
    found = read_target(numeric(0.5, -1, 0.5, NAN), "t", "classification")
    assert found.values.tolist() == [1, 0, 1, -1]
    assert found.names == ["-1", "0.5"]
    numbers = nominal(["10", "2.5"], [1, 0, 1])
    assert read_target(numbers, "t").names == ["10", "2.5"]
    assert read_target(numbers, "t", "regression").values.tolist() == [2.5, 10, 2.5]
    texts = Column("y", "string", (), ["1e3", "-2"])
    assert read_target(texts, "t", "regression").values.tolist() == [1000, -2]


@pytest.mark.parametrize(
    ("column", "task", "words"),
    [
        (numeric(1.5, 2), "regresion", "t: task must be one of 'classification', 'regression', "),
        (
            numeric(1.5, NAN, 2, NAN),
            None,
            "t: the target 'y' is missing in 2 rows of 4, the first is row 2; regression needs a "
            "number in each row",
        ),
        (numeric(1.5, 2, -INF), None, "'y' is infinite in 1 row of 3, the first is row 3"),
        (numeric(1, 2, INF), None, "'y' is infinite in 1 row of 3, the first is row 3"),
        (
            nominal(["3.5", "n/a", "x"], [0, 2, 1, 0]),
            "regression",
            "t: regression needs a target of numbers, but 'y' is not numeric in 2 rows of 4, "
            "the first is row 2: 'x'",
        ),
        (nominal(["1", "1_000"], [0, 1]), "regression", "the first is row 2: '1_000'"),
        (nominal(["1", "inf"], [0, 1]), "regression", "the first is row 2: 'inf'"),
        (nominal(["1", "2"], [0, -1]), "regression", "'y' is missing in 1 row of 2"),
        (
            numeric(*range(101)),
            None,
            "the target 'y' has 101 different integers, more than the 100 that are treated as "
            "classes. Use `task='regression'`",
        ),
        (numeric(*range(101)), "classification", "has 101 different numbers, more than the 100"),
        (
            numeric(*range(60)),
            None,
            "has 60 different labels in 60 rows and is not a class label. Use `task=",
        ),
        (numeric(4, 4), None, "has 1 class; classification needs at least 2"),
    ],
)
def test_values_that_are_not_those_of_the_task(column, task, words):
    with pytest.raises(DatasetError, match=re.escape(words)):
        read_target(column, "t", task)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, -2, 1], "1 row of 3 has another 'y', the first is row 2 with the weight -2"),
        ([1, 1, NAN], "1 row of 3 has another 'y', the first is row 3 with no weight"),
        ([INF, 1, NAN], "2 rows of 3 have another 'y', the first is row 1 with the weight inf"),
        ([0, 0, 0], "all weights 'y' are 0"),
    ],
)
def test_weights_that_are_none(values, words):
    with pytest.raises(DatasetError, match=re.escape(words)):
        read_weights(numeric(*values), "t")


def table(**columns):
    made = [
        values if isinstance(values, Column) else Column(name, "numeric", (), np.array(values))
        for name, values in columns.items()
    ]
    return Table(made, 4)


def test_the_column_of_weights_is_not_an_input():
    data = to_dataset(
        table(a=[1.0, 2, 3, 4], w=[1.0, 0, 2, 3], y=[0.5, 1, 2, 3]), "t", "y", weight="w", name="t"
    )
    assert data.feature_names == ("a",)
    assert data.sample_weight.tolist() == [1, 0, 2, 3]
    assert (data.task, data.y.dtype, data.target_names) == ("regression", np.float64, ())


def test_weights_follow_the_rows_that_have_a_label():
    labels = nominal(["n", "y"], [0, -1, 1, 0])
    data = to_dataset(
        table(a=[1.0, 2, 3, 4], w=[1.0, 2, 3, 4], y=labels), "t", "y", weight="w", name="t"
    )
    assert data.sample_weight.tolist() == [1, 3, 4]
    assert data.row_ids.tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"weight": "v"}, "there is no column 'v'"),
        ({"weight": "y"}, "the column of weights 'y' is the target too"),
        ({"weight": "w", "ignore": ["w"]}, "the column of weights 'w' is among the ignored"),
        ({"weight": "b"}, "the weights 'b' are not numbers"),
    ],
)
def test_columns_that_are_no_weights(params, words):
    columns = table(
        a=[1.0, 2, 3, 4],
        b=Column("b", "nominal", ["p", "q"], np.array([0, 1, 0, 1])),
        w=[1.0, 2, 3, 4],
        y=[0.5, 1, 2, 3],
    )
    with pytest.raises(DatasetError, match=re.escape(words)):
        to_dataset(columns, "t", "y", name="t", **params)
