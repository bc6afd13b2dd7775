"""Datasets that are related count once, or are named."""

import numpy as np
import pytest

from kbench.features import ReportData
from kbench_leakage.related import Sketch, families, relation, sketch, stem
from kbench_leakage.sections import sections
from kbench_leakage.stored_checks import keep, recall
from tests.support.report_rows import row


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("KBENCH_STATE_DIR", str(tmp_path))


def drawn(n=400, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_rows_are_found_in_another_order_of_rows_and_columns():
    X = drawn()
    rng = np.random.default_rng(1)
    other = X[rng.permutation(400)][:, rng.permutation(6)]
    y, z = rng.normal(size=(2, 400))
    assert relation(sketch(X, y), sketch(other, z)) == "the same rows"
    # two thirds of each are in both: a half of all rows
    said = relation(sketch(X[:300], y[:300]), sketch(X[100:], z[:300]))
    assert "% of all rows are in both" in said


def test_the_share_of_common_rows_is_estimated():
    X = drawn(3000)
    said = relation(sketch(X[:2000], X[:2000, 0]), sketch(X[1000:], X[1000:, 0]))
    share = int(said.split("%")[0].split()[-1])
    assert abs(share - 33) < 10


def test_a_target_that_is_a_column_elsewhere_and_equal_columns_are_found():
    X = drawn()
    first = sketch(X[:, :5], X[:, 5])
    assert relation(first, sketch(X[:, [5, 0, 1]], X[:, 2])) == (
        "the target of one is a column of the other"
    )
    more = np.column_stack([X[:, :3], drawn(seed=1)])
    assert relation(first, sketch(more, drawn(seed=2)[:, 0])) == "3 columns have the same values"


def test_names_of_columns_count_if_they_say_something():
    names = ("alcohol", "sulphates", "density", "pH")
    red, white = (sketch(drawn(seed=s)[:, :4], drawn(seed=s)[:, 5], names) for s in (0, 1))
    assert relation(red, white) == "4 columns have the same names"
    numbered = tuple(f"x{i}" for i in range(4))
    first, second = (sketch(drawn(seed=s)[:, :4], drawn(seed=s)[:, 5], numbered) for s in (0, 1))
    assert relation(first, second) == ""


def test_unrelated_datasets_of_few_values_are_not_related():
    rng = np.random.default_rng(0)
    coins = [rng.integers(0, 2, (200, 5)).astype(float) for _ in range(2)]
    labels = [rng.integers(0, 2, 200) for _ in range(2)]
    assert relation(*map(sketch, coins, labels)) == ""
    digits = [rng.integers(0, 5, (200, 3)).astype(float) for _ in range(2)]
    assert relation(*map(sketch, digits, labels)) == ""


def test_families_join_what_is_declared_and_what_is_found():
    groups = {"mfeat-fourier": "m", "mfeat-zernike": "z", "iris": "iris", "old": "m"}
    ((names, why),) = families(groups, {})
    assert names == ("mfeat-fourier", "mfeat-zernike", "old")
    assert why == "mfeat-fourier and mfeat-zernike: their names begin with 'mfeat'"
    assert families(dict.fromkeys(("mfeat-a", "mfeat-b"), "one"), {}) == []
    assert stem("wine") == ""
    assert families({"data-1": "data-1", "data-2": "data-2"}, {}) == []


def test_each_pair_of_a_family_has_its_reason():
    X = drawn()
    y, z = np.random.default_rng(1).normal(size=(2, 400))
    sketches = {
        "s0": sketch(X[:, :4], y),
        "zz": sketch(X[::-1, :4], y[::-1]),
        "colof": sketch(np.column_stack([X[:, :3], drawn(seed=3)]), z),
    }
    ((names, why),) = families({name: name for name in sketches}, sketches)
    assert names == ("s0", "zz", "colof")
    assert "s0 and zz: the same rows" in why
    assert "s0 and colof: 3 columns have the same values" in why


def test_a_sketch_is_kept_and_a_damaged_one_is_none(tmp_path):
    made = sketch(drawn(), drawn()[:, 0], ("age",))
    keep("abc", made)
    assert recall(Sketch, "abc") == made
    for file in tmp_path.rglob("*.json"):
        file.write_text("{")
    assert recall(Sketch, "abc") is None


@pytest.mark.parametrize(("n_families", "word"), [(10, "still"), (4, "not")])
def test_a_report_names_families_and_what_holds_if_they_count_once(n_families, word):
    rows = [
        row(f"family{letter}-{i}", m, accuracies=(a,) * 3)
        for letter in "abcdefghij"[:n_families]
        for i in range(2)
        for m, a in (("good", 0.9), ("bad", 0.8))
    ]
    found = {each.name: each for each in sections(ReportData("s", rows))}["related"]
    assert len(found.parts) == n_families + 2
    assert "'familya-0', 'familya-1' may be related" in found.parts[0]
    assert found.parts[-1] == (
        f"If each family counts once, good + ridge is {word} significantly better than every "
        "other method."
    )
    alone = [each for each in rows if each.dataset.endswith("-0")]
    assert "related" not in {each.name for each in sections(ReportData("s", alone))}
