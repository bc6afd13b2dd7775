"""An orthonormal basis of the span of the landmarks' images."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, lapack, qr, solve_triangular

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
    clipped, in the sum of absolute ones; 0 where these are rounding errors.
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
        first = np.sort(order[: len(kept)])
        Q, R = qr(images[first].T, mode="economic")
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
    if rank < n:
        residual = K[np.ix_(order, order)] - U.T @ U
        if np.abs(residual).max() > _ROUNDING * largest:
            return None
    position = np.argsort(order[:rank])
    independent = order[:rank][position]
    (R,) = qr(U[:, :rank][:, position], mode="r")
    R = R[:rank] * np.where(np.diag(R) < 0, -1.0, 1.0)[:, None]
    components = np.zeros((n, rank))
    components[independent] = solve_triangular(R, np.eye(rank))
    return components
