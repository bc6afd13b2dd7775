"""The canonical form of a dataset, and counts of its missing and duplicate values."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kbench.errors import DatasetError
from kbench.evaluation.lazy_rows import row_hashes
from kbench.parameters import check_choice
from kbench.records import FEATURE_KINDS, TASK_TYPES, Dataset, Split

# A dense array or a CSR matrix, whose package has no types.
Matrix = Any

Refuse = Callable[[str], DatasetError]

# Values that are checked together, to bound the memory (1 MiB).
CHUNK = 1 << 17


def check_dataset(dataset: Dataset) -> Dataset:
    """Check that a dataset is in canonical form, and bring its arrays to it.

    Integers and booleans in `X` become float64; sparse input becomes a CSR
    matrix with sorted indices and no stored zeros; the checksum is computed
    from the content. Nothing else is changed: `X` becomes float64 or float32,
    C-contiguous or CSR; `y` int64, for regression float64.

    Raises DatasetError if the shapes disagree, a value is infinite, the labels
    are not exactly 0..k-1 with k >= 2, the targets are constant or missing, a weight is
    negative, or the names, kinds or splits do not fit.

    Examples
    --------
    >>> data = Dataset("xor", X=np.array([[0, 0], [0, 1], [1, 0], [1, 1]]),
    ...                y=np.array([0, 1, 1, 0]))
    >>> check_dataset(data).X.dtype
    dtype('float64')
    """

    def refuse(why: str) -> DatasetError:
        return DatasetError(f"dataset {dataset.name!r}: {why}")

    X, y = dataset.X, np.asarray(dataset.y)
    if len(X.shape) != 2:
        raise refuse(f"X must have 2 dimensions, got {len(X.shape)}")
    n, d = X.shape
    if y.shape != (n,):
        raise refuse(f"y must have shape ({n},), one value per row of X, got {y.shape}")
    if n == 0 or d == 0:
        raise refuse(f"X must not be empty, got shape {X.shape}")
    if X.dtype.kind not in "fbiu" or X.dtype.itemsize > 8:
        raise refuse(f"X must have dtype float64 or float32, got {X.dtype}")
    X = _canonical_matrix(X)
    _refuse_infinite(X, dataset, refuse)

    check_choice(dataset.task, f"dataset {dataset.name!r}: task", TASK_TYPES, error=DatasetError)
    if dataset.task == "regression":
        y, k = _canonical_targets(y, refuse), 0
    else:
        y, k = _canonical_labels(y, refuse)
    sample_weight = _canonical_weights(dataset.sample_weight, n, refuse)
    for label, values, wanted in (
        ("feature_names", dataset.feature_names, d),
        ("feature_kinds", dataset.feature_kinds, d),
        ("target_names", dataset.target_names, k),
    ):
        if len(values) != wanted:
            raise refuse(f"{label} must have {wanted} entries, got {len(values)}")
    unknown = set(dataset.feature_kinds) - set(FEATURE_KINDS)
    if unknown:
        raise refuse(f"feature_kinds must be in {FEATURE_KINDS}, got {sorted(unknown)}")
    if "target_encoded" in dataset.feature_kinds and (hasattr(X, "indptr") or dataset.pairwise):
        raise refuse("feature_kinds has 'target_encoded', which is for dense inputs only")
    roles = ("evaluation", "development")
    check_choice(dataset.role, f"dataset {dataset.name!r}: role", roles, error=DatasetError)
    if dataset.pairwise and n != d:
        raise refuse(f"pairwise, but X has shape {X.shape}; a Gram matrix is square")

    row_ids = dataset.row_ids
    if row_ids is not None:
        row_ids = np.ascontiguousarray(row_ids, dtype=np.int64)
        if row_ids.shape != (n,):
            raise refuse(f"row_ids must have shape ({n},), got {row_ids.shape}")
    splits = []
    for number, split in enumerate(dataset.splits):
        parts = [np.asarray(p, dtype=np.int64) for p in (split.train, split.test, split.unlabeled)]
        rows = np.concatenate(parts)
        if split.index != number:
            raise refuse(f"split {number} has index {split.index}; splits are numbered from 0")
        if len(parts[0]) == 0 or len(parts[1]) == 0:
            raise refuse(f"split {number} has no training or no test rows")
        if rows.min() < 0 or rows.max() >= n:
            raise refuse(f"split {number} names rows outside 0..{n - 1}")
        is_test = np.zeros(n, dtype=bool)
        is_test[parts[1]] = True
        if is_test[parts[0]].any() or is_test[parts[2]].any():
            raise refuse(f"split {number} has rows both in its training and its test set")
        splits.append(Split(number, *parts))
    return replace(
        dataset,
        X=X,
        y=y,
        row_ids=row_ids,
        splits=tuple(splits),
        sample_weight=sample_weight,
        checksum="",
    )


def _canonical_labels(y: np.ndarray, refuse: Refuse) -> tuple[np.ndarray, int]:
    """Return labels in int64, and the number of classes."""
    if y.dtype.kind not in "biu":
        hint = '; task="regression" takes them as targets' if y.dtype.kind == "f" else ""
        raise refuse(f"y must have integer labels 0..k-1, got dtype {y.dtype}{hint}")
    y = np.ascontiguousarray(y, dtype=np.int64)
    classes = np.unique(y)
    k = len(classes)
    if k < 2:
        raise refuse(f"all rows have the label {classes[0]}; there must be at least 2 classes")
    if classes[0] != 0 or classes[-1] != k - 1:
        raise refuse(
            f"y has {k} different labels from {classes[0]} to {classes[-1]}; "
            f"they must be 0..{k - 1}, each present"
        )
    return y, k


def _canonical_targets(y: np.ndarray, refuse: Refuse) -> np.ndarray:
    """Return targets in float64."""
    if y.dtype.kind not in "fbiu":
        raise refuse(f"the targets of a regression task must be numbers, got dtype {y.dtype}")
    y = np.ascontiguousarray(y, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(y))
    if len(wrong):
        raise refuse(
            f"targets must be finite numbers; {len(wrong)} of {len(y)} are not, the first in "
            f"row {wrong[0]}: {y[wrong[0]]}"
        )
    if y.min() == y.max():
        raise refuse(f"all rows have the target {y[0]:g}; a constant cannot be learned")
    with np.errstate(over="ignore", under="ignore"):
        variance = np.var(y)
    if not 0 < variance < np.inf:
        raise refuse(
            f"the variance of targets from {y.min():g} to {y.max():g} is not a number that "
            "float64 can hold; write them in another unit"
        )
    return y


def _canonical_weights(weights: np.ndarray | None, n: int, refuse: Refuse) -> np.ndarray | None:
    """Return weights of rows in float64."""
    if weights is None:
        return None
    array = np.asarray(weights)
    if array.shape != (n,) or array.dtype.kind not in "fbiu":
        raise refuse(
            f"sample_weight must have one number per row, shape ({n},), got shape {array.shape} "
            f"and dtype {array.dtype}"
        )
    array = np.ascontiguousarray(array, dtype=np.float64)
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(wrong):
        raise refuse(
            f"weights must be finite and not negative, got {array[wrong[0]]} in row {wrong[0]}"
        )
    if not array.any():
        raise refuse("all weights are 0")
    return array


def _canonical_matrix(X: Matrix) -> Matrix:
    dtype = X.dtype if X.dtype in (np.float64, np.float32) else np.dtype(np.float64)
    if not hasattr(X, "tocsr"):
        return np.ascontiguousarray(X, dtype=dtype)
    import scipy.sparse

    if X.format == "csr" and X.dtype == dtype and len(X.data) == X.indptr[-1]:
        # another one with the same arrays: what X says of itself may be out of date
        same = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape, copy=False)
        if same.has_canonical_format and np.all(X.data):
            return X
    matrix = scipy.sparse.csr_matrix(X, dtype=dtype, copy=True)
    matrix.sum_duplicates()  # sorts the indices too
    matrix.eliminate_zeros()
    return matrix


def _chunks(X: Matrix) -> Iterator[np.ndarray]:
    """Yield blocks of rows of a dense matrix, or of the stored values of a CSR matrix."""
    if hasattr(X, "indptr"):
        for start in range(0, len(X.data), CHUNK):
            yield X.data[start : start + CHUNK]
        return
    step = max(1, CHUNK // X.shape[1])
    for start in range(0, len(X), step):
        yield X[start : start + step]


def _refuse_infinite(X: Matrix, dataset: Dataset, refuse: Refuse) -> None:
    for chunk in _chunks(X):
        if np.isinf(chunk).any():
            if hasattr(X, "indptr"):
                columns = np.unique(X.indices[np.isinf(X.data)])
            else:
                columns = np.flatnonzero(np.isinf(chunk).any(axis=0))
            names = ", ".join(str(dataset.feature_names[j]) for j in columns[:5])
            raise refuse(f"infinite values in the column(s) {names}; mark missing ones as NaN")
        if dataset.pairwise and np.isnan(chunk).any():
            raise refuse("a Gram matrix must not have missing values")


def missing_by_column(X: Matrix) -> np.ndarray:
    """Count the missing values (NaN) of each column of a dense or CSR matrix.

    >>> missing_by_column(np.array([[1.0, np.nan], [np.nan, np.nan]]))
    array([1, 2])
    """
    counts = np.zeros(X.shape[1], dtype=np.int64)
    if hasattr(X, "indptr"):
        for start in range(0, len(X.data), CHUNK):
            missing = np.isnan(X.data[start : start + CHUNK])
            np.add.at(counts, X.indices[start : start + CHUNK][missing], 1)
        return counts
    for chunk in _chunks(X):
        counts += np.isnan(chunk).sum(axis=0)
    return counts


def missing_by_attribute(dataset: Dataset) -> dict[str, int]:
    """Count missing values by attribute, once for all indicator columns of one attribute.

    Attributes without any are left out.
    """
    counts: dict[str, int] = {}
    columns = zip(
        dataset.feature_names, dataset.feature_kinds, missing_by_column(dataset.X), strict=True
    )
    for name, kind, count in columns:
        if count:
            attribute = str(name).rpartition("=")[0] if kind == "onehot" else ""
            attribute = attribute or str(name)
            counts[attribute] = max(counts.get(attribute, 0), int(count))
    return counts


def duplicate_fraction(X: Matrix) -> float:
    """Share of the rows that are equal to at least one other row.

    Where it is high, a random split has equal rows on both sides, which favours
    methods that memorise. Missing values count as equal to each other, and 0 as
    equal to -0. Rows are compared by `kbench.evaluation.lazy_rows.row_hashes`.

    >>> duplicate_fraction(np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    0.5
    """
    if X.shape[0] == 0:
        return 0.0
    hashes = row_hashes(X)
    hashes.sort()
    is_first = np.append(True, hashes[1:] != hashes[:-1])
    return float(np.mean(~(is_first & np.append(is_first[1:], True))))
