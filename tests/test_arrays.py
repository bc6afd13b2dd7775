"""Namespaces of arrays, and conversions between them."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse as sp

from kbench.arrays import like, namespace, on_host, to_numpy


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


def test_torch_has_the_namespace_of_the_standard():
    torch = pytest.importorskip("torch", reason="the extra gpu is not installed")
    X = torch.ones(2, dtype=torch.float32, requires_grad=True)
    assert hasattr(namespace(X), "astype")
    assert to_numpy(X).tolist() == [1.0, 1.0]
    assert like(np.arange(2.0), X).dtype == torch.float32
