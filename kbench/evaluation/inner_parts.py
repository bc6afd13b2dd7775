"""Parts of the rows that inner folds keep together, as the official splits do."""

from __future__ import annotations

import numpy as np

from kbench.errors import DatasetError
from kbench.evaluation.splits import Folds
from kbench.records import Dataset, Protocol


def inner_parts(dataset: Dataset, protocol: Protocol, rows: np.ndarray) -> np.ndarray | None:
    """Return the number of the part of each of some rows; None where folds are random.

    Where each row is in the test part of one official split, these are the parts: rows of a
    group are in one. Of a single split, the parts are the places of the rows in its training
    part, which `folds_of` divides into consecutive blocks; its test rows come last.

    Raises
    ------
    DatasetError
        The test parts overlap, or leave rows out.
    """
    if protocol.inner_splits == "random":
        return None
    n, splits = len(dataset.y), dataset.splits
    if len(splits) == 1:
        place = np.full(n, n, dtype=np.int64)
        place[splits[0].train] = np.arange(len(splits[0].train))
        return np.argsort(np.argsort(place[rows], kind="stable"), kind="stable")
    part = np.full(n, -1, dtype=np.int64)
    n_tested = 0
    for split in splits:
        part[split.test] = split.index
        n_tested += len(split.test)
    if n_tested != n or (part < 0).any():
        raise DatasetError(
            f'{dataset.name}: inner_splits = "official" needs one official split, or splits of '
            "which each row is tested by exactly one"
        )
    found: np.ndarray = part[rows]
    return found


def folds_of(parts: np.ndarray, n_folds: int) -> Folds:
    """Return folds of which none divides a part, of about equal numbers of rows.

    Parts of one row each are put together in their order.

    >>> import numpy as np
    >>> [test.tolist() for _, test in folds_of(np.array([7, 7, 2, 4, 4, 4, 2]), 2)]
    [[3, 4, 5], [0, 1, 2, 6]]
    >>> [test.tolist() for _, test in folds_of(np.array([3, 2, 1, 0]), 2)]
    [[2, 3], [0, 1]]
    """
    names, place, counts = np.unique(parts, return_inverse=True, return_counts=True)
    n_folds = min(n_folds, len(names))
    if n_folds < 2:
        raise DatasetError('inner_splits = "official" needs two parts of the training rows')
    if len(names) == len(parts):
        fold_of_part = np.arange(len(names)) * n_folds // len(names)
    else:
        fold_of_part = np.empty(len(names), dtype=np.int64)
        sizes = np.zeros(n_folds, dtype=np.int64)
        for largest in np.argsort(-counts, kind="stable"):
            fold_of_part[largest] = sizes.argmin()
            sizes[sizes.argmin()] += counts[largest]
    return Folds(fold_of_part[place].astype(np.min_scalar_type(n_folds)), n_folds)
