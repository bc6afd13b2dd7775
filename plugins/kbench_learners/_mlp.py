"""A small multilayer perceptron by scikit-learn, stopped early on held-out rows."""

from __future__ import annotations

from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kbench_learners._held_out import SHARE, HeldOutClassifier, HeldOutRegressor, Unweighted


class _MultilayerPerceptron(Unweighted):
    """Parameters of a multilayer perceptron, and its fit."""

    def __init__(
        self,
        n_layers=2,
        n_units=128,
        alpha=1e-4,
        learning_rate=1e-3,
        max_iter=1000,
        n_iter_no_change=50,
        random_state=None,
    ):
        self.n_layers = n_layers
        self.n_units = n_units
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def _options(self, stops: bool) -> dict:
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
    """Small multilayer perceptron, with epochs chosen on held-out rows.

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
        Epochs at most; if they are exhausted there is a ConvergenceWarning.
    n_iter_no_change : int, default 50
        Epochs without improvement: few of them stop on the noise of the held-out rows.
    random_state : int, RandomState or None, default None
        Draws the held-out rows, the first weights and the batches.

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

    def _model(self, stops, n_classes):
        return MLPClassifier(**self._options(stops))


class MultilayerPerceptronRegressor(_MultilayerPerceptron, HeldOutRegressor):
    """Small multilayer perceptron for squared errors, with epochs chosen on held-out rows.

    It is scikit-learn's ``MLPRegressor``, as `MultilayerPerceptronClassifier` uses its
    classifier; the squared error decides.

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
        Epochs at most; if they are exhausted there is a ConvergenceWarning.
    n_iter_no_change : int, default 50
        Epochs without improvement: few of them stop on the noise of the held-out rows.
    random_state : int, RandomState or None, default None
        Draws the held-out rows, the first weights and the batches.

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

    def _model(self, stops, n_classes):
        return MLPRegressor(**self._options(stops))
