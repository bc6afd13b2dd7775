"""Polynomial features: all monomials, a sketch of them, or pieces that make up splines."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln
from sklearn import get_config
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from kbench.arrays import full, host_type, like, namespace, take, to_numpy
from kbench.estimators import ExplicitMap, column_ends, row_blocks, validated
from kbench.parameters import choice, integer, number
from kbench_baselines._base import FitsOnBlocks
from kbench_baselines._sketches import CountSketch


def monomial_weights(powers, degree, gamma, coef0):
    """Weights that make monomials the exact features of a polynomial kernel.

    By the multinomial theorem (gamma x.z + coef0)^degree is the sum over
    exponents a of ``w_a^2 x^a z^a`` with
    ``w_a^2 = degree! / (prod_j a_j! r!) gamma^|a| coef0^r``, r = degree - |a|.
    `powers` holds the exponents a, shape (n_monomials, n_features).

    Examples
    --------
    >>> import numpy as np
    >>> monomial_weights(np.array([[0, 0], [1, 0], [1, 1], [0, 2]]), 2, 1.0, 1.0) ** 2
    array([1., 2., 2., 1.])
    """
    total = powers.sum(axis=1)
    log_multinomial = (
        gammaln(degree + 1) - gammaln(powers + 1).sum(axis=1) - gammaln(degree - total + 1)
    )
    return np.sqrt(
        np.round(np.exp(log_multinomial)) * gamma**total * np.power(coef0, degree - total)
    )


class _NamedMap(ExplicitMap):
    """A map whose features have the names that scikit-learn's map in `_named` gives them."""

    takes_lazy_rows = True
    _named: ClassVar[str]

    def get_feature_names_out(self, input_features=None):
        """Names of the features, such as ``x0^2`` and ``x0 x1``, or ``x0_sp_0`` of splines.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the inputs; those seen in ``fit`` by default.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", input_features)
        if input_features is not None and list(input_features) != list(names):
            raise ValueError("input_features is not equal to feature_names_in_")
        return getattr(self, self._named).get_feature_names_out(names)


@dataclass(eq=False, repr=False)
class PolynomialMap(_NamedMap):
    """All monomials up to a degree, weighted as in the polynomial kernel.

    scikit-learn's ``PolynomialFeatures``; the weights make inner products equal
    ``(gamma x.z + coef0)^degree``, so that a linear learner on these features is
    the learner with that kernel.

    Parameters
    ----------
    degree : int, default 2
        Highest total degree.
    gamma : float, default 1.0
        Factor of the inner product, > 0.
    coef0 : float, default 1.0
        Constant in the kernel, >= 0; without it only monomials of full degree
        have weight.

    Attributes
    ----------
    monomials_ : PolynomialFeatures
        The fitted map of scikit-learn.
    weights_ : ndarray, shape (n_monomials,)
        Weight of each monomial.

    Notes
    -----
    There are ``C(n_features + degree, degree)`` columns.

    References
    ----------
    Y.-W. Chang, C.-J. Hsieh, K.-W. Chang, M. Ringgaard and C.-J. Lin, Training
    and testing low-degree polynomial data mappings via linear SVM, JMLR 11
    (2010), eq. (4).

    Examples
    --------
    >>> phi = PolynomialMap(degree=2).fit_transform([[1.0, 2.0], [3.0, 4.0]])
    >>> phi @ phi.T
    array([[ 36., 144.],
           [144., 676.]])
    """

    _named = "monomials_"
    takes_any_namespace = True

    degree: int = integer(2, least=1)
    _: KW_ONLY
    gamma: float = number(1.0, above=0)
    coef0: float = number(1.0, least=0)

    def _fit(self, X):
        degrees = (0 if self.coef0 > 0 else self.degree, self.degree)
        self.monomials_ = PolynomialFeatures(degrees, include_bias=self.coef0 > 0)
        self.monomials_.fit(_for_scikit_learn(take(X, slice(1))))
        powers = self.monomials_.powers_
        self.weights_ = monomial_weights(powers, self.degree, float(self.gamma), float(self.coef0))
        return len(powers)

    def _transform(self, X):
        features = like(self.monomials_.transform(_for_scikit_learn(X)), X)
        weights = like(self.weights_, X)
        if sp.issparse(features):
            features = features.tocsr()
            features.data *= weights[features.indices]
        else:
            features *= weights
        return features


def _for_scikit_learn(X):
    """Return rows as PolynomialFeatures takes them: of numpy where it does not dispatch (1.7)."""
    given = get_config()["array_api_dispatch"] and get_tags(PolynomialFeatures()).array_api_support
    return X if given or namespace(X) is np else to_numpy(X)


class PolynomialSketch(FitsOnBlocks, PolynomialCountSketch):
    """Tensor sketch of the polynomial kernel: scikit-learn's PolynomialCountSketch.

    Differs in its defaults (scikit-learn: 100 features and ``coef0=0``, the
    homogeneous kernel), and keeps float32.

    Parameters
    ----------
    n_components : int, default 300
        Number of features.
    degree : int, default 2
        Degree of the kernel ``(gamma x.z + coef0)^degree``.
    gamma : float, default 1.0
        Factor of the inner product.
    coef0 : float, default 1.0
        Constant in the kernel.
    random_state : int, RandomState or None, default None
        Seed of the hash functions.

    References
    ----------
    N. Pham and R. Pagh, Fast and scalable polynomial kernels via explicit
    feature maps, KDD 2013, algorithm 1.

    Examples
    --------
    >>> PolynomialSketch(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    _dtypes = (np.float64, np.float32)

    def __init__(self, n_components=300, *, degree=2, gamma=1.0, coef0=1.0, random_state=None):
        super().__init__(
            n_components=n_components,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            random_state=random_state,
        )

    def fit(self, X, y=None):
        """Draw the hash functions; they depend on the number of features only."""
        for part in row_blocks(X):
            if namespace(part) is not np:
                part = to_numpy(take(validated(self, part, self._dtypes, reset=True), slice(1)))
            super().fit(part)
        return self

    def transform(self, X):
        """Map `X` to features; float32 for float32 inputs, else float64."""
        if (xp := namespace(X)) is np:
            return super().transform(X)
        check_is_fitted(self)
        X = validated(self, X, self._dtypes, reset=False)
        inputs = X * float(np.sqrt(self.gamma))
        if self.coef0:
            inputs = xp.concat([inputs, full((X.shape[0], 1), np.sqrt(self.coef0), X)], axis=1)
        signs = to_numpy(self.bitHash_).astype(host_type(X))
        return CountSketch(self.indexHash_, signs, self.n_components)(inputs)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.array_api_support = True
        return tags


def polynomial_gram(fitted, X, Y):
    """Gram matrix (gamma x.z + coef0)^degree of a fitted polynomial map."""
    return polynomial_kernel(X, Y, degree=fitted.degree, gamma=fitted.gamma, coef0=fitted.coef0)


COLUMN_VALUES = 2**24
"""Values of the columns whose quantiles are computed in one pass."""


def _quantiles(X, shares):
    """Quantiles of the columns, shape (n_shares, n_features), of a few columns at a time."""
    step = max(1, COLUMN_VALUES // X.shape[0])
    groups = (slice(first, first + step) for first in range(0, X.shape[1], step))
    columns = (np.concatenate([part[:, some] for part in row_blocks(X)]) for some in groups)
    return np.hstack([np.quantile(some.astype(np.float64), shares, axis=0) for some in columns])


@dataclass(eq=False, repr=False)
class SplineFeatures(_NamedMap):
    """Additive B-splines, one basis per input: scikit-learn's SplineTransformer.

    A linear learner on them is an additive model: a sum of smooth functions of one input each.
    Use it if inputs act additively and their effects should be read from the model, or as the
    baseline that shows whether a kernel gains by interactions. It has
    ``n_knots + degree - 1`` columns per input.

    Parameters
    ----------
    n_knots : int, default 5
        Number of knots of each input, >= 2.
    degree : int, default 3
        Degree of the pieces; 0 is a histogram, 1 is piecewise linear.
    knots : {"quantile", "uniform"}, default "quantile"
        Knots at quantiles of the training inputs, or equally spaced between their ends. An input
        whose quantiles are equal has equally spaced knots.

    Attributes
    ----------
    knots_ : ndarray, shape (n_knots, n_features)
        The knots.
    splines_ : SplineTransformer
        The fitted map of scikit-learn.

    Notes
    -----
    The splines of an input add up to 1. Beyond the training inputs they are constant.

    References
    ----------
    P. H. C. Eilers and B. D. Marx, Flexible smoothing with B-splines and penalties, Statistical
    Science 11 (1996).

    Examples
    --------
    >>> phi = SplineFeatures(n_knots=3, degree=1).fit_transform([[0.0], [1.0], [2.0], [4.0]])
    >>> phi.sum(axis=1)
    array([1., 1., 1., 1.])
    """

    _accept_sparse = False
    _named = "splines_"

    n_knots: int = integer(5, least=2)
    _: KW_ONLY
    degree: int = integer(3, least=0)
    knots: str = choice("quantile", ("quantile", "uniform"))

    def _fit(self, X):
        self.knots_ = self._places(X)
        self.splines_ = SplineTransformer(
            n_knots=self.n_knots, degree=self.degree, knots=self.knots_
        ).fit(X[:2])
        return self.splines_.n_features_out_

    def _places(self, X):
        """Knots of all inputs, strictly increasing, shape (n_knots, n_features)."""
        low, high = column_ends(X)
        high = np.where(high > low, high, low + np.maximum(1.0, np.abs(low)))
        uniform = np.linspace(low, high, self.n_knots)
        if self.knots == "uniform":
            return uniform
        quantiles = _quantiles(X, np.linspace(0, 1, self.n_knots))
        return np.where((np.diff(quantiles, axis=0) > 0).all(axis=0), quantiles, uniform)

    def _transform(self, X):
        # as `extrapolation="constant"`, which fails for degree 0
        inside = np.clip(X, self.knots_[0], self.knots_[-1])
        return self.splines_.transform(inside).astype(X.dtype, copy=False)
