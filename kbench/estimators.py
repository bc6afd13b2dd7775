"""Estimators of the core: bases of feature maps, and the classifier that is calibrated.

A map has parameters, declared as in `kbench.parameters`, and two methods::

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from kbench.parameters import integer
    >>> @dataclass(eq=False, repr=False)
    ... class Powers(ExplicitMap):
    ...     degree: int = integer(2, least=1)
    ...
    ...     def _fit(self, X):
    ...         return self.degree * X.shape[1]
    ...
    ...     def _transform(self, X):
    ...         return np.hstack([X**k for k in range(1, self.degree + 1)])
    >>> Powers().fit_transform([[1.0, 2.0]])
    array([[1., 2., 1., 4.]])
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Self, TypeGuard

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.sparsefuncs import min_max_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.arrays import like, namespace, on_device, take, to_numpy
from kbench.parameters import check_coefficients, check_parameters

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from kbench.arrays import Array, Matrix, MatrixLike

BLOCK_VALUES = 2**20
"""Values of the blocks of rows that are not in memory."""


def is_lazy(X: object) -> TypeGuard[Matrix]:
    """Return whether training data are rows that are computed when they are taken."""
    return getattr(X, "is_lazy", False)


def row_blocks(X: Matrix) -> Iterator[Matrix]:
    """Yield training data: a matrix as it is, lazy rows in blocks of about `BLOCK_VALUES`."""
    if not is_lazy(X):
        yield X
        return
    step = max(64, BLOCK_VALUES // X.shape[1])
    for start in range(0, X.shape[0], step):
        yield X[start : start + step]


def column_ends(X: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest values of the columns of training data, in float64."""
    low, high = np.full((2, X.shape[1]), [[np.inf], [-np.inf]])
    for part in row_blocks(X):
        is_dense = isinstance(part, np.ndarray)
        ends = (part.min(axis=0), part.max(axis=0)) if is_dense else min_max_axis(part, axis=0)
        low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
    return low, high


def is_validated(
    estimator: BaseEstimator, X: MatrixLike, dtypes: tuple[type, ...] = (np.float64,)
) -> TypeGuard[Matrix]:
    """Return whether `validate_data` would return the inputs of a fitted estimator unchanged.

    It takes a quarter of a millisecond: most of the time of a prediction of a few rows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and len(X) > 0
            and X.dtype.type in dtypes
            and X.dtype.isnative
            and X.shape[1] == getattr(estimator, "n_features_in_", None)
            and not hasattr(estimator, "feature_names_in_")
            and bool(np.isfinite(X.sum()))
        )


def validated(
    estimator: BaseEstimator,
    X: Array,
    dtypes: tuple[type, ...],
    reset: bool,
    accept_sparse: str | tuple[str, ...] | bool = False,
) -> Matrix:
    """Return inputs as `validate_data` does, those of another namespace where they are.

    If the estimator has not scikit-learn's tag `array_api_support`, they come to the host.
    """
    xp = namespace(X)
    is_kept = xp is not np and estimator.__sklearn_tags__().array_api_support
    if is_kept and xp.isdtype(X.dtype, ("bool", "integral", "real floating")):
        if X.dtype not in [getattr(xp, dtype.__name__) for dtype in dtypes]:
            X = xp.astype(X, xp.float64)
        # a sum shows a NaN or an infinity without a temporary of the size of X
        if X.ndim == 2 and X.shape[0] > 0 and (xp.isfinite(xp.sum(X)) or xp.all(xp.isfinite(X))):
            validate_data(estimator, to_numpy(take(X, slice(1))), dtype=dtypes, reset=reset)
            return X
    rows: Matrix = validate_data(
        estimator,
        X if xp is np else to_numpy(X),
        accept_sparse=accept_sparse,
        dtype=dtypes,
        reset=reset,
    )
    return rows


class ExplicitMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that checks its parameters and inputs, and keeps float32.

    Subclasses have ``_fit(X)``, which returns the number of features, and ``_transform(X)``. Both
    get validated inputs.
    """

    takes_lazy_rows: ClassVar[bool] = False
    """Whether `fit` takes training data that are not in memory, see `kbench.FeatureMap`."""

    takes_any_namespace: ClassVar[bool] = False
    """Whether the map computes in the namespace and on the device of its inputs.

    Then `_fit` and `_transform` also get arrays of torch and the array API, and the arrays that
    `_fit` sets as attributes are moved to where the training data are.
    """

    _accept_sparse: ClassVar[str | tuple[str, ...] | bool] = "csr"
    _dtypes: ClassVar[tuple[type, ...]] = (np.float64, np.float32)

    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Fit the map to training data.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Training data; dense where the map takes no sparse inputs. With a precomputed
            kernel, their Gram matrix.
        y : ignored

        Returns
        -------
        self
        """
        X = self._validate(X)
        check_parameters(self)
        self._n_features_out = self._fit(X)
        if namespace(X) is not np:
            fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
            self.__dict__.update(on_device(fitted, X))
        return self

    def transform(self, X: MatrixLike) -> Matrix:
        """Map `X` to features.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Data; dense where the map takes no sparse inputs. With a precomputed kernel, their
            similarities to the training data.

        Returns
        -------
        {ndarray, CSR matrix}, shape (n_samples, n_features_out)
            float32 for float32 inputs, if the map keeps them, else float64. Where the map
            supports it, an array of the namespace and on the device of `X`.
        """
        check_is_fitted(self)
        return self._transform(self._validate(X, reset=False))

    def _validate(self, X: MatrixLike, reset: bool = True) -> Matrix:
        if not reset and is_validated(self, X, self._dtypes):
            return X
        if is_lazy(X):
            self._validate(X[:1])
            return X
        return validated(self, X, self._dtypes, reset, self._accept_sparse)

    def _fit(self, X: Matrix) -> int:
        raise NotImplementedError

    def _transform(self, X: Matrix) -> Matrix:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.array_api_support = self.takes_any_namespace
        tags.input_tags.sparse = bool(self._accept_sparse)
        tags.transformer_tags.preserves_dtype = [dtype.__name__ for dtype in self._dtypes]
        return tags


class InputGradient:
    """`input_gradient` of maps whose features have gradients in the inputs.

    Subclasses have ``_gradient(X, coef)``, which gets validated dense inputs and
    coefficients of shape (n_outputs, n_features_out), and returns an array of shape
    (n_outputs, n_samples, n_features).
    """

    _n_features_out: int

    def input_gradient(self, X: ArrayLike, coef: ArrayLike) -> np.ndarray:
        """Compute gradients of ``f(x) = coef . phi(x)`` in x.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Where. At a face between two cells of a map that has cells, the gradient is that of
            one of them. Memory is that of a few embeddings: give blocks of rows.
        coef : array-like, shape (n_features_out,) or (n_outputs, n_features_out)
            Coefficients of one function of the features, or of several.

        Returns
        -------
        ndarray, shape (n_samples, n_features) or (n_outputs, n_samples, n_features)
            In the namespace of `X`, if the map computes in it.
        """
        check_is_fitted(self)
        rows = validated(self, X, dtypes=(np.float64,), reset=False)
        given = like(coef, rows)
        check_coefficients(given.shape, self._n_features_out)
        gradients = self._gradient(rows, given if given.ndim == 2 else given[None, :])
        return gradients[0, ...] if given.ndim == 1 else gradients

    def _gradient(self, X: np.ndarray, coef: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class DifferentiableMap(InputGradient, ExplicitMap):
    """A feature map with gradients."""


class DecisionValues(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose inputs are the decision values of another one, to be calibrated.

    >>> DecisionValues().fit([[-1.0], [2.0]], [0, 1]).decision_function(np.array([[0.5]]))
    array([0.5])
    """

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> DecisionValues:
        """Learn the classes."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the inputs: one column for two classes, else one for each class."""
        return X[:, 0] if len(self.classes_) == 2 else X

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the classes with the largest values."""
        values = self.decision_function(X)
        places = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[places])
