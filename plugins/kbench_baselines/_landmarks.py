"""Landmarks of a Nystroem approximation.

Every `kernel` is a function: ``kernel(X, Y)`` is a Gram matrix. `X` is an ndarray or
a CSR matrix of shape (n_samples, n_features), `rng` a RandomState.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import issparse
from sklearn.cluster import KMeans


def kernel_diagonal(kernel, X, block=128):
    """Diagonal of ``kernel(X, X)``, shape (n_samples,).

    From ``kernel.diag(X)`` where there is such a method, else in small blocks.
    """
    if hasattr(kernel, "diag"):
        return np.asarray(kernel.diag(X), dtype=np.float64)
    parts = [
        np.diag(kernel(X[start : start + block], X[start : start + block]))
        for start in range(0, X.shape[0], block)
    ]
    return np.concatenate(parts).astype(np.float64)


def distinct_rows(X):
    """Positions of the first of each set of equal rows."""
    if issparse(X):
        X.sort_indices()
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        keys = ((X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in ends)
    else:
        keys = (row.tobytes() for row in X)
    first = {}
    for position, key in enumerate(keys):
        first.setdefault(key, position)
    return np.fromiter(first.values(), dtype=np.intp)


def kmeans_centres(X, n_landmarks, rng, max_iter=5):
    """Centres of k-means: Zhang, Tsang and Kwok (2008), section 3.3.

    From a k-means++ start, after which few iterations are enough: later ones
    move the centres too little to matter for the approximation. Where `X` has no
    more different rows than `n_landmarks`, they are returned.
    """
    distinct = distinct_rows(X)
    if len(distinct) <= n_landmarks:
        return X[distinct]
    means = KMeans(n_landmarks, n_init=1, max_iter=max_iter, random_state=rng)
    return means.fit(X).cluster_centers_


def rpcholesky_pivots(kernel, X, n_landmarks, rng, tol=1e-12):
    """Pivots of randomly pivoted Cholesky.

    Each pivot is drawn with probability proportional to the diagonal of what
    the pivots before it leave of the Gram matrix: Chen, Epperly, Tropp and
    Webber (2022), algorithm 1. Here many are proposed at once and thinned by
    rejection, which draws from the same distribution with matrix products in
    place of matrix-vector products: Epperly, Tropp and Webber (2024),
    algorithm 2.2.

    Returns the positions of at most `n_landmarks` different rows, in the order
    drawn: it stops where less than `tol` of the trace is left.
    """
    n_samples = X.shape[0]
    residual = kernel_diagonal(kernel, X)
    trace = residual.sum()
    factor = np.empty((n_samples, n_landmarks), order="F")
    pivots = np.empty(n_landmarks, dtype=np.intp)
    done = 0
    block = max(10, n_landmarks // 8)
    while done < n_landmarks and residual.sum() > tol * trace:
        proposed = rng.choice(n_samples, size=block, p=residual / residual.sum())
        F = factor[:, :done]
        rows = X[proposed]
        H = np.asarray(kernel(rows, rows), dtype=np.float64) - F[proposed] @ F[proposed].T
        accepted, L = _thin(H, rng.uniform(size=block) * residual[proposed])
        accepted = accepted[: n_landmarks - done]
        L = L[: len(accepted), : len(accepted)]
        chosen = proposed[accepted]
        if len(chosen) == 0:
            # rounding has eaten the residual of every proposed row
            residual[proposed] = 0.0
            continue
        G = np.asarray(kernel(X, X[chosen]), dtype=np.float64) - F @ F[chosen].T
        new = solve_triangular(L, G.T, lower=True, check_finite=False).T
        factor[:, done : done + len(chosen)] = new
        residual = np.maximum(residual - np.einsum("ij,ij->i", new, new), 0.0)
        residual[chosen] = 0.0
        pivots[done : done + len(chosen)] = chosen
        done += len(chosen)
    return pivots[:done]


def _thin(H, thresholds):
    """Accept each proposal whose residual, given those before it, beats its threshold.

    Returns the accepted positions and the Cholesky factor of their block of H.
    """
    H = H.copy()
    L = np.zeros_like(H)
    first = np.diag(H).copy()
    accepted = []
    for i in range(len(H)):
        # a repeated row leaves only rounding errors
        if H[i, i] > thresholds[i] and H[i, i] > 1e-10 * first[i]:
            k = len(accepted)
            L[i:, k] = H[i:, i] / np.sqrt(H[i, i])
            H[i:, i:] -= np.outer(L[i:, k], L[i:, k])
            accepted.append(i)
    return np.asarray(accepted, dtype=np.intp), L[accepted]


def leverage_rows(kernel, X, n_landmarks, rng):
    """Rows drawn by approximate ridge leverage scores.

    Musco and Musco (2017), algorithm 3: scores of a set of rows are estimated
    from a weighted sample of its random half, level by level, so that time is
    linear in the number of rows. The ridge is the mean of the eigenvalues
    beyond the k-th, (trace - sum of the k largest) / k, with
    ``k = n_landmarks / (4 log n_landmarks)``.

    Returns the positions of `n_landmarks` different rows; there must be as many.
    """
    n_samples = X.shape[0]
    order = rng.permutation(n_samples)
    diagonal = kernel_diagonal(kernel, X)
    oversampling = max(1.0, np.log(n_landmarks))
    rank = int(np.ceil(n_landmarks / (4 * oversampling)))
    n_levels = max(1, int(np.ceil(np.log2(n_samples / n_landmarks))))
    sample = order[:n_landmarks]
    weights = np.ones(len(sample))
    for level in range(n_levels - 1, -1, -1):
        rows = order[: int(np.ceil(n_samples / 2**level))]
        scores = _ridge_scores(kernel, X[rows], diagonal[rows], X[sample], weights, rank)
        if level:
            chance = np.minimum(1.0, oversampling * scores)
            taken = rng.uniform(size=len(rows)) < chance
            if not taken.any():
                chance = np.full(len(rows), n_landmarks / len(rows))
                taken[:n_landmarks] = True
            sample, weights = rows[taken], 1 / np.sqrt(chance[taken])
    scores = np.maximum(scores, 1e-12 * scores.max()) if scores.max() > 0 else np.ones(len(rows))
    return rows[rng.choice(len(rows), size=n_landmarks, replace=False, p=scores / scores.sum())]


def _ridge_scores(kernel, X, diagonal, sample, weights, rank):
    """Estimate ridge leverage scores of the rows of X from a weighted sample.

    Musco and Musco (2017), definition 2 and lemma 6:
    ``(K - K S (S^T K S + ridge I)^-1 S^T K)_ii / ridge``.
    """
    inner = np.asarray(kernel(sample, sample), dtype=np.float64) * np.outer(weights, weights)
    values, vectors = np.linalg.eigh(inner)
    ridge = max((values.sum() - values[-rank:].sum()) / rank, 1e-6 * values[-1] / len(values))
    # (K S) V / sqrt(values + ridge), whose squared row norms are what is explained
    half = weights[:, None] * vectors / np.sqrt(np.maximum(values, 0.0) + ridge)
    scores = np.empty(X.shape[0])
    for start in range(0, X.shape[0], 2048):
        part = slice(start, start + 2048)
        explained = np.asarray(kernel(X[part], sample), dtype=np.float64) @ half
        scores[part] = diagonal[part] - np.einsum("ij,ij->i", explained, explained)
    return np.clip(scores / ridge, 0.0, 1.0)
