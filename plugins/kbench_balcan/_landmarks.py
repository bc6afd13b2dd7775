"""The choice of landmarks among points.

`X` is an ndarray or CSR matrix of shape (n_samples, n_features).
"""

from __future__ import annotations

import numpy as np

from kbench.kernels import Kernel, Precomputed

SAMPLINGS = ("uniform", "kmeans", "rpcholesky", "greedy")

MAX_CANDIDATES = 20_000
"""Largest number of rows among which the two Cholesky samplings choose; bounds the memory.

More rows are clustered in mini-batches.
"""


def choose_landmarks(X, kernel: Kernel, n_landmarks: int, sampling: str, rng):
    """Choose at most `n_landmarks` landmarks for a kernel whose numbers are all set.

    k-means sees more than `MAX_CANDIDATES` rows in mini-batches (scikit-learn's
    MiniBatchKMeans). Returns what `kernel.take` keeps of them, and their rows in `X`; the
    centres of k-means, and None. The two Cholesky samplings return fewer landmarks where those
    already span all candidates.
    """
    if sampling == "kmeans":
        if isinstance(kernel, Precomputed):
            raise ValueError(
                "sampling must be 'uniform', 'rpcholesky' or 'greedy' with kernel='precomputed', "
                "got 'kmeans', which needs the inputs"
            )
        from sklearn.cluster import KMeans, MiniBatchKMeans

        clustering = KMeans if X.shape[0] <= MAX_CANDIDATES else MiniBatchKMeans
        return clustering(n_landmarks, n_init=1, random_state=rng).fit(X).cluster_centers_, None
    if sampling == "uniform":
        rows = rng.choice(X.shape[0], n_landmarks, replace=False)
    else:
        candidates = np.arange(X.shape[0])
        if len(candidates) > MAX_CANDIDATES:
            candidates = np.sort(rng.choice(X.shape[0], MAX_CANDIDATES, replace=False))
        rows = pivots(X, candidates, kernel, n_landmarks, rng if sampling == "rpcholesky" else None)
    return kernel.take(X, rows), rows


def pivots(X, candidates: np.ndarray, kernel: Kernel, n_pivots: int, rng=None) -> np.ndarray:
    """Choose pivots of a partial Cholesky decomposition of the Gram matrix.

    Each pivot is drawn with probability proportional to the diagonal of the
    residual (RPCholesky, Chen, Epperly, Tropp and Webber, "Randomly pivoted
    Cholesky", 2022, Algorithm 1), or without `rng` is its largest entry.
    Negative residuals count as zero. Returns rows of `X` among the `candidates`,
    fewer than `n_pivots` where the residual vanishes.
    """
    points = X if len(candidates) == X.shape[0] else X[candidates]
    residual = np.array(kernel.diag(X), dtype=np.float64)[candidates]
    negligible = len(candidates) * np.finfo(np.float64).eps * residual.max(initial=0.0)
    factor = np.empty((n_pivots, len(candidates)))
    chosen: list[int] = []
    for k in range(n_pivots):
        residual[residual <= negligible] = 0.0
        if not residual.any():
            break
        if rng is None:
            pivot = int(np.argmax(residual))
        else:
            pivot = int(rng.choice(len(candidates), p=residual / residual.sum()))
        column = kernel(points, kernel.take(X, candidates[[pivot]]))[:, 0]
        column = column - factor[:k, pivot] @ factor[:k]
        if column[pivot] <= negligible:  # the diagonal was wrong: not a kernel, or rounding
            residual[pivot] = 0.0
            factor[k] = 0.0
            continue
        factor[k] = column / np.sqrt(column[pivot])
        residual -= factor[k] ** 2
        residual[pivot] = 0.0
        chosen.append(pivot)
    if not chosen:
        raise ValueError(f"kernel={kernel!r} has k(x, x) <= 0 for every x; nothing can be spanned")
    return candidates[chosen]
