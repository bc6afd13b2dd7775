"""Mercer's condition: the test of Gram matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Mercer:
    """Result of `is_psd`; true where the matrix is positive semidefinite.

    Parameters
    ----------
    holds : bool
        Symmetric, and no eigenvalue below ``-tolerance``.
    smallest : float
        The smallest eigenvalue of the symmetric part.
    asymmetry : float
        The largest ``|K[i, j] - K[j, i]|``.
    tolerance : float
        Values up to this size count as zero.
    """

    holds: bool
    smallest: float
    asymmetry: float
    tolerance: float

    def __bool__(self) -> bool:
        return self.holds


def is_psd(K: ArrayLike, tolerance: float | None = None) -> Mercer:
    """Check Mercer's condition: a Gram matrix is symmetric and has no negative eigenvalue.

    Parameters
    ----------
    K : array, shape (n, n)
        The matrix.
    tolerance : float, optional
        Values up to this size count as zero; by default n * eps * the largest
        absolute eigenvalue, the size of rounding errors.

    Returns
    -------
    Mercer
        True or false, with the smallest eigenvalue.

    Raises
    ------
    ValueError
        If `K` is not square or not finite.

    Examples
    --------
    >>> bool(is_psd([[1.0, 0.5], [0.5, 1.0]]))
    True
    >>> is_psd([[1.0, 2.0], [2.0, 1.0]]).smallest
    -1.0
    """
    K = np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be square, got shape {K.shape}")
    if not np.isfinite(K).all():
        raise ValueError("K must be finite, got NaN or infinite values")
    if not K.size:
        return Mercer(True, 0.0, 0.0, 0.0)
    eps = np.finfo(K.dtype).eps if K.dtype.kind == "f" else np.finfo(np.float64).eps
    K = K.astype(np.float64)
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    if tolerance is None:
        tolerance = float(len(K) * eps * np.abs(eigenvalues).max())
    asymmetry = float(np.abs(K - K.T).max())
    smallest = float(eigenvalues[0])
    holds = bool(smallest >= -tolerance and asymmetry <= tolerance)
    return Mercer(holds, smallest, asymmetry, float(tolerance))
