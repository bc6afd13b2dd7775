"""Inputs in the unit ball, where |<x, x'>| <= 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kbench.kernels import Linear
from kbench_zero_one._kernel import ZeroOneKernel

SLACK = 1e-9  # rounding that is no violation


class UnitBall(NamedTuple):
    """How inputs are brought into the ball that a kernel asks for.

    Parameters
    ----------
    divisor : float
        What inputs are divided by; 1.0 where nothing has to be done.
    bounded : bool
        Inputs must lie in the unit ball after that.
    """

    divisor: float = 1.0
    bounded: bool = False

    @classmethod
    def fit(cls, X, kernel, scale):
        """Choose the divisor from training inputs.

        Parameters
        ----------
        X : ndarray, shape (n_samples, n_features)
            Training inputs.
        kernel : Kernel
            Only a `ZeroOneKernel` bounds its inputs: by |base(x, x)| <= 1.
        scale : bool
            Divide by the largest norm where the bound would be exceeded.

        Returns
        -------
        UnitBall

        Raises
        ------
        ValueError
            If the bound is exceeded and `scale` is False, or a base kernel other than
            the inner product exceeds it even in the unit ball.
        """
        if not isinstance(kernel, ZeroOneKernel):
            return cls()
        base, linear = kernel.base, isinstance(kernel.base, Linear)
        if np.max(np.abs(base.resolve(X).diag(X))) <= 1.0 + SLACK:
            return cls(1.0, linear)
        norm = float(np.max(np.linalg.norm(X, axis=1)))
        if not scale:
            raise ValueError(
                f"scale=False, and the largest norm of the inputs is {norm:.6g}: it must be at "
                "most 1; scale the inputs into the unit ball, or set scale=True"
                if linear
                else f"scale=False, and base_kernel={base!r} exceeds 1: |k(x, x)| must be at most 1"
            )
        divisor = max(norm, 1.0)
        scaled = X / divisor
        largest = float(np.max(np.abs(base.resolve(scaled).diag(scaled))))
        if largest > 1.0 + SLACK:
            raise ValueError(
                f"base_kernel={base!r} reaches k(x, x) = {largest:.6g} in the unit ball; it must "
                "be at most 1: normalize it"
            )
        return cls(divisor, True)

    def inside(self, X, clip=False):
        """Bring inputs into the ball.

        Parameters
        ----------
        X : ndarray, shape (n_samples, n_features)
            Inputs.
        clip : bool, default False
            Project what is still outside on the ball: inputs that were not there to
            choose the divisor from.

        Returns
        -------
        ndarray, shape (n_samples, n_features)
        """
        if not self.bounded:
            return X
        X = X / self.divisor if self.divisor != 1.0 else X
        norms = np.linalg.norm(X, axis=1)
        if clip and norms.max(initial=0.0) > 1.0:
            X = X / np.maximum(norms, 1.0)[:, None]
        return X
