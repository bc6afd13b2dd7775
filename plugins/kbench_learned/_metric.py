"""From average gradient outer products to linear maps of the inputs, round by round."""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh
from sklearn.base import clone

from kbench.arrays import Array, like, take, to_numpy
from kbench_learned._ridge import Fold, Path, blocks, ridge_path


@dataclass(frozen=True)
class Form:
    """What a learned matrix may be: "full", "diagonal" or "low_rank".

    The last is "full" while it is learned: a direction without weight could not come back.
    """

    name: str
    regularization: float  # this multiple of its mean is added to a positive diagonal
    rank: int  # directions that are left of a "low_rank" matrix after learning
    varies: np.ndarray  # columns that are not constant; others have no weight
    groups: list[np.ndarray]  # columns that share a weight in a "diagonal" matrix

    @property
    def truncates(self) -> bool:
        """Whether directions are dropped after learning."""
        return self.name == "low_rank" and self.rank < len(self.varies)

    def of(self, matrix: np.ndarray) -> np.ndarray:
        """Return an average gradient outer product in this form."""
        matrix = np.where(np.outer(self.varies, self.varies), matrix, 0.0)
        return read_diagonal(matrix, self.groups) if self.name == "diagonal" else matrix

    def root(self, matrix: np.ndarray) -> np.ndarray:
        """Return the linear map of the inputs in which the next round is fitted."""
        return root(matrix, self.regularization)

    def final(self, matrix: np.ndarray) -> np.ndarray:
        """Return the linear map that is used where learning ends with a matrix."""
        return self.root(matrix) if not self.truncates else low_rank_root(matrix, self.rank)


def root(matrix: np.ndarray, regularization: float) -> np.ndarray:
    """Return the symmetric A with ``A A = M / max M`` of a regularised M.

    A column of zeros stays without weight.

    Examples
    --------
    >>> root(np.diag([4.0, 1.0, 0.0]), 0.0)
    array([[1. , 0. , 0. ],
           [0. , 0.5, 0. ],
           [0. , 0. , 0. ]])
    """
    diagonal = np.diag(matrix)
    used = diagonal > 0
    M = matrix / diagonal.max()
    M = M + np.diag(np.where(used, regularization * np.diag(M)[used].mean(), 0.0))
    M /= np.diag(M).max()
    if np.count_nonzero(M) == np.count_nonzero(np.diag(M)):
        return np.diag(np.sqrt(np.diag(M)))
    values, vectors = eigh(M)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def low_rank_root(matrix: np.ndarray, rank: int) -> np.ndarray:
    """Return A, (n_features, rank), with ``A A'`` the best approximation of M / max M.

    Examples
    --------
    >>> low_rank_root(np.diag([4.0, 1.0, 0.0]), 1)
    array([[1.],
           [0.],
           [0.]])
    """
    values, vectors = eigh(matrix / np.diag(matrix).max())
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    # of each direction, the largest entry is positive: a sign decides nothing
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(rank)]
    return vectors * np.where(largest < 0, -1.0, 1.0) * np.sqrt(np.maximum(values, 0.0))


def read_diagonal(matrix: np.ndarray, groups: list[np.ndarray]) -> np.ndarray:
    """Return the diagonal part of a matrix; columns of a group share the mean of theirs.

    Examples
    --------
    >>> read_diagonal(np.array([[3.0, 9.0], [9.0, 1.0]]), [np.array([0, 1])])
    array([[2., 0.],
           [0., 2.]])
    """
    diagonal = np.diag(matrix).copy()
    for group in groups:
        used = group[diagonal[group] > 0]
        if len(used):
            diagonal[used] = diagonal[used].mean()
    return np.diag(diagonal)


def one_hot_groups(X: np.ndarray) -> list[np.ndarray]:
    """Find runs of columns of which exactly one has its upper value in each row.

    They are the indicators of one nominal attribute, whatever their scale. Columns of two
    values count, and runs of at least three: two complementary columns may be anything.

    Examples
    --------
    >>> X = np.array([[1, 0, 0, 5.0], [0, 2, 0, 6.0], [0, 0, 1, 7.0]])
    >>> one_hot_groups(X)
    [array([0, 1, 2])]
    """
    low, high = X.min(axis=0), X.max(axis=0)
    on = high == X
    binary = (high > low) & (on | (low == X)).all(axis=0)
    groups, start, d = [], 0, X.shape[1]
    while start < d:
        seen, stop = np.zeros(len(X), dtype=bool), start
        while stop < d and binary[stop] and not (seen & on[:, stop]).any():
            seen |= on[:, stop]
            stop += 1
            if seen.all():
                break
        if seen.all() and stop - start >= 3:
            groups.append(np.arange(start, stop))
            start = stop
        else:
            start += 1
    return groups


_PROGRESS = 0.005
"""An error that falls by a smaller part does not keep learning going."""


@dataclass
class Trajectory:
    """What the rounds learned.

    `losses` are squared errors of the held-out rows after 0, 1, ... rounds, means over the
    outputs, and `matrices` those of each round, the first being the identity. Learning ended
    because all gradients were 0 if it `lost_rank`.
    """

    losses: list[np.ndarray] = field(default_factory=list)
    matrices: list[np.ndarray] = field(default_factory=list)
    lost_rank: bool = False

    @property
    def errors(self) -> np.ndarray:
        """Root mean squared error of held-out rows after 0, 1, ... rounds."""
        return np.sqrt([losses.mean() for losses in self.losses])

    @property
    def best(self) -> int:
        """The round with the smallest error; the first of equal ones."""
        return int(np.argmin(self.errors)) if self.losses else 0

    @property
    def without_progress(self) -> int:
        """Number of rounds since one had an error clearly below all before it."""
        reached, at = np.inf, 0
        for number, error in enumerate(self.errors):
            if error < (1 - _PROGRESS) * reached:
                reached, at = error, number
        return len(self.losses) - 1 - at


@dataclass(frozen=True)
class Fitted:
    """A base map with ridge functions of its features, and their errors on held-out rows."""

    base: object
    path: Path
    transform: np.ndarray
    losses: np.ndarray
    width: int

    def outer_product(self, X: np.ndarray, penalty: int) -> np.ndarray:
        """Average the outer products of the gradients in x over all rows, in blocks."""
        coef, transform = self.path.coef(penalty), self.transform
        inner = like(np.zeros((transform.shape[1],) * 2), X)
        for part in blocks(np.arange(X.shape[0]), self.width):
            gradients = self.base.input_gradient(image(X, part, transform), coef)
            for i in range(gradients.shape[0]):
                inner += gradients[i, ...].T @ gradients[i, ...]
        # the chain rule: gradients in x are the transform times those in its image
        return transform @ (to_numpy(inner) / X.shape[0]) @ transform.T


def image(X: Array, rows: np.ndarray, transform: np.ndarray) -> Array:
    """Transform some rows, in the namespace of `X`; the transform is an array of numpy."""
    return take(X, rows) @ like(transform, X)


def fits(
    base, X: np.ndarray, targets: np.ndarray, folds: list[Fold], transforms: list[np.ndarray]
) -> list[Fitted]:
    """Fit the base map and ridge regressions in each fold, to inputs times its transform."""
    pairs = zip(folds, transforms, strict=True)
    return [_fit(base, X, targets, fold, transform) for fold, transform in pairs]


def _fit(base, X: np.ndarray, targets: np.ndarray, fold: Fold, transform) -> Fitted:
    fitted = clone(base).fit(image(X, fold.fit, transform))

    def embed(rows: np.ndarray):
        return fitted.transform(image(X, rows, transform))

    width = embed(fold.fit[:1]).shape[1]
    path = ridge_path(embed, fold.fit, take(targets, fold.fit), width)
    parts = [path.losses(embed(part), take(targets, part)) for part in blocks(fold.held_out, width)]
    return Fitted(fitted, path, transform, np.hstack(parts), width)


def judge(fitted: list[Fitted]) -> tuple[int, np.ndarray]:
    """Return the penalty with the smallest error over all folds, and its loss of each row.

    One penalty for all folds: a choice in each would be noise where few rows are held out.
    """
    losses = np.hstack([each.losses for each in fitted])
    penalty = int(np.argmin(losses.mean(axis=1)))
    return penalty, losses[penalty]


def learn(
    base,
    X: np.ndarray,
    targets: np.ndarray,
    folds: list[Fold],
    rounds: int,
    patience: int,
    form: Form,
    first: list[Fitted],
) -> Trajectory:
    """Alternate fits and metrics in each fold, for at most this many rounds.

    `first` are the `fits` to the inputs as they are. The matrix of a round is the sum of those of
    the folds, each divided by its trace.
    """
    found = Trajectory(matrices=[np.eye(X.shape[1])])
    fitted = final = first
    while True:
        found.losses.append(judge(final)[1])
        if len(found.losses) - 1 == rounds or found.without_progress >= patience:
            return found
        penalty = judge(fitted)[0]
        matrices = [form.of(each.outer_product(X, penalty)) for each in fitted]
        total = sum((_scale(matrix) for matrix in matrices), np.zeros((X.shape[1],) * 2))
        if not total.any():
            found.lost_rank = True
            return found
        found.matrices.append(total)
        # a fold without slopes gets the matrix of the others
        matrices = [matrix if _scale(matrix).any() else total for matrix in matrices]
        fitted = fits(base, X, targets, folds, [form.root(matrix) for matrix in matrices])
        final = fitted
        if form.truncates:
            final = fits(base, X, targets, folds, [form.final(matrix) for matrix in matrices])


def _scale(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix divided by its trace, or zeros where that is not a positive number."""
    trace = np.trace(matrix)
    return matrix / trace if trace > 0 and np.isfinite(trace) else np.zeros_like(matrix)


_STANDARD_ERRORS = 2.33
"""A gain must be larger: that of a normal test of level 1 %.

The best of up to ten rounds is tested, and small sets hold out few rows: with levels of 5 and
10 %, one draw in twenty had an error that is 5 to 8 % larger than without learning.
"""


def choose(tried: list[Trajectory], n_fit: int) -> tuple[int, int]:
    """Choose a trajectory and its round by the errors of the same held-out rows.

    That is the smallest mean squared error, if absolute errors fall too: their mean must be smaller
    than that of the best fit without learning by more than 2.33 standard errors of the difference.
    Else it is the latter. A few rows with large squared errors decide a mean of squares, and their
    spread hides gains of all others; absolute errors are less sensitive to them. `n_fit` are the
    rows of a fit.
    """
    if not tried[0].losses:
        return 0, 0
    plain = min(range(len(tried)), key=lambda i: tried[i].errors[0])
    best = min(range(len(tried)), key=lambda i: tried[i].errors.min())
    number = tried[best].best
    gains = np.sqrt(tried[plain].losses[0]) - np.sqrt(tried[best].losses[number])
    if gains.mean() > _STANDARD_ERRORS * standard_error(gains, n_fit):
        return best, number
    return plain, 0


def standard_error(differences: np.ndarray, n_fit: int) -> float:
    """Return that of the mean of differences of held-out losses.

    Rows of a fold share a fit, and folds share rows. The variance of a mean over independent
    rows is therefore multiplied by 1 + n_held_out / n_fit (Nadeau and Bengio, Machine Learning 52,
    2003).
    """
    return float(differences.std() * np.sqrt(1 / len(differences) + 1 / n_fit))
