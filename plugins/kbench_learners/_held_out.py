"""Boosting and perceptrons of scikit-learn, stopped early on held-out training rows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kbench_learners._estimator import (
    Estimator,
    ProbabilityClassifier,
    Regressor,
    Weighted,
    class_numbers,
    class_shares,
    row_weights,
)

MIN_ROWS = 500
"""With fewer rows nothing is held out: a tenth is too few to choose by.

On six datasets of 150 to 569 rows (5 folds, 10 rounds without improvement), early stopping changed
the accuracy of gradient boosting with 100 rounds by -0.02 to 0.01, by -0.006 on average. On one
dataset with 768 rows it changed it by 0.03.
"""

SHARE = 0.1
"""Share of the training rows that is held out."""


def can_hold_out(y, has_classes: bool) -> bool:
    """Return True if a stratified tenth of the rows can be held out.

    There must be at least `MIN_ROWS`, of each class at least two, and no more classes than
    held-out rows.
    """
    n = len(y)
    if n < MIN_ROWS:
        return False
    if not has_classes:
        return True
    counts = np.unique(y, return_counts=True)[1]
    return bool(counts.min() >= 2 and len(counts) <= int(SHARE * n))


class HeldOut(Estimator):
    """An estimator that fits one of another library, the class `_library`.

    A subclass returns its parameters in ``_options(stops)``, with early stopping if `stops`, and
    fits it in `_fit_model`.
    """

    _library: ClassVar[type[BaseEstimator]]
    _takes_missing = False
    _takes_sparse = False

    def _fit_checked(self, X, y, **weights) -> None:
        """Validate a training set and its weights, if it may have any, and fit the model."""
        X, y = self._validated(X, y, y_numeric=not is_classifier(self))
        target = class_numbers(self, y) if is_classifier(self) else np.asarray(y, dtype=np.float64)
        stops = can_hold_out(target, is_classifier(self))
        weights = {name: row_weights(each, len(target)) for name, each in weights.items()}
        model = self._library(**self._options(stops))
        self.model_ = self._fit_model(model, X, target, stops, **weights)

    def _validated(self, *data, **options):
        finite = "allow-nan" if self._takes_missing else True
        return super()._validated(*data, ensure_all_finite=finite, **options)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        return tags


class HeldOutClassifier(HeldOut, ProbabilityClassifier):
    """A classifier that fits one of another library."""

    def predict_proba(self, X):
        """Estimate the probabilities of the classes.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        rows = self._inputs(X)  # raises NotFittedError
        return self.model_.predict_proba(rows)


class HeldOutRegressor(HeldOut, Regressor):
    """A regressor that fits one of another library."""

    def _predicted(self, X) -> np.ndarray:
        return self.model_.predict(X)


ROUNDS = 100
"""Maximum number of rounds if nothing is held out: the library's default."""

LEAST_GAIN = 0.1
"""Gain of the log-likelihood of the held-out rows below which a classifier's rounds end.

With a penalty, hundreds of late rounds gain next to nothing. On splits of digits, segment, vowel
and credit-g, this halved the time of ten candidates; their mean accuracy changed by 0.000.
"""


def count_bins(X, most: int) -> int:
    """Return the number of bins that hold each different value of every column, up to `most`.

    >>> count_bins(np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]]), 255)
    3
    """
    ordered = np.sort(X, axis=0)
    return int(np.clip(1 + np.count_nonzero(np.diff(ordered, axis=0), axis=0).max(), 2, most))


@dataclass(eq=False, repr=False)
class _Boosting(Weighted):
    """Parameters of gradient boosting, and its model."""

    _takes_missing = True

    learning_rate: float = 0.1
    max_leaf_nodes: int = 31
    min_samples_leaf: int = 20
    l2_regularization: float = 0.0
    max_iter: int = 500
    max_bins: int = 255
    early_stopping: bool = True
    n_iter_no_change: int = 10
    random_state: int | np.random.RandomState | None = None
    refit: bool = False

    def _options(self, stops: bool) -> dict[str, object]:
        short = self.early_stopping and not stops
        shared = self.get_params(deep=False)
        return {
            **{name: value for name, value in shared.items() if name not in ("balanced", "refit")},
            "max_iter": min(ROUNDS, self.max_iter) if short else self.max_iter,
            "early_stopping": stops and self.early_stopping,
            "validation_fraction": SHARE,
        }

    def _fit_model(self, model, X, y, stops, sample_weight):
        # the same trees: unused bins of the histograms take time
        model.set_params(max_bins=count_bins(X, model.max_bins))
        if is_classifier(self):
            model.set_params(tol=LEAST_GAIN / (SHARE * len(y)))
        model.fit(X, y, sample_weight=sample_weight)
        if self.refit and model.do_early_stopping_:
            model.set_params(max_iter=model.n_iter_, early_stopping=False)
            model.fit(X, y, sample_weight=sample_weight)
        if getattr(self, "balanced", False):
            shares = class_shares(y, sample_weight)
            self._costs = np.where(shares > 0, shares, np.inf)
        self.n_iter_ = model.n_iter_
        return model


@dataclass(eq=False, repr=False)
class GradientBoostingClassifier(_Boosting, HeldOutClassifier):
    """Histogram gradient boosting with early stopping on held-out rows.

    It is scikit-learn's ``HistGradientBoostingClassifier``. Rounds end when `n_iter_no_change` of
    them raise the log-likelihood of a stratified tenth of the training rows by less than 0.1. With
    fewer than 500 rows, one row of a class or more classes than held-out rows, nothing is held
    out, and there are 100 rounds. The default search space is a discretised form of those that
    [2]_ and [3]_ draw from.

    Parameters
    ----------
    learning_rate : float, default 0.1
        Shrinkage of each tree.
    max_leaf_nodes : int, default 31
        Maximum number of leaves of a tree.
    min_samples_leaf : int, default 20
        Minimum number of rows of a leaf.
    l2_regularization : float, default 0
        Penalty of the leaves' values.
    max_iter : int, default 500
        Maximum number of rounds; each fits one tree, or for several classes one per class.
    max_bins : int, default 255
        Maximum number of bins of a column; fewer bins save time if there are many columns.
    early_stopping : bool, default True
        Whether held-out rows decide the number of rounds, up to `max_iter`.
    n_iter_no_change : int, default 10
        Rounds without improvement.
    random_state : int, RandomState or None, default None
        Seed of the held-out rows, and those for the bins beyond 200,000 rows.
    refit : bool, default False
        Whether trees are fitted again on all rows, as many as the held-out rows have chosen.
    balanced : bool, default False
        Whether an error on a class costs the inverse of its frequency: the class is predicted
        whose probability is the largest multiple of its frequency. Of two classes, the threshold
        is the frequency of the second. Trees and probabilities stay the same.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    model_ : sklearn.ensemble.HistGradientBoostingClassifier
        The fitted model, of labels 0..n_classes-1.
    n_iter_ : int
        Number of rounds.

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

    _library = HistGradientBoostingClassifier

    balanced: bool = False


class GradientBoostingRegressor(_Boosting, HeldOutRegressor):
    """Histogram gradient boosting of squared errors with early stopping on held-out rows.

    It is scikit-learn's ``HistGradientBoostingRegressor``. Rounds end when the error of a tenth
    of the training rows has not improved for `n_iter_no_change` of them. With fewer than 500
    rows nothing is held out, and there are 100 rounds. The default search space is that of
    `GradientBoostingClassifier`.

    Parameters
    ----------
    learning_rate, max_leaf_nodes, min_samples_leaf, l2_regularization
        As in `GradientBoostingClassifier`.
    max_iter, max_bins, early_stopping, n_iter_no_change, random_state, refit
        As there.

    Attributes
    ----------
    model_ : sklearn.ensemble.HistGradientBoostingRegressor
        The fitted model.
    n_iter_ : int
        Number of rounds.

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

    _library = HistGradientBoostingRegressor


@dataclass(eq=False, repr=False)
class _MultilayerPerceptron:
    """Parameters of a multilayer perceptron, and its fit."""

    n_layers: int = 2
    n_units: int = 128
    alpha: float = 1e-4
    learning_rate: float = 1e-3
    max_iter: int = 1000
    n_iter_no_change: int = 50
    random_state: int | np.random.RandomState | None = None

    def _options(self, stops: bool) -> dict[str, object]:
        return {
            "hidden_layer_sizes": (self.n_units,) * self.n_layers,
            "alpha": self.alpha,
            "learning_rate_init": self.learning_rate,
            "max_iter": self.max_iter,
            "early_stopping": stops,
            "validation_fraction": SHARE,
            "n_iter_no_change": self.n_iter_no_change,
            "random_state": self.random_state,
        }

    def _fit_model(self, model, X, y, stops):
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
        self.n_iter_ = model.n_iter_
        return pipeline


class MultilayerPerceptronClassifier(_MultilayerPerceptron, HeldOutClassifier):
    """Multilayer perceptron with early stopping on held-out rows.

    It is scikit-learn's ``MLPClassifier`` (rectified linear units, Adam) on standardised inputs.
    Epochs end when the accuracy on a stratified tenth of the training rows has not improved for
    `n_iter_no_change` of them, and the best weights are kept. With fewer than 500 rows, one row
    of a class or more classes than held-out rows, nothing is held out, and the training loss
    decides.

    Parameters
    ----------
    n_layers : int, default 2
        Hidden layers.
    n_units : int, default 128
        Units of each of them.
    alpha : float, default 1e-4
        L2 penalty of the weights.
    learning_rate : float, default 1e-3
        First step size of Adam.
    max_iter : int, default 1000
        Maximum number of epochs; if it is reached, there is a ConvergenceWarning.
    n_iter_no_change : int, default 50
        Epochs without improvement: few of them stop on the noise of the held-out rows.
    random_state : int, RandomState or None, default None
        Seed of the held-out rows, the first weights and the batches.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    model_ : sklearn.pipeline.Pipeline
        The scaling and the fitted network, of labels 0..n_classes-1.
    n_iter_ : int
        Epochs.

    References
    ----------
    D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015; Y. Gorishniy,
    I. Rubachev, V. Khrulkov and A. Babenko, Revisiting deep learning models for tabular data,
    NeurIPS 2021, a discretised part of whose search space is the default one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(MultilayerPerceptronClassifier(random_state=0).fit(X, y).score(X, y) > 0.95)
    True
    """

    _library = MLPClassifier


class MultilayerPerceptronRegressor(_MultilayerPerceptron, HeldOutRegressor):
    """Multilayer perceptron for squared errors with early stopping on held-out rows.

    It is scikit-learn's ``MLPRegressor``, as `MultilayerPerceptronClassifier` uses its
    classifier; the squared error decides.

    Parameters
    ----------
    n_layers, n_units, alpha, learning_rate, max_iter, n_iter_no_change, random_state
        As in `MultilayerPerceptronClassifier`.

    Attributes
    ----------
    model_ : sklearn.pipeline.Pipeline
        The scaling and the fitted network.
    n_iter_ : int
        Epochs.

    References
    ----------
    D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1.0, 1.0, 200)[:, None]
    >>> mlp = MultilayerPerceptronRegressor(random_state=0).fit(X, X[:, 0] ** 2)
    >>> bool(mlp.score(X, X[:, 0] ** 2) > 0.9)
    True
    """

    _library = MLPRegressor
