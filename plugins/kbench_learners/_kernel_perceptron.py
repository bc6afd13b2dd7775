"""The kernel perceptron, which keeps only its mistakes."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from kbench.kernels import resolve_kernel
from kbench.parameters import choice, integer
from kbench_learners._estimator import SCHEMES, MarginClassifier, binary_problems
from kbench_learners._kernel_machine import KernelMixin, gram_blocks, kernel_sums

_BLOCK = 256
_SUPPORT_BLOCK = 4096


def perceptron_epochs(X, signs: np.ndarray, kernel, n_epochs: int, order_of):
    """Run the perceptron in the kernel's space, until a pass makes no mistake.

    Predictions of a block of rows are computed together and corrected after each
    mistake in it, with the same result as one row after the other. The Gram matrix is
    never formed: a block against the mistakes so far, and a block with itself.

    `signs` are 1.0 or -1.0; a margin of 0 predicts 1. ``order_of(epoch)`` is the order of
    the rows in a pass. Returns the row of each mistake, in order; the predictions before the
    first mistake, between two, and after the last, of which the one that is a mistake counts for
    the hypothesis before; and the number of passes.
    """
    coefficients = np.zeros(X.shape[0])
    mistakes: list[int] = []
    survived = [0]
    for epoch in range(n_epochs):
        before = len(mistakes)
        order = order_of(epoch)
        for begin in range(0, len(order), _BLOCK):
            rows = order[begin : begin + _BLOCK]
            support = np.flatnonzero(coefficients)
            margins = np.zeros(len(rows))
            for start in range(0, len(support), _SUPPORT_BLOCK):
                part = support[start : start + _SUPPORT_BLOCK]
                margins += kernel(X[rows], kernel.take(X, part)) @ coefficients[part]
            block_gram = None
            position = 0
            while True:
                values, truth = margins[position:], signs[rows[position:]]
                wrong = (values >= 0) != (truth > 0)
                if not wrong.any():
                    survived[-1] += len(rows) - position
                    break
                first = position + int(wrong.argmax())
                if block_gram is None:
                    block_gram = kernel(X[rows], kernel.take(X, rows))
                row = rows[first]
                survived[-1] += first + 1 - position
                survived.append(0)
                mistakes.append(int(row))
                coefficients[row] += signs[row]
                margins += signs[row] * block_gram[:, first]
                position = first + 1
        if len(mistakes) == before:
            break
    return np.array(mistakes, dtype=np.intp), np.array(survived), epoch + 1


def weights_of_mistakes(survived: np.ndarray, output: str) -> np.ndarray:
    """Weigh each mistake's term in the final hypothesis, in [0, 1].

    `survived` is as `perceptron_epochs` returns it. "last" is the last hypothesis,
    "averaged" the mean of all, each counted for as long as it survived, and "survivor" the
    one that survived longest.
    """
    n_mistakes = len(survived) - 1
    if output == "last":
        return np.ones(n_mistakes)
    if output == "averaged":
        return np.cumsum(survived[:0:-1])[::-1] / survived.sum()
    return (np.arange(n_mistakes) < int(survived.argmax())).astype(float)


@dataclass(eq=False, repr=False)
class KernelPerceptron(KernelMixin, MarginClassifier):
    """Kernel perceptron.

    Its hypothesis is a sum of ``s_i k(x_i, x)`` over the mistakes i that it
    made, with signs s_i. On data that a unit vector of that space separates
    with margin gamma, it makes at most ``(R / gamma)^2`` mistakes in any
    number of passes, R the largest ``||phi(x)||``; otherwise, with D the root
    of the sum of squared hinge losses at margin gamma, one pass makes at most
    ``((R + D) / gamma)^2`` [1]_.

    There is no bias: use a kernel with a constant, such as
    ``Polynomial(offset=1)``, or add one.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        Name of a kernel, kernel object, or function ``k(X, Y)``;
        "precomputed" for Gram matrices.
    n_epochs : int, default 10
        Passes over the rows; training stops after one without mistake.
    output : {"averaged", "voted", "last", "survivor"}, default "averaged"
        Classifier made of the sequence of hypotheses: their mean
        (Cesa-Bianchi, Conconi and Gentile 2004) or their vote (Freund and
        Schapire 1999), each counted for the predictions that it survived; the
        last; or the one that survived longest. With "voted", a score is the
        weighted share of votes, from -1 to 1.
    multiclass : {"ovr", "ovo"}, default "ovr"
        One classifier for each class against the rest, or for each pair of
        classes, which vote.
    shuffle : bool, default True
        Go through the rows in a new random order in each pass.
    random_state : int, RandomState or None, default None
        Determines the orders.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    kernel_ : Kernel
        The kernel, its bandwidth set.
    support_ : ndarray of int, shape (n_support,)
        Rows on which some problem made a mistake.
    support_vectors_ : array or CSR matrix, shape (n_support, n_features_in_)
        These rows (their numbers with a precomputed kernel).
    dual_coef_ : ndarray, shape (n_problems, n_support)
        Coefficients of the final hypotheses; of the last ones for "voted".
    n_mistakes_ : ndarray of int, shape (n_problems,)
        Mistakes during training.
    n_epochs_ : int
        Passes that were run, the most of any problem.

    References
    ----------
    .. [1] Y. Freund and R. E. Schapire, "Large margin classification using the
       perceptron algorithm", Machine Learning 37 (1999), Theorems 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> KernelPerceptron("gaussian", random_state=0).fit(X, [0, 1, 1, 0]).predict(X)
    array([0, 1, 1, 0])
    """

    kernel: object = "gaussian"
    n_epochs: int = integer(10, least=1)
    output: str = choice("averaged", ("last", "averaged", "voted", "survivor"))
    multiclass: str = choice("ovr", SCHEMES)
    shuffle: bool = True
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X, codes) -> None:
        self.kernel_ = resolve_kernel(self.kernel).resolve(X)
        rng = check_random_state(self.random_state)
        problems = []
        for rows, signs in binary_problems(codes, len(self.classes_), self.multiclass):
            # one kernel object for all problems: rows are chosen by the order
            all_signs = np.zeros(X.shape[0])
            all_signs[rows] = signs

            def order_of(_, rows=rows):
                return rng.permutation(rows) if self.shuffle else rows

            mistakes, survived, n_epochs = perceptron_epochs(
                X, all_signs, self.kernel_, self.n_epochs, order_of
            )
            problems.append((mistakes, all_signs[mistakes], survived, n_epochs))
        self.support_ = np.unique(np.concatenate([mistakes for mistakes, *_ in problems]))
        self.support_vectors_ = self.kernel_.take(X, self.support_)
        output = "last" if self.output == "voted" else self.output
        self.dual_coef_ = np.zeros((len(problems), len(self.support_)))
        self._votes = []
        for coef, (mistakes, signs, survived, _) in zip(self.dual_coef_, problems, strict=True):
            places = np.searchsorted(self.support_, mistakes)
            np.add.at(coef, places, signs * weights_of_mistakes(survived, output))
            if self.output == "voted":
                self._votes.append((places, signs, survived / survived.sum()))
        self.n_mistakes_ = np.array([len(mistakes) for mistakes, *_ in problems])
        self.n_epochs_ = max(n_epochs for *_, n_epochs in problems)

    def _margins(self, X) -> np.ndarray:
        centres, no_bias = self.support_vectors_, np.zeros(len(self.dual_coef_))
        if self.output != "voted":
            return kernel_sums(self.kernel_, X, centres, self.dual_coef_, no_bias)
        margins = np.tile(no_bias, (X.shape[0], 1))
        width = max(len(places) for places, *_ in self._votes)
        for rows, K in gram_blocks(self.kernel_, X, centres, width):
            for problem, (places, signs, shares) in enumerate(self._votes):
                hypotheses = np.cumsum(K[:, places] * signs, axis=1)
                # the zero hypothesis in the beginning votes for the positive class
                votes = np.where(hypotheses >= 0, 1.0, -1.0) @ shares[1:]
                margins[rows, problem] = shares[0] + votes
        return margins
