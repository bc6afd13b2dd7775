"""Results as columns: every value comes back as it was, and nothing is read that cannot be."""

import copy
import json
import random

import pytest

from kbench.errors import BundleError
from kbench_sharing import columns
from kbench_sharing.columns import Columns, packed
from tests.support.bundles import files, lines, results_of

KEYS = ["a" * 64, "b" * 64]


def back(text, keys=KEYS):
    parsed = ((f"line {i}", json.loads(line)) for i, line in enumerate(text, 1))
    return [result for _, result in Columns(parsed, keys)]


def same(one, other):
    """Tell whether two lists of results are equal to the last bit and type."""
    return [json.dumps(r, sort_keys=True) for r in one] == [
        json.dumps(r, sort_keys=True) for r in other
    ]


@pytest.fixture(scope="module")
def honest():
    return results_of(files())


def result(**changes):
    made = {
        "cell": KEYS[0],
        "split": 0,
        "status": "ok",
        "error": "",
        "printed": "",
        "jobs": None,
        "started_ms": 1_700_000_000_000,
        "ended_ms": 1_700_000_000_900,
        "seconds": 0.9,
        "timing": "shared",
        "version": "0.1.0",
        "machine": 0,
        "calibration_s": 0.1,
        "cpu_s": 0.5,
        "limits": {"time_s": None, "memory_mb": 4096.0},
        "measures": {"accuracy": 29 / 30, "n_test": 30.0, "n_train": 120.0},
        "details": {"chosen": {}, "search": [], "split_hash": "ab", "notes": []},
    }
    return {**made, **changes}


def searched(values, chosen=0, converged=True):
    candidates = [
        {"learner.C": 2.0**i, "preprocess": None, "converged": converged, "values": each}
        for i, each in enumerate(values)
    ]
    params = {name: candidates[chosen][name] for name in ("learner.C", "preprocess")}
    return {"chosen": params, "search": candidates, "split_hash": "ab"}


SHARES = [[17 / 42, 16 / 42, 17 / 41], [1.0, 41 / 42, 39 / 41]]

ODD = {
    "measures of regression": result(measures={"rmse": 12.5, "r2": -3.25, "n_test": 30.0}),
    "zeros of both signs": result(measures={"accuracy": 0.0, "matthews": -0.0, "n_test": 3.0}),
    "one minus the accuracy": result(
        measures={"accuracy": 0.9, "expected_error": 1.0 - 0.9, "n_test": 30.0}
    ),
    "a share of no rows": result(measures={"accuracy": 0.5, "n_test": 0.0}),
    "a share of half a row": result(measures={"accuracy": 0.5, "n_test": 2.5}),
    "a last bit that is other": result(measures={"accuracy": 29 / 30 + 1e-16, "n_test": 30.0}),
    "no measure at all": result(status="error", measures={}, details={}),
    "a grid of shares": result(details=searched(SHARES)),
    "scores that are no shares": result(details=searched([[0.1234567890123], [0.5]])),
    "scores of a plugin": result(details=searched([[-12.5, 3.0], [1e300, -0.0]])),
    "scores without a value": result(details=searched([[None, 0.5], [0.25, 0.5]])),
    "scores of unequal folds": result(details=searched([[0.5], [0.5, 0.25]])),
    "no inner fold": result(details=searched([[], []])),
    "a choice beside the grid": result(
        details={**searched(SHARES), "chosen": {"learner.C": 3.0, "preprocess": None}}
    ),
    "a choice of another type": result(
        details={**searched(SHARES), "chosen": {"learner.C": 1, "preprocess": None}}
    ),
    "candidates of two kinds": result(
        details={"chosen": {}, "search": [{"a": 1, "values": [1.0]}, {"b": 1, "values": [1.0]}]}
    ),
    "no search": result(details={"chosen": {"learner.C": 1.0}, "search": [], "split_hash": "x"}),
    "text of all languages": result(error='Grüße, "\\" \n\u2028 \U0001f600'),
    "an early clock": result(started_ms=0, ended_ms=0, seconds=0.0),
    "ends long after": result(ended_ms=1_800_000_000_000),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_result_comes_back_as_it_was(kind):
    assert same(back(packed([ODD[kind]], KEYS)), [ODD[kind]])


def test_all_odd_results_come_back_beside_each_other():
    # `details` are absent as a whole, or have all fields
    some = [copy.deepcopy(each) for each in ODD.values()] * 3
    random.Random(0).shuffle(some)
    for number, each in enumerate(some):
        each["split"], each["cell"] = number, KEYS[number % 2]
    assert same(back(packed(some, KEYS)), some)


def test_made_up_results_come_back_and_become_the_same_lines(honest, monkeypatch):
    keys = list(dict.fromkeys(each["cell"] for each in honest))
    text = list(packed(honest, keys))
    assert same(back(text, keys), honest)
    assert list(packed(back(text, keys), keys)) == text
    monkeypatch.setattr(columns, "BLOCK", 7)
    blocks = list(packed(honest, keys))
    assert sum(line.startswith('{"n":') for line in blocks) == 6
    assert same(back(blocks, keys), honest)


def test_shares_are_written_as_counts(honest):
    written = {line.get("column"): line for line in lines(files()["results.jsonl"])}
    assert written["measures/accuracy"]["of"] == "n_test"
    assert all(type(count) is int for count in written["measures/accuracy"]["values"])
    text = [json.loads(line) for line in packed([ODD["a grid of shares"]], KEYS)]
    by_name = {line.get("column"): line for line in text}
    assert by_name["search/values"]["same"] == [[17, 16, 17], [42, 41, 39]]
    assert by_name["search/folds"]["same"] == [42, 42, 41]
    assert by_name["details/chosen"]["same"] == 0


def column(name, **written):
    return {"column": name, **written}


N = {"n": 2}
CELL = column("cell", same=0)
HOSTILE = {
    "no block": ([CELL], "is not the beginning of a block"),
    "no number": ([{"n": "2"}], "is not the beginning of a block"),
    "true for a number": ([{"n": True}], "is not the beginning of a block"),
    "no results": ([{"n": 0}], "says that it has 0 results"),
    "too many in a block": ([{"n": 10**9}], "says that it has 1000000000 results"),
    "a list for a column": ([N, []], "is not a new column"),
    "a column twice": ([N, CELL, CELL], "is not a new column"),
    "a number for a name": ([N, column(7, same=0)], "is not a new column"),
    "no way of writing": ([N, column("cell")], "is written in no known way"),
    "two ways of writing": ([N, column("cell", same=0, values=[0, 0])], "in no known way"),
    "a field more": ([N, column("cell", same=0, run="rm")], "in no known way"),
    "too few values": ([N, column("cell", values=[0])], "has 1 values of 2"),
    "too many values": ([N, column("cell", values=[0, 0, 0])], "has 3 values of 2"),
    "text for values": ([N, column("cell", values="00")], "cannot be read"),
    "a place that is not there": ([N, column("x", table=["a"], places=[0, 1])], "cannot be read"),
    "a place from the end": ([N, column("x", table=["a"], places=[0, -1])], "cannot be read"),
    "a place that is true": ([N, column("x", table=["a"], places=[0, False])], "cannot be read"),
    "like nothing": ([N, column("x", like="y")], "cannot be read"),
    "like itself": ([N, column("x", like="x")], "cannot be read"),
    "like a text": ([N, column("y", same="a"), column("x", like="y")], "cannot be read"),
    "like a list": ([N, column("x", like=["y"])], "cannot be read"),
    "one minus a text": (
        [N, column("y", same="a"), column("x", one_minus="y")],
        "cannot be read",
    ),
    "counts of no rows": ([N, column("measures/a", of="n_test", values=[1, 1])], "cannot be read"),
    "counts of a list": ([N, column("measures/a", of=[], values=[1, 1])], "cannot be read"),
    "more right than there are": (
        [N, column("measures/n_test", same=3.0), column("measures/a", of="n_test", values=[1, 4])],
        "cannot be read",
    ),
    "counts of zero rows": (
        [N, column("measures/n_test", same=0.0), column("measures/a", of="n_test", values=[0, 0])],
        "cannot be read",
    ),
    "steps of texts": ([N, column("started_ms", steps=["1", "2"])], "cannot be read"),
    "steps without end": ([N, column("started_ms", steps=[10**400, 1])], "cannot be read"),
    "an end without a start": ([N, column("ended_ms", after=[1, 1])], "cannot be read"),
    "an end at infinity": (
        [
            N,
            column("started_ms", same=1),
            column("seconds", same=1e308),
            column("ended_ms", after=[1, 1]),
        ],
        "cannot be read",
    ),
    "a cell from the end": ([N, column("cell", same=-1)], "a cell that it does not have"),
    "a cell that is not there": ([N, column("cell", same=2)], "a cell that it does not have"),
    "no cell": ([N, column("split", same=1)], "a cell that it does not have"),
    "candidates without scores": ([N, CELL, column("search/params", same=[{}])], "a search that"),
    "a candidate that is no table": (
        [
            N,
            CELL,
            column("search/params", same=[1]),
            column("search/values", same=[[1]]),
            column("search/converged", same=[True]),
        ],
        "a search that cannot be read",
    ),
    "folds of no rows": (
        [
            N,
            CELL,
            column("search/params", same=[{}]),
            column("search/values", same=[[1]]),
            column("search/folds", same=[0]),
            column("search/converged", same=[True]),
        ],
        "a search that cannot be read",
    ),
    "a candidate of another number": (
        [
            N,
            CELL,
            column("search/params", same=[{}]),
            column("search/values", same=[[1.0]]),
            column("search/converged", same=[True]),
            column("details/chosen", same=5),
        ],
        "a search that cannot be read",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_columns_are_refused_with_their_own_sentence(kind):
    given, sentence = HOSTILE[kind]
    with pytest.raises(BundleError, match=sentence) as refused:
        back([json.dumps(line) for line in given])
    assert str(refused.value).startswith("line ")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("how", ["same", "table"])
def test_columns_cannot_grow_without_bound(how):
    """A line of 10 kB that stands for 2,000 results is bounded before it is expanded."""
    long = "x" * 10_000
    written = {
        "same": [column("error", same=long)],
        "table": [column("error", table=[long, ""], places=[0] * 2000)],
    }
    given = [{"n": 2000}, CELL, *written[how]]
    parsed = [(f"line {number}", line) for number, line in enumerate(given)]
    with pytest.raises(BundleError, match="line 2 makes results of more than 4 MB"):
        list(columns.Columns(parsed, ["key"], 4 << 20))


def test_results_cannot_be_too_many(monkeypatch):
    monkeypatch.setattr(columns, "MOST_RESULTS", 3)
    with pytest.raises(BundleError, match="says that it has 2 results"):
        back([json.dumps(line) for line in [N, CELL, N, CELL]])
