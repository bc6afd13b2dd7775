"""What becomes of the columns of a table: free text, and dates that stand for categories."""

import datetime

import pytest

from kbench.tables.table import TEXT_ABOVE
from kbench_files._columns import is_free_text
from kbench_files._files import load_csv


def words(n):
    return [f"word {i}" for i in range(n)]


@pytest.mark.parametrize(
    ("different", "n_rows", "is_text"),
    [
        ([], 10, False),
        (["a", True], 2, False),
        (["a", 1.5], 1000, True),
        ([datetime.date(2020, 1, 1)], 1000, True),
        (words(TEXT_ABOVE), TEXT_ABOVE, False),
        (words(TEXT_ABOVE + 1), TEXT_ABOVE + 1, True),
        (words(60), 120, False),
        (words(60), 119, True),
    ],
)
def test_many_different_strings_and_other_values_are_text(different, n_rows, is_text):
    assert is_free_text(different, n_rows) is is_text


@pytest.mark.parametrize("role", ["categorical", "target_encode"])
def test_dates_that_stand_for_categories_are_categories(tmp_path, role):
    path = tmp_path / "dated.csv"
    days = [f"2024-0{1 + i % 3}-01" for i in range(30)]
    path.write_text("d,x,y\n" + "".join(f"{day},{i},{i % 2}\n" for i, day in enumerate(days)))
    found = load_csv(str(path), "y", date_formats=["d=%Y-%m-%d"], **{role: ["d"]})
    assert found.checksum == load_csv(str(path), "y", **{role: ["d"]}).checksum
    assert found.checksum != load_csv(str(path), "y", date_formats=["d=%Y-%m-%d"]).checksum
