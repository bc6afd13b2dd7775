"""The Bayesian signed-rank test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kbench.results.stats.arrays import Array


@dataclass(frozen=True)
class Posterior:
    """Probabilities that the first method is practically worse, the same, better.

    They are about a further dataset, and sum to 1.
    """

    worse: float
    same: float
    better: float


def bayesian_signed_rank(
    differences: Sequence[float] | Array,
    rope: float = 0.01,
    prior: float = 0.5,
    n_samples: int = 50_000,
    seed: int = 0,
) -> Posterior:
    """Compare two methods by the Bayesian signed-rank test.

    Parameters
    ----------
    differences : array-like, shape (n_datasets,)
        Scores of the first method less those of the second.
    rope : float, default 0.01
        Half-width of the region of practical equivalence, in units of the score.
    prior : float, default 0.5
        Weight of a pseudo-difference of 0; a real one weighs 1.
    n_samples : int, default 50,000
        Draws of the posterior; the error of a probability is below 0.5 / sqrt(n_samples).
    seed : int, default 0

    References
    ----------
    A. Benavoli, G. Corani, J. Demsar, M. Zaffalon, "Time for a change: a tutorial
    for comparing multiple classifiers through Bayesian analysis", JMLR 18 (2017),
    section 4.2.

    Examples
    --------
    >>> posterior = bayesian_signed_rank([0.05, 0.03, 0.04, 0.06, 0.05, 0.02])
    >>> posterior.better > 0.95
    True
    """
    z = np.concatenate([[0.0], np.asarray(differences, dtype=float)])
    order = np.argsort(z, kind="stable")
    z = z[order]
    counts = np.zeros(3)
    # about 32 MB of weights at a time, drawn once for all pairs of methods
    for done in range(0, n_samples, chunk := max(1, 4_000_000 // len(z))):
        w = _weights(len(z), prior, min(chunk, n_samples - done), seed + done)
        # and so few of them at once that they stay in the processor's cache
        for start in range(0, w.shape[1], block := max(1, 65_536 // len(z))):
            worse, better = _masses(z, w[order, start : start + block], 2 * rope)
            mass = np.stack([worse, 1 - worse - better, better])
            counts += np.bincount(mass.argmax(axis=0), minlength=3)
    return Posterior(*map(float, counts / counts.sum()))


def _masses(z: Array, w: Array, edge: float) -> tuple[Array, Array]:
    """Return for each draw of weights the mass of pairs whose sum is below -edge, above edge.

    For z ascending the partners of each value are the first values of z, so
    that cumulative weights do for all pairs. A sum on an edge counts half on
    either side.
    """
    below = np.zeros((len(z) + 1, w.shape[1]))
    np.cumsum(w, axis=0, out=below[1:])

    def up_to(limit: Array) -> Array:
        first = np.searchsorted(z, limit - 1e-12, side="left")
        last = np.searchsorted(z, limit + 1e-12, side="right")
        heads = below[first]
        if (first != last).any():
            heads = (heads + below[last]) / 2
        return np.asarray(np.einsum("is,is->s", heads, w))

    return up_to(-edge - z), below[-1] ** 2 - up_to(edge - z)


@lru_cache(maxsize=2)
def _weights(n: int, prior: float, n_samples: int, seed: int) -> Array:
    """Draw the weights of the differences, shape (n, n_samples); the same for all pairs."""
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.array([prior] + [1.0] * (n - 1)), size=n_samples)
    return np.ascontiguousarray(drawn.T)
