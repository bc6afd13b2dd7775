"""What the check finds in data with a planted leak, and does not find in data without."""

import numpy as np
import pytest
import scipy.sparse

from kbench.features import row_hashes
from kbench_leakage.check import run_split
from kbench_leakage.scoring import MAX_CLASSES, Targets, is_sorted

N = 600


def draw(seed=0, n=N, d=5):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, d))


def halves(n, seed=1):
    rows = np.random.default_rng(seed).permutation(n)
    return np.sort(rows[n // 3 :]), np.sort(rows[: n // 3])


def check(X, y, is_numeric=True, **options):
    return run_split(X, np.asarray(y), *halves(X.shape[0]), is_numeric, **options)


def signs(X, y, is_numeric=True, **options):
    """Return kinds and columns of the signs."""
    return [(each.kind, each.columns) for each in check(X, y, is_numeric, **options).signs]


def nonlinear(rng, X):
    """Return an honest target: many columns, and some noise."""
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] + 0.5 * rng.normal(size=len(X))


# -- columns


@pytest.mark.parametrize("function", [np.exp, np.negative, np.tanh, np.abs, np.square])
def test_any_function_of_a_column_is_found(function):
    _, X = draw()
    assert signs(X, function(X[:, 2])) == [("column", ("x2",))]


def test_an_exact_relation_of_few_rows_is_found_beyond_the_range_of_training_rows():
    rng, X = draw(n=90)
    X[:, :2] = rng.gamma(1.0, size=(90, 2))
    (found,) = check(X, X[:, 0] + X[:, 1]).signs
    assert found.columns == ("x0", "x1") and found.score.value > 0.9999


def test_noise_lowers_the_score_and_ends_the_sign():
    rng, X = draw()
    noise = rng.normal(size=N)
    (found,) = check(X, X[:, 2] + 0.1 * noise).signs
    assert 0.96 < found.score.value < 0.995
    assert signs(X, X[:, 2] + 0.5 * noise) == []


def test_sums_and_differences_of_two_columns_are_found_by_any_function():
    _, X = draw()
    assert signs(X, np.exp(X[:, 1] + X[:, 3])) == [("sum", ("x1", "x3"))]
    assert signs(X, np.tanh(X[:, 0] - X[:, 4])) == [("difference", ("x0", "x4"))]
    assert signs(X, X[:, 0] - X[:, 4] > 0, is_numeric=False) == [("difference", ("x0", "x4"))]


def test_a_column_within_groups_is_found():
    rng, X = draw()
    X[:, 0] = rng.integers(0, 20, N)
    level = rng.normal(size=20) * 5
    slope = rng.choice([-1.0, 1.0], 20)
    y = level[X[:, 0].astype(int)] + slope[X[:, 0].astype(int)] * X[:, 1]
    assert ("within", ("x0", "x1")) in signs(X, y)


def test_a_pair_that_adds_nothing_is_not_named():
    _, X = draw()
    X[:, 1] *= 1e-3
    assert signs(X, X[:, 0] + X[:, 1]) == [("column", ("x0",))]


def test_a_column_of_classes_is_found_with_its_accuracy():
    _, X = draw()
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    (found,) = check(X, y, is_numeric=False).signs
    assert (found.kind, found.columns) == ("column", ("x0",))
    assert found.score.accuracy > 0.98 > 0.5 > found.score.base > 0.3


def test_categories_are_found_by_value_and_not_by_their_numbers():
    rng, X = draw()
    X[:, 0] = rng.integers(0, 30, N)
    y = rng.normal(size=30)[X[:, 0].astype(int)]
    assert signs(X, y, kinds=["target_encoded"] + ["numeric"] * 4) == [("column", ("x0",))]


def test_the_indicators_of_a_nominal_column_are_one_column():
    rng, X = draw()
    code = rng.integers(0, 8, N)
    wide = np.column_stack([X, np.eye(8)[code]])
    names = [*"abcde", *(f"site={k}" for k in range(8))]
    kinds = ["numeric"] * 5 + ["onehot"] * 8
    assert signs(wide, rng.normal(size=8)[code], names=names, kinds=kinds) == [
        ("column", ("site",))
    ]


def test_a_column_with_missing_values_is_scored_where_it_is_known():
    rng, X = draw()
    y = X[:, 0].copy()
    X[rng.random(N) < 0.3, 0] = np.nan
    (found,) = check(X, y).signs
    assert found.score.value > 0.99 and 0.6 < found.share < 0.8
    assert "of the test rows that have it" in found.sentence


def test_missing_values_that_tell_the_class_are_found():
    rng, X = draw()
    y = rng.integers(0, 2, N)
    X[y == 1, 3] = np.nan
    assert signs(X, y, is_numeric=False) == [("column", ("x3",))]


# -- rows


def test_copies_in_the_other_part_are_found_with_their_share():
    _, X = draw()
    y = np.random.default_rng(5).normal(size=N)
    train, test = halves(N)
    X[test[:50]], y[test[:50]] = X[train[:50]], y[train[:50]]
    (found,) = check(X, y).signs
    assert found.kind == "copies" and found.share == pytest.approx(50 / len(test))
    assert found.score.value == pytest.approx(1.0)


def test_columns_are_not_blamed_for_copies():
    rng, X = draw()
    y = rng.normal(size=N)
    train, test = halves(N)
    X[test[:180]], y[test[:180]] = X[train[:180]], y[train[:180]]
    found = check(X, y)
    assert [each.kind for each in found.signs] == ["copies"]
    assert "columns and adjacent rows: scored on 20 test rows without copies" in found.notes


def test_missing_values_and_zeros_of_both_signs_are_equal_among_copies():
    hashes = row_hashes(np.array([[np.nan, 0.0, 1], [-np.nan, -0.0, 1], [0.0, np.nan, 1]]))
    assert hashes[0] == hashes[1] != hashes[2]


def test_rows_that_differ_in_one_column_are_interpolated_along_it():
    rng, X = draw()
    group = rng.integers(0, 40, N)
    X[:, :4] = rng.normal(size=(40, 4))[group]
    y = rng.normal(size=40)[group] * 3 + X[:, 4]
    found = {each.kind: each for each in check(X, y).signs}
    assert found["near copies"].columns == ("x4",)
    assert found["near copies"].share > 0.95 and found["near copies"].score.value > 0.95


def test_a_full_grid_of_independent_columns_has_no_copies_beyond_chance():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(N, 4)).astype(float)
    assert signs(X, X @ [1, 2, 3, 4] + 4 * rng.normal(size=N)) == []


def test_neighbours_in_the_file_are_found_where_a_column_tells_the_place():
    rng, X = draw()
    walk = np.cumsum(rng.normal(size=N))
    X[:, 1] = np.sin(np.arange(N) / 5) + 0.05 * X[:, 1]  # smooth, but tells no target alone
    found = signs(X, walk)
    assert ("order", ("x1",)) in found
    shuffled = rng.permutation(N)
    assert signs(X[shuffled], walk[shuffled]) == []


def test_neighbours_of_a_file_that_no_column_tells_are_no_sign():
    rng, X = draw()
    assert signs(X, np.cumsum(rng.normal(size=N))) == []


def test_a_file_that_is_sorted_by_its_target_is_said_to_be():
    rng, X = draw()
    y = np.sort(nonlinear(rng, X))
    found = check(X, y)
    assert found.signs == () and "sorted by the target" in found.notes[0]
    assert is_sorted(np.repeat([0, 1, 2], 50), is_numeric=False)
    assert not is_sorted(np.arange(150) % 3, is_numeric=False)
    assert not is_sorted(np.arange(150), is_numeric=False)


# -- false alarms


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("is_numeric", [True, False])
def test_clean_data_have_no_signs(seed, is_numeric):
    rng, X = draw(seed, d=12)
    X[:, 6:9] = rng.integers(0, 10, (N, 3))
    X[:, 9] = rng.random(N) < 0.2
    y = nonlinear(rng, X)
    assert signs(X, y if is_numeric else y > 0.3, is_numeric) == []


def test_few_test_rows_are_no_sign():
    _, X = draw(n=36)
    assert signs(X, X[:, 0] > 0, is_numeric=False) == []


# -- bounds


def test_rows_and_columns_are_sampled_and_this_is_said():
    _, X = draw(n=300, d=400)
    found = check(X, np.tanh(X[:, 333]))
    assert [each.columns for each in found.signs] == [("x333",)]
    assert "scored alone: the 64 of 400 most predictive columns" in found.notes
    assert "near duplicates are not searched: 400 columns, 256 at most" in found.notes


def test_sparse_rows_are_compared_in_all_columns():
    X = scipy.sparse.random(200, 500, 0.02, format="csr", random_state=0)
    y = np.random.default_rng(0).normal(size=200)
    assert signs(X, y) == []
    train, test = halves(400)
    both = scipy.sparse.vstack([X, X]).tocsr()
    order = np.empty(400, dtype=int)
    order[np.concatenate([train, test])] = np.arange(400)
    (found,) = check(both[order], np.tile(y, 2)[order]).signs
    assert found.kind == "copies" and found.share > 0.9


def test_many_classes_need_no_matrix_of_rows_and_classes():
    targets = Targets.from_values(np.arange(10**6), is_numeric=False)
    assert targets.n_classes == MAX_CLASSES and targets[np.arange(5)].columns.shape[1] == 50


@pytest.mark.parametrize(
    ("X", "y", "reason"),
    [
        (np.ones((1, 3)), np.ones(1), "0 test rows"),
        (np.empty((600, 0)), np.arange(600.0), "no columns"),
        (np.ones((600, 3)), np.ones(600), "a constant target"),
        (np.ones((600, 3)), np.full(600, np.nan), "0 training and 0 test rows"),
    ],
)
def test_data_that_cannot_be_checked_are_said_to_be(X, y, reason):
    found = check(X, y)
    assert found.measured == () and reason in found.notes[0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("is_numeric", [True, False])
def test_missing_infinite_constant_and_huge_values_do_no_harm(is_numeric):
    rng, X = draw()
    y = nonlinear(rng, X)
    X[::3, 0], X[:, 1], X[::5, 2], X[::7, 2], X[:, 3] = np.nan, np.nan, np.inf, -np.inf, 7.0
    X[:, 4] *= 1e307
    targets = y * 1e307 if is_numeric else y > 0
    assert signs(X, targets, is_numeric) == []
    assert signs(np.column_stack([X, y]), targets, is_numeric)[0] == ("column", ("x5",))


def test_the_same_seed_gives_the_same_findings():
    rng, X = draw(n=9000, d=3)
    y = nonlinear(rng, np.column_stack([X, X]))
    assert check(X, y, seed=3) == check(X, y, seed=3)
