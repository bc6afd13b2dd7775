"""Reference learners that belong in every comparison, most of them from scikit-learn."""

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import LinearSVC

from kbench_learners._estimator import Predictive, Regressor, Weighted, row_weights


def liblinear(C=1.0, tol=1e-3, max_iter=1000):
    """Linear SVM (squared hinge, one-vs-rest) by LIBLINEAR's dual coordinate descent.

    The quickest on rows of few non-zeros among very many columns, up to C about 10 where rows
    have norm 1: on 17 to 544 non-zeros a row of pendigits (2,700 rows) it took 0.1 to 2.9 s for
    three values of C, where `LinearSVM` took 0.8 to 10 s to a much smaller tolerance, with the
    same accuracies. With dense columns or a large C it converges slowly or not at all.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss.
    tol : float, default 1e-3
        Largest violation of the optimality conditions at which to stop.
    max_iter : int, default 1000
        Maximum number of epochs.

    Returns
    -------
    sklearn.svm.LinearSVC

    References
    ----------
    C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, A dual coordinate
    descent method for large-scale linear SVM, ICML 2008.
    """
    return LinearSVC(C=C, tol=tol, max_iter=max_iter, dual=True)


def perceptron(
    alpha=0.0, averaged=False, fit_intercept=True, max_iter=1000, tol=1e-3, shuffle=True
):
    """Rosenblatt's perceptron, one-vs-rest, with an optional L2 penalty.

    With the defaults it is ``sklearn.linear_model.Perceptron``.

    Parameters
    ----------
    alpha : float, default 0
        Each step, with or without an error, shrinks the weights by this share.
    averaged : bool, default False
        Predict with the mean of the weights over all steps instead of the last ones.
    fit_intercept : bool, default True
        Whether there is an intercept.
    max_iter : int, default 1000
        Maximum number of passes over the rows.
    tol : float or None, default 1e-3
        Training stops when the mean loss of five passes has not improved by this.
    shuffle : bool, default True
        Go through the rows in a new random order in each pass.

    Returns
    -------
    sklearn.linear_model.SGDClassifier

    References
    ----------
    F. Rosenblatt, The perceptron: a probabilistic model for information storage and organization
    in the brain, Psychological Review 65 (1958); Y. Freund and R. E. Schapire, Large margin
    classification using the perceptron algorithm, Machine Learning 37 (1999).
    """
    return SGDClassifier(
        loss="perceptron",
        learning_rate="constant",
        eta0=1.0,
        alpha=alpha,
        average=averaged,
        fit_intercept=fit_intercept,
        max_iter=max_iter,
        tol=tol,
        shuffle=shuffle,
    )


def knn(n_neighbors=5, weights="uniform", p=2):
    """k-nearest neighbours; with ``n_neighbors=1`` both `weights` are equivalent.

    Parameters
    ----------
    n_neighbors : int, default 5
        Neighbours that vote.
    weights : {"uniform", "distance"}, default "uniform"
        Weights of their votes.
    p : float, default 2
        Power of the Minkowski distance.

    Returns
    -------
    sklearn.neighbors.KNeighborsClassifier

    References
    ----------
    T. Cover and P. Hart, Nearest neighbor pattern classification, IEEE Transactions on
    Information Theory 13 (1967).
    """
    return KNeighborsClassifier(n_neighbors=n_neighbors, weights=weights, p=p)


def knn_regressor(n_neighbors=5, weights="uniform", p=2):
    """Mean of the targets of the nearest neighbours.

    Parameters
    ----------
    n_neighbors : int, default 5
        Neighbours.
    weights : {"uniform", "distance"}, default "uniform"
        Their weights in the mean.
    p : float, default 2
        Power of the Minkowski distance.

    Returns
    -------
    sklearn.neighbors.KNeighborsRegressor

    References
    ----------
    T. Cover, Estimation by the nearest neighbor rule, IEEE Transactions on Information Theory 14
    (1968).
    """
    return KNeighborsRegressor(n_neighbors=n_neighbors, weights=weights, p=p)


def random_forest(n_estimators=300, max_features="sqrt", min_samples_leaf=1):
    """Random forest: majority vote of randomised classification trees.

    Parameters
    ----------
    n_estimators : int, default 300
        Number of trees.
    max_features : {"sqrt", "log2"}, float or int, default "sqrt"
        Columns that are tried at each split: a share of them, or a number.
    min_samples_leaf : int, default 1
        Minimum number of rows of a leaf.

    Returns
    -------
    sklearn.ensemble.RandomForestClassifier

    References
    ----------
    L. Breiman, Random forests, Machine Learning 45 (2001); the default search space is a part of
    that of L. Grinsztajn, E. Oyallon and G. Varoquaux, Why do tree-based models still outperform
    deep learning on typical tabular data?, NeurIPS 2022.
    """
    return RandomForestClassifier(
        n_estimators=n_estimators, max_features=max_features, min_samples_leaf=min_samples_leaf
    )


def random_forest_regressor(n_estimators=300, max_features="sqrt", min_samples_leaf=1):
    """Random forest of regression trees, whose mean is predicted.

    Parameters
    ----------
    n_estimators : int, default 300
        Number of trees.
    max_features : {"sqrt", "log2"}, float or int, default "sqrt"
        Columns that are tried at each split: a share of them, or a number.
    min_samples_leaf : int, default 1
        Minimum number of rows of a leaf.

    Returns
    -------
    sklearn.ensemble.RandomForestRegressor

    References
    ----------
    L. Breiman, Random forests, Machine Learning 45 (2001).
    """
    return RandomForestRegressor(
        n_estimators=n_estimators, max_features=max_features, min_samples_leaf=min_samples_leaf
    )


def majority():
    """Baseline that predicts the most frequent class.

    Returns
    -------
    sklearn.dummy.DummyClassifier
    """
    return DummyClassifier(strategy="most_frequent")


class MeanRegressor(Predictive, Weighted, Regressor):
    """Baseline that predicts the mean of the training targets.

    The predictive distribution is normal, with the variance of the targets and of their mean.

    Attributes
    ----------
    mean_ : float
        Mean of the targets.
    sd_ : float
        Standard deviation of a new one.

    Examples
    --------
    >>> model = MeanRegressor().fit([[0.0], [1.0], [5.0]], [1.0, 2.0, 3.0])
    >>> model.predict([[9.0]], return_std=True)
    (array([2.]), array([1.15470054]))
    """

    def _predicted(self, X) -> np.ndarray:
        return np.full(X.shape[0], self.mean_)

    def _deviations(self, X) -> np.ndarray:
        return np.full(X.shape[0], self.sd_)

    def _fit(self, X, y, sample_weight) -> None:
        weight = row_weights(sample_weight, len(y))
        count = float(len(y) if weight is None else weight.sum())
        self.mean_ = float(np.average(y, weights=weight))
        variance = float(np.average((y - self.mean_) ** 2, weights=weight))
        if count > 1.0:  # unbiased, and that of the mean
            variance *= (count + 1.0) / (count - 1.0)
        self.sd_ = float(np.sqrt(max(variance, np.finfo(float).tiny)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
