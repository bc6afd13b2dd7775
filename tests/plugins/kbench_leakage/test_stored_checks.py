"""Measurements that are kept: by data, split and code, and never a damaged one."""

import math

import pytest

from kbench.features import state_folder
from kbench.records import Protocol
from kbench_leakage import stored_checks
from kbench_leakage.findings import Finding, Leakage
from kbench_leakage.scoring import Score
from kbench_leakage.stored_checks import protocol_fields

FOUND = Leakage(
    (
        Finding("sum", ("a", "b"), Score(0.9), True, 7, 0.5, 0.1),
        Finding("column", ("a",), Score(-math.inf), True, 7),
    ),
    ("a note",),
    8,
    7,
)


def test_what_was_kept_is_recalled():
    stored_checks.keep("k", FOUND)
    assert stored_checks.recall(Leakage, "k") == FOUND
    assert stored_checks.recall(Leakage, "other") is None


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"measured": 3}', '{"measured": [{}]}']
)
def test_a_damaged_file_is_as_none(content):
    stored_checks.keep("k", FOUND)
    (state_folder() / "leakage" / "k.json").write_text(content)
    assert stored_checks.recall(Leakage, "k") is None


def test_a_folder_that_cannot_be_written_does_no_harm():
    state_folder().mkdir(parents=True)
    (state_folder() / "leakage").write_text("a file")
    stored_checks.keep("k", FOUND)
    assert stored_checks.recall(Leakage, "k") is None


def test_data_split_and_code_decide_the_key(monkeypatch):
    def key(checksum="a", **protocol):
        return stored_checks.get_key(checksum, protocol_fields(Protocol(**protocol)))

    assert key() == key(n_candidates=3)
    others = [key("b"), key(seed=1), key(n_folds=7), key(cv="holdout"), key(test_size=0.1)]
    monkeypatch.setattr(stored_checks, "_code", lambda: "other code")
    others.append(key())
    monkeypatch.undo()
    assert len({key(), *others}) == 7
