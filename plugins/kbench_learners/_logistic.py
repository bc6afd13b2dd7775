"""Logistic regression along a path of C."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.utils.metaestimators import available_if

from kbench.parameters import choice, integer, number
from kbench_learners._block_fits import fit_logistic, logistic_problems, set_solution
from kbench_learners._design import Design, dense_where_quicker
from kbench_learners._estimator import LinearClassifier, PathClassifier, class_shares

# Steps that a factorisation may take where it is made before any are taken.
_FEW_STEPS = 10.0


@dataclass(eq=False, repr=False)
class LogisticClassifier(LinearClassifier, PathClassifier):
    """Logistic regression with L2 penalty, multinomial or one-vs-rest.

    Minimises ``1/2 sum_k ||w_k||^2 + C sum_i -log p(y_i | x_i)`` with ``p(k | x)`` proportional to
    ``exp(w_k.x + b_k)``, which is the problem of scikit-learn's ``LogisticRegression``. The solver
    takes limited-memory quasi-Newton steps (L-BFGS). Their first matrix is the block of the
    Hessian of each class, factorised if this is quick, otherwise its diagonal. Along a path
    each C starts from the solution of the next smaller one, and of one joint problem with its
    Hessian and its last steps, as C scales them. An embedding that is too large for one matrix
    is taken in blocks of rows, one step for each pass, with the Hessian of a sample as the
    first matrix, until the same gradient.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss.
    multiclass : {"multinomial", "ovr"}, default "multinomial"
        One joint problem, or one of two classes for each class against the rest, whose
        probabilities are divided by their sum.
    balanced : bool, default False
        Weight the loss of a class by the inverse of its frequency. Probabilities are corrected
        for the weights: only decisions favour a rare class.
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> logistic = LogisticClassifier().fit(X, y)
    >>> logistic.converged_, round(logistic.score(X, y), 3)
    (True, 0.973)
    """

    _path = "C"
    takes_any_namespace = True

    C: float = number(1.0, above=0)
    multiclass: str = choice("multinomial", ("multinomial", "ovr"))
    balanced: bool = False
    tol: float = number(1e-6, above=0)
    max_iter: int = integer(2000, least=1)
    fit_intercept: bool = True

    @available_if(lambda self: not self.balanced)
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
        return fit_logistic(self, sample, values)

    def _fit_together(self, X, codes, estimators) -> None:
        n_classes, bias = len(self.classes_), float(self.fit_intercept)
        design = Design(dense_where_quicker(X), bias)
        is_factored = design.factor_steps <= _FEW_STEPS
        shares = class_shares(codes)
        weights = 1.0 / (n_classes * shares) if self.balanced else None
        W = np.zeros((design.shape[1], n_classes if n_classes > 2 else 1))
        previous = None
        for estimator in sorted(estimators, key=lambda estimator: estimator.C):
            estimator._shares = shares
            options = n_classes, len(codes), 1.0, weights
            problems = logistic_problems(estimator, estimator.C, W, *options)
            if len(problems) == 1:
                problems[0].follow(previous)
                (previous,) = problems
            for problem in problems:
                is_factored = problem.solve_in_memory(design, codes, is_factored)
            set_solution(estimator, problems, bias)
            W = np.hstack([problem.w for problem in problems])

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
            probabilities = softmax(margins if joint else log_expit(margins), axis=1)
        else:
            probabilities = expit(margins * [[-1.0, 1.0]])
        if self.balanced:
            probabilities *= self._shares
            probabilities /= probabilities.sum(axis=1, keepdims=True)
        return probabilities
