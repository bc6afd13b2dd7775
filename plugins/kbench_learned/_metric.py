"""From an average gradient outer product to a linear map of the inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh


@dataclass(frozen=True)
class Form:
    """What a learned matrix may be.

    Parameters
    ----------
    name : {"full", "diagonal", "low_rank"}
        "low_rank" is "full" while it is learned: a direction without weight could not come back.
    regularization : float
        This multiple of the mean of the diagonal is added to the diagonal where it is positive.
    rank : int
        Directions that are left of a "low_rank" matrix after learning.
    varies : ndarray of bool, shape (n_features,)
        Columns that are not constant; others have no weight.
    groups : list of ndarray
        Columns that share a weight in a "diagonal" matrix.
    """

    name: str
    regularization: float
    rank: int
    varies: np.ndarray
    groups: list[np.ndarray]

    @property
    def truncates(self) -> bool:
        """Whether directions are dropped after learning."""
        return self.name == "low_rank" and self.rank < len(self.varies)

    def of(self, matrix: np.ndarray) -> np.ndarray:
        """Return an average gradient outer product in this form."""
        matrix = np.where(np.outer(self.varies, self.varies), matrix, 0.0)
        return diagonal_of(matrix, self.groups) if self.name == "diagonal" else matrix

    def root(self, matrix: np.ndarray) -> np.ndarray:
        """Return the linear map of the inputs in which the next round is fitted."""
        return root(matrix, self.regularization)

    def final(self, matrix: np.ndarray) -> np.ndarray:
        """Return the linear map that is used where learning ends with a matrix."""
        if not self.truncates:
            return self.root(matrix)
        return low_rank_root(matrix, self.rank)


def root(matrix: np.ndarray, regularization: float) -> np.ndarray:
    """Return the symmetric A with ``A A = M / max M`` of a regularised M.

    A column of zeros stays without weight.

    Examples
    --------
    >>> root(np.diag([4.0, 1.0, 0.0]), 0.0)
    array([[1. , 0. , 0. ],
           [0. , 0.5, 0. ],
           [0. , 0. , 0. ]])
    """
    diagonal = np.diag(matrix)
    used = diagonal > 0
    M = matrix / diagonal.max()
    M = M + np.diag(np.where(used, regularization * np.diag(M)[used].mean(), 0.0))
    M /= np.diag(M).max()
    if np.count_nonzero(M) == np.count_nonzero(np.diag(M)):
        return np.diag(np.sqrt(np.diag(M)))
    values, vectors = eigh(M)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def low_rank_root(matrix: np.ndarray, rank: int) -> np.ndarray:
    """Return A, (n_features, rank), with ``A A'`` the best approximation of M / max M.

    Examples
    --------
    >>> low_rank_root(np.diag([4.0, 1.0, 0.0]), 1)
    array([[1.],
           [0.],
           [0.]])
    """
    values, vectors = eigh(matrix / np.diag(matrix).max())
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    # of each direction, the largest entry is positive: a sign decides nothing
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(rank)]
    return vectors * np.where(largest < 0, -1.0, 1.0) * np.sqrt(np.maximum(values, 0.0))


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
