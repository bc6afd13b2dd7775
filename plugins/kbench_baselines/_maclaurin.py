"""Random Maclaurin features of kernels that are functions of the inner product."""

from __future__ import annotations

import numpy as np
from scipy.special import comb
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot

from kbench.parameters import check_choice, check_integer, check_number
from kbench_baselines._bandwidth import resolve_bandwidth, root_mean_square
from kbench_baselines._base import BaselineMap


class RandomMaclaurinFeatures(BaselineMap):
    """Random Maclaurin features: products of random signed sums.

    A feature of degree N is ``c prod_j (w_j . x)`` over N random sign vectors.
    N is drawn in proportion to the size of its term in the series at the mean
    squared length of the training rows, in place of Kar and Karnick's geometric
    distribution: still unbiased, with less variance.

    Parameters
    ----------
    n_components : int, default 300
        Number of features.
    kernel : {"polynomial", "exponential"}, default "exponential"
        ``(x.z / bandwidth^2 + coef0)^degree`` or ``exp(x.z / bandwidth^2)``. The latter is
        the Gaussian kernel of this bandwidth on rows of one length, up to a factor.
    degree : int, default 2
        Degree of the polynomial kernel.
    coef0 : float, default 1.0
        Constant in the polynomial kernel, >= 0.
    bandwidth : float or "norm", default "norm"
        Parameter of the kernel; "norm" is the root mean square length of the training rows.
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    random_state : int, RandomState or None, default None
        Seed of degrees and signs.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel, its factor included.
    degrees_ : ndarray of int, shape (n_components,)
        Degree of each feature, in descending order.
    factors_ : ndarray, shape (n_components,)
        Factor c of each feature, for inputs in this unit.
    unit_ : float
        Root mean square length of the training rows, by which inputs are divided.
    signs_ : list of ndarray
        The j-th holds w_j of all features of degree above j, one per column.

    References
    ----------
    P. Kar and H. Karnick, Random feature maps for dot product kernels, AISTATS
    2012, algorithm 1.

    Examples
    --------
    >>> RandomMaclaurinFeatures(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    def __init__(
        self,
        n_components=300,
        *,
        kernel="exponential",
        degree=2,
        coef0=1.0,
        bandwidth="norm",
        bandwidth_factor=1.0,
        random_state=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.bandwidth = bandwidth
        self.bandwidth_factor = bandwidth_factor
        self.random_state = random_state

    def _fit(self, X):
        check_integer(self.n_components, "n_components", least=1)
        check_integer(self.degree, "degree", least=1)
        check_choice(self.kernel, "kernel", ("polynomial", "exponential"))
        check_number(self.coef0, "coef0", least=0)
        rng = check_random_state(self.random_state)
        self.bandwidth_ = resolve_bandwidth(self, X, "inner")
        self.unit_ = root_mean_square(X) or 1.0
        size = (self.unit_ / self.bandwidth_) ** 2
        if self.kernel == "exponential":
            # the terms of exp(size) are Poisson probabilities up to a factor,
            # so that what is divided out is the same for every degree
            degrees, sum_of_terms = rng.poisson(size, size=self.n_components), np.exp(size)
        else:
            order = np.arange(self.degree + 1)
            terms = comb(self.degree, order) * size**order * self.coef0 ** (self.degree - order)
            sum_of_terms = terms.sum()
            degrees = rng.choice(order, size=self.n_components, p=terms / sum_of_terms)
        self.degrees_ = np.sort(degrees)[::-1]
        # a_N bandwidth^-2N / P(N) = sum_of_terms / unit^2N, of which inputs are divided by the unit
        self.factors_ = np.full(self.n_components, np.sqrt(sum_of_terms / self.n_components))
        values = np.array([-1.0, 1.0], dtype=X.dtype)
        self.signs_ = [
            rng.choice(values, size=(X.shape[1], int((self.degrees_ > j).sum())))
            for j in range(self.degrees_[0])
        ]
        return self.n_components

    def _transform(self, X):
        features = np.empty((X.shape[0], self.n_components), dtype=X.dtype)
        features[:] = self.factors_
        X = X / X.dtype.type(self.unit_)
        for signs in self.signs_:
            features[:, : signs.shape[1]] *= safe_sparse_dot(X, signs.astype(X.dtype, copy=False))
        return features


def maclaurin_gram(fitted, X, Y):
    """Gram matrix of the kernel of a fitted `RandomMaclaurinFeatures`."""
    inner = np.asarray(safe_sparse_dot(X, Y.T, dense_output=True), dtype=np.float64)
    inner /= fitted.bandwidth_**2
    if fitted.kernel == "exponential":
        return np.exp(inner)
    return (inner + fitted.coef0) ** fitted.degree
