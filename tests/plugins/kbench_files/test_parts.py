"""Splits by groups of rows, and by the order of their times."""

import numpy as np
import pytest

from kbench import DatasetError
from kbench_files import load_csv, load_parquet

N = 40


@pytest.fixture
def visits(tmp_path):
    """Rows of ten persons, in no order of time."""
    rng = np.random.default_rng(0)
    days = rng.permutation(N)
    lines = ["person,day,x,y"]
    for i in range(N):
        day = np.datetime64("2020-01-01") + days[i]
        year, month, of_month = str(day).split("-")
        lines.append(f"p{i % 10},{of_month}.{month}.{year},{i},{['no', 'yes'][i % 2]}")
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, days


def test_a_group_is_on_one_side_of_each_split(visits):
    path, _ = visits
    data = load_csv(str(path), "y", ignore=["day"], group_by="person")
    assert list(data.feature_names) == ["x"]
    assert len(data.splits) == 5
    persons = np.arange(N) % 10
    for split in data.splits:
        assert not set(persons[split.train]) & set(persons[split.test])
        assert len(split.train) + len(split.test) == N
    assert sorted(np.concatenate([split.test for split in data.splits])) == list(range(N))


def test_the_last_rows_are_tested(visits):
    path, days = visits
    data = load_csv(str(path), "y", ignore=["person"], date=["day=%d.%m.%Y"], order_by="day")
    (split,) = data.splits
    assert len(split.test) == N / 5
    assert days[split.train].max() < days[split.test].min()


def test_numbers_have_an_order_too_and_rows_without_a_label_are_left_out(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{i % 2 if i else ''},{30 - i},{i}" for i in range(20)]
    path.write_text("\n".join(["y,t,x", *lines]) + "\n")
    data = load_csv(str(path), "y", order_by="t", task="classification")
    assert len(data.y) == 19
    (split,) = data.splits
    # the first row, the latest, has no label; those that follow are the last in time
    assert split.test.tolist() == [0, 1, 2, 3]


def test_parquet_has_the_same_splits(visits, tmp_path):
    pandas = pytest.importorskip("pandas")
    path, _ = visits
    pandas.read_csv(path).to_parquet(tmp_path / "visits.parquet")
    given = {"ignore": ["day"], "group_by": "person"}
    one = load_csv(str(path), "y", **given)
    other = load_parquet(str(tmp_path / "visits.parquet"), "y", **given)
    assert [s.digest for s in one.splits] == [s.digest for s in other.splits]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"group_by": "persom"}, "there is no column 'persom'; did you mean 'person'"),
        ({"group_by": "person", "order_by": "day"}, "one of group_by and order_by, not both"),
        ({"order_by": "person"}, "'person' must hold numbers or dates, got 'p0'"),
        ({"group_by": "y2"}, "'y2' has 2 values; 5 folds need at least as many"),
        ({"group_by": "holes"}, "1 row has no value in column 'holes'"),
    ],
)
def test_what_cannot_be_split_is_one_message(visits, tmp_path, given, words):
    path, _ = visits
    lines = path.read_text().splitlines()
    more = [f"{line},{i % 2},{i if i != 5 else ''}" for i, line in enumerate(lines[1:])]
    path.write_text("\n".join([lines[0] + ",y2,holes", *more]) + "\n")
    with pytest.raises(DatasetError, match=words):
        load_csv(str(path), "y", ignore=["day"], **given)
