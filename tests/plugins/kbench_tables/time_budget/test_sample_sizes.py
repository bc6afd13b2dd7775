"""The standard error of scores on test rows."""

import math

from kbench.records import ACCURACY, DatasetFacts, Metric
from kbench_tables.time_budget.sample_sizes import class_shares, standard_error


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
