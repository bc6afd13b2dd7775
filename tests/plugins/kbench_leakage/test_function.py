"""`kbench.find_leakage`: what it takes, and what it rejects."""

import numpy as np
import pandas
import pytest

import kbench
from kbench.errors import DatasetError

N = 1000


def table(seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(N, 3)), rng.normal(size=N)


def test_it_is_a_function_of_kbench():
    _, X, _ = table()
    found = kbench.find_leakage(X, X[:, 0] - X[:, 2])
    assert str(found) == "x0 - x2 alone predicts the target of test rows: R2 1.000"
    assert (found.n_train, found.n_test) == (800, 200)


def test_a_data_frame_may_have_dates_strings_categories_and_missing_values():
    rng, _, y = table()
    frame = pandas.DataFrame(
        {
            "when": pandas.date_range("2020-01-01", periods=N, freq="h"),
            "where": rng.choice(["a", "b", None], N),
            "kind": pandas.Categorical(rng.choice(list("xyz"), N)),
            "count": pandas.array(rng.integers(0, 9, N), dtype="Int64"),
            "is_new": rng.random(N) < 0.5,
        }
    )
    frame.loc[3, "when"], frame.loc[4, "count"] = pandas.NaT, pandas.NA
    assert kbench.find_leakage(frame, y).signs == ()
    late = (frame["when"] > "2020-01-20").to_numpy()
    assert kbench.find_leakage(frame, late).signs[0].columns == ("when",)
    where = frame["where"].fillna("?")
    assert kbench.find_leakage(frame, where).signs[0].columns == ("where",)


def test_rows_can_be_sorted_before_neighbours_are_looked_up():
    rng, X, _ = table()
    walk = np.cumsum(rng.normal(size=N))
    X[:, 0], X[:, 1] = np.arange(N) // 20, np.arange(N) % 20
    shuffled = rng.permutation(N)
    X, walk = X[shuffled], walk[shuffled]
    kinds = {each.kind for each in kbench.find_leakage(X, walk).signs}
    along = {each.kind for each in kbench.find_leakage(X, walk, along=["x0", "x1"]).signs}
    assert "order" in along - kinds


def test_a_split_decides_what_is_found():
    _, X, y = table()
    both, twice = np.vstack([X, X]), np.tile(y, 2)
    apart = {"train": np.arange(N), "test": np.arange(N, 2 * N)}
    found = kbench.find_leakage(both, twice, **apart)
    assert {each.kind: each.share for each in found.signs}["copies"] == 1
    together = np.arange(2 * N) % N < N // 2
    split = {"train": np.flatnonzero(together), "test": np.flatnonzero(~together)}
    assert kbench.find_leakage(both, twice, **split).signs == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [["a", "b"]] * N}, "X: all values must be numbers"),
        ({"X": np.ones(N)}, "X must have two dimensions"),
        ({"X": np.ones((N, 2), dtype=complex)}, "they are complex"),
        ({"y": np.ones(5)}, "X has 1,000 rows, but y has 5"),
        ({"y": np.ones((N, 1))}, "y must have one dimension"),
        ({"y": pandas.date_range("2020-01-01", periods=N)}, "y must be numbers or classes"),
        ({"y": ["a"] * N, "task": "regression"}, "regression needs numbers"),
        ({"task": "ranking"}, "task must be classification or regression, got 'ranking'"),
        ({"train": [0, 1]}, "give both train and test"),
        ({"train": [0, 1], "test": [1]}, "rows in common"),
        ({"train": [0, 0], "test": [1]}, "train has duplicate rows"),
        ({"train": [0], "test": [N]}, "test must be numbers of rows, from 0 to 999"),
        ({"train": [-1], "test": [0]}, "train must be numbers of rows"),
        ({"names": ["a"]}, "X has 3 columns, but there are 1 names"),
        ({"along": ["zz"]}, "along: there is no column 'zz'"),
    ],
)
def test_a_wrong_argument_is_named(change, message):
    _, X, y = table()
    with pytest.raises(DatasetError, match=message):
        kbench.find_leakage(**{"X": X, "y": y, **change})


@pytest.mark.parametrize(("n", "share"), [(150, 0.5), (300, 0.5), (2000, 0.05)])
def test_a_copy_of_few_or_rare_classes_is_a_sign(n, share):
    rng = np.random.default_rng(0)
    y = (rng.random(n) < share).astype(int)
    X = np.column_stack([rng.normal(size=(n, 2)), y])
    assert "x2 alone predicts" in str(kbench.find_leakage(X, y, task="classification"))
    # too few of the rare class to say
    X[:, 2] = rng.normal(size=n)
    assert "no evidence" in str(kbench.find_leakage(X, y, task="classification"))
