"""The rational quadratic kernel."""

from dataclasses import dataclass

from sklearn.metrics.pairwise import euclidean_distances

from kbench.kernels import Kernel


@dataclass(frozen=True)
class RationalQuadratic(Kernel):
    """``k(x, z) = 1 / (1 + ||x - z||^2 / width^2)``."""

    width: float = 1.0

    def _gram(self, X, Y):
        return 1 / (1 + euclidean_distances(X, Y, squared=True) / self.width**2)
