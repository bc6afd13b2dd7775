"""The choice of landmarks among points, and an orthonormal basis of the span of their images.

`X` is an ndarray or CSR matrix of shape (n_samples, n_features).
"""

import numpy as np
from scipy.linalg import eigh, lapack, qr, solve_triangular

from kbench.kernels import Kernel, Precomputed

SAMPLINGS = ("uniform", "kmeans", "rpcholesky", "greedy")

# Maximum number of rows among which the two Cholesky samplings choose; bounds the memory.
#
# More rows are clustered in mini-batches.
MAX_CANDIDATES = 20_000


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
        return clustering(n_landmarks, n_init=1, random_state=rng).fit(X[:]).cluster_centers_, None
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
    if isinstance(kernel, Precomputed):
        residual = np.array(kernel.diag(X), dtype=np.float64)[candidates]
    else:
        residual = np.array(kernel.diag(points), dtype=np.float64)
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


# clipping less than this share of the spectrum is a rounding error
_ROUNDING = 1e-8


def orthonormal_basis(K: np.ndarray, basis: str, tolerance: float) -> tuple[np.ndarray, float]:
    """Orthonormalise the images of landmarks, given their symmetric Gram matrix.

    The basis "triangular" has, with ``K = U^T U`` of the independent landmarks in
    the order drawn, the columns of ``U^-1``, the paper's choice (section 3); "eigen"
    has ``V Lambda^(-1/2)`` of the eigendecomposition, the largest eigenvalue first.
    Pivots (eigenvalues) up to `tolerance` times the largest count as zero. Where `K`
    has no positive eigenvalue, there is no column.

    Returns the coefficients, shape (n_landmarks, rank), with
    ``F2(x) = F1(x) @ coefficients``, and the share of negative eigenvalues, which are
    clipped, in the sum of absolute ones; 0 if these are rounding errors.
    """
    if basis == "triangular":
        components = _inverse_cholesky(K, tolerance)
        if components is not None:
            return components, 0.0
    eigenvalues, vectors = eigh(K)
    total = np.abs(eigenvalues).sum()
    negative = -eigenvalues[eigenvalues < 0].sum()
    clipped = float(negative / total) if total > 0 and negative > _ROUNDING * total else 0.0
    kept = np.flatnonzero(eigenvalues > tolerance * np.abs(eigenvalues).max())[::-1]
    roots = np.sqrt(eigenvalues[kept])
    components = vectors[:, kept] / roots
    if basis == "triangular" and len(kept):
        # not positive semidefinite: rotate so that the images of the first
        # landmarks are triangular, which is what U^-1 does where U exists
        images = vectors[:, kept] * roots
        _, _, order = qr(images.T, mode="economic", pivoting=True)
        Q, R = qr(images[np.sort(order[: len(kept)])].T, mode="economic")
        components = components @ (Q * np.where(np.diag(R) < 0, -1.0, 1.0))
    return components, clipped


def _inverse_cholesky(K: np.ndarray, tolerance: float) -> np.ndarray | None:
    """Return ``U^-1`` on the independent landmarks, zero rows elsewhere.

    Cholesky with complete pivoting (LAPACK's pstrf), which is stable, decides
    which landmarks are independent; U is then the factor in the order in which
    they were drawn. None where K is not positive semidefinite.
    """
    n = len(K)
    largest = K.diagonal().max(initial=0.0)
    if largest <= 0:
        return None
    factor, order, rank, _ = lapack.dpstrf(K, tol=tolerance * largest)
    order = order - 1
    U = np.triu(factor)[:rank]
    if rank < n and np.abs(K[np.ix_(order, order)] - U.T @ U).max() > _ROUNDING * largest:
        return None
    position = np.argsort(order[:rank])
    independent = order[:rank][position]
    (R,) = qr(U[:, :rank][:, position], mode="r")
    R = R[:rank] * np.where(np.diag(R) < 0, -1.0, 1.0)[:, None]
    components = np.zeros((n, rank))
    components[independent] = solve_triangular(R, np.eye(rank))
    return components
