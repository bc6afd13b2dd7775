"""Results as columns: every value comes back as it was, and nothing is read that cannot be."""

import copy
import json
import random

import pytest

from kbench.errors import BundleError
from kbench_sharing import columns
from kbench_sharing.columns import pack, unpack
from tests.support.bundles import files, results_of

KEYS = ["a" * 64, "b" * 64]


def back(text, keys=KEYS, most=1 << 30):
    parsed = ((f"line {i}", json.loads(line)) for i, line in enumerate(text.splitlines(), 1))
    return [result for _, result in unpack(parsed, keys, most)]


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
        "machine_speed_s": 0.1,
        "cpu_s": 0.5,
        "limits": {"task_timeout_s": None, "task_memory_mib": 4096.0},
        "metrics": {"accuracy": 29 / 30, "n_test": 30.0, "n_train": 120.0},
        "details": {"chosen": {}, "search": [], "split_hash": "ab", "notes": []},
    }
    return {**made, **changes}


def searched(values, chosen=0, converged=True):
    candidates = [
        {"learner.C": 2.0**i, "scaling": None, "converged": converged, "values": each}
        for i, each in enumerate(values)
    ]
    params = {name: candidates[chosen][name] for name in ("learner.C", "scaling")}
    return {"chosen": params, "search": candidates, "split_hash": "ab"}


SHARES = [[17 / 42, 16 / 42, 17 / 41], [1.0, 41 / 42, 39 / 41]]

ODD = {
    "metrics of regression": result(metrics={"rmse": 12.5, "r2": -3.25, "n_test": 30.0}),
    "zeros of both signs": result(metrics={"accuracy": 0.0, "mcc": -0.0, "n_test": 3.0}),
    "one minus the accuracy": result(
        metrics={"accuracy": 0.9, "expected_error": 1.0 - 0.9, "n_test": 30.0}
    ),
    "a share of no rows": result(metrics={"accuracy": 0.5, "n_test": 0.0}),
    "a share of half a row": result(metrics={"accuracy": 0.5, "n_test": 2.5}),
    "a last bit that is other": result(metrics={"accuracy": 29 / 30 + 1e-16, "n_test": 30.0}),
    "no metric at all": result(status="error", metrics={}, details={}),
    "a grid of shares": result(details=searched(SHARES)),
    "scores that are no shares": result(details=searched([[0.1234567890123], [0.5]])),
    "scores of a plugin": result(details=searched([[-12.5, 3.0], [1e300, -0.0]])),
    "scores without a value": result(details=searched([[None, 0.5], [0.25, 0.5]])),
    "scores of unequal folds": result(details=searched([[0.5], [0.5, 0.25]])),
    "no inner fold": result(details=searched([[], []])),
    "a choice beside the grid": result(
        details={**searched(SHARES), "chosen": {"learner.C": 3.0, "scaling": None}}
    ),
    "a choice of another type": result(
        details={**searched(SHARES), "chosen": {"learner.C": 1, "scaling": None}}
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
    assert same(back(pack([ODD[kind]], KEYS)), [ODD[kind]])


def test_all_odd_results_come_back_beside_each_other():
    # `details` are absent as a whole, or have all fields
    some = [copy.deepcopy(each) for each in ODD.values()] * 3
    random.Random(0).shuffle(some)
    for number, each in enumerate(some):
        each["split"], each["cell"] = number, KEYS[number % 2]
    assert same(back(pack(some, KEYS)), some)


def test_made_up_results_come_back_and_become_the_same_lines(honest, monkeypatch):
    keys = list(dict.fromkeys(each["cell"] for each in honest))
    text = pack(honest, keys)
    assert same(back(text, keys), honest)
    assert pack(back(text, keys), keys) == text
    monkeypatch.setattr(columns, "BLOCK", 7)
    blocks = pack(honest, keys)
    assert blocks.count(b"\n") == 6
    assert same(back(blocks, keys), honest)


def test_thousands_of_results_are_one_block():
    some = [{"cell": KEYS[0], "split": split} for split in range(3_000)]
    assert pack(some, KEYS).count(b"\n") == 1


def many(n=400):
    """Return results with all odd values, as many as have signs."""
    made = [copy.deepcopy(each) for each in ODD.values()] * (n // len(ODD) + 1)
    for number, each in enumerate(made):
        each["split"], each["cell"] = number, KEYS[number % 2]
    return made


def test_numbers_that_repeat_are_listed_once_and_come_back_as_they_were():
    some = many()
    written = json.loads(pack(some, KEYS))
    # a zero of the other sign is another number
    assert written["metrics/mcc"]["values"] == [0.0, None]
    assert str(written["metrics/mcc"]["values"][0]) == "-0.0"
    assert set(written["metrics/mcc"]) == {"values", "signs"}
    assert same(back(pack(some, KEYS)), some)


def test_kinds_of_equal_numbers_are_kept_apart():
    kinds = [1, 1.0, True, 0, -0.0, 0.0, False, None, 10**30, 1e-300]
    some = [result(split=i, details={"map_details": None, "x": kinds[i % 10]}) for i in range(500)]
    assert isinstance(json.loads(pack(some, KEYS))["details/x"], dict)
    read = back(pack(some, KEYS))
    assert [repr(each["details"].get("x")) for each in read] == [
        repr(kinds[i % 10]) for i in range(500)
    ]


def test_lists_of_all_shapes_come_back():
    shapes = [[], [[]], [[1.0, 2.0], []], [[1.0], [2.0, 2.0]], None, [1.0, [2.0]], [[None, 1.0]]]
    some = [result(split=i, details={"x": shapes[i % len(shapes)]}) for i in range(700)]
    assert isinstance(json.loads(pack(some, KEYS))["details/x"], dict)
    read = back(pack(some, KEYS))
    assert [each["details"].get("x") for each in read] == [each["details"]["x"] for each in some]


@pytest.mark.parametrize("text", ['"', "\\", "[", "]", ",", "{", "}", "\n", "a", "1.5", "null"])
def test_texts_have_no_signs_and_come_back(text):
    some = [result(split=i, printed=text, details={"notes": [text]}) for i in range(200)]
    assert same(back(pack(some, KEYS)), some)


def test_integers_of_many_digits_come_back():
    made = [{"x": each} for each in (10**31, 10**32, -(10**40))]
    some = [result(split=i, details=made[i % 3]) for i in range(300)]
    assert same(back(pack(some, KEYS)), some)
    assert isinstance(json.loads(pack(some, KEYS))["details/x"], list)


def test_names_with_a_slash_come_back():
    one = result(
        metrics={"accuracy": 0.5, "a/b": 1.0, "details/x": 2.0, "search/C": 3.0},
        details={"searching/x": 1, "search": [{"map/C": 1.0, "values": [0.5]}]},
    )
    assert same(back(pack([one], KEYS)), [one])


def test_a_name_that_starts_with_a_slash_is_that_of_another_column():
    (read,) = back(json.dumps({**CELL, "split": [3], "/split": [4], "/details": [{"x": 1}]}))
    assert (read["split"], read["details"]) == (3, {})
    assert read["/split"] == 4


def test_more_numbers_than_there_are_signs_come_back():
    some = [result(split=i, cpu_s=float(i // 3)) for i in range(9_000)]
    assert same(back(pack(some, KEYS)), some)
    assert isinstance(json.loads(pack(some, KEYS))["cpu_s"], list)


def test_results_of_a_rows_file_have_no_signs():
    some = [result(split=i) for i in range(99)]
    assert isinstance(json.loads(pack(some, KEYS))["cpu_s"], list)
    assert isinstance(json.loads(pack([*some, result(split=99)], KEYS))["cpu_s"], dict)


def test_candidates_of_a_search_are_columns():
    written = json.loads(pack([ODD["a grid of shares"]], KEYS))
    assert written["details/search/values"] == [SHARES]
    assert written["details/search/learner.C"] == [[1.0, 2.0]]


CELL = {"cell": [0]}


def search(**lists):
    return {**CELL, **{f"details/search/{name}": [each] for name, each in lists.items()}}


HOSTILE = {
    "no block": ([], f"is not a block of up to {columns.BLOCK:,} results"),
    "no columns": ({}, "is not a block"),
    "no results": ({"cell": []}, "is not a block"),
    "too many in a block": ({"cell": [0] * (columns.BLOCK + 1)}, "is not a block"),
    "a text for a column": ({"cell": "0"}, "is not a block"),
    "too few values": ({"cell": [0, 0], "split": [0]}, "is not a block"),
    "a cell from the end": ({"cell": [-1]}, "a cell that the bundle lacks"),
    "a cell that is not there": ({"cell": [2]}, "a cell that the bundle lacks"),
    "a cell that is true": ({"cell": [True]}, "a cell that the bundle lacks"),
    "no cell": ({"split": [1]}, "a cell that the bundle lacks"),
    "candidates without scores": (search(C=[1.0], values=[]), "a search that cannot be read"),
    "signs without numbers": ({"cell": {"signs": "[##]"}}, "is not a block"),
    "signs that are no text": ({"cell": {"values": [0], "signs": [0]}}, "is not a block"),
    "a text with a sign": ({"cell": {"values": ["0"], "signs": "[#]"}}, "is not a block"),
    "a list with a sign": ({"cell": {"values": [[0]], "signs": "[#]"}}, "is not a block"),
    "a long number with a sign": ({"cell": {"values": [10**40], "signs": "[#]"}}, "is not a block"),
    "a sign without a number": ({"cell": {"values": [0], "signs": "[#$]"}}, "is not a block"),
    "JSON for signs": ({"cell": {"values": [0], "signs": '["a",1]'}}, "is not a block"),
    "a number for signs": ({"cell": {"values": [0], "signs": "[1]"}}, "is not a block"),
    "a comma between signs": ({"cell": {"values": [0], "signs": "[#,#]"}}, "is not a block"),
    "details in a column": ({**CELL, "details": [{}]}, "has details that are not columns"),
    "details of no kind": (
        {**search(C=[1.0], values=[[0.5]]), "details": [1]},
        "has details that are not columns",
    ),
    "signs that do not end": ({"cell": {"values": [0], "signs": "[#"}}, "is not JSON"),
    "no signs at all": ({"cell": {"values": [0], "signs": ""}}, "is not JSON"),
    "too few signs": ({"cell": {"values": [0], "signs": "[##]"}, "split": [1]}, "is not a block"),
    "candidates that are no list": ({**CELL, "details/search/C": 1}, "is not a block"),
    "a text for candidates": (search(C="ab", values=["a", "b"]), "a search that cannot be read"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_columns_are_refused_with_their_own_sentence(kind):
    given, sentence = HOSTILE[kind]
    with pytest.raises(BundleError, match=sentence) as refused:
        back(json.dumps(given))
    assert str(refused.value).startswith("line ")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "given",
    [
        {"cell": [0] * 1000},
        search(C=[0] * 1000),
        {**CELL, "details/search": [[0] * 1000]},
        {**CELL, "details/notes": {"values": [0], "signs": f"[[{'#' * 3000}]]"}},
    ],
    ids=["results", "columns of candidates", "candidates", "signs"],
)
def test_columns_cannot_grow_without_bound(given):
    """A few characters become a result or a candidate, of which each takes much more memory."""
    assert list(unpack([("line 1", given)], ["key"], 200_000))
    with pytest.raises(BundleError, match="line 1 has more results or candidates of searches"):
        list(unpack([("line 1", given)], ["key"], 1000))


def test_results_cannot_be_too_many(monkeypatch):
    monkeypatch.setattr(columns, "MAX_RESULTS", 3)
    with pytest.raises(BundleError, match="more than the 3 results that can be read at once"):
        back(b'{"cell":[0,0]}\n{"cell":[0,0]}\n')
