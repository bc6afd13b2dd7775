"""What a suite says of itself."""

import pytest

from kbench_listing.installed import find_summary


def test_a_suite_without_a_comment_has_no_sentence():
    assert find_summary('datasets = ["iris"]\n# Not this.') == ""
    assert find_summary("#\n# Nor this.") == ""


@pytest.mark.parametrize(
    "value",
    [
        'datasets = [\n["iris"]\n]\ndescription = "Said. More."',
        'description = """\n[1] Said. More."""',
        'description = "Said. More."\n[protocol]\nn_folds = 2',
        'description = "Said. More."\n[protocol\nn_folds =',
    ],
)
def test_what_a_suite_says_of_itself(value):
    assert find_summary(f"# A comment.\n{value}").removeprefix("[1] ") == "Said."
