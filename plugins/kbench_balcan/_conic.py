"""Points on both sides of an ellipse or a hyperbola, with a margin between them.

The synthetic problems of Balcan, Blum and Vempala (2006), section 6.1.
"""

from __future__ import annotations

import math

import numpy as np

from kbench import Dataset
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
    """Draw labelled points with a margin under the degree-2 polynomial kernel.

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
        group=f"conic-{surface}",
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
