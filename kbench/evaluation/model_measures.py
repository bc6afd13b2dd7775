"""Measures of a fitted map and learner: sizes, and the error of the Gram matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kbench.evaluation.lazy_rows import Matrix
from kbench.evaluation.method import Kernel
from kbench.evaluation.outputs import FittedLearner, FittedMap


def sizes(map_: FittedMap, learner: FittedLearner, Z: Matrix) -> dict[str, float]:
    """Count features, non-zeros per row of the embedding, and what the model stores."""
    n_rows, n_components = Z.shape
    nnz = Z.nnz if hasattr(Z, "nnz") else int(np.count_nonzero(Z))
    return {
        "n_components": float(n_components),
        "nnz_per_row": nnz / n_rows,
        "model_floats": float(stored_numbers([map_, learner])),
    }


def stored_numbers(fitted: Any) -> int:
    """Count the array elements that fitted estimators store, without zeros of sparse ones.

    Attributes, lists, tuples and dicts are followed; the inside of compiled objects
    (a k-d tree) is not counted.
    """
    seen: set[int] = set()
    waiting, count = [fitted], 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            fields = len(value.dtype.names or (None,))
            count += value.size * fields
        elif hasattr(value, "indptr"):
            count += value.nnz
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif hasattr(value, "__dict__") and not callable(value) and not isinstance(value, type):
            waiting.extend(vars(value).values())
    return count


SPECTRAL_ROWS = 1000
"""Rows from which the spectral measures of a Gram matrix are computed at most."""


def gram_error(kernel: Kernel, map_: FittedMap, X: Matrix) -> dict[str, float]:
    """Measure the error of a fitted map's inner products as an approximation of its kernel.

    ``kernel(map, X, Y)`` returns the Gram matrix K; `X` has rows that the map was not
    fitted on. ``gram_error_frobenius`` and ``gram_error_spectral`` are relative to K, and left
    out where K is 0, as of features that are all constant;
    ``effective_dimension`` is the trace of K (K + I)^-1: the number of directions that
    a regulariser of 1 leaves. The last two are those of the first `SPECTRAL_ROWS` rows: the
    time of eigenvalues grows with the cube of the rows.
    """
    K = np.asarray(kernel(map_, X, X), dtype=np.float64)
    Z = map_.transform(X)
    product = Z @ Z.T
    difference = K - (product.toarray() if hasattr(product, "toarray") else product)
    error, norm = float(np.linalg.norm(difference)), float(np.linalg.norm(K))
    K, difference = (G[:SPECTRAL_ROWS, :SPECTRAL_ROWS] for G in (K, difference))
    spectrum = np.linalg.eigvalsh((K + K.T) / 2)
    positive = np.clip(spectrum, 0.0, None)
    largest = float(np.abs(spectrum).max())
    distance = float(np.abs(np.linalg.eigvalsh((difference + difference.T) / 2)).max())
    relative = {"gram_error_frobenius": (error, norm), "gram_error_spectral": (distance, largest)}
    return {
        **{name: value / size for name, (value, size) in relative.items() if size},
        "effective_dimension": float((positive / (positive + 1.0)).sum()),
    }
