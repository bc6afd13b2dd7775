"""Files with a user's own splits."""

import gzip
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
    data = load_csv("mine.csv", "y", splits="s.csv")
    assert [split.test.tolist() for split in data.splits] == [[0, 3], [1]]
    assert [split.train.tolist() for split in data.splits] == [[1, 2], [0, 2, 3]]
    assert [split.index for split in data.splits] == [0, 1]
    assert data.checksum != load_csv("mine.csv", "y").checksum
    with gzip.open(here / "s.csv.gz", "wt") as file:
        file.write(FOLDS)
    assert load_csv("mine.csv", "y", splits="s.csv.gz").checksum == data.checksum


def test_splits_of_all_kinds_of_files(here):
    import pandas

    (here / "s.csv").write_text(FOLDS)
    pandas.read_csv("mine.csv").to_parquet("mine.parquet")
    rows = "1,0.5\n2,1\n3,2\n4,3\n"
    (here / "mine.arff").write_text(f"@attribute a real\n@attribute y real\n@data\n{rows}")
    (here / "mine.svm").write_text("0.5 1:1\n1 1:2\n2 1:3\n3 1:4\n")
    for data in (
        load_parquet("mine.parquet", "y", splits="s.csv"),
        load_arff("mine.arff", "y", splits="s.csv"),
        load_svmlight("mine.svm", splits="s.csv"),
    ):
        assert data.task == "regression"
        assert [split.test.tolist() for split in data.splits] == [[0, 3], [1]]


def test_rows_without_a_label_are_left_out_of_splits(here):
    (here / "mine.csv").write_text("a,y\n1,no\n2,\n3,yes\n4,no\n5,yes\n")
    (here / "s.csv").write_text("s,t\n1,0\n0,0\n0,1\n0,1\n1,0\n")
    data = load_csv("mine.csv", "y", splits="s.csv")
    assert data.row_ids.tolist() == [0, 2, 3, 4]
    assert [split.test.tolist() for split in data.splits] == [[0, 3], [1, 2]]


def test_repeated_holdouts_may_overlap(here):
    (here / "s.csv").write_text("s,t\n1,1\n0,0\n0,1\n0,0\n")
    data = load_csv("mine.csv", "y", splits="s.csv", overlapping_splits=True)
    assert [split.test.tolist() for split in data.splits] == [[0], [0, 2]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory (looked for "),
        ("", "is empty"),
        ("s\n1\n0\n0\n", "it has 3 rows below its line of names, but the data have 4"),
        ("1\n0\n0\n0\n", "it has 3 rows below its line of names, but the data have 4"),
        ("s,t\n1,0\n0,0\n0,0\n0,0\n", "column 't' tests no row; a split needs rows to train and"),
        ("s,t\n1,1\n0,1\n0,1\n0,1\n", "column 't' tests all 4 rows"),
        ("s\n1\n2\n0\n0\n", "column 's' must be 0 or 1 (a row to test), got 2 in row 2"),
        ("s\n1\n0.5\n0\n0\n", "column 's' must be 0 or 1 (a row to test), got 0.5 in row 2"),
        ("s,t\n1,0\n0,1\n0,\n0,0\n", "column 't' must be 0 or 1 (a row to test), got nothing in "),
        ("s\ntest\n0\n0\n0\n", "column 's' must be 0 or 1 (a row to test), got 'test' in row 1"),
        ("s\nTrue\nFalse\nFalse\nTrue\n", "must be 0 or 1 (a row to test), got True in row 1"),
        (
            "s,t,u\n0,0,1\n1,0,0\n1,1,0\n0,1,0\n",
            "folds must not overlap, but 1 row of 4 is tested more than once: row 3 in 's' and "
            "'t'. If the columns are repeated holdouts, say overlapping_splits = true.",
        ),
    ],
)
def test_mistakes_in_splits(here, content, words):
    if content is not None:
        (here / "s.csv").write_text(content)
    with pytest.raises(DatasetError, match=re.escape(words)) as error:
        load_csv("mine.csv", "y", splits="s.csv")
    assert str(error.value).startswith("splits file 's.csv'")


def test_a_label_names_data_and_group(here):
    data = load_csv("mine.csv", "y")
    assert (data.name, data.group) == ("mine", "mine")
    data = load_csv("mine.csv", "y", label="yacht")
    assert (data.name, data.group) == ("yacht", "yacht")
    assert load_csv("mine.csv", "y", label="yacht", group="boats").group == "boats"


def test_weights_reach_learners_and_measures(here):
    rows = [f"{i},{2 * i + 0.5 + 90 * (i % 5 == 0)},{int(i % 5 != 0)}" for i in range(40)]
    (here / "mine.csv").write_text("\n".join(["a,y,w", *rows]) + "\n")
    line = {"name": "csv", "path": "mine.csv", "target": "y"}
    weighted = evaluate({**line, "weight": "w"}, learner="ridge", splits=1)
    plain = evaluate({**line, "ignore": ["w"]}, learner="ridge", splits=1)
    assert weighted["rmse"][0] < 2
    assert plain["rmse"][0] > 10


def test_weights_of_files(here):
    (here / "mine.csv").write_text("a,w,y\n1,1,0.5\n2,0,1\n3,2.5,2\n")
    data = load_csv("mine.csv", "y", weight="w")
    np.testing.assert_array_equal(data.sample_weight, [1, 0, 2.5])
    assert data.X.tolist() == [[1], [2], [3]]
