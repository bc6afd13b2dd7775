"""Random tree embeddings: scikit-learn's RandomTreesEmbedding."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.utils import check_random_state

from kbench.parameters import check_integer
from kbench_baselines._base import BaselineMap


class RandomTreesFeatures(BaselineMap):
    """Leaves of totally random trees: scikit-learn's RandomTreesEmbedding; sparse.

    Each tree splits its training rows at random places of random inputs, and contributes the leaf
    that a row falls in. Inner products are the share of trees in which two rows have the same
    leaf: the features are scikit-learn's, divided by ``sqrt(n_trees)``. Take it where inputs have
    different scales, many of them matter little, or there are outliers: cells follow the data, and
    there is no bandwidth. The kernel has no closed form.

    Parameters
    ----------
    n_trees : int, default 100
        Number of trees, hence of non-zeros per row.
    max_depth : int, default 5
        Depth of the trees, hence at most ``2^max_depth`` columns each.
    min_samples_leaf : int, default 1
        Smallest number of training rows in a leaf.
    random_state : int, RandomState or None, default None
        Seed of the splits.

    Attributes
    ----------
    embedding_ : RandomTreesEmbedding
        The fitted map of scikit-learn.

    Notes
    -----
    Inputs are compared in float32, as in all trees of scikit-learn.

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel, Extremely randomized trees, Machine Learning 63 (2006);
    F. Moosmann, B. Triggs and F. Jurie, Fast discriminative visual codebooks using
    randomized clustering forests, NIPS 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> phi = RandomTreesFeatures(n_trees=50, random_state=0).fit_transform(X)
    >>> phi.format, phi.nnz / len(X)
    ('csr', 50.0)
    """

    def __init__(self, n_trees=100, *, max_depth=5, min_samples_leaf=1, random_state=None):
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.random_state = random_state

    def _fit(self, X):
        check_integer(self.n_trees, "n_trees", least=1)
        check_integer(self.max_depth, "max_depth", least=1)
        check_integer(self.min_samples_leaf, "min_samples_leaf", least=1)
        self.embedding_ = RandomTreesEmbedding(
            self.n_trees,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            random_state=check_random_state(self.random_state),
        ).fit(_single(X))
        return len(self.embedding_.get_feature_names_out())

    def _transform(self, X):
        features = self.embedding_.transform(_single(X)).astype(X.dtype)
        features *= X.dtype.type(self.n_trees**-0.5)
        return features.tocsr()


def _single(X):
    """Return the inputs in float32, with what is too large at its ends."""
    if X.dtype == np.float32:
        return X
    limit = float(np.finfo(np.float32).max)
    if hasattr(X, "tocsr"):
        X = X.copy()
        np.clip(X.data, -limit, limit, out=X.data)
        return X.astype(np.float32)
    return np.clip(X, -limit, limit).astype(np.float32)
