"""Inputs in the unit ball, where |<x, x'>| <= 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kbench.kernels import Kernel, Linear
from kbench_zero_one._kernel import ZeroOneKernel

SLACK = 1e-9  # rounding that is not a violation


class UnitBall(NamedTuple):
    """Scaling of inputs into the ball that a kernel requires.

    Inputs are divided by `divisor`. If they are `bounded`, they must lie in the unit ball
    after that.
    """

    divisor: float = 1.0
    bounded: bool = False

    @classmethod
    def fit(cls, X: np.ndarray, kernel: Kernel, scale: bool) -> UnitBall:
        """Choose the divisor from training inputs, shape (n_samples, n_features).

        Only a `ZeroOneKernel` bounds its inputs: by |base(x, x)| <= 1. Where they exceed
        the bound, they are divided by the largest norm, or refused if `scale` is False. A
        base kernel that exceeds it even in the unit ball is refused.
        """
        if not isinstance(kernel, ZeroOneKernel):
            return cls()
        base, linear = kernel.base, isinstance(kernel.base, Linear)
        largest = _largest_diagonal(base, X)
        if largest <= 1.0 + SLACK:
            return cls(1.0, linear)
        norm = float(np.max(np.linalg.norm(X, axis=1)))
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
        largest = _largest_diagonal(base, X / divisor)
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
    return float(np.max(np.abs(base.resolve(X).diag(X))))
