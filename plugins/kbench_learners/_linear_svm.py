"""Linear support vector machines along a path of C."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils.metaestimators import available_if

from kbench.parameters import choice, integer, number
from kbench_learners._block_fits import fit_squared_hinge
from kbench_learners._design import Design, dense_where_quicker
from kbench_learners._estimator import (
    SCHEMES,
    LinearClassifier,
    PathClassifier,
    binary_problems,
    class_shares,
)
from kbench_learners._paths import LOSSES, binary_path, expand, least_squares

# number of values up to which an array is quicker: products of sparse rows take long to begin
_SMALL = 1 << 18


@dataclass(eq=False, repr=False)
class LinearSVM(LinearClassifier, PathClassifier):
    r"""Linear SVM with L2 penalty, fitted along a regularisation path of C.

    Each binary problem, with labels :math:`y_i = \pm 1`, is

    .. math:: \min_{w, b} \tfrac12 (\|w\|^2 + b^2 / s^2)
              + C \sum_i \ell(y_i (w^\top x_i + b)),

    with :math:`\ell(m) = \max(0, 1 - m)^2` (squared hinge), :math:`\max(0, 1 - m)`
    (hinge) or :math:`\log(1 + e^{-m})` (logistic). The intercept is the
    coefficient of a constant column `intercept_scaling`, s, and is penalised
    with the others, as in liblinear: the solution is that of
    ``sklearn.svm.LinearSVC``, and the problem stays strongly convex.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss.
    loss : {"squared_hinge", "hinge", "logistic"}, default "squared_hinge"
        Loss of the margin.
    multiclass : {"ovo", "ovr"}, default "ovo"
        One classifier for each pair of classes, which vote; or one for each class
        against the rest. See Notes.
    balanced : bool, default False
        Weight the loss of the rows of a class by the inverse of its frequency, so that all classes
        have the same weight. For "squared_hinge" only.
    tol : float, default 1e-6
        Duality gap, relative to the objective, at which a problem counts as
        solved.
    max_iter : int, default 300
        Newton steps for each problem and C, or passes over blocks of rows.
    fit_intercept : bool, default True
        Whether there is a constant column.
    intercept_scaling : float, default 1.0
        Value of the constant column; the larger, the less the intercept is
        penalised.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (n_problems, n_features)
        One problem for two classes; else one for each class, or for each pair
        (0, 1), (0, 2), ..., (1, 2), ... with "ovo", positive for the first.
    intercept_ : ndarray, shape (n_problems,)
    objective_ : ndarray, shape (n_problems,)
        Value of each problem at its solution.
    gap_ : float
        Largest relative duality gap, an upper bound of the relative error of
        the objective.
    converged_ : bool
        Whether every problem reached `tol`.
    n_iter_ : int
        Maximum number of Newton steps of a problem, or of passes over blocks of rows.

    Notes
    -----
    A semismooth Newton method with exact line search works in the space of
    columns or rows, whichever is smaller at each step, and along the path each
    C starts from the solution of the next smaller one. With fewer rows than
    columns the inputs are first replaced by the pivoted Cholesky factor of
    their Gram matrix, unless they are sparse with few entries; sparse rows of a pair
    of classes that span few dimensions by their coordinates there. With many columns,
    sparse or dense, directions come from conjugate gradients; elsewhere too, where these
    are expected to be quicker, and for no longer than a factorisation would take. The
    hinge is solved as a sequence of clipped quadratics (augmented Lagrangian).

    Memory beyond the input stays below three Gram matrices of the columns, ten vectors of the
    rows' length and a copy of four million entries.

    An embedding that is too large for one matrix is taken in blocks of rows, with the
    squared hinge only. A sample of the rows gives the first solution and
    the first Hessian matrix; then all problems and all values of C take limited-memory steps
    together, one for each epoch, until the same duality gap.

    References
    ----------
    R.-E. Fan, K.-W. Chang, C.-J. Hsieh, X.-R. Wang and C.-J. Lin, LIBLINEAR: A library for large
    linear classification, JMLR 9 (2008).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> svm = LinearSVM(C=10.0).fit(X, y)
    >>> svm.converged_, svm.coef_.shape
    (True, (3, 4))
    >>> [fitted.C for fitted in LinearSVM().fit_path(X, y, [0.1, 1.0])]
    [0.1, 1.0]
    """

    _path = "C"
    takes_any_namespace = True
    _order = "C"  # rows are read as contiguous vectors

    C: float = number(1.0, above=0)
    loss: str = choice("squared_hinge", LOSSES)
    multiclass: str = choice("ovo", SCHEMES)
    balanced: bool = False
    tol: float = number(1e-6, above=0)
    max_iter: int = integer(300, least=1)
    fit_intercept: bool = True
    intercept_scaling: float = number(1.0, above=0)

    @available_if(lambda self: self.loss == "squared_hinge" and not self.balanced)
    def begin_fit(self, sample, values):
        """Begin a fit over blocks of rows, for several `values` of `C` together.

        `sample` is a sample of the rows, as it is described for `kbench.Learner`.
        """
        return fit_squared_hinge(self, sample, values)

    def _fit_together(self, X, codes, estimators) -> None:
        if self.balanced and self.loss != "squared_hinge":
            raise ValueError('balanced needs loss="squared_hinge"')
        X = dense_where_quicker(X, small=_SMALL)
        bias = float(self.intercept_scaling) if self.fit_intercept else 0.0
        n_classes, n_columns, roots = len(self.classes_), X.shape[1], None
        design = Design(X, bias)
        if self.balanced:
            # a loss c max(0, 1 - y w'x)^2 is max(0, t - y w'(t x))^2 with the root t of c
            roots = np.sqrt(1.0 / (n_classes * class_shares(codes)))[codes]
            column = np.full((len(codes), 1), bias)
            if sp.issparse(X):
                X = sp.diags_array(roots) @ sp.hstack([X, column], "csr")
            else:
                X = np.hstack([X, column]) * roots[:, None]
            design = Design(X)
        # two classes are one binary problem under both schemes
        scheme = "ovr" if n_classes == 2 else self.multiclass
        problems = binary_problems(codes, n_classes, scheme)
        values = [estimator.C for estimator in estimators]
        if scheme == "ovr":
            targets = [signs.astype(np.int8) for _, signs in problems]
            paths = self._fit_shared(design, targets, values, roots)
        else:
            paths = []
            if design.keeps_row_gram:
                design.row_gram()  # of which each pair takes its part
            for rows, signs in problems:
                pair = design.subproblem(rows)
                own = None if roots is None else roots[rows]
                (path,) = self._fit_shared(pair, [signs], values, own)
                paths.append([replace(solution, w=pair.widened(solution.w)) for solution in path])
        for estimator, solutions in zip(estimators, zip(*paths, strict=True), strict=True):
            W = np.array([solution.w for solution in solutions])
            estimator.coef_ = W[:, :n_columns].copy()
            estimator.intercept_ = bias * W[:, -1] if bias else np.zeros(len(W))
            estimator.objective_ = np.array([solution.objective for solution in solutions])
            estimator.gap_ = max(solution.gap / solution.objective for solution in solutions)
            estimator.converged_ = all(solution.converged for solution in solutions)
            estimator.n_iter_ = max(1, *(solution.n_iter for solution in solutions))

    def _fit_shared(self, design, targets, values, margins=None):
        """Fit the paths of problems that have all rows in common; `margins` are 1 by default."""
        working = design.reduced()
        wanted = targets if margins is None else [signs * margins for signs in targets]
        starts = least_squares(working, wanted, 2.0 * min(values))
        options = (values, self.loss, self.tol)
        of_targets = [None] * len(targets) if starts is None else starts.T
        paths = [
            binary_path(working, signs.astype(np.float64), *options, self.max_iter, start, margins)
            for signs, start in zip(targets, of_targets, strict=True)
        ]
        if design.iterates and not all(each.converged for path in paths for each in path):
            # columns of very different scales need a factor, however long it takes
            design.iterates = False
            return self._fit_shared(design, targets, values, margins)
        if working is design:
            return paths
        return expand(paths, working, design, targets, *options, margins)

    def _complaints(self) -> list[str]:
        return [
            f"LinearSVM did not converge at C={self.C:g}: relative duality gap {self.gap_:.1e} "
            f"(tol={self.tol:g}) after {self.n_iter_} steps; scale the inputs, lower C or "
            f"raise max_iter"
        ]


def margin_error(fitted, X, y):
    """Return the share of rows within the margin or on its wrong side.

    The margin of a row is ``y f(x)`` for two classes, else half of the distance
    between the score of its class and the best other one, or the smallest
    decision of its class against another with "ovo".

    Returns ``{"margin_error": share of margins below 1}``; a row of a class that was not in
    the training data counts as an error. Nothing is measured of a regressor.
    """
    if not is_classifier(fitted):
        return {}
    codes = np.searchsorted(fitted.classes_, y)
    known = np.isin(y, fitted.classes_)
    codes = np.where(known, codes, 0)
    at = np.arange(len(codes))
    if len(fitted.classes_) == 2:
        margins = np.where(codes == 1, 1.0, -1.0) * fitted.decision_function(X)
    elif getattr(fitted, "multiclass", "") == "ovo":
        pairs = fitted.pair_decisions(X)[at, codes]
        pairs[at, codes] = np.inf
        margins = pairs.min(axis=1)
    else:
        scores = np.array(fitted.decision_function(X))
        own = scores[at, codes]
        scores[at, codes] = -np.inf
        margins = 0.5 * (own - scores.max(axis=1))
    return {"margin_error": float(np.mean((margins < 1.0) | ~known))}
