"""Base classes of kernels, combinations of kernels, and kernels by name."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from kbench.arrays import (
    Array,
    Matrix,
    MatrixLike,
    check_rows,
    full,
    inverse_roots,
    is_positive,
    like,
    namespace,
    take,
    to_numpy,
)
from kbench.parameters import check_coefficients, check_number


class Kernel:
    """Base of all kernels.

    A subclass is a frozen dataclass that computes ``_gram(X, Y)`` (with `Y`
    None for the Gram matrix of `X` with itself) and, where that is cheaper,
    ``diag``. Calls check the shapes of inputs and that the result is
    finite.
    """

    @property
    def psd(self) -> bool:
        """Every Gram matrix ``k(X)`` is positive semidefinite."""
        return True

    takes_any_namespace: ClassVar[bool] = False
    """Whether Gram matrices are computed in the namespace and on the device of the inputs.

    Other kernels compute those of arrays of torch and the array API on the host.
    """

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> Array:
        """Compute the Gram matrix.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples_X, n_features)
            Rows.
        Y : array or CSR matrix, shape (n_samples_Y, n_features), optional
            Columns; `X` by default.

        Returns
        -------
        ndarray of float64 (float32 for float32 inputs), shape \
(n_samples_X, n_samples_Y)
            ``K[i, j] = k(X[i], Y[j])``, in the namespace of `X`.

        Raises
        ------
        ValueError
            If the shapes do not fit, or the result is not finite.
        """
        X = check_rows(X, "X")
        if Y is not None:
            Y = check_rows(Y, "Y")
            if X.shape[1] != Y.shape[1]:
                raise ValueError(
                    f"Y must have as many features as X, {X.shape[1]}, got {Y.shape[1]}"
                )
        xp = namespace(X)
        if xp is np or self.takes_any_namespace:
            K = self._gram(X, Y)
        else:
            K = like(self._gram(to_numpy(X), None if Y is None else to_numpy(Y)), X)
        n_columns = (X if Y is None else Y).shape[0]
        shape = np.shape(K) if xp is np else tuple(K.shape)
        if shape != (X.shape[0], n_columns):
            raise ValueError(
                f"kernel={self!r} must return shape ({X.shape[0]}, {n_columns}) for "
                f"{X.shape[0]} rows against {n_columns}, got shape {shape}"
            )
        # a sum shows a NaN or an infinity without a temporary of the size of K
        if not xp.isfinite(xp.sum(K)) and not xp.all(xp.isfinite(K)):
            raise ValueError(
                f"kernel={self!r} returned NaN or infinite values; "
                "its values must be finite (are the inputs too large?)"
            )
        return K

    def _gram(self, X: Matrix, Y: Matrix | None) -> Array:
        raise NotImplementedError

    def diag(self, X: MatrixLike) -> Array:
        """Compute ``k(x, x)`` for each row.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray, shape (n_samples,)
            The diagonal of ``k(X)``.
        """
        X = check_rows(X, "X")
        # small blocks: their off-diagonal entries are wasted
        blocks = [
            np.diagonal(to_numpy(self(take(X, slice(start, start + 32)))))
            for start in range(0, X.shape[0], 32)
        ] or [np.empty(0)]
        diagonal = np.concatenate(blocks)
        return diagonal if namespace(X) is np else like(diagonal, X)

    def resolve(self, X: MatrixLike) -> Kernel:
        """Set every number that depends on data.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Training inputs.

        Returns
        -------
        Kernel
            This kernel if no parameter depends on data.
        """
        return self

    @property
    def is_differentiable(self) -> bool:
        """Whether the kernel has `input_gradient`: a gradient in its first argument."""
        return hasattr(self, "_gradient")

    def input_gradient(self, X: MatrixLike, Y: MatrixLike, coef: ArrayLike) -> Array:
        """Compute gradients of ``f(x) = sum_j coef_j k(x, Y_j)`` in x.

        They are 0 if the kernel is not differentiable, for instance where x is a row of
        `Y` and the kernel has a cusp.

        Parameters
        ----------
        X : array, shape (n_samples, n_features)
            Where.
        Y : array, shape (n_rows, n_features)
            Rows, landmarks for instance.
        coef : array-like, shape (n_rows,) or (n_outputs, n_rows)
            Coefficients of one function, or of several.

        Returns
        -------
        ndarray, shape (n_samples, n_features) or (n_outputs, n_samples, n_features)

        Raises
        ------
        ValueError
            The kernel has no gradient, or the shapes do not fit.

        Examples
        --------
        >>> from kbench.kernels import Gaussian
        >>> Gaussian(bandwidth=1.0).input_gradient([[1.0]], [[0.0]], [1.0]).round(4)
        array([[-0.6065]])
        """
        if not self.is_differentiable:
            raise ValueError(f"kernel={self!r} has no gradient")
        rows, Y = (to_numpy(check_rows(each, name)) for each, name in ((X, "X"), (Y, "Y")))
        coef = np.asarray(to_numpy(coef), dtype=np.float64)
        check_coefficients(coef.shape, Y.shape[0])
        gradients = self._gradient(rows, Y, np.atleast_2d(coef))  # type: ignore[attr-defined]
        gradients = gradients[0] if coef.ndim == 1 else gradients
        return gradients if namespace(X) is np else like(gradients, X)

    def take(self, X: Matrix, rows: np.ndarray) -> Matrix:
        """Keep the data that a later comparison with some rows needs.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Training inputs.
        rows : ndarray of int, shape (n_rows,)
            Row indices, landmarks for instance.

        Returns
        -------
        array or CSR matrix
            To be passed as `Y`; ``X[rows]`` except for `Precomputed`.
        """
        return X[rows]

    def _set(self, **values: object) -> None:
        """Set fields of a frozen kernel, in ``__post_init__``."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _as_part(self) -> Kernel:
        """Return the kernel as a part of another one; raise where it cannot be combined."""
        return self

    def __add__(self, other: object) -> Sum:
        return Sum(self, resolve_kernel(other)) if callable(other) else NotImplemented

    def __mul__(self, other: object) -> Scaled | Product:
        if isinstance(other, int | float | np.number):
            return Scaled(self, float(other))
        return Product(self, resolve_kernel(other)) if callable(other) else NotImplemented

    def __rmul__(self, other: object) -> Scaled | Product:
        return self.__mul__(other)


class UnitDiagonal(Kernel):
    """Base of kernels with ``k(x, x) = 1``."""

    def diag(self, X: MatrixLike) -> Array:
        """Ones."""
        X = check_rows(X, "X")
        return full((X.shape[0],), 1.0, X)


@dataclass(frozen=True)
class Wrapper(Kernel):
    """Base of kernels that are made from another one."""

    kernel: Kernel

    def __post_init__(self) -> None:
        kernel = resolve_kernel(self.kernel)._as_part()
        self._set(kernel=kernel, takes_any_namespace=kernel.takes_any_namespace)

    @property
    def psd(self) -> bool:
        """True if the wrapped kernel is positive semidefinite."""
        return self.kernel.psd

    def resolve(self, X: MatrixLike) -> Self:
        """Resolve the wrapped kernel."""
        return replace(self, kernel=self.kernel.resolve(X))


@dataclass(frozen=True)
class _Pair(Kernel):
    """Two kernels whose values are combined by an operator."""

    left: Kernel
    right: Kernel

    @staticmethod
    def _combine(left: np.ndarray, right: np.ndarray, /) -> Array:
        raise NotImplementedError

    def __post_init__(self) -> None:
        left, right = (resolve_kernel(part)._as_part() for part in (self.left, self.right))
        self._set(left=left, right=right)
        self._set(takes_any_namespace=left.takes_any_namespace and right.takes_any_namespace)

    @property
    def psd(self) -> bool:
        """True if both parts are positive semidefinite; for products by Schur's theorem."""
        return self.left.psd and self.right.psd

    def resolve(self, X: MatrixLike) -> Self:
        """Resolve both parts."""
        return type(self)(self.left.resolve(X), self.right.resolve(X))

    def _gram(self, X: Matrix, Y: Matrix | None) -> Array:
        return self._combine(self.left(X, Y), self.right(X, Y))

    def diag(self, X: MatrixLike) -> Array:
        """Combine the diagonals of both parts."""
        return self._combine(self.left.diag(X), self.right.diag(X))


@dataclass(frozen=True)
class Sum(_Pair):
    """``k(x, z) = left(x, z) + right(x, z)``, written ``left + right``.

    Parameters
    ----------
    left, right : Kernel, str or callable
        The parts.
    """

    _combine = staticmethod(operator.add)

    @property
    def is_differentiable(self) -> bool:
        """Whether both parts have gradients."""
        return self.left.is_differentiable and self.right.is_differentiable

    def _gradient(self, X: np.ndarray, Y: np.ndarray, coef: np.ndarray) -> np.ndarray:
        parts = (part.input_gradient(X, Y, coef) for part in (self.left, self.right))
        return np.asarray(sum(parts))


@dataclass(frozen=True)
class Product(_Pair):
    """``k(x, z) = left(x, z) right(x, z)``, written ``left * right``.

    Parameters
    ----------
    left, right : Kernel, str or callable
        The parts.
    """

    _combine = staticmethod(operator.mul)


@dataclass(frozen=True)
class Scaled(Wrapper):
    """``weight * kernel(x, z)``, written ``weight * kernel``.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel.
    weight : float
        Nonnegative: a negative multiple of a kernel is not a kernel.
    """

    weight: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self.weight, "weight", least=0)
        self._set(weight=float(self.weight))

    def _gram(self, X: Matrix, Y: Matrix | None) -> Array:
        return self.kernel(X, Y) * self.weight

    @property
    def is_differentiable(self) -> bool:
        """Whether the kernel has a gradient."""
        return self.kernel.is_differentiable

    def _gradient(self, X: np.ndarray, Y: np.ndarray, coef: np.ndarray) -> Array:
        return self.kernel.input_gradient(X, Y, self.weight * coef)

    def diag(self, X: MatrixLike) -> Array:
        """Multiple of the diagonal."""
        return self.weight * self.kernel.diag(X)


@dataclass(frozen=True)
class Normalized(Wrapper):
    """``k(x, z) / sqrt(k(x, x) k(z, z))``: images of unit length.

    0 if the image of a row is the zero vector.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel; its diagonal must be nonnegative.

    Examples
    --------
    >>> from kbench.kernels import Polynomial
    >>> Normalized(Polynomial(degree=2))([[1.0, 2.0]], [[3.0, 4.0]]).round(4)
    array([[0.9231]])
    """

    def _inverse_norms(self, X: Matrix) -> Array:
        xp, squared = namespace(X), self.kernel.diag(X)
        if xp.any(squared < 0):
            raise ValueError(
                f"kernel={self.kernel!r} has k(x, x) = {float(xp.min(squared)):g} < 0 "
                "for some row; it cannot be normalized"
            )
        return inverse_roots(squared)

    def _gram(self, X: Matrix, Y: Matrix | None) -> Array:
        K: np.ndarray = self.kernel(X, Y) * self._inverse_norms(X)[:, None]
        K *= self._inverse_norms(X if Y is None else Y)
        return K

    def diag(self, X: MatrixLike) -> Array:
        """1, or 0 if k(x, x) = 0."""
        return is_positive(self.kernel.diag(X))


def normalized(kernel: Kernel | str | Callable[..., ArrayLike]) -> Normalized:
    """Normalize a kernel, see `Normalized`."""
    return Normalized(resolve_kernel(kernel))


@dataclass(frozen=True)
class Similarity(Kernel):
    """Any function as a similarity; nothing is assumed about its eigenvalues.

    Parameters
    ----------
    function : callable
        ``function(X, Y) -> ndarray (n_samples_X, n_samples_Y)``, or, with
        `pairs`, ``function(x, z) -> float`` of two rows. A method ``diag(X)``
        or ``resolve(X)`` of it is used if it has one.
    pairs : bool, default False
        The function compares two rows, not two matrices.

    Examples
    --------
    >>> Similarity(lambda x, z: min(x[0], z[0]), pairs=True)([[1.0], [3.0]], [[2.0]])
    array([[1.],
           [2.]])
    """

    function: Callable[..., Any]
    pairs: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function must be callable, got {self.function!r}")

    @property
    def psd(self) -> bool:
        """Unknown, hence False."""
        return False

    def resolve(self, X: MatrixLike) -> Similarity:
        """Resolve the function where it can be."""
        resolve = getattr(self.function, "resolve", None)
        return self if resolve is None else replace(self, function=resolve(X))

    def _gram(self, X: Matrix, Y: Matrix | None) -> Array:
        Y = X if Y is None else Y
        if self.pairs:
            K = np.array([[float(self.function(x, z)) for z in Y] for x in X])
            return K.reshape(X.shape[0], Y.shape[0])
        return np.asarray(self.function(X, Y), dtype=np.result_type(X.dtype, np.float32))

    def diag(self, X: MatrixLike) -> Array:
        """``function(x, x)`` of each row."""
        if hasattr(self.function, "diag"):
            return np.asarray(self.function.diag(X))
        if self.pairs:
            return np.array([float(self.function(x, x)) for x in check_rows(X, "X")])
        return super().diag(X)


SIMPLE: dict[str, type[Kernel]] = {}
"""The kernels that have no parts, by their names in suite files; filled by the package."""


def resolve_kernel(kernel: Kernel | str | Callable[..., ArrayLike]) -> Kernel:
    """Turn a value of the parameter ``kernel`` into a kernel object.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A kernel object, the name of a built-in kernel with its defaults, or
        any function ``k(X, Y) -> Gram matrix``.

    Returns
    -------
    Kernel
        Its data-dependent numbers may still be open: see `Kernel.resolve`.

    Raises
    ------
    ValueError
        The value is not one of these.

    Examples
    --------
    >>> resolve_kernel("gaussian")
    Gaussian(bandwidth='median', bandwidth_factor=1.0)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in SIMPLE:
        return SIMPLE[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return Similarity(kernel)
    raise ValueError(
        f"kernel must be one of {', '.join(map(repr, SIMPLE))}, a kernel object such as "
        f"Gaussian(bandwidth=1.0), or a function k(X, Y), got {kernel!r}"
    )
