"""Sums and products of kernels, as maps."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.pipeline import FeatureUnion
from sklearn.utils.validation import check_is_fitted, validate_data


def concatenate(maps, weights=None) -> FeatureUnion:
    """Concatenate feature maps, each times the square root of its weight.

    The Gram matrix of the features is the weighted sum of those of the maps: the
    closure of kernels under ``c_1 k_1 + c_2 k_2``.

    Parameters
    ----------
    maps : sequence of transformer
        Feature maps.
    weights : sequence of float, optional
        Nonnegative c_i; ones by default.

    Returns
    -------
    sklearn.pipeline.FeatureUnion
        An unfitted transformer.

    Raises
    ------
    ValueError
        If there is no map, or weights are negative or not one for each.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> X = np.array([[1.0, 2.0]])
    >>> concatenate([FunctionTransformer(), FunctionTransformer()], [1, 4]).fit_transform(X)
    array([[1., 2., 2., 4.]])
    """
    maps = list(maps)
    weights = [1.0] * len(maps) if weights is None else list(weights)
    if not maps:
        raise ValueError("maps must have at least one feature map, got []")
    if len(weights) != len(maps) or not all(0 <= w < np.inf for w in weights):
        raise ValueError(
            f"weights must have one nonnegative finite number for each of the {len(maps)} maps, "
            f"got {weights!r}"
        )
    roots = {f"map{i}": float(np.sqrt(weight)) for i, weight in enumerate(weights)}
    return FeatureUnion(list(zip(roots, maps, strict=True)), transformer_weights=roots)


def tensor(maps) -> TensorProductMap:
    """Multiply feature maps, see `TensorProductMap`."""
    return TensorProductMap(list(maps))


class TensorProductMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """All products of one feature from each map.

    The Gram matrix of the features is the elementwise product of those of the
    maps: the closure of kernels under products. The number of features is the
    product of their numbers.

    Parameters
    ----------
    maps : list of transformer
        Feature maps with dense outputs.

    Attributes
    ----------
    maps_ : list of transformer
        Fitted clones.
    n_components_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> X = np.array([[1.0, 2.0]])
    >>> TensorProductMap([FunctionTransformer(), FunctionTransformer()]).fit_transform(X)
    array([[1., 2., 2., 4.]])
    """

    def __init__(self, maps):
        self.maps = maps

    def fit(self, X, y=None):
        """Fit a clone of each map.

        Parameters
        ----------
        X : array, shape (n_samples, n_features)
            Training inputs.
        y : array, shape (n_samples,), optional
            Passed on to the maps.

        Returns
        -------
        self
        """
        X = validate_data(self, X)
        if not len(self.maps):
            raise ValueError("maps must have at least one feature map, got []")
        self.maps_ = [clone(map_).fit(X, y) for map_ in self.maps]
        self.n_components_ = self._n_features_out = self.transform(X[:1]).shape[1]
        return self

    def transform(self, X):
        """Multiply the features of the maps.

        Parameters
        ----------
        X : array, shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray, shape (n_samples, n_components_)
            The features, those of the last map varying fastest.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        product = np.ones((X.shape[0], 1), dtype=np.float32)  # float64 if a map returns that
        for map_ in self.maps_:
            Z = map_.transform(X)
            product = (product[:, :, None] * Z[:, None, :]).reshape(X.shape[0], -1)
        return product
