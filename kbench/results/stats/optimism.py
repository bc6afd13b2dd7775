"""How much too good the inner score of a chosen candidate is."""

from __future__ import annotations

import numpy as np

from kbench.results.stats.arrays import Array

_EQUAL = 1e-12


def optimism(gains: Array) -> float:
    """Return by how much the inner score of the best candidate is expected to be too good.

    The best of many noisy means is better than it will be. On each inner fold, the candidate
    that is best on the other folds is scored; several equal ones are averaged. The best mean
    over all folds, less the mean of these scores, estimates the optimism. Inner minus outer
    score would also have the effect of smaller training parts in it.

    Parameters
    ----------
    gains : ndarray, shape (n_candidates, n_folds)
        Larger is better; at least two folds.

    Notes
    -----
    Tibshirani and Tibshirani compare the chosen candidate with the best one of each single
    fold. With 40 candidates this was 0.7 to 0.9 times the true optimism on three folds, 1.2 to
    1.8 times on five and 2.1 to 3.9 times on ten; the estimate here was 0.99 to 1.16 times
    (``tests/benchmarks/bench_claims.py``).

    References
    ----------
    R. J. Tibshirani, R. Tibshirani, "A bias correction for the minimum error rate in
    cross-validation", Annals of Applied Statistics 3 (2009). S. Varma, R. Simon, "Bias in
    error estimation when using cross-validation for model selection", BMC Bioinformatics 7
    (2006).

    Examples
    --------
    >>> round(optimism(np.array([[0.80, 0.90], [0.82, 0.84]])), 3)
    0.03
    """
    gains = np.asarray(gains, dtype=float)
    if gains.ndim != 2 or not len(gains) or gains.shape[1] < 2:
        raise ValueError(
            f"gains must have shape (n_candidates, n_folds) with at least 2 folds, "
            f"got {gains.shape}"
        )
    others = gains.sum(axis=1, keepdims=True) - gains
    chosen = others >= others.max(axis=0) - _EQUAL
    scored = (gains * chosen).sum(axis=0) / chosen.sum(axis=0)
    return float(gains.mean(axis=1).max() - scored.mean())
