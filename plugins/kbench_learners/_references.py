"""Reference learners that belong in every comparison, from scikit-learn."""

from __future__ import annotations

from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import LinearSVC


def liblinear(C=1.0, tol=1e-3, max_iter=1000):
    """Linear SVM (squared hinge, one against rest) by dual coordinate descent.

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
        Bound of the passes over the rows.

    Returns
    -------
    sklearn.svm.LinearSVC

    References
    ----------
    C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, A dual coordinate
    descent method for large-scale linear SVM, ICML 2008.
    """
    return LinearSVC(C=C, tol=tol, max_iter=max_iter, dual=True)


def knn(n_neighbors=5, weights="uniform", p=2):
    """Nearest neighbours; 1-NN with ``n_neighbors=1``.

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


def gradient_boosting(
    learning_rate=0.1,
    max_iter=100,
    max_leaf_nodes=31,
    min_samples_leaf=20,
    l2_regularization=0.0,
):
    """Histogram gradient boosting, deterministic and without early stopping.

    Parameters
    ----------
    learning_rate : float, default 0.1
        Shrinkage of each tree.
    max_iter : int, default 100
        Trees for each class.
    max_leaf_nodes : int, default 31
        Leaves of a tree.
    min_samples_leaf : int, default 20
        Rows of a leaf.
    l2_regularization : float, default 0
        Penalty of the leaves' values.

    Returns
    -------
    sklearn.ensemble.HistGradientBoostingClassifier
        The seed decides only which rows are sampled for the bins beyond
        200,000 rows, and is fixed.

    References
    ----------
    J. H. Friedman, Greedy function approximation: a gradient boosting machine, Annals of
    Statistics 29 (2001); G. Ke et al., LightGBM: a highly efficient gradient boosting decision
    tree, NIPS 2017.
    """
    return HistGradientBoostingClassifier(
        learning_rate=learning_rate,
        max_iter=max_iter,
        max_leaf_nodes=max_leaf_nodes,
        min_samples_leaf=min_samples_leaf,
        l2_regularization=l2_regularization,
        early_stopping=False,
        random_state=0,
    )


def gradient_boosting_regressor(
    learning_rate=0.1,
    max_iter=100,
    max_leaf_nodes=31,
    min_samples_leaf=20,
    l2_regularization=0.0,
):
    """Histogram gradient boosting of squared errors, without early stopping.

    Parameters
    ----------
    learning_rate : float, default 0.1
        Shrinkage of each tree.
    max_iter : int, default 100
        Trees.
    max_leaf_nodes : int, default 31
        Leaves of a tree.
    min_samples_leaf : int, default 20
        Rows of a leaf.
    l2_regularization : float, default 0
        Penalty of the leaves' values.

    Returns
    -------
    sklearn.ensemble.HistGradientBoostingRegressor
        The seed is fixed, as in `gradient_boosting`.

    References
    ----------
    J. H. Friedman, Greedy function approximation: a gradient boosting machine, Annals of
    Statistics 29 (2001); G. Ke et al., LightGBM: a highly efficient gradient boosting decision
    tree, NIPS 2017.
    """
    return HistGradientBoostingRegressor(
        learning_rate=learning_rate,
        max_iter=max_iter,
        max_leaf_nodes=max_leaf_nodes,
        min_samples_leaf=min_samples_leaf,
        l2_regularization=l2_regularization,
        early_stopping=False,
        random_state=0,
    )


def majority():
    """Predict the most frequent class, whatever the inputs.

    Returns
    -------
    sklearn.dummy.DummyClassifier
    """
    return DummyClassifier(strategy="most_frequent")
