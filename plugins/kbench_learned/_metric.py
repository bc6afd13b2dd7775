"""From an average gradient outer product to a linear map of the inputs."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh


def root(matrix: np.ndarray, metric: str, rank: int, regularization: float) -> np.ndarray:
    """Return A, (n_features, n_directions), with ``A A' = M / max M`` of a regularised M.

    `regularization` times the mean of the diagonal is added to the diagonal where it is
    positive: a column of zeros stays without weight. "low_rank" keeps the `rank` eigenvectors
    with the largest eigenvalues; "diagonal" expects a diagonal matrix.

    Examples
    --------
    >>> root(np.diag([4.0, 1.0, 0.0]), "diagonal", 0, 0.0)
    array([[1. , 0. , 0. ],
           [0. , 0.5, 0. ],
           [0. , 0. , 0. ]])
    >>> root(np.diag([4.0, 1.0, 0.0]), "low_rank", 1, 0.0).round(6)
    array([[1.],
           [0.],
           [0.]])
    """
    diagonal = np.diag(matrix)
    used = diagonal > 0
    M = matrix / diagonal.max()
    M = M + np.diag(np.where(used, regularization * np.diag(M)[used].mean(), 0.0))
    if metric == "diagonal":
        return np.diag(np.sqrt(np.diag(M) / np.diag(M).max()))
    values, vectors = eigh(M / np.diag(M).max())
    values = np.sqrt(np.maximum(values, 0.0))
    if metric == "low_rank":
        vectors = vectors[:, ::-1][:, :rank]
        # of each direction, the largest entry is positive: a sign decides nothing
        largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
        return vectors * np.where(largest < 0, -1.0, 1.0) * values[::-1][:rank]
    return (vectors * values) @ vectors.T


def diagonal_of(matrix: np.ndarray, groups: list[np.ndarray]) -> np.ndarray:
    """Return the diagonal part of a matrix; columns of a group share the mean of theirs.

    Examples
    --------
    >>> diagonal_of(np.array([[3.0, 9.0], [9.0, 1.0]]), [np.array([0, 1])])
    array([[2., 0.],
           [0., 2.]])
    """
    diagonal = np.diag(matrix).copy()
    for group in groups:
        used = group[diagonal[group] > 0]
        if len(used):
            diagonal[used] = diagonal[used].mean()
    return np.diag(diagonal)


def one_hot_groups(X: np.ndarray) -> list[np.ndarray]:
    """Find runs of columns of which exactly one has its upper value in each row.

    They are the indicators of one nominal attribute, whatever their scale. Columns of two
    values count, and runs of at least three: two complementary columns may be anything.

    Examples
    --------
    >>> X = np.array([[1, 0, 0, 5.0], [0, 2, 0, 6.0], [0, 0, 1, 7.0]])
    >>> one_hot_groups(X)
    [array([0, 1, 2])]
    """
    low, high = X.min(axis=0), X.max(axis=0)
    on = high == X
    binary = (high > low) & (on | (low == X)).all(axis=0)
    groups, start, d = [], 0, X.shape[1]
    while start < d:
        seen, stop = np.zeros(len(X), dtype=bool), start
        while stop < d and binary[stop] and not (seen & on[:, stop]).any():
            seen |= on[:, stop]
            stop += 1
            if seen.all():
                break
        if seen.all() and stop - start >= 3:
            groups.append(np.arange(start, stop))
            start = stop
        else:
            start += 1
    return groups
