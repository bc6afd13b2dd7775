"""Margins and generalisation bounds of a linear classifier on a map, as measured."""

from itertools import combinations
from math import inf, sqrt

import numpy as np
from scipy import sparse

from kbench_nbcs._theory import hinge_bound, margin_error_bound, vc_bound

# Coordinates that are held at a time: 12 MiB.
CHUNK_VALUES = 2**20


def find_scheme(learner):
    """Name the binary problems of the rows of ``coef_``: "ovr", "ovo" or None.

    None if the learner is not linear, or its scores of several classes are of
    one joint problem (Crammer and Singer, multinomial logistic regression), which
    has no margin per row of ``coef_``.
    """
    if not (hasattr(learner, "coef_") and hasattr(learner, "classes_")):
        return None
    n_classes, n_problems = len(learner.classes_), len(np.atleast_2d(learner.coef_))
    if n_classes == 2:
        return "ovr" if n_problems == 1 else None
    # scikit-learn's LinearSVC says "multi_class"
    named = getattr(learner, "multiclass", getattr(learner, "multi_class", "ovr"))
    if named == "ovo":
        return "ovo" if n_problems == n_classes * (n_classes - 1) // 2 else None
    joint = named == "crammer_singer" or hasattr(learner, "predict_proba")
    return "ovr" if n_problems == n_classes and not joint else None


def margin_metrics(nbcs, learner, X, y, delta=0.05):
    """Margin, margin error and generalisation bounds of a linear classifier on a map.

    The intercept is put into the weights (the coordinates of a root sum to 1),
    and the coordinates of R roots are divided by ``sqrt(R)``, so that
    ``||Psi(x)|| <= 1``. A classifier of several classes is several binary
    ones: the worst is reported, with `delta` shared out, so that the bounds hold
    for all of them at once. Against one, each counts the rows of its two classes,
    and there are no bounds: rows of other classes determine the map too.

    Parameters
    ----------
    nbcs : NestedBarycentricMap
        Fitted.
    learner : classifier with ``coef_`` and ``intercept_``
        Fitted on its output; two classes, one against rest with ``classes_`` in
        the order of the rows of ``coef_``, or one against one (``multiclass`` is
        "ovo") in the order (0, 1), (0, 2), ..., (1, 2), ..., positive for the
        first.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The training rows of both.
    y : array-like of shape (n_samples,)
        Their labels.
    delta : float, default 0.05
        Probability with which a bound may fail.

    Returns
    -------
    dict of str to float
        ``margin`` (1 / ||w||), ``margin_error`` (share of rows below it),
        ``hinge_loss``, ``compression_size`` (k), and ``bound_vc`` (Corollary
        1), ``bound_hinge`` (Corollary 2, corrected) and
        ``bound_margin_constant_1`` (Theorem 3 or 4, with constants 1), each with
        ``..._vacuous``, 1.0 if it is 1 or more. The bounds are left out for
        ``split_point="mean"``, which no k points determine, and where k is not
        below n, and one against one.

    Notes
    -----
    k counts the split points that are training rows and, which the paper does
    not, the rows that place the roots: two per column for the scaling and one
    per face of a fitted root.

    Which simplices ``split="barycentre"`` divides depends on all rows, so that
    the columns of the map are not a fixed class. The VC dimension is therefore that
    of the full system, in which every function of a part of it is contained
    (Theorem 1). The other two bounds depend on the norm, and are of the classifier
    with weight 0 at the vertices that are left out; it differs only in simplices
    without training rows. With ``min_samples_split`` above 1 there is no such
    classifier, and these bounds are left out.

    The bounds are of parameters that were fixed beforehand: where C, `depth` or
    the number of roots were searched on these rows, `delta` has to be shared out
    among all candidates, which is not done here.

    Raises
    ------
    ValueError
        The learner is not one of these linear classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import LinearSVC
    >>> from kbench_nbcs import NestedBarycentricMap
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
    >>> y = np.abs(X[:, 0]) > 0.5
    >>> nbcs = NestedBarycentricMap(2).fit(X)
    >>> svm = LinearSVC(dual=False).fit(nbcs.transform(X), y)
    >>> measured = margin_metrics(nbcs, svm, X, y)
    >>> measured["compression_size"], measured["bound_vc_vacuous"]
    (4.0, 1.0)
    """
    scheme = find_scheme(learner)
    if scheme is None:
        raise ValueError(
            "learner must be a linear classifier of two classes, one against rest or one against "
            f"one, for which margins are defined, got {learner!r}"
        )
    y, classes = np.asarray(y), learner.classes_
    n_roots, k = nbcs.n_roots, nbcs.compression_size_
    # w . phi + b = (sqrt(R) (w + b / R)) . (phi / sqrt(R))
    coef = np.atleast_2d(learner.coef_)
    intercept = np.broadcast_to(np.asarray(learner.intercept_, dtype=float).ravel(), len(coef))
    weights = sqrt(n_roots) * (coef + intercept[:, None] / n_roots)
    values = _values(nbcs, X, weights.T / sqrt(n_roots))
    dimension = _vc_dimension(nbcs)
    has_norm_bounds = nbcs.split == "adaptive" or nbcs.min_samples_split <= 1
    share = delta / len(coef)
    worst: dict[str, float] = {}
    problems = _problems(y, classes, scheme)
    for w, scores, (rows, positive) in zip(weights, values.T, problems, strict=True):
        margins = np.where(y[rows] == positive, 1.0, -1.0) * scores[rows]
        n = len(margins)
        norm = float(np.linalg.norm(w))
        measured = {
            "margin": -1.0 / norm if norm else -inf,
            "margin_error": float(np.mean(margins < 1.0)),
            "hinge_loss": float(np.mean(np.maximum(0.0, 1.0 - margins))),
        }
        if scheme == "ovr" and k is not None and k < n:
            measured["bound_vc"] = vc_bound(float(np.mean(margins <= 0.0)), n, dimension, k, share)
            if has_norm_bounds:
                measured["bound_hinge"] = hinge_bound(measured["hinge_loss"], norm, n, k, share)
                measured["bound_margin_constant_1"] = margin_error_bound(
                    measured["margin_error"], 1.0 / max(1.0, norm), n, nbcs.depth, k, share
                )
        worst = {name: max(worst.get(name, -inf), value) for name, value in measured.items()}
    worst["margin"] = -worst["margin"]
    if k is not None:
        worst["compression_size"] = float(k)
    bounds = [name for name in worst if name.startswith("bound_")]
    return worst | {f"{name}_vacuous": float(worst[name] >= 1.0) for name in bounds}


def _values(nbcs, X, weights):
    """Multiply the embedding with weights, few rows at a time: all of it may be large."""
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    step = max(64, CHUNK_VALUES // (nbcs.n_roots * (X.shape[1] + 1)))
    parts = [nbcs.transform(X[at : at + step]) @ weights for at in range(0, X.shape[0], step)]
    return np.concatenate(parts)


def _vc_dimension(nbcs):
    """Count the columns that the map can have for any rows, given the k that determine it."""
    if nbcs.split == "adaptive":
        return nbcs.n_vertices_
    width = nbcs.n_features_in_ + 1
    with np.errstate(over="ignore"):
        return nbcs.n_roots * float(width + np.sum(float(width) ** np.arange(nbcs.depth)))


def _problems(y, classes, scheme):
    """Yield the rows of each binary problem and its positive class."""
    if scheme == "ovo":
        for first, second in combinations(classes, 2):
            yield np.isin(y, [first, second]), first
    else:
        for positive in classes[-1:] if len(classes) == 2 else classes:
            yield slice(None), positive
