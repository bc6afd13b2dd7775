"""Problems of Balcan, Blum and Vempala (2006): points near a conic, and a lower bound.

The points on both sides of an ellipse or a hyperbola, with a margin between them, are the
synthetic problems of section 6.1.

The lower bound is section 5, a kernel that is useless without points of the distribution:
X = {0, 1}^n, the distribution is uniform on a hidden random subset X' of 2^(n/2) points,
labelled at random by c, and the kernel separates labels on X' only. Landmarks drawn from the
distribution give a perfect map; no map built without it can.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from kbench import Dataset
from kbench.kernels import Kernel
from kbench.parameters import check_choice, check_integer, check_number

_BATCH = 4096
_MAX_BATCHES = 10_000


def conic(
    surface: str = "ellipse",
    negatives: str = "uniform",
    a: float = 1.0,
    b: float = 1.0,
    c: float = 0.2,
    M: float = 1.2,
    sd: float = 0.2,
    n_samples: int = 20_000,
    seed: int = 0,
) -> Dataset:
    """Points with a margin under the degree-2 polynomial kernel (ellipse or hyperbola).

    A fair coin decides the label l; then x is drawn with
    ``l (x_1^2/a^2 + x_2^2/b^2 - 1) >= c`` (minus for a hyperbola) and
    ``|x_i| <= M``, as footnote 5 of the paper describes.

    Parameters
    ----------
    surface : {"ellipse", "hyperbola"}, default "ellipse"
        The boundary.
    negatives : {"uniform", "gaussian"}, default "uniform"
        Negative points are uniform in their region, or normal with mean 0 and
        standard deviation `sd`, truncated to it. Positive ones are uniform.
    a, b : float, default 1.0
        Half-axes, positive.
    c : float, default 0.2
        Distance from the boundary, nonnegative.
    M : float, default 1.2
        Bound on the coordinates, positive.
    sd : float, default 0.2
        The paper says that the *variance* is 0.2; its Table 1 is reproduced
        with a standard deviation of 0.2.
    n_samples : int, default 20,000
        Number of points.
    seed : int, default 0
        Determines the points.

    Returns
    -------
    Dataset
        Named "conic"; class 1 is the outside.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or a region is empty.
    """
    check_choice(surface, "surface", ("ellipse", "hyperbola"))
    check_choice(negatives, "negatives", ("uniform", "gaussian"))
    for name, value in (("a", a), ("b", b), ("M", M), ("sd", sd)):
        check_number(value, name, above=0)
    check_number(c, "c", least=0)
    check_integer(n_samples, "n_samples", least=1)
    sign = 1.0 if surface == "ellipse" else -1.0
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_samples)
    X = np.empty((n_samples, 2))
    for label in (0, 1):
        count = int(np.sum(y == label))
        normal = label == 0 and negatives == "gaussian"
        batches = [np.empty((0, 2))]
        n_missing = count
        for _ in range(_MAX_BATCHES):
            if n_missing <= 0:
                break
            shape = (_BATCH, 2)
            points = rng.normal(0.0, sd, shape) if normal else rng.uniform(-M, M, shape)
            level = points[:, 0] ** 2 / a**2 + sign * points[:, 1] ** 2 / b**2 - 1
            legal = (level >= c if label else level <= -c) & (np.abs(points) <= M).all(axis=1)
            batches.append(points[legal])
            n_missing -= int(legal.sum())
        if n_missing > 0:
            raise ValueError(
                f"surface={surface!r}, a={a}, b={b}, c={c}, M={M}: the region of class {label} "
                "is empty or too small to draw points from"
            )
        X[y == label] = np.concatenate(batches)[:count]
    return Dataset(
        "conic",
        X=X,
        y=y.astype(np.int64),
        target_names=("inside", "outside"),
        source="Balcan, Blum and Vempala (2006), section 6.1",
        dataset_family=f"conic-{surface}",
        role="development",
    )


def conic_margin(a: float, b: float, c: float, M: float) -> float:
    """Margin that `conic` guarantees under ``(1 + x . z)^2``.

    ``c / ((1 + 2 M^2) sqrt(1 + 1/a^4 + 1/b^4))``, section 6.1 of the paper.

    Examples
    --------
    >>> round(conic_margin(a=1, b=1, c=0.2, M=1.2), 4)
    0.0298
    """
    return c / ((1 + 2 * M**2) * math.sqrt(1 + 1 / a**4 + 1 / b**4))


def _check_bits(n_bits: int) -> None:
    if n_bits not in range(2, 41, 2):
        raise ValueError(f"n_bits must be an even number from 2 to 40, got {n_bits!r}")


@lru_cache(maxsize=8)
def _members(n_bits: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of X', sorted, and their labels in {-1, 1}."""
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.choice(2**n_bits, 2 ** (n_bits // 2), replace=False))
    return codes, rng.choice([-1, 1], len(codes))


@dataclass(frozen=True)
class HiddenSubset(Kernel):
    """The kernel K_c of the lower bound of Balcan et al. (2006), section 5.

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

    def _codes(self, X: ArrayLike) -> np.ndarray:
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

    def _gram(self, X: ArrayLike, Y: ArrayLike) -> np.ndarray:
        left = self._codes(X)
        right = left if Y is None else self._codes(Y)
        K = (1 - self.alpha) * (self._images(left) @ self._images(right).T)
        if self.alpha:
            K[left[:, None] == right] = 1.0
        return K

    def diag(self, X: ArrayLike) -> np.ndarray:
        """Return ones."""
        return np.ones(X.shape[0])


def hidden_subset(n_bits: int = 16, seed: int = 0) -> Dataset:
    """The hidden subset of the lower bound of Balcan et al. (2006), with random labels.

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
    return Dataset(
        "hidden-subset",
        X=((codes[order, None] >> np.arange(n_bits)) & 1).astype(np.float64),
        y=(labels[order] > 0).astype(np.int64),
        feature_kinds=("onehot",) * n_bits,
        source="Balcan, Blum and Vempala (2006), section 5",
        role="development",
    )
