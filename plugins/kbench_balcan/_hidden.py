"""The lower bound: a kernel that is useless without points of the distribution.

Balcan, Blum and Vempala (2006), section 5: X = {0, 1}^n, the distribution is
uniform on a hidden random subset X' of 2^(n/2) points, labelled at random by c,
and the kernel separates labels on X' only. Landmarks drawn from the
distribution give a perfect map; no map built without it can.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from kbench import Dataset
from kbench.kernels import Kernel
from kbench.parameters import check_number


def _check_bits(n_bits: int) -> None:
    if n_bits not in range(2, 41, 2):
        raise ValueError(f"n_bits must be an even number from 2 to 40, got {n_bits!r}")


@lru_cache(maxsize=8)
def _members(n_bits: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of X', sorted, and their labels in {-1, 1}."""
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.choice(2**n_bits, 2 ** (n_bits // 2), replace=False))
    labels = rng.choice([-1, 1], len(codes))
    return codes, labels


@dataclass(frozen=True)
class HiddenSubset(Kernel):
    """The kernel K_c of the paper's lower bound (section 5).

    ``phi(x)`` is (1, 0) outside X' and (-1/2, c(x) sqrt(3)/2) on it: 1 where
    both points are outside X', or both in it with equal labels, -1/2
    otherwise. With `alpha` it is positive definite: all of that times
    1 - alpha, but 1 for a point with itself. The hidden labels have margin
    ``(1 - alpha) sqrt(3)/2``.

    Parameters
    ----------
    n_bits : int, default 16
        Number of features, even, at most 40.
    alpha : float, default 0.0
        In [0, 1).
    seed : int, default 0
        Determines X' and c; the same as that of the data.
    """

    n_bits: int = 16
    alpha: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        _check_bits(self.n_bits)
        check_number(self.alpha, "alpha", least=0, below=1)

    def _codes(self, X: Any) -> np.ndarray:
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        if X.shape[1] != self.n_bits or not np.isin(X, (0, 1)).all():
            raise ValueError(
                f"X must have n_bits={self.n_bits} features that are 0 or 1; "
                f"it has {X.shape[1]} features"
            )
        return X.astype(np.int64) @ (1 << np.arange(self.n_bits, dtype=np.int64))

    def _images(self, codes: np.ndarray) -> np.ndarray:
        members, labels = _members(self.n_bits, self.seed)
        place = np.minimum(np.searchsorted(members, codes), len(members) - 1)
        hidden = members[place] == codes
        return np.column_stack(
            [np.where(hidden, -0.5, 1.0), np.where(hidden, labels[place] * np.sqrt(0.75), 0.0)]
        )

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        left = self._codes(X)
        right = left if Y is None else self._codes(Y)
        K = (1 - self.alpha) * (self._images(left) @ self._images(right).T)
        if self.alpha:
            K[left[:, None] == right] = 1.0
        return K

    def diag(self, X: Any) -> np.ndarray:
        """Return ones."""
        return np.ones(X.shape[0])


def hidden_subset(n_bits: int = 16, seed: int = 0) -> Dataset:
    """All points of the hidden subset of the paper's lower bound, with their random labels.

    Parameters
    ----------
    n_bits : int, default 16
        Number of features; there are ``2^(n_bits/2)`` points.
    seed : int, default 0
        Determines the subset and the labels.

    Returns
    -------
    Dataset
        Named "hidden-subset".
    """
    _check_bits(n_bits)
    codes, labels = _members(n_bits, seed)
    order = np.random.default_rng(seed + 1).permutation(len(codes))
    bits = (codes[order, None] >> np.arange(n_bits)) & 1
    return Dataset(
        "hidden-subset",
        X=bits.astype(np.float64),
        y=(labels[order] > 0).astype(np.int64),
        feature_kinds=("nominal",) * n_bits,
        source="Balcan, Blum and Vempala (2006), section 5",
        role="development",
    )
