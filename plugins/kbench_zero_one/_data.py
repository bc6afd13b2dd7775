"""Synthetic halfspaces: margin, label noise, and outliers in the training set only."""

import numpy as np
from scipy.special import betaincc, betainccinv

from kbench import Dataset, Split
from kbench.parameters import check_integer, check_number


def uniform_ball(
    random: np.random.Generator, n: int, n_features: int, radius: float, margin: float
) -> np.ndarray:
    """Draw `n` points uniformly in a ball, none of them nearer than `margin` to x_0 = 0.

    The dimension is at least 2.
    """
    # (x_0 / radius)^2 has a beta distribution; its upper tail is inverted, because
    # rejection would hardly ever accept a margin in high dimension
    shape = 0.5, (n_features + 1) / 2
    squared = betainccinv(*shape, betaincc(*shape, (margin / radius) ** 2) * random.uniform(size=n))
    first = np.maximum(radius * np.sqrt(squared), margin) * random.choice([-1.0, 1.0], size=n)
    rest = random.standard_normal((n, n_features - 1))
    rest /= np.linalg.norm(rest, axis=1)[:, None]
    rest *= random.uniform(size=(n, 1)) ** (1 / (n_features - 1))
    rest *= np.sqrt(np.maximum(radius**2 - first**2, 0.0))[:, None]
    return np.column_stack([first, rest])


def halfspace(
    n_features=5,
    margin=0.1,
    noise=0.0,
    outliers=0.0,
    radius=1.0,
    n_train=400,
    n_test=2000,
    n_splits=5,
    seed=0,
):
    """Points in the unit ball labelled by a halfspace with w* = (1, 0, ..., 0).

    Inputs are uniform in a ball, at a distance of at least `margin` from the hyperplane
    x_0 = 0. Labels are flipped with probability `noise` in both parts: this is the
    distribution. A share `outliers` of each training set is then replaced by errors far
    from the hyperplane, inputs near (+-1, 0, ..., 0) with the wrong label; the test sets
    have none. The splits share no rows: use ``cv = "official"``.

    Parameters
    ----------
    n_features : int, default 5
        Dimension, at least 2.
    margin : float, default 0.1
        Distance from the hyperplane, in [0, 0.9 * radius].
    noise : float, default 0.0
        Share of labels flipped at random, in [0, 0.5].
    outliers : float, default 0.0
        Share of far outliers in the training sets, in [0, 1].
    radius : float, default 1.0
        Radius of the ball of ordinary inputs, in [0.01, 1]; outliers lie at norm 1, so that
        a small radius puts them far away.
    n_train, n_test : int, default 400 and 2000
        Rows of the parts of each split.
    n_splits : int, default 5
        Independent splits.
    seed : int, default 0
        Seed.

    Returns
    -------
    Dataset
        With `n_splits` splits, labels 0 (x_0 < 0) and 1.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> data = halfspace(n_train=100, n_test=50, outliers=0.1, n_splits=2)
    >>> first = data.splits[0]
    >>> wrong = (data.X[:, 0] > 0) != data.y
    >>> int(wrong[first.train].sum()), int(wrong[first.test].sum())
    (10, 0)
    """
    for name, value, low, high in (
        ("radius", radius, 0.01, 1.0),
        ("margin", margin, 0.0, 0.9 * radius),
        ("noise", noise, 0.0, 0.5),
        ("outliers", outliers, 0.0, 1.0),
    ):
        check_number(value, name, least=low, most=high)
    for name, value, low in (
        ("n_features", n_features, 2),
        ("n_train", n_train, 2),
        ("n_test", n_test, 1),
        ("n_splits", n_splits, 1),
    ):
        check_integer(value, name, least=low)

    inputs, labels, splits = [], [], []
    size = n_train + n_test
    for i in range(n_splits):
        random = np.random.default_rng([seed, i])
        X = uniform_ball(random, size, n_features, radius, margin)
        y = (X[:, 0] > 0) ^ (random.uniform(size=size) < noise)
        n_outliers = round(outliers * n_train)
        if n_outliers:
            far = 0.1 * random.standard_normal((n_outliers, n_features))
            far[:, 0] = 1.0
            far /= np.linalg.norm(far, axis=1)[:, None]
            far *= random.choice([-1.0, 1.0], size=(n_outliers, 1))
            X[:n_outliers], y[:n_outliers] = far, far[:, 0] < 0
        inputs.append(X)
        labels.append(y.astype(np.int64))
        rows = np.arange(size) + i * size
        splits.append(Split(i, train=rows[:n_train], test=rows[n_train:]))
    return Dataset(
        "halfspace",
        X=np.concatenate(inputs),
        y=np.concatenate(labels),
        target_names=("x0 < 0", "x0 > 0"),
        source="synthetic, w* = (1, 0, ..., 0)",
        role="development",
        splits=splits,
    )
