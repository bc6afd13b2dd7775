"""Checks of kernels."""

import copy
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kbench_testing._subject import Subject, inputs, named_error, same


@dataclass(frozen=True)
class Mercer:
    """Result of `is_psd`; true if the matrix is positive semidefinite.

    Parameters
    ----------
    holds : bool
        Symmetric, and no eigenvalue below ``-tolerance``.
    smallest : float
        The smallest eigenvalue of the symmetric part.
    asymmetry : float
        The largest ``|K[i, j] - K[j, i]|``.
    tolerance : float
        Values up to this size count as zero.
    """

    holds: bool
    smallest: float
    asymmetry: float
    tolerance: float

    def __bool__(self) -> bool:
        return self.holds


def is_psd(K: ArrayLike, tolerance: float | None = None) -> Mercer:
    """Check Mercer's condition: a Gram matrix is symmetric and has no negative eigenvalue.

    Parameters
    ----------
    K : array, shape (n, n)
        The matrix.
    tolerance : float, optional
        Values up to this size count as zero; by default n * eps * the largest
        absolute eigenvalue, the size of rounding errors.

    Returns
    -------
    Mercer
        True or false, with the smallest eigenvalue.

    Raises
    ------
    ValueError
        If `K` is not square or not finite.

    Examples
    --------
    >>> bool(is_psd([[1.0, 0.5], [0.5, 1.0]]))
    True
    >>> is_psd([[1.0, 2.0], [2.0, 1.0]]).smallest
    -1.0
    """
    K = np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be square, got shape {K.shape}")
    if not np.isfinite(K).all():
        raise ValueError("K must be finite, got NaN or infinite values")
    if not K.size:
        return Mercer(True, 0.0, 0.0, 0.0)
    eps = np.finfo(K.dtype).eps if K.dtype.kind == "f" else np.finfo(np.float64).eps
    K = K.astype(np.float64)
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    if tolerance is None:
        tolerance = float(len(K) * eps * np.abs(eigenvalues).max())
    asymmetry = float(np.abs(K - K.T).max())
    smallest = float(eigenvalues[0])
    holds = bool(smallest >= -tolerance and asymmetry <= tolerance)
    return Mercer(holds, smallest, asymmetry, float(tolerance))


def _samples() -> Iterator[np.ndarray]:
    """Yield inputs from general to special: no record says what a kernel requires."""
    yield inputs(None, 40)
    yield inputs("nonnegative", 40)
    yield inputs("unit_ball", 40)
    yield np.random.default_rng(0).integers(0, 2, (40, 4)).astype(np.float64)
    yield np.random.default_rng(0).integers(0, 2, (40, 16)).astype(np.float64)


def _prepare(subject: Subject) -> tuple[Any, np.ndarray]:
    """Return the kernel, its numbers set, and inputs that it accepts."""
    from kbench.kernels import Precomputed

    refusals = []
    subject.skip_if(isinstance(subject.build(), Precomputed), "its inputs are Gram matrices")
    for X in _samples():
        kernel = subject.build()
        try:
            if hasattr(kernel, "resolve"):
                kernel = kernel.resolve(X.copy())
            kernel(X.copy(), X.copy())
        except ValueError as error:
            refusals.append(named_error(error))
            continue
        return kernel, X
    raise subject.fail(
        "rejects all inputs of the checks (any numbers, nonnegative, in the unit ball, binary; "
        "4 columns and 16): " + "; ".join(dict.fromkeys(refusals))
    )


def _gram(kernel: Any, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.asarray(kernel(X.copy(), Y.copy()), dtype=np.float64)


def check_gram(subject: Subject) -> None:
    """k(X, Y) is a finite matrix of shape (rows of X, rows of Y)."""
    kernel, X = _prepare(subject)
    K = np.asarray(kernel(X.copy(), X[:7].copy()))
    if K.shape != (len(X), 7):
        raise subject.fail(f"k(X, Y) has shape {K.shape} for 40 rows against 7; return (40, 7)")
    if not np.isfinite(K).all():
        raise subject.fail("gives NaN or infinite values; guard divisions and exponentials")


def check_symmetry(subject: Subject) -> None:
    """k(x, y) = k(y, x)."""
    kernel, X = _prepare(subject)
    if not same(_gram(kernel, X[:15], X[15:]), _gram(kernel, X[15:], X[:15]).T, rtol=1e-10):
        raise subject.fail("k(X, Y) is not k(Y, X) transposed; a kernel is symmetric")


def check_psd(subject: Subject) -> None:
    """Gram matrices are positive semidefinite, where the record says so."""
    kernel, X = _prepare(subject)
    K = _gram(kernel, X, X)
    # symmetry is another check's
    K = (K + K.T) / 2
    psd = is_psd(K, tolerance=1e-10 * max(float(np.abs(K).max()) * len(K), 1e-300))
    subject.fail_if(
        not psd,
        f"a Gram matrix has the eigenvalue {psd.smallest:.3g}; declare psd=False in the "
        "record, or correct the formula",
    )


def check_diag(subject: Subject) -> None:
    """`diag(X)` is the diagonal of k(X, X); missing is only a warning."""
    kernel, X = _prepare(subject)
    if not hasattr(kernel, "diag"):
        subject.warn("has no diag(X); derive it from kbench.kernels.Kernel, which has one")
        return
    if not same(kernel.diag(X.copy()), np.diagonal(_gram(kernel, X, X)), rtol=1e-8):
        raise subject.fail("diag(X) is not the diagonal of k(X, X)")


def check_chunks(subject: Subject) -> None:
    """Blocks of rows give the blocks of the Gram matrix."""
    kernel, X = _prepare(subject)
    whole = _gram(kernel, X, X[20:])
    parts = [_gram(kernel, X[start : start + 9], X[20:]) for start in range(0, len(X), 9)]
    subject.fail_if(
        not same(whole, np.vstack(parts), rtol=1e-8),
        "rows in blocks give other values than all at once; k(x, y) must depend on x and y "
        "only (numbers that depend on the data belong in resolve(X))",
    )


def check_repr(subject: Subject) -> None:
    """`repr` reads back as an equal kernel; one that cannot be read is only a warning."""
    import kbench.kernels

    kernel, X = _prepare(subject)
    written = repr(kernel)
    if written.startswith("<"):
        subject.warn("has no evaluable repr; make it a frozen dataclass")
        return
    names = {**vars(kbench.kernels), **vars(sys.modules[type(kernel).__module__]), "np": np}
    names |= {"array": np.array, "inf": np.inf, "nan": np.nan}
    with subject.failing(f"its repr {written} cannot be read back: {{error}}"):
        restored = eval(written, names)
    if not same(_gram(kernel, X, X[:9]), _gram(restored, X, X[:9]), rtol=1e-12):
        raise subject.fail(f"its repr {written} evaluates to another kernel")


def check_inputs_untouched(subject: Subject) -> None:
    """Read-only inputs are accepted, and no input is changed."""
    kernel, X = _prepare(subject)
    inputs = X.copy()
    kernel(inputs, X[:9].copy())
    subject.fail_if(not np.array_equal(inputs, X), "changes its inputs in place; work on a copy")
    inputs.flags.writeable = False
    with subject.failing("fails on read-only inputs: {error}", ValueError):
        copy.deepcopy(kernel)(inputs, inputs)
