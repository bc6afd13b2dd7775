"""A synthetic problem of any size, whose Bayes error is known, drawn block by block."""

from __future__ import annotations

import numpy as np
from scipy.special import gammainc

from kbench import Dataset
from kbench.parameters import check_integer, check_number
from kbench.tables.growing import GrowingArray
from kbench.tables.limits import check_values

BLOCK = 1 << 16
"""Rows that are drawn together, from a generator that belongs to them."""


def hypersphere_shells(
    n_samples: int = 10_000,
    n_features: int = 8,
    n_shells: int = 2,
    noise: float = 0.1,
    seed: int = 0,
) -> Dataset:
    """Shells around the origin that alternate between two classes.

    Rows are standard normal. The square of their norm has a chi-squared distribution, of
    which the quantiles of 1/n_shells, 2/n_shells, ... divide the space into shells of equal
    probability. The shells have the labels 0, 1, 0, ... from the inside, and each label is
    flipped with the probability `noise`. No classifier has an expected error below `noise`,
    and the one that knows the shells has it: `noise` is the Bayes error.

    The first n rows are the same whatever `n_samples` is. Large arrays are written to the
    data cache block by block, and never are in memory as a whole.

    Parameters
    ----------
    n_samples : int, default 10,000
        Rows.
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
        The inputs would need more than ``KBENCH_MAX_DATASET_MB``.

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
