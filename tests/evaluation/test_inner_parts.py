"""Inner folds that keep together what the official splits keep together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbench import Dataset, DatasetError, Protocol, Split
from kbench.evaluation.embedding import Data, Fitting
from kbench.evaluation.search._folds import inner_folds
from kbench.evaluation.split_view import assign
from kbench.evaluation.splits import inner_parts, make_folds

OFFICIAL = Protocol(cv="official", inner_cv="official")


def grouped(n=60):
    """Rows of twelve groups, of which five official folds divide none."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 12, n)
    fold = groups % 5
    rows = np.arange(n)
    splits = [Split(k, rows[fold != k], rows[fold == k]) for k in range(5)]
    return Dataset("d", X=rng.normal(size=(n, 2)), y=np.arange(n) % 2, splits=splits), groups


@pytest.mark.parametrize("max_train_rows", [None, 20])
def test_no_group_is_on_both_sides_of_an_inner_fold(max_train_rows):
    data, groups = grouped()
    protocol = Protocol(cv="official", inner_cv="official", max_train_rows=max_train_rows)
    for index in range(5):
        seen = assign(data, protocol, index).visible
        training = Data(data.X[seen.train], seen.y_train, parts=seen.parts_train)
        folds = inner_folds(Fitting(None, training, protocol, 0))
        tested = np.concatenate([test for _, test in folds])
        assert sorted(tested) == list(range(len(seen.train)))
        for train, test in folds:
            of_train, of_test = groups[seen.train][train], groups[seen.train][test]
            assert not set(of_train) & set(of_test)


@pytest.mark.parametrize(("n_splits", "split"), [(1, 0), (3, 0), (3, 2)])
def test_folds_by_order_are_blocks_of_it(n_splits, split):
    order = np.random.default_rng(1).permutation(56)
    ends = [32 + 8 * split - 8 * i for i in range(n_splits)]
    splits = [Split(i, order[:n], np.sort(order[n : n + 8])) for i, n in enumerate(ends)]
    data = Dataset("d", X=np.zeros((56, 1)), y=np.arange(56) % 2, splits=splits)
    rows = np.sort(order[:32])
    when = np.argsort(order)[rows]  # the time of each row
    for _, test in make_folds(inner_parts(data, OFFICIAL, rows), 4):
        assert np.ptp(when[test]) == len(test) - 1 == 7


def test_random_folds_have_no_parts():
    data, _ = grouped()
    assert assign(data, Protocol(cv="official"), 0).visible.parts_train is None


def test_splits_that_overlap_are_refused():
    rows = np.arange(10)
    splits = [Split(k, rows[3:], rows[:3]) for k in range(2)]
    data = Dataset("d", X=np.zeros((10, 1)), y=rows % 2, splits=splits)
    with pytest.raises(DatasetError, match="each row exactly once"):
        inner_parts(data, OFFICIAL, rows)


@given(st.lists(st.integers(0, 6), min_size=4, max_size=60), st.integers(2, 5))
def test_folds_never_divide_a_part(parts, n_folds):
    parts = np.array(parts)
    if len(np.unique(parts)) < 2:
        with pytest.raises(DatasetError, match="two parts"):
            make_folds(parts, n_folds)
        return
    folds = make_folds(parts, n_folds)
    assert all(len(train) and len(test) for train, test in folds)
    assert sum(len(test) for _, test in folds) == len(parts)
    for train, test in folds:
        if len(np.unique(parts)) < len(parts):
            assert not set(parts[train]) & set(parts[test])
