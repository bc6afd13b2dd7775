"""Training rows of samples, and the standard error of scores on test rows."""

import math

import pytest

from kbench.planning.planned import PlannedCell
from kbench.records import ACCURACY, Cell, DatasetFacts, Metric, Protocol, Ref
from kbench_tables.time_budget.sample_sizes import (
    all_train_rows,
    class_shares,
    n_train,
    standard_error,
)


@pytest.mark.parametrize(
    ("cv", "most", "expected"),
    [
        ("stratified", None, 800),
        ("ordered", None, 900),
        ("holdout", 500, 500),
        ("holdout", 5000, 900),
        ("official", None, 800),
    ],
)
def test_a_cell_has_at_most_the_training_rows_of_its_split(cv, most, expected):
    protocol = Protocol(cv=cv, test_size=0.1, max_train_rows=most)
    cell = Cell(Ref("data"), Ref("identity"), Ref("ridge"), protocol)
    facts = DatasetFacts("c", n_samples=1000)
    assert n_train(PlannedCell(cell, "key", facts, 1)) == expected
    assert all_train_rows(protocol, 1000) == (900 if cv in ("ordered", "holdout") else 800)


def test_the_noise_of_a_mean_over_classes_is_that_of_their_rows():
    facts = DatasetFacts("c", n_samples=1000, class_counts=(970, 30))
    shares = class_shares(facts)
    assert shares == (0.97, 0.03)
    assert class_shares(DatasetFacts("c", n_samples=9)) == ()
    balanced, by_ranks = Metric("balanced_accuracy"), Metric("roc_auc")
    of_two = math.sqrt(0.25 / 970 + 0.25 / 30) / 2
    assert math.isclose(standard_error(0.5, 1000, balanced, shares), of_two)
    assert math.isclose(standard_error(0.5, 1000, by_ranks, shares), math.sqrt(0.25 / 30))
    assert math.isclose(standard_error(0.5, 1000, ACCURACY, shares), math.sqrt(0.25 / 1000))
    # one rare class of many hardly counts: it is one of 26 in the mean
    many = (0.01, *[0.99 / 25] * 25)
    assert standard_error(0.5, 1000, balanced, many) < 1.2 * math.sqrt(0.25 / 1000)
    assert standard_error(1.0, 100, ACCURACY) > 0
    assert math.isclose(standard_error(20.0, 200, Metric("rmse", "lower")), 1.0)
