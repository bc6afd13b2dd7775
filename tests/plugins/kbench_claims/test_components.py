"""Variance components and the splits that a difference needs: by hand and by simulation.

`tests/benchmarks/bench_claims.py` has the coverage of both.
"""

import math

import numpy as np
import pytest
from scipy import stats as reference

from kbench_claims.components import Components, components, splits_needed


def test_components_are_those_of_the_textbook():
    # by hand: two datasets, two methods, two splits
    tables = [np.array([[1.0, 3.0], [2.0, 6.0]]), np.array([[5.0, 5.0], [9.0, 7.0]])]
    found = components(tables)
    # residual: half the variance of differences (2, 4), (0, -2) between splits
    assert found.residual == pytest.approx((2 / 2 + 2 / 2) / 2)
    # variance of the means over methods (2, 4) and (5, 8), less half the residual
    assert found.splits == pytest.approx(((2.0 - 0.5) + (4.5 - 0.5)) / 2)
    # half the variance of the differences (3, -1) of the cell means, less half the residual
    assert found.interaction == pytest.approx(8 / 2 - 1 / 2)
    assert found.datasets == pytest.approx((6.5 - 3) ** 2 / 2 - 4 / 2 - (1.5 + 4.0) / 4)
    assert found.seeds is None
    assert found.by_method == ()


def test_components_are_unbiased_for_unequal_numbers_of_splits_and_noise():
    rng, sums, repeats = np.random.default_rng(0), np.zeros(4), 400
    for _ in range(repeats):
        tables = [
            rng.normal(0, 3) + rng.normal(0, 2, 4) + rng.normal(0, s, (n, 1))
            + rng.normal(0, e, (n, 4))
            for n, s, e in ((2, 1, 4), (9, 2, 1), (4, 1, 2), (3, 2, 3), (6, 0.5, 1), (2, 1, 1))
        ]  # fmt: skip
        found = components(tables)
        sums += [found.datasets, found.interaction, found.splits, found.residual]
    # the mean of the interaction over methods varies with the datasets
    expected = [9, 4, np.mean([1, 4, 1, 4, 0.25, 1]), np.mean([16, 1, 4, 9, 1, 1])]
    assert sums / repeats == pytest.approx(expected, rel=0.1)


def test_a_noisy_method_is_found():
    rng = np.random.default_rng(0)
    tables = [rng.normal(0, [1, 1, 5, 1], (30, 4)) + rng.normal(0, 3, (30, 1)) for _ in range(20)]
    assert np.sqrt(components(tables).by_method) == pytest.approx([1, 1, 5, 1], rel=0.25)


def test_the_seed_of_each_map_is_told_apart_from_the_rest():
    rng, n, m = np.random.default_rng(0), 100, 5
    spreads, noise = np.array([2.0, 0.0, 4.0, 1.0]), np.array([1.0, 3.0, 1.0, 2.0])
    tables = [
        rng.normal(0, 2, (n, 1, 1))
        + rng.normal(0, 1, (n, 4, 1)) * noise[:, None]
        + rng.normal(0, 1, (n, 4, m)) * spreads[:, None]
        for _ in range(30)
    ]
    found = components(tables)
    assert np.sqrt(np.abs(found.seeds_by_method)) == pytest.approx(spreads, rel=0.05)
    assert found.seeds_by_method[1] == 0.0
    assert found.seeds == pytest.approx(np.mean(spreads**2), rel=0.05)
    assert found.residual == pytest.approx(np.mean(noise**2), rel=0.1)
    assert found.by_method == pytest.approx(noise**2, abs=0.4)
    assert components([table.mean(axis=2) for table in tables]).seeds_by_method == ()


def test_shares_sum_to_one_and_negative_components_count_as_none():
    found = Components(0.5, -0.1, 0.25, 0.25)
    assert found.shares() == {
        "datasets": 0.5, "interaction": 0.0, "splits": 0.25, "residual": 0.25,
    }  # fmt: skip
    assert set(Components(None, None, 0.0, 0.0).shares().values()) == {0.0}


@pytest.mark.parametrize("shapes", [[], [(1, 3)], [(3, 1)], [(2, 2), (2, 3)]])
def test_components_need_two_splits_and_the_same_methods(shapes):
    tables = [np.ones(shape) for shape in shapes]
    with pytest.raises(ValueError, match="tables must"):
        components(tables)


def test_splits_needed_is_the_first_number_on_which_the_test_rejects():
    for difference, sd, ratio in ((0.01, 0.02, 0.05), (0.02, 0.02, 0.25), (0.005, 0.02, 0.0)):
        needed = splits_needed(difference, sd, ratio)
        for n, rejects in ((needed, True), (needed - 1, False)):
            t = difference / (sd * math.sqrt(1 / n + ratio))
            assert (2 * reference.t.sf(t, n - 1) < 0.05) == rejects


def test_splits_do_not_reach_half_a_standard_deviation():
    assert splits_needed(0.97, 1.0, 0.25) is None
    assert splits_needed(1.0, 1.0, 0.25) > 30
    assert splits_needed(0.0, 1.0, 0.25) is None
    assert splits_needed(0.01, 0.0, 0.25) == 2
