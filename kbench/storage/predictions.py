"""Kept predictions of a split, as bytes: compact, self-describing, and never unpickled.

A first line names the format; a line of JSON has the key of the task and the name, type
and shape of each array; a compressed body has their bytes. Numbers come back as they were,
to the last digit. Nothing in the bytes is trusted.
"""

import json
import math
import zlib
from collections.abc import Mapping

import numpy as np

from kbench.errors import KbenchError
from kbench.evaluation.checked_predictions import Predictions
from kbench.records.canonical import Json

# Name of the blob that keeps the predictions of a task, of the first seed of the map.
BLOB = "predictions"

_FORMAT = b"kbench predictions 1\n"
_FIELDS = ("predicted", "probabilities", "decision", "label_probabilities", "sd")
# Fields that keep their type: how exactly rows must sum to 1 depends on it.
_PROBABILITIES = ("probabilities", "label_probabilities")

_TYPES = frozenset({"|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8"})
_MAX_HEADER = 4096
# Of compression: the last digits are random, so that higher levels save 1 %.
_LEVEL = 1


def blob_of_seed(number: int) -> str:
    """Return the name of the blob that keeps the predictions of a seed of the map.

    >>> blob_of_seed(0), blob_of_seed(2)
    ('predictions', 'predictions.2')
    """
    return f"{BLOB}.{number}" if number else BLOB


class DamagedPredictionsError(KbenchError):
    """Kept predictions cannot be read, or are those of another task."""


def pack(predictions: Predictions, task_key: str) -> bytes:
    """Return predictions as bytes.

    >>> kept = pack(Predictions(np.array([0, 2, 1])), "t")
    >>> unpack(kept, "t", n_rows=3, n_classes=3).predicted
    array([0, 2, 1])
    """
    fields = {name: getattr(predictions, name) for name in _FIELDS}
    arrays = {name: _narrow(name, array) for name, array in fields.items() if array is not None}
    header = {
        "task_key": task_key,
        "arrays": [[name, array.dtype.str, array.shape] for name, array in arrays.items()],
    }
    body = b"".join(_shuffle(array) for array in arrays.values())
    return _FORMAT + json.dumps(header).encode("ascii") + b"\n" + zlib.compress(body, _LEVEL)


def most_bytes(n_rows: int, n_classes: int) -> int:
    """Return a bound of the size of the predictions of some rows, packed or not."""
    columns = 2 + 2 * n_classes + max(n_classes, n_classes * (n_classes - 1) // 2)
    return 9 * n_rows * columns + 2 * _MAX_HEADER


def unpack(
    data: bytes, task_key: str, n_rows: int, n_classes: int, most: float = math.inf
) -> Predictions:
    """Read predictions of some rows, of `most` bytes; `n_classes` is 0 for regression.

    Raises DamagedPredictionsError if they are damaged, of another task, or of other rows.
    Types and shapes are those of predictions then, but not their values; see
    `Predictions.validate`.
    """
    try:
        if not data.startswith(_FORMAT):
            raise ValueError("they are in another format")
        header, _, body = data[len(_FORMAT) :].partition(b"\n")
        if len(header) > _MAX_HEADER:
            raise ValueError("its header is too long")
        described = json.loads(header)
        if described["task_key"] != task_key:
            raise ValueError("they are those of another task")
        arrays: dict[str, np.ndarray] = {}
        places = [
            _place(name, type_, shape, n_rows, n_classes)
            for name, type_, shape in described["arrays"]
        ]
        if len({name for name, *_ in places}) < len(places):
            raise ValueError("an array occurs twice")
        content = _decompress(body, sum(size for *_, size in places), most)
        for name, dtype, shape, size in places:
            part, content = content[:size], content[size:]
            arrays[name] = _widen(name, _unshuffle(part, dtype).reshape(shape))
        return Predictions(**arrays)
    except (ValueError, TypeError, KeyError, RecursionError, zlib.error) as error:
        raise DamagedPredictionsError(f"the kept predictions cannot be used: {error}") from None


def _place(
    name: Json, type_: Json, shape: Json, n_rows: int, n_classes: int
) -> tuple[str, np.dtype, tuple[int, ...], int]:
    """Return name, type, shape and bytes of an array, if predictions can have it."""
    if name not in _FIELDS or type_ not in _TYPES:
        raise ValueError("an array is of another name or type than is allowed")
    widths: Mapping[str, list[int | None]] = {
        "predicted": [None],
        "sd": [None],
        "decision": [None, 1, n_classes, n_classes * (n_classes - 1) // 2],
    }
    shapes = [
        [n_rows] if width is None else [n_rows, width] for width in widths.get(name, [n_classes])
    ]
    if shape not in shapes:
        raise ValueError(f"{name} has the shape {shape}, expected {n_rows} rows")
    dtype = np.dtype(type_)
    return name, dtype, tuple(shape), dtype.itemsize * math.prod(shape)


def _decompress(body: bytes, size: int, most: float) -> bytes:
    if size > most:
        raise ValueError(f"they have {size:,} bytes, more than the {most:,} allowed")
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(body, size + 1)
    if len(content) != size or not unpacking.eof or unpacking.unused_data:
        raise ValueError("they are cut or too long")
    return content


def _narrow(name: str, array: np.ndarray) -> np.ndarray:
    """Return the values in the smallest of a few types that has them exactly."""
    if name in _PROBABILITIES:
        return array.astype("<f4" if array.dtype.itemsize <= 4 else "<f8", copy=False)
    wide = np.asarray(array, dtype=np.float64 if array.dtype.kind == "f" else "<i8")
    for type_ in ("<f4",) if wide.dtype.kind == "f" else ("|i1", "<i2", "<i4"):
        with np.errstate(over="ignore"):
            narrow = wide.astype(type_)
        if np.array_equal(narrow, wide):
            return narrow
    return np.ascontiguousarray(wide, dtype=wide.dtype.newbyteorder("<"))


def _widen(name: str, array: np.ndarray) -> np.ndarray:
    if name in _PROBABILITIES:
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def _shuffle(array: np.ndarray) -> bytes:
    """Return first all first bytes of the values, then the second: they compress better."""
    size = array.dtype.itemsize
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(-1, size).T.tobytes()


def _unshuffle(content: bytes, dtype: np.dtype) -> np.ndarray:
    columns = np.frombuffer(content, np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(columns.T).reshape(-1).view(dtype)
