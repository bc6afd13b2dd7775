"""Sentences of findings, and what counts as a sign."""

import pytest

from kbench_leakage.findings import Finding
from kbench_leakage.scoring import Score

NUMBERS = {
    "column": (("a",), "a alone predicts the target of test rows: R2 0.970"),
    "sum": (("a", "b"), "a + b alone predicts the target of test rows: R2 0.970"),
    "difference": (("a", "b"), "a - b alone predicts the target of test rows: R2 0.970"),
    "within": (("a", "b"), "b within equal a alone predicts the target of test rows: R2 0.970"),
    "order": (
        ("a",),
        "training rows adjacent to test rows in the file predict their target: R2 0.970 "
        "(a changes slowly along the file)",
    ),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_sentence_says_what_was_measured(kind):
    columns, sentence = NUMBERS[kind]
    found = Finding(kind, columns, Score(0.97), True, 2000)
    assert found.sentence == sentence
    assert found.is_sign


def test_rows_that_are_looked_up_have_their_share():
    found = Finding("copies", (), Score(0.5), True, 100, share=0.2)
    assert found.sentence == (
        "20.0 % of the test rows have the same inputs as a training row, whose target predicts "
        "theirs: R2 0.500"
    )
    assert found.is_sign  # whatever they predict
    near = Finding("near copies", ("a",), Score(0.99), True, 100, share=0.6, by_chance=0.4)
    assert "60.0 % of the other test rows differ from training rows in a only" in near.sentence
    assert not near.is_sign  # a grid has as many


@pytest.mark.parametrize(
    ("share", "by_chance", "is_sign"),
    [(0.04, 0.0, False), (0.06, 0.04, False), (0.06, 0.02, True), (0.67, 0.46, True)],
)
def test_copies_must_be_more_than_by_chance(share, by_chance, is_sign):
    found = Finding("copies", (), Score(1.0), True, 1000, share, by_chance)
    assert found.is_sign == is_sign


def test_classes_have_the_share_of_the_most_frequent_one_beside_the_accuracy():
    found = Finding("column", ("a",), Score(0.98, 0.99, 0.5), False, 2000)
    assert found.sentence == (
        "a alone predicts the target of test rows: accuracy 99.0 % "
        "(the most frequent class has 50.0 %)"
    )


def test_a_score_that_is_not_exact_is_not_written_as_1():
    sentences = [Finding("column", ("a",), Score(v), True, 9).sentence for v in (0.99999, 1.0)]
    assert sentences[0].endswith("R2 0.9999") and sentences[1].endswith("R2 1.000")


@pytest.mark.parametrize(("n", "is_sign"), [(30, False), (1000, True)])
def test_a_score_of_few_rows_must_be_higher(n, is_sign):
    assert Finding("column", ("a",), Score(0.98, 0.99, 0.5), False, n).is_sign == is_sign


def test_neighbours_count_only_where_a_column_tells_them():
    found = Finding("order", ("a",), Score(0.99), True, 2000, share=0.3)
    assert not found.is_sign and "changes slowly" not in found.sentence
