"""Kept predictions come back as they were; damaged and hostile ones are refused."""

import json
import pickle
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbench.evaluation.checked_predictions import Predictions
from kbench.storage.predictions import DamagedPredictionsError, most_bytes, pack, unpack

FIELDS = ("predicted", "probabilities", "decision", "label_probabilities", "sd")
N, K = 7, 4
LABELS = np.arange(N) % K


def assert_equal(one, other):
    for name in FIELDS:
        first, second = getattr(one, name), getattr(other, name)
        assert (first is None) == (second is None), name
        if first is not None:
            np.testing.assert_array_equal(first, second)
            assert first.dtype == second.dtype, name


@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(2, 5))
def test_predictions_come_back_to_the_last_digit(seed, n, k):
    rng = np.random.default_rng(seed)
    given = Predictions(
        rng.integers(0, k, n),
        rng.dirichlet(np.ones(k), n),
        rng.normal(size=(n, k * (k - 1) // 2)) * 1e300,
        np.eye(k)[rng.integers(0, k, n)],
        np.abs(rng.normal(size=n)) * 5e-324,
    )
    kept = pack(given, "key")
    assert_equal(unpack(kept, "key", n, k), given)
    assert len(kept) <= most_bytes(n, k)


def test_numbers_that_float32_has_exactly_take_its_space():
    exact = np.random.default_rng(0).integers(0, 2**20, 1000) / 2**20
    assert b'"<f4"' in pack(Predictions(exact), "t")
    assert len(pack(Predictions(exact), "t")) < 4500
    assert b'"<f8"' in pack(Predictions(exact / 3), "t")


def test_probabilities_keep_the_type_by_which_their_sums_are_checked():
    rows = np.tile(np.float32([0.5, 0.500005]), (N, 1))
    given = Predictions(np.zeros(N, dtype=np.int64), rows, label_probabilities=rows)
    classes = np.arange(2)
    checked = given.validate("classification", classes, N, "it")
    kept = unpack(pack(checked, "t"), "t", N, 2)
    assert_equal(kept.validate("classification", classes, N, "it"), checked)


@pytest.mark.parametrize("shape", [(N,), (N, 1), (N, K), (N, 6)])
def test_decision_values_have_the_shapes_of_classifiers(shape):
    given = Predictions(LABELS, decision=np.zeros(shape))
    assert unpack(pack(given, "t"), "t", N, K).decision.shape == shape


KEPT = pack(Predictions(LABELS, np.full((N, K), 0.25)), "t")


def with_header(change, body=None):
    start, header, rest = KEPT.split(b"\n", 2)
    described = json.loads(header)
    change(described)
    return b"\n".join([start, json.dumps(described).encode(), rest if body is None else body])


def array(name, type_, shape):
    return lambda header: header.update(arrays=[[name, type_, shape]])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (KEPT[:-1], "cut or too long"),
        (KEPT[:40], "cannot be used"),
        (KEPT + b"more", "cut or too long"),
        (with_header(lambda header: header.update(task_key="u")), "those of another task"),
        (with_header(lambda header: header.pop("arrays")), "cannot be used"),
        (with_header(array("predicted", "|O", [N])), "another name or type"),
        (with_header(array("predicted", "<U9", [N])), "another name or type"),
        (with_header(array("__class__", "<i8", [N])), "another name or type"),
        (with_header(array("predicted", "<i8", [10**12])), "predicted has the shape"),
        (with_header(array("predicted", "<i8", [-1])), "predicted has the shape"),
        (with_header(array("predicted", "<i8", "x")), "predicted has the shape"),
        (with_header(array("probabilities", "<f8", [N, 10**9])), "probabilities has the shape"),
        (with_header(lambda header: header["arrays"].append(header["arrays"][0])), "twice"),
        (with_header(array("sd", "|i1", [N]), zlib.compress(bytes(N))), "cannot be used"),
        (KEPT.replace(b"\n{", b"\n" + b"[" * 10**6 + b"{"), "header is too long"),
        (b"kbench predictions 1\nnull\n", "cannot be used"),
        (b"", "another format"),
        (b"eJxjYAAAAAEAAQ==", "another format"),
    ],
)
def test_damaged_predictions_are_refused_with_a_message(data, words):
    with pytest.raises(DamagedPredictionsError, match=words):
        unpack(data, "t", N, K)


def test_a_small_blob_cannot_become_a_large_one():
    bomb = with_header(lambda header: None, zlib.compress(bytes(10**8)))
    tracemalloc.start()
    with pytest.raises(DamagedPredictionsError, match="cut or too long"):
        unpack(bomb, "t", N, K)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6


def test_nothing_is_unpickled():
    class Harmful:
        def __reduce__(self):
            return (pytest.fail, ("it ran",))

    with pytest.raises(DamagedPredictionsError):
        unpack(pickle.dumps(Harmful()), "t", N, K)
