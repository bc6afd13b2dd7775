"""Synthetic problems of known shape, drawn from a seed.

All are development sets: they show what a map can represent, and support no
claim about real data.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import gammainc
from sklearn import datasets

from kbench import Dataset
from kbench.parameters import check_integer, check_number
from kbench.tables.limits import GrowingArray, check_values


def two_moons(n_samples: int = 1000, noise: float = 0.2, seed: int = 0) -> Dataset:
    """Two interleaving half circles of radius 1 in the plane.

    Parameters
    ----------
    n_samples : int, default 1000
        Rows, half of them in each moon.
    noise : float, default 0.2
        Standard deviation of the normal noise on each coordinate.
    seed : int, default 0
        Seed of the points.

    Returns
    -------
    Dataset
        Shape (n_samples, 2), two classes.

    Raises
    ------
    ValueError
        A parameter is out of its range.

    Examples
    --------
    >>> two_moons(n_samples=100, noise=0.0).X.shape
    (100, 2)
    """
    check_number(noise, "noise", least=0)
    rng = _generator(n_samples, seed)
    y = np.arange(n_samples) % 2
    angle = np.pi * rng.random(n_samples)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[y == 1] = [1.0, 0.5] - X[y == 1]
    return _dataset("two-moons", X + noise * rng.standard_normal(X.shape), y, rng)


def circles(
    n_samples: int = 1000, noise: float = 0.1, factor: float = 0.5, seed: int = 0
) -> Dataset:
    """Two concentric circles in the plane, the outer one of radius 1.

    Parameters
    ----------
    n_samples : int, default 1000
        Rows, half of them on each circle.
    noise : float, default 0.1
        Standard deviation of the normal noise on each coordinate.
    factor : float, default 0.5
        Radius of the inner circle, between 0 and 1.
    seed : int, default 0
        Seed of the points.

    Returns
    -------
    Dataset
        Shape (n_samples, 2), two classes; 1 is the inner circle.

    Raises
    ------
    ValueError
        A parameter is out of its range.

    Examples
    --------
    >>> data = circles(n_samples=10, noise=0.0, factor=0.25)
    >>> np.linalg.norm(data.X[data.y == 1], axis=1).round(6)
    array([0.25, 0.25, 0.25, 0.25, 0.25])
    """
    check_number(factor, "factor", above=0, below=1)
    check_number(noise, "noise", least=0)
    rng = _generator(n_samples, seed)
    y = np.arange(n_samples) % 2
    angle = 2 * np.pi * rng.random(n_samples)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * np.where(y == 1, factor, 1.0)[:, None]
    return _dataset("circles", X + noise * rng.standard_normal(X.shape), y, rng)


def checkerboard(
    n_samples: int = 1000, n_features: int = 2, n_cells: int = 4, noise: float = 0.0, seed: int = 0
) -> Dataset:
    """Uniform points in the unit cube with checkerboard labels.

    Parameters
    ----------
    n_samples : int, default 1000
        Number of rows.
    n_features : int, default 2
        Dimension.
    n_cells : int, default 4
        Fields along each axis.
    noise : float, default 0
        Share of the labels that are flipped, below 0.5: the best possible
        accuracy is 1 - noise.
    seed : int, default 0
        Seed of the points and of the flipped labels.

    Returns
    -------
    Dataset
        Shape (n_samples, n_features), two classes.

    Raises
    ------
    ValueError
        A parameter is out of its range.

    Examples
    --------
    >>> data = checkerboard(n_samples=200)
    >>> bool(np.all(data.y == np.floor(4 * data.X).sum(axis=1) % 2))
    True
    """
    check_integer(n_features, "n_features", least=1)
    check_integer(n_cells, "n_cells", least=2)
    rng = _generator(n_samples, seed)
    X = rng.random((n_samples, n_features))
    y = np.floor(n_cells * X).sum(axis=1).astype(np.int64) % 2
    return _dataset("checkerboard", X, _flip(y, noise, rng), rng)


def polytope(
    n_samples: int = 1000,
    n_features: int = 2,
    n_halfspaces: int = 5,
    margin: float = 0.05,
    noise: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Points inside and outside a random polytope, with a margin.

    Points are uniform in the unit ball. The polytope is the intersection of
    halfspaces w.x <= b, w uniform on the sphere and b uniform in [0.05, 0.95].
    Points inside by at least `margin` are labelled 1, those outside by at least
    `margin` 0, others are discarded. Polytopes that leave less than a tenth of
    the points to a class are drawn again.

    Parameters
    ----------
    n_samples : int, default 1000
        Number of rows.
    n_features : int, default 2
        Dimension.
    n_halfspaces : int, default 5
        Halfspaces whose intersection is the polytope.
    margin : float, default 0.05
        Width of the empty strip on either side of the boundary, in [0, 0.5).
    noise : float, default 0
        Share of the labels that are flipped, below 0.5.
    seed : int, default 0
        Seed of the polytope, the points and the flipped labels.

    Returns
    -------
    Dataset
        Shape (n_samples, n_features), two classes.

    Raises
    ------
    ValueError
        A parameter is out of its range, or a hundred polytopes of this kind
        left hardly any point to one class.

    References
    ----------
    Gottlieb, Kaufman, Kontorovich and Nivasch, "Nested Barycentric Coordinate
    System as an Explicit Feature Map", experiments, "Non-convex polytope
    approximation".

    Examples
    --------
    >>> data = polytope(n_samples=300)
    >>> bool(np.linalg.norm(data.X, axis=1).max() <= 1)
    True
    """
    check_integer(n_features, "n_features", least=1)
    check_integer(n_halfspaces, "n_halfspaces", least=1)
    check_number(margin, "margin", least=0, below=0.5)
    rng = _generator(n_samples, seed)
    for _ in range(100):
        W = rng.standard_normal((n_halfspaces, n_features))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        b = rng.uniform(0.05, 0.95, n_halfspaces)
        depth = _depth(_in_ball(1000, n_features, rng), W, b)
        if min(np.mean(depth >= margin), np.mean(depth <= -margin)) >= 0.1:
            break
    else:
        raise ValueError(
            f"n_features={n_features!r}, n_halfspaces={n_halfspaces!r}, margin={margin!r}: no "
            "random polytope has a tenth of the ball inside and a tenth outside; take fewer "
            "halfspaces or a smaller margin"
        )
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < n_samples:
        X = _in_ball(n_samples, n_features, rng)
        kept.append(X[np.abs(_depth(X, W, b)) >= margin])
    X = np.concatenate(kept)[:n_samples]
    return _dataset("polytope", X, _flip((_depth(X, W, b) > 0).astype(np.int64), noise, rng), rng)


def _depth(X: np.ndarray, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Smallest slack over the halfspaces: positive inside, negative outside."""
    return (b - X @ W.T).min(axis=1)


def _in_ball(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_normal((n, d))
    return X * (rng.random(n) ** (1 / d) / np.linalg.norm(X, axis=1))[:, None]


def _generator(n_samples: int, seed: int) -> np.random.Generator:
    check_integer(n_samples, "n_samples", least=4)
    check_integer(seed, "seed", least=0)
    return np.random.default_rng(seed)


def _flip(y: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    check_number(noise, "noise", least=0, below=0.5)
    return np.where(rng.random(len(y)) < noise, 1 - y, y)


def _dataset(name: str, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Dataset:
    order = rng.permutation(len(y))
    return Dataset(
        name=name,
        X=np.ascontiguousarray(X[order]),
        y=y[order].astype(np.int64),
        source="synthetic",
        role="development",
    )


BLOCK = 1 << 16
"""Rows that are drawn together, from a generator that belongs to them."""


def hypersphere_shells(
    n_samples: int = 10_000,
    n_features: int = 8,
    n_shells: int = 2,
    noise: float = 0.1,
    seed: int = 0,
) -> Dataset:
    """Concentric spherical shells with alternating classes.

    Rows are standard normal. The square of their norm has a chi-squared distribution, of
    which the quantiles of 1/n_shells, 2/n_shells, ... divide the space into shells of equal
    probability. The shells have the labels 0, 1, 0, ... from the inside, and each label is
    flipped with the probability `noise`. No classifier has an expected error below `noise`,
    and the one that is given the shells reaches it: `noise` is the Bayes error.

    The first n rows are the same whatever `n_samples` is. Large arrays are written to the
    data cache block by block, and never are in memory as a whole.

    Parameters
    ----------
    n_samples : int, default 10,000
        Number of rows.
    n_features : int, default 8
        Dimension.
    n_shells : int, default 2
        Shells; the innermost is a ball, and the outermost has no bound.
    noise : float, default 0.1
        Probability of a flipped label, below 0.5.
    seed : int, default 0
        Seed of the points and of the flipped labels.

    Returns
    -------
    Dataset
        Shape (n_samples, n_features), float32, two classes.

    Raises
    ------
    ValueError
        A parameter is out of its range.
    DatasetError
        The inputs would need more than ``KBENCH_MAX_DATASET_MIB``.

    Examples
    --------
    >>> data = hypersphere_shells(n_samples=1000, n_features=2, noise=0.0)
    >>> bool(np.all(data.y == ((data.X.astype(float) ** 2).sum(axis=1) > 2 * np.log(2))))
    True
    """
    check_integer(n_samples, "n_samples", least=4)
    check_integer(n_features, "n_features", least=1)
    check_integer(n_shells, "n_shells", least=2)
    check_number(noise, "noise", least=0, below=0.5)
    check_integer(seed, "seed", least=0)
    shape = f"{n_samples:,} rows with {n_features:,} columns"
    check_values(n_samples * n_features, "hypersphere-shells", shape, n_bytes=4)
    X, y = GrowingArray(np.float32, n_features), GrowingArray(np.int64)
    for number, start in enumerate(range(0, n_samples, BLOCK)):
        n = min(BLOCK, n_samples - start)
        rng = np.random.default_rng([seed, number])
        flips = rng.random(BLOCK)[:n] < noise
        part = rng.standard_normal((n, n_features), np.float32)
        square = np.einsum("ij,ij->i", part, part, dtype=np.float64)
        shell = np.floor(n_shells * gammainc(n_features / 2, square / 2)).astype(np.int64)
        X.append(part)
        y.append((shell + flips) % 2)
    return Dataset(
        name="hypersphere-shells",
        X=X.array(),
        y=y.array(),
        source=f"synthetic, Bayes error {noise:g}",
        role="development",
        target_names=("0", "1"),
    )


def friedman1(n_samples: int = 1000, noise: float = 1.0, seed: int = 0) -> Dataset:
    r"""Friedman #1: ten uniform inputs, five of them relevant.

    .. math:: y = 10 \sin(\pi x_0 x_1) + 20 (x_2 - 1/2)^2 + 10 x_3 + 5 x_4 + \varepsilon

    with inputs in [0, 1].

    Parameters
    ----------
    n_samples : int, default 1000
        Number of rows.
    noise : float, default 1
        Standard deviation of the normal noise on the target; no model has a smaller rmse
        in expectation.
    seed : int, default 0
        Seed of the points and of the noise.

    Returns
    -------
    Dataset
        A regression task, shape (n_samples, 10).

    Raises
    ------
    ValueError
        A parameter is out of its range.

    References
    ----------
    J. H. Friedman, "Multivariate adaptive regression splines", Annals of Statistics 19
    (1991).

    Examples
    --------
    >>> friedman1(n_samples=50).X.shape
    (50, 10)
    """
    return _draw("friedman1", datasets.make_friedman1, n_samples, noise, seed)


def friedman2(n_samples: int = 1000, noise: float = 125.0, seed: int = 0) -> Dataset:
    r"""Friedman #2: impedance of an AC circuit from four inputs of different scales.

    .. math:: y = \sqrt{x_0^2 + (x_1 x_2 - 1 / (x_1 x_3))^2} + \varepsilon

    with inputs in [0, 100], [40π, 560π], [0, 1] and [1, 11].

    Parameters
    ----------
    n_samples : int, default 1000
        Number of rows.
    noise : float, default 125
        Standard deviation of the normal noise on the target.
    seed : int, default 0
        Seed of the points and of the noise.

    Returns
    -------
    Dataset
        A regression task, shape (n_samples, 4).

    Raises
    ------
    ValueError
        A parameter is out of its range.

    References
    ----------
    J. H. Friedman, "Multivariate adaptive regression splines", Annals of Statistics 19
    (1991); L. Breiman, "Bagging predictors", Machine Learning 24 (1996).
    """
    return _draw("friedman2", datasets.make_friedman2, n_samples, noise, seed)


def friedman3(n_samples: int = 1000, noise: float = 0.1, seed: int = 0) -> Dataset:
    r"""Friedman #3: phase of an AC circuit from the inputs of `friedman2`.

    .. math:: y = \arctan((x_1 x_2 - 1 / (x_1 x_3)) / x_0) + \varepsilon

    Parameters
    ----------
    n_samples : int, default 1000
        Number of rows.
    noise : float, default 0.1
        Standard deviation of the normal noise on the target.
    seed : int, default 0
        Seed of the points and of the noise.

    Returns
    -------
    Dataset
        A regression task, shape (n_samples, 4).

    Raises
    ------
    ValueError
        A parameter is out of its range.

    References
    ----------
    J. H. Friedman, "Multivariate adaptive regression splines", Annals of Statistics 19
    (1991); L. Breiman, "Bagging predictors", Machine Learning 24 (1996).
    """
    return _draw("friedman3", datasets.make_friedman3, n_samples, noise, seed)


def _draw(
    name: str,
    make: Callable[..., tuple[np.ndarray, np.ndarray]],
    n_samples: int,
    noise: float,
    seed: int,
) -> Dataset:
    check_integer(n_samples, "n_samples", least=4)
    check_number(noise, "noise", least=0)
    check_integer(seed, "seed", least=0)
    X, y = make(n_samples=n_samples, noise=noise, random_state=seed)
    return Dataset(name, X, y, source="synthetic", role="development", task="regression")
