"""A user's own splits: of a file, by groups of rows, or by their order."""

from __future__ import annotations

import gzip
import itertools
import re

import numpy as np
import pytest

from kbench import DatasetError, evaluate
from kbench_files._files import load_arff, load_csv, load_parquet, load_svmlight

FOLDS = "first,second\n1,0\n0,1\n0,0\n1,0\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("a,y\n1,0.5\n2,1\n3,2\n4,3\n")
    return tmp_path


def test_splits_of_a_file(here):
    (here / "s.csv").write_text(FOLDS)
    data = load_csv("mine.csv", "y", split_file="s.csv")
    assert [split.test.tolist() for split in data.splits] == [[0, 3], [1]]
    assert [split.train.tolist() for split in data.splits] == [[1, 2], [0, 2, 3]]
    assert [split.index for split in data.splits] == [0, 1]
    assert data.checksum != load_csv("mine.csv", "y").checksum
    with gzip.open(here / "s.csv.gz", "wt") as file:
        file.write(FOLDS)
    assert load_csv("mine.csv", "y", split_file="s.csv.gz").checksum == data.checksum


def test_splits_of_all_kinds_of_files(here):
    import pandas

    (here / "s.csv").write_text(FOLDS)
    pandas.read_csv("mine.csv").to_parquet("mine.parquet")
    rows = "1,0.5\n2,1\n3,2\n4,3\n"
    (here / "mine.arff").write_text(f"@attribute a real\n@attribute y real\n@data\n{rows}")
    (here / "mine.svm").write_text("0.5 1:1\n1 1:2\n2 1:3\n3 1:4\n")
    for data in (
        load_parquet("mine.parquet", "y", split_file="s.csv"),
        load_arff("mine.arff", "y", split_file="s.csv"),
        load_svmlight("mine.svm", split_file="s.csv"),
    ):
        assert data.task == "regression"
        assert [split.test.tolist() for split in data.splits] == [[0, 3], [1]]


def test_rows_without_a_label_are_left_out_of_splits(here):
    (here / "mine.csv").write_text("a,y\n1,no\n2,\n3,yes\n4,no\n5,yes\n")
    (here / "s.csv").write_text("s,t\n1,0\n0,0\n0,1\n0,1\n1,0\n")
    data = load_csv("mine.csv", "y", split_file="s.csv")
    assert data.row_ids.tolist() == [0, 2, 3, 4]
    assert [split.test.tolist() for split in data.splits] == [[0, 3], [1, 2]]


def test_repeated_holdouts_may_overlap(here):
    (here / "s.csv").write_text("s,t\n1,1\n0,0\n0,1\n0,0\n")
    data = load_csv("mine.csv", "y", split_file="s.csv", overlapping_splits=True)
    assert [split.test.tolist() for split in data.splits] == [[0], [0, 2]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory (looked for "),
        ("", "is empty"),
        ("s\n1\n0\n0\n", "it has 3 rows below its header, but the data have 4"),
        ("1\n0\n0\n0\n", "it has 3 rows below its header, but the data have 4"),
        (
            "s,t\n1,0\n0,0\n0,0\n0,0\n",
            "column 't' has no row in the test set; a split needs training rows",
        ),
        ("s,t\n1,1\n0,1\n0,1\n0,1\n", "column 't' has all 4 rows in the test set"),
        ("s\n1\n2\n0\n0\n", "column 's' must be 0 or 1 (a test row), got 2 in row 2"),
        ("s\n1\n0.5\n0\n0\n", "column 's' must be 0 or 1 (a test row), got 0.5 in row 2"),
        ("s,t\n1,0\n0,1\n0,\n0,0\n", "column 't' must be 0 or 1 (a test row), got nothing in "),
        ("s\ntest\n0\n0\n0\n", "column 's' must be 0 or 1 (a test row), got 'test' in row 1"),
        ("s\nTrue\nFalse\nFalse\nTrue\n", "must be 0 or 1 (a test row), got True in row 1"),
        (
            "s,t,u\n0,0,1\n1,0,0\n1,1,0\n0,1,0\n",
            "folds must not overlap, but 1 row of 4 is tested more than once: row 3 in 's' and "
            "'t'. If the columns are repeated holdouts, set overlapping_splits = true.",
        ),
    ],
)
def test_mistakes_in_splits(here, content, words):
    if content is not None:
        (here / "s.csv").write_text(content)
    with pytest.raises(DatasetError, match=re.escape(words)) as error:
        load_csv("mine.csv", "y", split_file="s.csv")
    assert str(error.value).startswith("splits file 's.csv'")


def test_a_label_names_data_and_group(here):
    data = load_csv("mine.csv", "y")
    assert (data.name, data.dataset_family) == ("mine", "mine")
    data = load_csv("mine.csv", "y", label="yacht")
    assert (data.name, data.dataset_family) == ("yacht", "yacht")
    data = load_csv("mine.csv", "y", label="yacht", dataset_family="boats")
    assert data.dataset_family == "boats"


@pytest.mark.slow
def test_weights_reach_learners_and_metrics(here):
    rows = [f"{i},{2 * i + 0.5 + 90 * (i % 5 == 0)},{int(i % 5 != 0)}" for i in range(40)]
    (here / "mine.csv").write_text("\n".join(["a,y,w", *rows]) + "\n")
    line = {"name": "csv", "path": "mine.csv", "target": "y"}
    weighted = evaluate({**line, "weight": "w"}, learner="ridge", n_splits=1)
    plain = evaluate({**line, "drop": ["w"]}, learner="ridge", n_splits=1)
    assert weighted["rmse"][0] < 2
    assert plain["rmse"][0] > 10


def test_weights_of_files(here):
    (here / "mine.csv").write_text("a,w,y\n1,1,0.5\n2,0,1\n3,2.5,2\n")
    data = load_csv("mine.csv", "y", weight="w")
    np.testing.assert_array_equal(data.sample_weight, [1, 0, 2.5])
    assert data.X.tolist() == [[1], [2], [3]]


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
    data = load_csv(str(path), "y", drop=["day"], groups="person")
    assert list(data.feature_names) == ["x"]
    assert len(data.splits) == 5
    persons = np.arange(N) % 10
    for split in data.splits:
        assert not set(persons[split.train]) & set(persons[split.test])
        assert len(split.train) + len(split.test) == N
    assert sorted(np.concatenate([split.test for split in data.splits])) == list(range(N))


def test_blocks_of_the_last_rows_are_tested_after_all_before_them(visits):
    path, days = visits
    dates = ["day=%d.%m.%Y"]
    data = load_csv(str(path), "y", drop=["person"], date_formats=dates, time_column="day")
    last, *before = data.splits
    assert len(last.train) + len(last.test) == N
    assert len(before) == 2
    for split in data.splits:
        assert len(split.test) == N / 5
        assert days[split.train].max() < days[split.test].min()
    for later, split in itertools.pairwise(data.splits):
        assert sorted([*split.train, *split.test]) == sorted(later.train)


def test_a_block_without_a_class_before_it_is_no_split(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["y,t", *(f"{int(i > 11)},{i}" for i in range(20))]) + "\n")
    data = load_csv(str(path), "y", time_column="t", task="classification")
    assert [len(split.train) for split in data.splits] == [16]
    numbers = load_csv(str(path), "y", time_column="t", task="regression")
    assert [len(split.train) for split in numbers.splits] == [16]


def test_numbers_have_an_order_too_and_rows_without_a_label_are_left_out(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{i % 2 if i else ''},{30 - i},{i}" for i in range(20)]
    path.write_text("\n".join(["y,t,x", *lines]) + "\n")
    data = load_csv(str(path), "y", time_column="t", task="classification")
    assert len(data.y) == 19
    split = data.splits[0]
    # the first row, the latest, has no label; those that follow are the last in time
    assert split.test.tolist() == [0, 1, 2, 3]


def test_parquet_has_the_same_splits(visits, tmp_path):
    pandas = pytest.importorskip("pandas")
    path, _ = visits
    pandas.read_csv(path).to_parquet(tmp_path / "visits.parquet")
    given = {"drop": ["day"], "groups": "person"}
    one = load_csv(str(path), "y", **given)
    other = load_parquet(str(tmp_path / "visits.parquet"), "y", **given)
    assert [s.digest for s in one.splits] == [s.digest for s in other.splits]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"groups": "persom"}, "there is no column 'persom'; did you mean 'person'"),
        ({"groups": "person", "time_column": "day"}, "one of groups and time_column, not both"),
        ({"time_column": "person"}, "'person' must hold numbers or dates, got 'p0'"),
        ({"groups": "y2"}, "'y2' has 2 values; 5 folds need at least as many"),
        ({"groups": "holes"}, "1 row has no value in column 'holes'"),
    ],
)
def test_what_cannot_be_split_is_one_message(visits, tmp_path, given, words):
    path, _ = visits
    lines = path.read_text().splitlines()
    more = [f"{line},{i % 2},{i if i != 5 else ''}" for i, line in enumerate(lines[1:])]
    path.write_text("\n".join([lines[0] + ",y2,holes", *more]) + "\n")
    with pytest.raises(DatasetError, match=words):
        load_csv(str(path), "y", drop=["day"], **given)
