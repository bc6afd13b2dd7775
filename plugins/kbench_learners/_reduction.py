"""From binary classifiers to several classes, by a scheme that is always named."""

from __future__ import annotations

from itertools import combinations

import numpy as np

SCHEMES = ("ovr", "ovo")


def binary_problems(codes: np.ndarray, n_classes: int, scheme: str):
    """Split a problem into binary ones.

    Parameters
    ----------
    codes : ndarray of int, shape (n_samples,)
        Labels 0..n_classes-1.
    n_classes : int
        At least 2. Two classes are one problem, whatever the scheme.
    scheme : {"ovr", "ovo"}
        Each class against the rest, or each pair of classes.

    Yields
    ------
    rows : ndarray of int
        The rows of the problem.
    signs : ndarray of float64
        1.0 for the positive class, -1.0 for the other. Of two classes the
        second is positive; of a pair (i, j) it is i.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"multiclass={scheme!r}: it must be 'ovr' or 'ovo'")
    everything = np.arange(len(codes))
    if n_classes == 2:
        yield everything, np.where(codes == 1, 1.0, -1.0)
    elif scheme == "ovr":
        for k in range(n_classes):
            yield everything, np.where(codes == k, 1.0, -1.0)
    else:
        for i, j in combinations(range(n_classes), 2):
            rows = np.flatnonzero((codes == i) | (codes == j))
            yield rows, np.where(codes[rows] == i, 1.0, -1.0)


def class_scores(margins: np.ndarray, n_classes: int, scheme: str) -> np.ndarray:
    """Combine the margins of the binary problems.

    Parameters
    ----------
    margins : ndarray, shape (n_samples, n_problems)
        In the order of `binary_problems`.
    n_classes : int
        Number of classes.
    scheme : {"ovr", "ovo"}
        Of pairs, votes are counted, and the sum of margins decides ties.

    Returns
    -------
    ndarray, shape (n_samples,) for two classes, else (n_samples, n_classes)
        What ``decision_function`` returns.
    """
    if n_classes == 2:
        return margins[:, 0]
    if scheme == "ovr":
        return margins
    votes = np.zeros((len(margins), n_classes))
    sums = np.zeros((len(margins), n_classes))
    for problem, (i, j) in enumerate(combinations(range(n_classes), 2)):
        first = margins[:, problem] >= 0
        votes[:, i] += first
        votes[:, j] += ~first
        sums[:, i] += margins[:, problem]
        sums[:, j] -= margins[:, problem]
    # squeezed into (-1/3, 1/3): the sum never outweighs a vote
    return votes + sums / (3 * (np.abs(sums) + 1))


def chosen_classes(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the labels with the highest scores."""
    if scores.ndim == 1:
        return classes[(scores >= 0).astype(int)]
    return classes[scores.argmax(axis=1)]


def encoded(y: np.ndarray, estimator: str):
    """Return the classes and their codes, refusing fewer than two classes.

    Parameters
    ----------
    y : array, shape (n_samples,)
        Labels.
    estimator : str
        Who asks.

    Returns
    -------
    classes : ndarray, shape (n_classes,)
        Sorted labels.
    codes : ndarray of int, shape (n_samples,)
        Places in `classes`.
    """
    from sklearn.utils.multiclass import check_classification_targets

    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y has 1 class, {classes[0]!r}; {estimator} needs samples of at least 2 classes"
        )
    return classes, codes.reshape(-1)
