"""Friedman's three regression problems, drawn from a seed by scikit-learn.

The default noise is that of the literature: variance 1 in the first problem, and a third
of the standard deviation of the signal, rounded, in the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn import datasets

from kbench import Dataset
from kbench.parameters import check_integer, check_number


def friedman1(n_samples: int = 1000, noise: float = 1.0, seed: int = 0) -> Dataset:
    r"""Ten uniform inputs, of which five matter.

    .. math:: y = 10 \sin(\pi x_0 x_1) + 20 (x_2 - 1/2)^2 + 10 x_3 + 5 x_4 + \varepsilon

    with inputs in [0, 1].

    Parameters
    ----------
    n_samples : int, default 1000
        Rows.
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
    return _drawn("friedman1", datasets.make_friedman1, n_samples, noise, seed)


def friedman2(n_samples: int = 1000, noise: float = 125.0, seed: int = 0) -> Dataset:
    r"""Impedance of an alternating current circuit, of four inputs of different scales.

    .. math:: y = \sqrt{x_0^2 + (x_1 x_2 - 1 / (x_1 x_3))^2} + \varepsilon

    with inputs in [0, 100], [40π, 560π], [0, 1] and [1, 11].

    Parameters
    ----------
    n_samples : int, default 1000
        Rows.
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
    return _drawn("friedman2", datasets.make_friedman2, n_samples, noise, seed)


def friedman3(n_samples: int = 1000, noise: float = 0.1, seed: int = 0) -> Dataset:
    r"""Phase of an alternating current circuit, of the inputs of `friedman2`.

    .. math:: y = \arctan((x_1 x_2 - 1 / (x_1 x_3)) / x_0) + \varepsilon

    Parameters
    ----------
    n_samples : int, default 1000
        Rows.
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
    return _drawn("friedman3", datasets.make_friedman3, n_samples, noise, seed)


def _drawn(name: str, make: Callable[..., Any], n_samples: int, noise: float, seed: int) -> Dataset:
    check_integer(n_samples, "n_samples", least=4)
    check_number(noise, "noise", least=0)
    check_integer(seed, "seed", least=0)
    X, y = make(n_samples=n_samples, noise=noise, random_state=seed)
    return Dataset(name, X, y, source="synthetic", role="development", task="regression")
