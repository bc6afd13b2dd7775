"""Fitted objects are written without pickle, and only allowed classes are created."""

import json
import os
import subprocess

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import TargetEncoder

from kbench_tables.export import plain_objects


def dump(value):
    written, arrays = plain_objects.dump(value, lambda module: None)
    assert not any(array.dtype.hasobject for array in arrays.values())
    return json.loads(json.dumps(written)), arrays


def again(value):
    return plain_objects.load(*dump(value), "no_package")


@pytest.mark.parametrize(
    "estimator",
    [
        HistGradientBoostingClassifier(max_iter=3),
        RandomForestClassifier(3, random_state=np.random.RandomState(0)),
        GaussianProcessRegressor(random_state=0),
        KNeighborsClassifier(algorithm="kd_tree"),
    ],
)
def test_estimators_predict_the_same(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    estimator.fit(X, y)
    np.testing.assert_array_equal(again(estimator).predict(X), estimator.predict(X))


def test_values_keep_their_types():
    shared = np.arange(3.0)
    given = {
        "tuple": (1, 2.5, None, True, "text"),
        1: {2, 3},
        "bytes": b"\x00\xff",
        "scalar": np.float32(1.5),
        "type": np.float64,
        "dtype": np.dtype([("a", "<i4"), ("b", "<f8")]),
        "ufunc": np.tanh,
        "mixed": np.array(["a", 1, None], dtype=object),
        "nan": float("nan"),
        "arrays": [shared, shared],
        "fortran": np.asfortranarray(np.ones((2, 3))),
        "rng": np.random.default_rng(3),
    }
    found = again(given)
    assert found["tuple"] == given["tuple"]
    assert (found[1], found["bytes"], found["type"]) == ({2, 3}, b"\x00\xff", np.float64)
    assert found["scalar"].dtype == np.float32
    assert found["dtype"] == given["dtype"]
    assert found["ufunc"] is np.tanh
    assert found["mixed"].tolist() == ["a", 1, None]
    assert found["arrays"][0] is found["arrays"][1]
    assert found["fortran"].flags.f_contiguous
    assert found["rng"].random() == np.random.default_rng(3).random()


def test_an_encoder_of_missing_categories_is_the_same():
    X = np.array([[0.0], [1.0], [np.nan]] * 8)
    encoder = TargetEncoder(target_type="continuous").fit(X, np.arange(24.0))
    np.testing.assert_array_equal(again(encoder).transform(X), encoder.transform(X))


@pytest.mark.parametrize("value", [lambda x: x, "text".upper, memoryview(b"a")])
def test_what_cannot_be_written_is_refused(value):
    with pytest.raises(plain_objects.NotPlainError):
        dump([value])


@pytest.mark.parametrize(
    "written",
    [
        {"name": "os:system"},
        {"name": "builtins:eval"},
        {"name": "builtins:getattr"},
        {"name": "subprocess:Popen"},
        {"name": "numpy.lib._npyio_impl:os.system"},
        {"id": 0, "call": "os:system", "arguments": ["true"]},
        {"id": 0, "call": "numpy:load", "arguments": ["model.npz"]},
        {"id": 0, "call": "sklearn.utils.fixes:sys.exit", "arguments": []},
        {"id": 0, "new": "subprocess:Popen", "arguments": []},
        {"call": "os:system", "arguments": []},
        {"strange": 1},
        {},
    ],
)
def test_nothing_else_is_called(written, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("it was called")

    monkeypatch.setattr(os, "system", forbidden)
    monkeypatch.setattr(subprocess, "Popen", forbidden)
    with pytest.raises((ValueError, AttributeError)):
        plain_objects.load(written, {}, "no_package")
