"""The kernel of Shalev-Shwartz, Shamir and Sridharan (2011), equation 6, and the ball of inputs."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from kbench.estimators import row_blocks
from kbench.kernels import Kernel, Linear, Precomputed, resolve_kernel
from kbench.parameters import check_number


@dataclass(frozen=True)
class ZeroOneKernel(Kernel):
    """``k(x, z) = 1 / (1 - nu base(x, z))``, the 0-1 loss kernel.

    Equation 6 of Shalev-Shwartz, Shamir and Sridharan, "Learning linear and kernel
    predictors with the 0-1 loss function" (IJCAI 2011). Its ball of squared radius B
    holds every predictor p(<w, x>) with ||w|| <= 1 and sum_j beta_j^2 nu^-j <= B, beta
    being the coefficients of p (Lemma 1): polynomials close to a step among them.

    Parameters
    ----------
    nu : float, default 0.5
        Strictly between 0 and 1; near 1 high powers weigh more.
    base : Kernel, str or callable, optional
        A kernel with ``|base(x, z)| <= 1``; the inner product, for inputs in the unit
        ball, by default. The paper's Gaussian, ``exp(-||x - z||^2 / sigma^2)``, is
        ``Gaussian(bandwidth=sigma / sqrt(2))``.

    Raises
    ------
    ValueError
        If nu is out of its range; on call, if the base kernel leaves [-1, 1].

    Examples
    --------
    >>> ZeroOneKernel(nu=0.5)([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]).round(3)
    array([[2.   , 1.   , 0.667]])
    >>> ZeroOneKernel(base="gaussian").base
    Gaussian(bandwidth='median', bandwidth_factor=1.0)
    """

    nu: float = 0.5
    base: Kernel | None = None

    def __post_init__(self):
        check_number(self.nu, "nu", above=0, below=1)
        object.__setattr__(self, "nu", float(self.nu))
        base = Linear() if self.base is None else resolve_kernel(self.base)
        if isinstance(base, Precomputed):
            raise ValueError(
                f"base must be a kernel on inputs, got {base!r}; apply 1 / (1 - nu K) to the "
                "Gram matrix and use it as a precomputed kernel"
            )
        object.__setattr__(self, "base", base)

    @property
    def psd(self):
        """True if the base kernel is: a power series with nonnegative coefficients keeps it."""
        return self.base.psd

    def resolve(self, X):
        """Resolve the base kernel.

        Parameters
        ----------
        X : ndarray, shape (n_samples, n_features)
            Training inputs.

        Returns
        -------
        ZeroOneKernel
            With every number set.
        """
        return ZeroOneKernel(self.nu, self.base.resolve(X))

    def _gram(self, X, Y):
        return self._of(self.base(X, Y))

    def diag(self, X):
        """Return ``1 / (1 - nu base(x, x))``."""
        return self._of(self.base.diag(X))

    def _of(self, K):
        # the base may hand out its own array: never write into it
        K = np.array(K, copy=True)
        largest = max(K.max(initial=0.0), -K.min(initial=0.0))
        if largest > 1.0 + 64 * np.finfo(K.dtype).eps:
            raise ValueError(
                f"base must be at most 1 in absolute value, got |base(x, z)| = {largest:.6g} for "
                f"{self.base!r}; scale the inputs into the unit ball, or use a bounded base kernel"
            )
        K *= K.dtype.type(-self.nu)
        K += K.dtype.type(1.0)
        return np.reciprocal(K, out=K)


SLACK = 1e-9  # rounding that is not a violation


class UnitBall(NamedTuple):
    """Scaling of inputs into the ball that a kernel requires.

    Inputs are divided by `divisor`. If they are `bounded`, they must lie in the unit ball
    after that.
    """

    divisor: float = 1.0
    bounded: bool = False

    @classmethod
    def fit(cls, X: np.ndarray, kernel: Kernel, scale: bool) -> Self:
        """Choose the divisor from training inputs, shape (n_samples, n_features).

        Only a `ZeroOneKernel` bounds its inputs: by |base(x, x)| <= 1. Where they exceed
        the bound, they are divided by the largest norm, or an error is raised if `scale` is False.
        A base kernel that exceeds it even in the unit ball raises a ValueError.
        """
        if not isinstance(kernel, ZeroOneKernel):
            return cls()
        base, linear = kernel.base, isinstance(kernel.base, Linear)
        largest = _largest_diagonal(base, X)
        if largest <= 1.0 + SLACK:
            return cls(1.0, linear)
        norm = max(float(np.linalg.norm(part, axis=1).max()) for part in row_blocks(X))
        if not scale and linear:
            raise ValueError(
                f"the inputs must have norms of at most 1 with scale=False, got {norm:.6g}; "
                "scale them into the unit ball, or set scale=True"
            )
        if not scale:
            raise ValueError(
                "base_kernel must have k(x, x) of at most 1 with scale=False, got "
                f"{largest:.6g} for {base!r}"
            )
        divisor = max(norm, 1.0)
        # the inner product of rows in the ball is at most 1
        largest = 1.0 if linear else _largest_diagonal(base, X / divisor)
        if largest > 1.0 + SLACK:
            raise ValueError(
                "base_kernel must have k(x, x) of at most 1 in the unit ball, got "
                f"{largest:.6g} for {base!r}; normalize it"
            )
        return cls(divisor, True)

    def inside(self, X: np.ndarray, clip: bool = False) -> np.ndarray:
        """Bring inputs into the ball.

        With `clip`, rows that are still outside are projected on the ball: inputs that the
        divisor was not chosen from.
        """
        if not self.bounded:
            return X
        X = X / self.divisor if self.divisor != 1.0 else X
        norms = np.linalg.norm(X, axis=1)
        if clip and norms.max(initial=0.0) > 1.0:
            X = X / np.maximum(norms, 1.0)[:, None]
        return X


def _largest_diagonal(base: Kernel, X: np.ndarray) -> float:
    resolved = base.resolve(X)
    return max(float(np.abs(resolved.diag(part)).max()) for part in row_blocks(X))
