"""Which columns of a table are free text."""

import datetime

import pytest

from kbench.tables.table import TEXT_ABOVE
from kbench_files._columns import is_free_text


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
