"""Curves of inner scores by seconds, against all orders of the candidates."""

import itertools

import numpy as np
import pytest

from kbench.records import Metric
from kbench.results.budgets import budget_curve

ACCURACY, ERROR = Metric("accuracy"), Metric("error", "lower")


def by_enumeration(values, seconds, at, best):
    reached = []
    for order in itertools.permutations(range(len(values))):
        ends = np.cumsum([seconds[i] for i in order])
        done = [values[i] for i, end in zip(order, ends, strict=True) if end <= at + 1e-9]
        reached.append(best(done))
    return np.mean(reached)


@pytest.mark.parametrize(("metric", "best"), [(ACCURACY, max), (ERROR, min)])
def test_a_curve_is_the_mean_over_all_orders(metric, best):
    values, seconds = [0.7, 0.9, 0.8, 0.85], [1.0, 3.0, 0.5, 2.0]
    candidates = [{"values": [value]} for value in values]
    curve = budget_curve([(candidates, seconds)], metric)
    assert curve[0][0] >= 3.0
    assert curve[-1] == [6.5, best(values)]
    for at, value in curve:
        assert value == pytest.approx(by_enumeration(values, seconds, at, best), abs=0.01)


def test_failed_candidates_and_searches_without_times_have_no_curve():
    candidates = [{"values": [0.7]}, {"values": [0.9], "error": "x"}, {"values": [0.8]}]
    assert budget_curve([(candidates, [1.0, 1.0, 1.0])], ACCURACY)[-1] == [2.0, 0.8]
    assert budget_curve([(candidates, [])], ACCURACY) == []
    assert budget_curve([(candidates[:1], [1.0])], ACCURACY) == []
    assert budget_curve([(candidates, [1.0] * 3)], None) == []
    assert budget_curve([], ACCURACY) == []
