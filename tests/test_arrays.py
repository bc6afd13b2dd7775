"""Namespaces of arrays, and conversions between them."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, namedtuple
from types import SimpleNamespace

import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import hadamard
from sklearn.utils import Bunch

from kbench.arrays import (
    host_type,
    inverse,
    is_positive,
    like,
    namespace,
    on_device,
    on_host,
    row_sums,
    squared_norms,
    take,
    to_numpy,
)
from kbench_baselines._primitives import segment_sums, walsh_hadamard, waves
from tests.support.array_libraries import LIBRARIES, library

RNG = np.random.default_rng(0)


@pytest.fixture(params=LIBRARIES)
def xp(request):
    with library(request.param) as xp:
        yield xp


def test_host_arrays_have_numpys_namespace():
    for X in (np.ones(2), np.float64(1.0), sp.csr_matrix(np.eye(2)), [[1.0]]):
        assert namespace(X) is np


def test_values_take_namespace_and_type_of_another_array():
    X = strict.asarray([1.0, 2.0], dtype=strict.float32)
    moved = like(np.arange(3.0), X)
    assert namespace(moved) is strict
    assert moved.dtype == strict.float32
    back = like(moved, np.ones(1))
    assert type(back) is np.ndarray
    assert back.dtype == np.float64
    assert back.tolist() == [0.0, 1.0, 2.0]


def test_array_of_the_same_type_is_not_copied():
    values = np.arange(3.0)
    assert like(values, np.ones(1)) is values
    assert to_numpy(values) is values


def test_estimators_come_to_the_host_with_all_their_arrays():
    Pair = namedtuple("Pair", "first second")
    array = strict.asarray([1.0, 2.0])
    inner = SimpleNamespace(array=array, numbers=np.ones(2))
    fitted = SimpleNamespace(
        array=array, parts=[array, 3], pair=Pair(array, "a"), table={"k": inner}
    )
    copied = on_host(fitted)
    arrays = [copied.array, copied.parts[0], copied.pair.first, copied.table["k"].array]
    assert all(type(each) is np.ndarray and each.tolist() == [1.0, 2.0] for each in arrays)
    assert copied.parts[1] == 3
    assert copied.table["k"].numbers is inner.numbers
    assert fitted.array is array  # the original stays


def test_what_has_no_arrays_and_what_refers_to_itself_comes_to_the_host(xp):
    array, logger, opened = xp.asarray([1.0, 2.0]), logging.getLogger("x"), threading.Lock()
    fitted = SimpleNamespace(array=array, logger=logger, kind=np.float64, lock=opened)
    fitted.itself = fitted
    fitted.tables = defaultdict(list, k=array), Bunch(k=array)
    copied = on_host(fitted)
    assert (copied.logger, copied.kind, copied.lock) == (logger, np.float64, opened)
    assert all(type(table["k"]) is np.ndarray for table in copied.tables)
    assert type(copied.array) is np.ndarray
    assert [type(each) for each in copied.tables] == [defaultdict, Bunch]


def test_torch_has_the_namespace_of_the_standard():
    torch = pytest.importorskip("torch", reason="the extra gpu is not installed")
    X = torch.ones(2, dtype=torch.float32, requires_grad=True)
    assert hasattr(namespace(X), "astype")
    assert to_numpy(X).tolist() == [1.0, 1.0]
    assert like(np.arange(2.0), X).dtype == torch.float32


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_go_to_a_namespace_and_back(xp, dtype):
    reversed_rows = RNG.normal(size=(4, 3)).astype(dtype)[::-1]
    reversed_rows.setflags(write=False)
    there = like(reversed_rows, xp.asarray(np.zeros(1, dtype)))
    assert namespace(there) is namespace(xp.asarray([1.0]))
    assert host_type(there) == host_type(reversed_rows) == dtype
    np.testing.assert_array_equal(like(there, reversed_rows), reversed_rows)
    assert to_numpy(like(there, there, xp.float64)).dtype == np.float64
    # from another namespace than numpy
    np.testing.assert_array_equal(to_numpy(like(strict.asarray([1.0]), there)), [1.0])
    np.testing.assert_array_equal(like(sp.csr_matrix(np.eye(2)), there).shape, (2, 2))


def test_estimators_go_to_the_place_of_an_array_with_their_own_types(xp):
    fitted = SimpleNamespace(
        single=np.ones(2, np.float32),
        numbers=np.arange(3),
        names=np.array(["a"], dtype=object),
        rows=sp.csr_matrix(np.eye(2)),
        parts=[np.ones(1)],
    )
    X = xp.asarray([1.0])
    moved = on_device(fitted, X)
    for values in (moved.single, moved.numbers, moved.parts[0]):
        assert namespace(values) is namespace(X)
    assert host_type(moved.single) == np.float32
    assert host_type(moved.numbers) == np.int64
    assert moved.names is fitted.names
    assert moved.rows is fitted.rows
    assert type(on_host(moved).single) is np.ndarray


@pytest.mark.parametrize("rows", [slice(1, 3), slice(None), np.array([2, 0, 2])])
def test_rows_are_taken_in_each_namespace(xp, rows):
    X = RNG.normal(size=(4, 3))
    np.testing.assert_array_equal(to_numpy(take(xp.asarray(X), rows)), X[rows])
    if not isinstance(rows, slice):
        there = xp.asarray(rows)
        np.testing.assert_array_equal(take(X, there), X[rows])
        np.testing.assert_array_equal(to_numpy(take(xp.asarray(X), there)), X[rows])


@pytest.mark.parametrize("exponent", range(12))
def test_the_transform_is_the_product_with_a_hadamard_matrix(exponent):
    A = RNG.normal(size=(2**exponent, 3))
    expected = hadamard(2**exponent) @ A
    np.testing.assert_allclose(walsh_hadamard(A.copy()), expected, atol=1e-12 * 2**exponent)
    single = walsh_hadamard(A.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-5 * 2**exponent)


@pytest.mark.parametrize("exponent", [0, 1, 5, 6, 10])
def test_the_transform_is_the_same_in_each_namespace(xp, exponent):
    A = RNG.normal(size=(2**exponent, 3))
    there = walsh_hadamard(xp.asarray(A))
    np.testing.assert_allclose(to_numpy(there), walsh_hadamard(A), atol=1e-13 * 2**exponent)


def test_cosines_and_sines_are_exact_to_rounding():
    phases = np.concatenate([RNG.normal(size=1000) * 1e4, np.pi * np.arange(-40, 41) / 2])
    cosines, sines = np.empty_like(phases), np.empty_like(phases)
    waves(phases, cosines, sines)
    np.testing.assert_allclose(cosines, np.cos(phases), atol=2e-15)
    np.testing.assert_allclose(sines, np.sin(phases), atol=2e-15)


def test_waves_are_written_to_views_in_each_namespace(xp):
    phases = RNG.normal(size=(5, 4))
    features = xp.zeros((5, 9), dtype=xp.float64)
    waves(xp.asarray(phases), features[:, :4], features[:, 4:8], 0.5)
    expected = np.hstack([np.cos(phases), np.sin(phases), np.zeros((5, 2))])[:, :9]
    np.testing.assert_allclose(to_numpy(features), expected * 0.5, atol=1e-15)


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_rows_are_added_by_segment(xp, kind):
    values, segments = RNG.normal(size=(20, 3)), RNG.integers(5, size=20)
    weights = RNG.choice([-1.0, 1.0] if kind is np.float64 else [1j, -1.0], size=20).astype(kind)
    expected = np.zeros((7, 3), dtype=kind)
    np.add.at(expected, segments, weights[:, None] * values)
    np.testing.assert_allclose(segment_sums(values, segments, weights, 7), expected, atol=1e-14)
    there = segment_sums(xp.asarray(values), segments, xp.asarray(weights), 7)
    np.testing.assert_allclose(to_numpy(there), expected, atol=1e-14)


@pytest.mark.parametrize("function", [squared_norms, row_sums])
def test_sums_of_rows_are_the_same_in_each_namespace(xp, function):
    X = RNG.normal(size=(5, 3))
    np.testing.assert_allclose(to_numpy(function(xp.asarray(X))), function(X), rtol=1e-14)
    np.testing.assert_allclose(function(sp.csr_matrix(X)), function(X), rtol=1e-14)


@pytest.mark.parametrize("function", [inverse, is_positive])
def test_zeros_stay_zeros(xp, function):
    values = np.array([2.0, 0.0, -4.0])
    there = function(xp.asarray(values))
    np.testing.assert_array_equal(to_numpy(there), function(values))
    assert host_type(there) == np.float64
