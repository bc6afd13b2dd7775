"""Rows of files and stores that others may have written: read, or refused in one message."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbench.errors import SuiteError
from kbench.records import ACCURACY, Metric
from kbench.results.rows import TIMES, Row
from kbench_compare.comparison import compare
from kbench_compare.outside import parse_outside_row

BY_SPLIT = {"0": 0.9, "1": 0.8}
ROW = Row(
    "iris",
    "rff",
    "ridge",
    "ok",
    n_splits_done=2,
    n_splits=2,
    metrics={"accuracy": 0.85, "n_train": 120.0, "n_test": 30.0, "gram_error": 0.1},
    machine="m1",
    protocol={"threads": "1"},
    values_by_split=dict.fromkeys(("accuracy", *TIMES), BY_SPLIT),
    split_hash={"0": "a", "1": "b"},
    contention="busy",
    machine_speed_s="0.01, 0.011",
)
GOOD = ROW.to_json()
LONG = "x" * 20_000


def test_what_a_row_writes_is_read_back():
    row, metric = parse_outside_row(json.loads(json.dumps(GOOD)))
    assert metric == ACCURACY
    for name in ("labels", "status", "machine", "protocol", "values_by_split", "split_hash"):
        assert getattr(row, name) == getattr(ROW, name)
    assert (row.contention, row.machine_speed_s) == ("busy", "0.01, 0.011")
    assert row.metrics == {"n_train": 120.0, "n_test": 30.0}


def test_the_metric_and_its_values_are_those_of_the_row():
    losses = {"0": 0.5, "1": 2}
    told = GOOD | {
        "metric": "log_loss",
        "better": "lower",
        "values_by_split": {"log_loss": losses},
    }
    row, metric = parse_outside_row(told)
    assert metric == Metric("log_loss", "lower")
    assert row.by_split("log_loss") == losses
    assert {name: row.by_split(name) for name in TIMES} == {name: {} for name in TIMES}


def test_a_row_need_not_know_how_many_rows_there_were_and_may_say_more():
    bare = {name: value for name, value in GOOD.items() if name not in ("n_train", "n_test")}
    row, _ = parse_outside_row(bare | {"accuracy": "high", "search": [[]], "anything": {"x": None}})
    assert row.metrics == {}


@pytest.mark.parametrize("name", ["dataset", "status", "metric", "machine", "machine_speed_s"])
def test_what_a_comparison_needs_must_be_there(name):
    with pytest.raises(ValueError, match=rf"^{name} is missing or not a string$"):
        parse_outside_row({key: value for key, value in GOOD.items() if key != name})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": None}, "dataset is missing or not a string"),
        ({"status": ["ok"]}, "status is missing or not a string"),
        ({"learner": LONG}, "learner has 20000 characters; 10000 at most"),
        ({"feature_map": "a\x1b[2Jb"}, "feature_map contains control characters"),
        ({"machine": "\ud800"}, "machine contains control characters"),
        ({"contention": "a\nb"}, "contention contains control characters"),
        ({"metric": {"name": "accuracy"}}, "metric is missing or not a string"),
        ({"better": "sideways"}, "better must be higher or lower"),
        ({"better": 1}, "better is missing or not a string"),
        ({"machine_speed_s": "0.01, soon"}, "machine_speed_s contains values other than numbers"),
        ({"machine_speed_s": "inf"}, "machine_speed_s contains values other than numbers"),
        ({"machine_speed_s": "-1e300"}, "machine_speed_s contains values other than numbers"),
        ({"n_train": "120"}, "n_train must be a number of rows"),
        ({"n_train": True}, "n_train must be a number of rows"),
        ({"n_train": -1.0}, "n_train must be a number of rows"),
        ({"n_test": 1e300}, "n_test must be a number of rows"),
        ({"n_test": 10**400}, "n_test must be a number of rows"),
        ({"n_test": float("inf")}, "n_test must be a number of rows"),
        ({"n_test": float("nan")}, "n_test must be a number of rows"),
        ({"n_test": [30]}, "n_test must be a number of rows"),
        ({"split_hash": None}, "split_hash is missing"),
        ({"split_hash": {"0": 7}}, "split_hash must contain strings only"),
        ({"split_hash": {"0": LONG}}, "split_hash must contain strings only"),
        ({"protocol": [["threads", "1"]]}, "protocol is missing"),
        ({"protocol": {"threads": {"a": {"b": {}}}}}, "protocol must contain strings only"),
        ({"protocol": {"\x07": "1"}}, "protocol must contain strings only"),
        ({"values_by_split": "accuracy"}, "values_by_split is missing"),
        *(
            (
                {"values_by_split": {name: values}},
                f"values_by_split.{name} must contain finite numbers",
            )
            for name in ("accuracy", *TIMES)
            for values in (
                None,
                [0.9],
                {"0": None},
                {"0": "0.9"},
                {"0": True},
                {"0": 1e300},
                {"0": -(10**400)},
                {"0": float("-inf")},
                {"0": float("nan")},
                {"0": {"0": 0.9}},
            )
        ),
    ],
)
def test_each_thing_that_is_wrong_is_one_message(changes, message):
    with pytest.raises(ValueError) as refused:
        parse_outside_row(GOOD | changes)
    assert str(refused.value) == message


@pytest.mark.parametrize("value", [None, 7, "row", [GOOD], [], True])
def test_what_is_no_object_is_no_row(value):
    with pytest.raises(ValueError, match=r"^not an object$"):
        parse_outside_row(value)


TEXTS = st.text(st.characters(codec=None), max_size=5)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
NUMBERS = st.dictionaries(st.sampled_from("01"), st.integers() | st.floats(), max_size=2)


@given(
    st.dictionaries(st.sampled_from(sorted(GOOD)), ANY, max_size=2),
    st.dictionaries(st.sampled_from(("accuracy", *TIMES)), NUMBERS | ANY),
)
def test_whatever_a_row_holds_it_is_compared_or_refused_in_one_line(changes, values):
    row = GOOD | {"values_by_split": values} | changes
    try:
        read, metric = parse_outside_row(row)
        compare([read], [read], metric).rows()
    except (ValueError, SuiteError) as refused:
        text = str(refused)
        assert 0 < len(text) < 300
        assert not {"Cc", "Cs"} & {unicodedata.category(sign) for sign in text}
