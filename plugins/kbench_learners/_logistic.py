"""Logistic regression by the quicker of scikit-learn's solvers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from kbench.parameters import choice, integer, number
from kbench_learners._block_fits import LogisticFit
from kbench_learners._estimator import LinearClassifier, PathClassifier, binary_problems

_MAX_NEWTON_COEFFICIENTS = 500


def quicker_solver(n_columns: int, n_classes: int, C: float) -> str:
    """Return the solver of `LogisticRegression` that is expected to be the quicker one.

    A Newton step factorises a matrix of the size of all coefficients, and lbfgs needs the
    more iterations the larger C is. Both were timed at ``tol=1e-6`` for C in 2^-3, 2^3 and
    2^11 on 1,000 to 20,000 rows, both of the inputs of six data sets and of their Fourier and
    Nystroem features: they take equal time at about 140, 280 and 500 coefficients.
    """
    n_coefficients = n_columns * (n_classes if n_classes > 2 else 1)
    few = n_coefficients <= min(200 * C ** (1 / 6), _MAX_NEWTON_COEFFICIENTS)
    return "newton-cholesky" if few else "lbfgs"


@dataclass(eq=False, repr=False)
class LogisticClassifier(LinearClassifier, PathClassifier):
    """Logistic regression with L2 penalty, multinomial or one-vs-rest.

    Minimises ``1/2 sum_k ||w_k||^2 + C sum_i -log p(y_i | x_i)`` with ``p(k | x)`` proportional to
    ``exp(w_k.x + b_k)``. It is scikit-learn's ``LogisticRegression``, with the solver
    "newton-cholesky" for few coefficients, up to 500 depending on C, and "lbfgs" for more. Along
    a path each C starts from the solution of the next smaller one. An embedding that is too
    large for one matrix is taken in blocks of rows: limited-memory steps, one for each pass,
    with the Hessian matrix of a sample as the first, until the same gradient.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss.
    multiclass : {"multinomial", "ovr"}, default "multinomial"
        One joint problem, or one of two classes for each class against the rest, whose
        probabilities are divided by their sum.
    tol : float, default 1e-6
        Largest entry of the gradient at which to stop, of the objective over C and the
        number of rows.
    max_iter : int, default 2000
        Maximum number of iterations, or of passes over blocks of rows.
    fit_intercept : bool, default True
        Whether there is an intercept, which is not penalised.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    coef_ : ndarray, shape (n_classes, n_features)
        Weights; one row for two classes.
    intercept_ : ndarray, shape (n_classes,)
        Intercepts; one for two classes.
    converged_ : bool
        Whether the gradient of each problem reached `tol`; otherwise there is a ConvergenceWarning.
    n_iter_ : int
        Iterations, the most of any problem.
    solver_ : str
        The solver that was used; "blocks" for blocks of rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> logistic = LogisticClassifier().fit(X, y)
    >>> logistic.solver_, round(logistic.score(X, y), 3)
    ('newton-cholesky', 0.973)
    """

    _path = "C"

    C: float = number(1.0, above=0)
    multiclass: str = choice("multinomial", ("multinomial", "ovr"))
    tol: float = number(1e-6, above=0)
    max_iter: int = integer(2000, least=1)
    fit_intercept: bool = True

    def begin_fit(self, sample, values):
        """Begin a fit over blocks of rows, for several values of `C` together.

        Parameters
        ----------
        sample : object
            A sample of the rows, as it is described for `kbench.Learner`.
        values : sequence of float
            Values of `C`, in any order.

        Returns
        -------
        object
            The fit, which takes blocks of rows.
        """
        return LogisticFit(self, sample, values)

    def _fit_together(self, X, codes, estimators) -> None:
        n_classes, targets = len(self.classes_), [codes]
        if n_classes > 2 and self.multiclass == "ovr":
            targets = [signs > 0 for _, signs in binary_problems(codes, n_classes, "ovr")]
            n_classes = 2
        rising = sorted(estimators, key=lambda estimator: estimator.C)
        for estimator in rising:
            estimator.solver_ = quicker_solver(X.shape[1], n_classes, estimator.C)
        paths = [list(self._path_of(X, target, rising)) for target in targets]
        for estimator, problems in zip(rising, zip(*paths, strict=True), strict=True):
            coefs, intercepts, steps, solved = zip(*problems, strict=True)
            estimator.coef_, estimator.intercept_ = np.vstack(coefs), np.concatenate(intercepts)
            estimator.n_iter_, estimator.converged_ = max(steps), all(solved)

    def _path_of(self, X, target, rising):
        """Yield coefficients, intercepts, iterations and convergence for rising C."""
        model = LogisticRegression(
            tol=self.tol,
            max_iter=self.max_iter,
            fit_intercept=self.fit_intercept,
            warm_start=len(rising) > 1,
        )
        for estimator in rising:
            model.set_params(C=estimator.C, solver=estimator.solver_)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                model.fit(X, target)
            solved = not any(issubclass(each.category, ConvergenceWarning) for each in caught)
            intercept = np.broadcast_to(model.intercept_, len(model.coef_))
            yield model.coef_.copy(), intercept.copy(), int(model.n_iter_.max()), solved

    def _complaints(self) -> list[str]:
        return [
            f"LogisticClassifier did not converge at C={self.C:g} in {self.n_iter_} iterations "
            f"(tol={self.tol:g}); scale the inputs, lower C or raise max_iter={self.max_iter}"
        ]

    def predict_proba(self, X):
        """Estimate the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        margins = self._checked_margins(X)
        if len(self.classes_) > 2:
            joint = self.multiclass == "multinomial"
            return softmax(margins if joint else log_expit(margins), axis=1)
        return expit(margins * [[-1.0, 1.0]])
