"""Gradient boosting by scikit-learn, with rounds chosen on held-out rows."""

from __future__ import annotations

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from kbench_learners._held_out import SHARE, HeldOutClassifier, HeldOutRegressor, Weighted

ROUNDS = 100
"""Rounds at most where nothing is held out: the library's default."""


class _Boosting(Weighted):
    """Parameters of gradient boosting, and its model."""

    _takes_missing = True

    def __init__(
        self,
        learning_rate=0.1,
        max_leaf_nodes=31,
        min_samples_leaf=20,
        l2_regularization=0.0,
        max_iter=500,
        early_stopping=True,
        n_iter_no_change=10,
        random_state=None,
    ):
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def _options(self, stops: bool) -> dict:
        short = self.early_stopping and not stops
        return {
            "learning_rate": self.learning_rate,
            "max_leaf_nodes": self.max_leaf_nodes,
            "min_samples_leaf": self.min_samples_leaf,
            "l2_regularization": self.l2_regularization,
            "max_iter": min(ROUNDS, self.max_iter) if short else self.max_iter,
            "early_stopping": stops and self.early_stopping,
            "validation_fraction": SHARE,
            "n_iter_no_change": self.n_iter_no_change,
            "random_state": self.random_state,
        }

    def _fit_model(self, model, X, y, stops, weight):
        model.fit(X, y, sample_weight=weight)
        self.n_iter_ = model.n_iter_
        return model


class GradientBoostingClassifier(_Boosting, HeldOutClassifier):
    """Histogram gradient boosting, with rounds chosen on held-out rows.

    It is scikit-learn's ``HistGradientBoostingClassifier``. Rounds end when the loss of a
    stratified tenth of the training rows has not improved for `n_iter_no_change` of them. With
    fewer than 500 rows, one row of a class or more classes than held-out rows, nothing is held
    out, and there are 100 rounds. The default search space is a discretised form of those that
    [2]_ and [3]_ draw from.

    Parameters
    ----------
    learning_rate : float, default 0.1
        Shrinkage of each tree.
    max_leaf_nodes : int, default 31
        Leaves of a tree.
    min_samples_leaf : int, default 20
        Rows of a leaf.
    l2_regularization : float, default 0
        Penalty of the leaves' values.
    max_iter : int, default 500
        Rounds at most; each has one tree for two classes, and one for each class of more.
    early_stopping : bool, default True
        Whether held-out rows decide on the rounds; else there are `max_iter`.
    n_iter_no_change : int, default 10
        Rounds without improvement.
    random_state : int, RandomState or None, default None
        Draws the held-out rows, and those for the bins beyond 200,000 rows.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    model_ : sklearn.ensemble.HistGradientBoostingClassifier
        The fitted model, of labels 0..n_classes-1.
    n_iter_ : int
        Rounds.

    References
    ----------
    .. [1] J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals
       of Statistics 29 (2001); G. Ke et al., "LightGBM: a highly efficient gradient boosting
       decision tree", NIPS 2017.
    .. [2] L. Grinsztajn, E. Oyallon and G. Varoquaux, "Why do tree-based models still outperform
       deep learning on typical tabular data?", NeurIPS 2022, datasets and benchmarks.
    .. [3] Y. Gorishniy, I. Rubachev, V. Khrulkov and A. Babenko, "Revisiting deep learning models
       for tabular data", NeurIPS 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> boosting = GradientBoostingClassifier(random_state=0).fit(X, y)
    >>> boosting.n_iter_, boosting.score(X, y)
    (100, 1.0)
    """

    def _model(self, stops, n_classes):
        return HistGradientBoostingClassifier(**self._options(stops))


class GradientBoostingRegressor(_Boosting, HeldOutRegressor):
    """Histogram gradient boosting of squared errors, with rounds chosen on held-out rows.

    It is scikit-learn's ``HistGradientBoostingRegressor``. Rounds end when the error of a tenth
    of the training rows has not improved for `n_iter_no_change` of them. With fewer than 500
    rows nothing is held out, and there are 100 rounds. The default search space is that of
    `GradientBoostingClassifier`.

    Parameters
    ----------
    learning_rate : float, default 0.1
        Shrinkage of each tree.
    max_leaf_nodes : int, default 31
        Leaves of a tree.
    min_samples_leaf : int, default 20
        Rows of a leaf.
    l2_regularization : float, default 0
        Penalty of the leaves' values.
    max_iter : int, default 500
        Rounds at most, of one tree each.
    early_stopping : bool, default True
        Whether held-out rows decide on the rounds; else there are `max_iter`.
    n_iter_no_change : int, default 10
        Rounds without improvement.
    random_state : int, RandomState or None, default None
        Draws the held-out rows, and those for the bins beyond 200,000 rows.

    Attributes
    ----------
    model_ : sklearn.ensemble.HistGradientBoostingRegressor
        The fitted model.
    n_iter_ : int
        Rounds.

    References
    ----------
    J. H. Friedman, Greedy function approximation: a gradient boosting machine, Annals of
    Statistics 29 (2001); G. Ke et al., LightGBM: a highly efficient gradient boosting decision
    tree, NIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 6.0, 200)[:, None]
    >>> boosting = GradientBoostingRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(boosting.score(X, np.sin(X[:, 0])) > 0.99)
    True
    """

    def _model(self, stops, n_classes):
        return HistGradientBoostingRegressor(**self._options(stops))
