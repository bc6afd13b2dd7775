"""The feature map of Lemma 1, as a transformer."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.parameters import check_integer, check_number
from kbench_zero_one._ball import UnitBall
from kbench_zero_one._kernel import ZeroOneKernel
from kbench_zero_one._monomials import (
    MonomialTable,
    n_monomials,
    sketch_blocks,
    truncation_degree,
)


class ZeroOneFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Monomials weighted by nu^(j/2), whose inner products are the 0-1 loss kernel.

    ``phi(x) = (nu^(j/2) x_{i_1} ... x_{i_j})`` over all degrees j and indices i_1, ..., i_j.
    Lemma 1 of Shalev-Shwartz, Shamir and Sridharan (IJCAI 2011) writes the kernel
    1 / (1 - nu <x, z>) as an inner product of all monomials. This map keeps those up to
    the degree D where the rest, nu^(D+1) / (1 - nu), is at most `tol`. The lowest degrees
    are exact as long as they fit into `n_components`; the others share what is left of it
    as tensor sketches (Pham and Pagh, KDD 2013). In low dimension everything is exact.

    Parameters
    ----------
    nu : float, default 0.5
        Parameter of the kernel, strictly between 0 and 1.
    tol : float, default 1e-3
        Largest error of the kernel on the unit ball that truncation may cause, in (0, 1).
    n_components : int, default 1024
        Largest number of features of the map.
    scale : bool, default True
        Divide the inputs by the largest training norm if that exceeds 1. Later inputs
        outside the unit ball are projected on it.
    random_state : int, RandomState instance or None, default None
        Hash functions of the sketches.

    Attributes
    ----------
    degree_ : int
        Degree D of the truncation.
    exact_degree_ : int
        Degrees up to this one are exact.
    tail_ : float
        nu^(D+1) / (1 - nu), a bound of the truncation error.
    n_features_in_ : int
        Number of features of the inputs.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or the inputs leave the unit ball and
        `scale` is False.

    Notes
    -----
    The variance of a sketch of degree j grows as nu^(2j) 3^j. Up to nu = 0.57 it falls
    with the degree; for larger nu, in dimensions where the high degrees do not fit
    exactly, use the Nystroem method with `ZeroOneKernel` instead.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.6, 0.0], [0.0, -0.8]])
    >>> Z = ZeroOneFeatures(nu=0.5, tol=1e-6).fit_transform(X)
    >>> (Z @ Z.T).round(4)
    array([[1.2195, 1.    ],
           [1.    , 1.4706]])
    >>> ZeroOneKernel(nu=0.5)(X).round(4)
    array([[1.2195, 1.    ],
           [1.    , 1.4706]])
    """

    def __init__(self, nu=0.5, *, tol=1e-3, n_components=1024, scale=True, random_state=None):
        self.nu = nu
        self.tol = tol
        self.n_components = n_components
        self.scale = scale
        self.random_state = random_state

    def fit(self, X, y=None):
        """Choose scale, degrees and hash functions.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        check_number(self.nu, "nu", above=0, below=1)
        check_number(self.tol, "tol", above=0, below=1)
        check_integer(self.n_components, "n_components", least=1)
        nu, n = float(self.nu), self.n_components
        X = validate_data(self, X, dtype=(np.float64, np.float32))
        self.ball_ = UnitBall.fit(X, ZeroOneKernel(nu), self.scale)
        self.degree_ = truncation_degree(nu, self.tol)
        self.tail_ = nu ** (self.degree_ + 1) / (1 - nu)
        self.exact_degree_, used = self._exact_degree(X.shape[1], n)
        self._table = MonomialTable(X.shape[1], self.exact_degree_)
        sketched = self.degree_ - self.exact_degree_
        # fewer components than degrees: the highest ones, which weigh least, are left out
        self._sketched = [self.exact_degree_ + 1 + i for i in range(min(sketched, n - used))]
        self._width = 0
        if self._sketched:
            self._width = _smooth((n - used) // len(self._sketched))
            random = check_random_state(self.random_state)
            shape = (self._sketched[-1], X.shape[1])
            self._indices = random.randint(self._width, size=shape)
            self._signs = random.choice([-1.0, 1.0], size=shape)
        self._n_features_out = used + self._width * len(self._sketched)
        return self

    def _exact_degree(self, n_features, n_components):
        """Return the largest degree up to which all monomials fit, and their number.

        Where not everything fits, half of the components are left to the sketches.
        """
        counts = np.cumsum([float(n_monomials(n_features, j)) for j in range(self.degree_ + 1)])
        if counts[-1] <= n_components:
            return self.degree_, int(counts[-1])
        degree = max(0, int(np.sum(counts <= n_components / 2)) - 1)
        return degree, int(counts[degree])

    def transform(self, X):
        """Map inputs to weighted monomials and their sketches.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples, n_features_out)
            Features, in order of degree; float32 for float32 inputs.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        X = self.ball_.inside(X, clip=True)
        blocks = list(self._table.blocks(X, self.nu))
        if self._sketched:
            blocks += sketch_blocks(
                X, self.nu, self._sketched, self._indices, self._signs, self._width
            )
        return np.hstack(blocks)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _smooth(width):
    """Round down by less than a quarter, to a length that transforms fast."""
    return width - width % (1 << max(0, width.bit_length() - 3))


def approximated_kernel(fitted, X, Y):
    """Return the Gram matrix that a fitted map approximates, for the kernel error.

    ``1 / (1 - nu <x, z>)`` of the scaled inputs; `X` and `Y` are as the map gets them.
    """
    X, Y = (fitted.ball_.inside(np.asarray(rows), clip=True) for rows in (X, Y))
    return ZeroOneKernel(fitted.nu)(X, Y)
