"""Random neurons: the features of arc-cosine kernels."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from kbench.arrays import like, namespace, take, wide
from kbench.estimators import DifferentiableMap
from kbench.parameters import choice, integer, number
from kbench_baselines._base import column_means, dense, root_mean_square


def arc_cosine_kernel(X, Y, order):
    """Arc-cosine kernel of order 0 or 1: Cho and Saul (2009), eq. (3) to (6).

    With t the angle between x and z: ``1 - t / pi`` for order 0 and
    ``||x|| ||z|| (sin t + (pi - t) cos t) / pi`` for order 1. `X` and `Y` are dense.

    Examples
    --------
    >>> arc_cosine_kernel(np.array([[2.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 1.0]]), order=0)
    array([[1. , 0.5]])
    """
    lengths = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1))
    cosine = np.divide(X @ Y.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    if order == 0:
        return 1 - angle / np.pi
    return lengths * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi


@dataclass(eq=False, repr=False)
class ArcCosineFeatures(DifferentiableMap):
    """Random features of the arc-cosine kernels: step or ReLU units.

    ``phi_i(x) = sqrt(2 / D) max(0, w_i.x)^order`` with D = `n_components` and normal weights w_i
    (order 0: a step).

    Parameters
    ----------
    n_components : int, default 300
        Number of units.
    order : {0, 1}, default 1
        0: ``1[w.x > 0]``; 1: ``max(0, w.x)``.
    bias : float, default 0.5
        A further constant input, relative to the root mean square length of
        the others where `standardize` is set.
    standardize : bool, default True
        Shift the inputs by the training mean and divide them by the root mean
        square of their length, then by ``sqrt(1 + bias^2)``: the kernel of a
        point with itself is 1 on average. Kernels of this kind see angles from
        the origin only, which on inputs in [0, 1] are all small.
    random_state : int, RandomState or None, default None
        Seed of the units.

    Attributes
    ----------
    weights_ : ndarray, shape (n_features, n_components)
        Weights on the inputs as they are given.
    intercept_ : ndarray, shape (n_components,)
        Contribution of bias and shift.
    mean_ : ndarray, shape (n_features,)
        The shift.
    scale_ : float
        The factor.
    bias_ : float
        The further input, after scaling.

    References
    ----------
    Y. Cho and L. K. Saul, Kernel methods for deep learning, NIPS 2009, eq. (1).

    Examples
    --------
    >>> ArcCosineFeatures(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    takes_lazy_rows = takes_any_namespace = True

    n_components: int = integer(300, least=1)
    _: KW_ONLY
    order: int = choice(1, (0, 1))
    bias: float = number(0.5, least=0)
    standardize: bool = True
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X):
        rng = check_random_state(self.random_state)
        self.mean_, self.scale_, self.bias_ = np.zeros(X.shape[1]), 1.0, float(self.bias)
        if self.standardize:
            self.mean_ = column_means(X)
            self.scale_ = 1 / (_spread(X, self.mean_) * np.sqrt(1 + self.bias**2))
            self.bias_ = self.bias / np.sqrt(1 + self.bias**2)
        normal = rng.normal(size=(X.shape[1] + 1, self.n_components))
        weights = normal[:-1] * self.scale_
        self.intercept_ = like(normal[-1] * self.bias_ - self.mean_ @ weights, X)
        self.weights_ = like(weights, X)
        return self.n_components

    def _transform(self, X):
        xp = namespace(X)
        features = X @ like(self.weights_, X)
        features += like(self.intercept_, X)
        if self.order == 0:
            features = xp.astype(features > 0, X.dtype)
        elif xp is np:
            np.maximum(features, 0, out=features)
        else:
            features = xp.clip(features, min=0)
        features *= wide(np.sqrt(2.0 / self.n_components), X)
        return features

    def _has_gradient(self):
        """Whether the units have slopes; an AttributeError says which do."""
        if self.order == 1:
            return True
        raise AttributeError(
            "ArcCosineFeatures has no gradient with order=0, whose steps are constant; "
            "order=1 has one"
        )

    input_gradient = available_if(_has_gradient)(DifferentiableMap.input_gradient)

    def _gradient(self, X, coef):
        xp, weights = namespace(X), like(self.weights_, X)
        active = xp.astype(X @ weights + like(self.intercept_, X) > 0, X.dtype)
        coef = coef * float(np.sqrt(2.0 / self.n_components))
        return xp.stack([(active * coef[i, :]) @ weights.T for i in range(coef.shape[0])])


def _spread(X, mean):
    """Root mean square distance of the rows from their mean; 1 where all are equal."""
    if not hasattr(take(X, slice(1)), "tocsr"):
        return root_mean_square(X, mean) or 1.0
    difference = root_mean_square(X) ** 2 - mean @ mean
    return np.sqrt(difference) if difference > 0 else 1.0


def arc_cosine_gram(fitted, X, Y):
    """Gram matrix of the arc-cosine kernel of a fitted `ArcCosineFeatures`."""
    X, Y = (
        np.hstack([(Z - fitted.mean_) * fitted.scale_, np.full((Z.shape[0], 1), fitted.bias_)])
        for Z in map(dense, (X, Y))
    )
    return arc_cosine_kernel(X, Y, fitted.order)
