from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from kbench import Dataset, DatasetError, Protocol, Split
from kbench.evaluation import lazy_rows, splits
from kbench.evaluation.splits import (
    derive_seed,
    make_split,
    rare_classes,
    row_groups,
    stratified_folds,
)

labels = st.lists(st.integers(0, 3), min_size=6, max_size=60).map(np.array)


def data(y, X=None, **fields):
    X = np.arange(len(y), dtype=float)[:, None] if X is None else X
    return Dataset("d", X, np.asarray(y), **fields)


def all_splits(dataset, protocol, n):
    return [make_split(dataset, protocol, i) for i in range(n)]


@given(labels, st.integers(2, 5), st.integers(0, 3))
def test_folds_partition_the_rows_and_are_stratified(y, n_folds, seed):
    protocol = Protocol(n_folds=n_folds, seed=seed)
    found = all_splits(data(y), protocol, n_folds)
    assert sorted(np.concatenate([s.test for s in found])) == list(range(len(y)))
    for each in found:
        assert sorted([*each.train, *each.test]) == list(range(len(y)))
    for label in np.unique(y):
        counts = [int((y[s.test] == label).sum()) for s in found]
        assert max(counts) - min(counts) <= 1
    sizes = [len(s.test) for s in found]
    assert max(sizes) - min(sizes) <= 1


@given(labels, st.floats(0.1, 0.6))
def test_a_holdout_has_the_sizes_asked_for_and_each_class_its_share(y, test_size):
    n_test = round(test_size * len(y))
    each = make_split(data(y), Protocol(cv="holdout", test_size=test_size), 0)
    assert len(each.test) == n_test
    assert not set(each.train) & set(each.test)
    for label in np.unique(y):
        share = (y == label).sum() * n_test / len(y)
        assert abs((y[each.test] == label).sum() - share) <= len(np.unique(y))


@given(labels)
def test_a_split_depends_on_protocol_data_and_its_number_only(y):
    protocol = Protocol(n_folds=2)
    one, other = make_split(data(y), protocol, 1), make_split(data(y), protocol, 1)
    assert one.digest == other.digest
    # preprocessing or the search never move a row
    changed = Protocol(n_folds=2, scaling=("none",), inner_folds=9)
    assert make_split(data(y), changed, 1).digest == one.digest


def test_splits_beyond_the_folds_repeat_with_another_shuffle():
    y = np.arange(40) % 2
    found = all_splits(data(y), Protocol(n_folds=4), 8)
    assert len({s.digest for s in found}) == 8
    assert sorted(np.concatenate([s.test for s in found[4:]])) == list(range(40))


def test_the_seed_and_the_data_change_the_splits():
    y = np.arange(40) % 2
    first = make_split(data(y), Protocol(), 0).digest
    assert make_split(data(y), Protocol(seed=1), 0).digest != first
    assert make_split(data(y, X=np.ones((40, 1))), Protocol(), 0).digest != first


def test_a_class_smaller_than_the_folds_still_splits():
    y = np.array([0] * 20 + [1] * 3 + [2])
    found = all_splits(data(y), Protocol(n_folds=5), 5)
    assert sum((y[s.test] == 1).any() for s in found) == 3
    assert rare_classes(y, 5) == [1, 2]


def test_too_few_rows_for_the_folds_are_refused():
    with pytest.raises(DatasetError, match="5 folds need at least as many rows, got 3"):
        make_split(data([0, 1, 0]), Protocol(), 0)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(DatasetError, match="has 10 rows"):
        make_split(data(np.arange(10) % 2), Protocol(cv="holdout", train_size=8, test_size=8), 0)


def test_too_few_different_rows_for_the_folds_are_refused():
    protocol = Protocol(cv="group_duplicates", n_folds=3)
    X = np.array([0.0, 0, 0, 1, 1, 1])[:, None]
    with pytest.raises(DatasetError, match=r"3 folds need .* different rows, got 2"):
        make_split(data(np.arange(6) % 2, X), protocol, 0)


@pytest.mark.parametrize(
    ("sizes", "needed"),
    [
        ({"test_size": 10}, 11),
        ({"test_size": 0.01}, 11),
        ({"train_size": 0.01, "test_size": 5}, 6),
        ({"train_size": 6, "test_size": 5}, 11),
    ],
)
@pytest.mark.parametrize("splits", ["holdout", "ordered"])
def test_no_part_is_empty(splits, sizes, needed):
    with pytest.raises(DatasetError, match=rf"d has 10 rows; .* need {needed}$"):
        make_split(data(np.arange(10) % 2), Protocol(cv=splits, **sizes), 0)


def test_sizes_can_be_numbers_of_rows():
    protocol = Protocol(cv="holdout", train_size=6, test_size=3, unlabeled_size=2)
    each = make_split(data(np.arange(20) % 2), protocol, 0)
    assert (len(each.train), len(each.test), len(each.unlabeled)) == (4, 3, 2)


def test_an_ordered_holdout_takes_the_first_rows_and_the_last_ones():
    y = np.arange(10) % 2
    each = make_split(data(y), Protocol(cv="ordered", train_size=6, test_size=3), 0)
    assert (list(each.train), list(each.test)) == ([0, 1, 2, 3, 4, 5], [7, 8, 9])
    each = make_split(data(y), Protocol(cv="ordered", test_size=3), 0)
    assert list(each.train) == [0, 1, 2, 3, 4, 5, 6]
    with pytest.raises(DatasetError, match='"ordered" is one split of d; split 1'):
        make_split(data(y), Protocol(cv="ordered", test_size=3), 1)
    with pytest.raises(DatasetError, match="has 10 rows"):
        make_split(data(y), Protocol(cv="ordered", train_size=8, test_size=3), 0)


@given(labels, st.integers(0, 4))
def test_unlabelled_rows_come_out_of_the_training_part(y, index):
    labelled = make_split(data(y), Protocol(n_folds=5), index)
    each = make_split(data(y), Protocol(n_folds=5, unlabeled_size=0.4), index)
    assert list(each.test) == list(labelled.test)
    assert sorted([*each.train, *each.unlabeled]) == sorted(labelled.train)


def test_unlabelled_rows_must_leave_training_rows():
    with pytest.raises(DatasetError, match="leaves none"):
        make_split(data(np.arange(10) % 2), Protocol(unlabeled_size=8), 0)


@settings(max_examples=30)
@given(st.integers(0, 1000))
def test_equal_rows_stay_together(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, size=(60, 1)).astype(float)
    y = rng.integers(0, 2, size=60)
    protocol = Protocol(cv="group_duplicates", n_folds=3)
    for each in all_splits(data(y, X), protocol, 3):
        assert not set(X[each.train, 0]) & set(X[each.test, 0])


def test_official_splits_are_the_datasets_own():
    own = [Split(0, np.array([0, 1]), np.array([2, 3]))]
    dataset = data([0, 1, 0, 1], splits=own)
    assert make_split(dataset, Protocol(cv="official"), 0).digest == own[0].digest
    with pytest.raises(DatasetError, match="1 official splits; split 1"):
        make_split(dataset, Protocol(cv="official"), 1)


def test_official_splits_keep_their_own_unlabelled_rows():
    own = [Split(0, np.arange(6), np.array([8, 9]), np.array([6, 7]))]
    dataset = data(np.arange(10) % 2, splits=own)
    each = make_split(dataset, Protocol(cv="official", unlabeled_size=2), 0)
    assert {6, 7} < set(each.unlabeled)
    assert len(each.unlabeled) == 4
    assert sorted([*each.train, *each.unlabeled]) == list(range(8))


def test_rows_that_are_equal_get_equal_numbers():
    X = np.array([[0.0, np.nan], [-0.0, np.nan], [1.0, 2.0], [1.0, 2.5]])
    groups = row_groups(X)
    assert groups[0] == groups[1]
    assert len(set(groups)) == 3


@pytest.mark.parametrize("as_matrix", [np.asarray, scipy.sparse.csr_matrix])
def test_rows_that_hardly_differ_are_different(as_matrix):
    X = np.array([[0.0], [1e-17], [1.0], [1.0 + 2**-52], [0.0]])
    groups = row_groups(as_matrix(X))
    assert groups[0] == groups[4]
    assert len(set(groups)) == 4


def test_rows_of_integers_and_rows_without_columns_are_grouped():
    first, again, other = row_groups(np.array([[1, 2], [1, 2], [2, 1]]))
    assert first == again != other
    assert row_groups(np.zeros((3, 0))).tolist() == [0, 0, 0]


@given(st.integers(0, 1000))
def test_sparse_rows_are_grouped_as_dense_ones(seed):
    X = np.random.default_rng(seed).integers(-1, 2, size=(12, 2)).astype(float)
    dense, sparse = row_groups(X), row_groups(scipy.sparse.csr_matrix(X))
    same = lambda g: g[:, None] == g[None, :]  # noqa: E731
    assert (same(dense) == same(sparse)).all()


def test_seeds_of_the_axes_are_apart():
    assert derive_seed(1, "map") != derive_seed(1, "learner")
    assert derive_seed("a", "bc") != derive_seed("ab", "c")
    assert 0 <= derive_seed(0) < 2**32


def test_folds_of_the_inner_search_keep_every_row():
    y = np.array([0] * 7 + [1] * 2)
    tests = [test for _, test in stratified_folds(y, 3, seed=5)]
    assert sorted(np.concatenate(tests)) == list(range(9))


@pytest.mark.parametrize("as_matrix", [np.asarray, scipy.sparse.csr_matrix])
def test_groups_of_large_data_are_those_of_small_ones(monkeypatch, as_matrix):
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, -0.0, 1.0, 2.0, np.nan], size=(300, 3))
    exact = row_groups(as_matrix(X))
    monkeypatch.setattr(splits, "EXACT_ROWS", 100)
    monkeypatch.setattr(lazy_rows, "VALUES", 7)
    hashed = row_groups(as_matrix(X))
    pairs = {(int(one), int(other)) for one, other in zip(exact, hashed, strict=True)}
    assert len(pairs) == len(set(exact.tolist())) == len(set(hashed.tolist()))


def test_a_sparse_row_has_the_hash_of_its_dense_form():
    X = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [np.nan, 0.0, 2.0]])
    stored = scipy.sparse.csr_matrix(np.ones((3, 3)))
    stored.data[:] = X.ravel()  # zeros are stored
    hashes = lazy_rows.row_hashes(scipy.sparse.csr_matrix(X))
    np.testing.assert_array_equal(lazy_rows.row_hashes(stored), hashes)
    assert len(set(hashes.tolist())) == 3


@pytest.mark.parametrize("splits", ["stratified", "holdout", "ordered", "group_duplicates"])
def test_samples_of_training_rows_are_nested_and_the_test_rows_stay(splits):
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(194, dtype=int), np.full(6, 1)]
    data = Dataset("t", X=rng.normal(size=(200, 2)), y=rng.permutation(y))
    protocol = Protocol(cv=splits)
    whole = make_split(data, protocol, 0)
    few, more, all_ = (
        make_split(data, replace(protocol, max_train_rows=n), 0) for n in (20, 50, 500)
    )
    assert (len(few.train), len(more.train)) == (20, 50)
    assert set(few.train) < set(more.train) < set(whole.train)
    for each in (few, more, all_):
        assert each.test.tolist() == whole.test.tolist()
    assert all_.train.tolist() == whole.train.tolist()
    # the rare class is there
    if 1 in data.y[whole.train]:
        assert 1 in data.y[few.train]


@pytest.mark.parametrize("grouped", [False, True])
def test_folds_keep_one_small_number_for_each_row(grouped):
    """Lists of the rows of all folds would have 8 bytes for each row and fold."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1000)
    folds = stratified_folds(y, 5, seed=0, groups=np.arange(1000) // 4 if grouped else None)
    assert (folds.fold_of.dtype, folds.fold_of.nbytes) == (np.uint8, 1000)
    assert len(folds) == 5
    for train, test in folds:
        assert np.array_equal(np.sort(np.r_[train, test]), np.arange(1000))
        assert np.all(np.diff(train) > 0)
    assert np.array_equal(folds[-1][1], folds[4][1])
    assert [len(test) for _, test in folds[1:3]] == [200, 200]
    with pytest.raises(IndexError):
        folds[5]
