"""Splits: row indices of every protocol.

Split `i` depends only on the protocol, the data and `i`: splits can be added
later, and adding a method changes none.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np

from kbench.errors import DatasetError
from kbench.evaluation.lazy_rows import Matrix, is_sparse, row_hashes
from kbench.evaluation.sizes import count, holdout_problem, holdout_sizes
from kbench.records import Dataset, Protocol, Split, TaskType

EXACT_ROWS = 200_000
"""Rows up to which equal ones are found by their values, beyond by 64-bit hashes."""


def derive_seed(*parts: object) -> int:
    """Return a 32-bit seed that depends on all parts and on nothing else.

    One call per axis (data, split, map, learner): adding a method changes no other number.

    >>> derive_seed(0, "iris", 3) == derive_seed(0, "iris", 3)
    True
    >>> derive_seed(0, "iris", 3) == derive_seed(0, "iris", 4)
    False
    """
    joined = "\x1f".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(joined.encode()).digest()[:4], "little")


def make_split(dataset: Dataset, protocol: Protocol, index: int) -> Split:
    """Return one split of a dataset, numbered from 0.

    Of the protocol `cv`, the sizes, `n_folds` and `seed` matter. Beyond `n_folds`, K-fold is
    repeated with another seed. DatasetError is raised for too few rows, or no such official split.
    """
    y = strata(np.asarray(dataset.y), dataset.task)
    unlabeled = np.empty(0, dtype=np.intp)
    if protocol.cv == "official":
        if index >= len(dataset.splits):
            raise DatasetError(
                f"{dataset.name} has {len(dataset.splits)} official splits; "
                f"split {index} was requested"
            )
        official = dataset.splits[index]
        train, test, unlabeled = official.train, official.test, official.unlabeled
        seed = derive_seed(protocol.seed, "official", dataset.checksum, index)
    elif protocol.cv == "holdout":
        seed = derive_seed(protocol.seed, "holdout", dataset.checksum, index)
        train, test = _holdout(y, protocol, np.random.default_rng(seed), dataset.name)
    elif protocol.cv == "ordered":
        if index:
            raise DatasetError(
                f'cv = "ordered" is one split of {dataset.name}; split {index} was requested'
            )
        seed = derive_seed(protocol.seed, "ordered", dataset.checksum)
        n_train, n_test = _holdout_sizes(len(y), protocol, dataset.name)
        train, test = np.arange(n_train), np.arange(len(y) - n_test, len(y))
    else:
        repeat, fold = divmod(index, protocol.n_folds)
        seed = derive_seed(protocol.seed, protocol.cv, dataset.checksum, repeat)
        groups = row_groups(dataset.X) if protocol.cv == "group_duplicates" else None
        train, test = stratified_folds(y, protocol.n_folds, seed, groups)[fold]
    if protocol.max_train_rows is not None:
        train = sample(train, y, protocol.max_train_rows, derive_seed(seed, "train_rows"))
    if protocol.unlabeled_size:
        rng = np.random.default_rng(derive_seed(seed, "unlabelled"))
        n_unlabelled = count(protocol.unlabeled_size, len(train))
        if n_unlabelled >= len(train):
            raise DatasetError(
                f"{dataset.name}: unlabeled_size {protocol.unlabeled_size} leaves none of the "
                f"{len(train)} training rows"
            )
        order = rng.permutation(len(train))
        unlabeled = np.union1d(unlabeled, train[order[:n_unlabelled]])
        train = np.sort(train[order[n_unlabelled:]])
    return Split(index, train, test, unlabeled)


def span(rows: np.ndarray) -> slice | None:
    """Return consecutive rising row numbers as a slice; other rows as None.

    >>> span(np.array([3, 4, 5])), span(np.array([3, 5, 4]))
    (slice(3, 6, None), None)
    """
    n = len(rows)
    if n and rows[-1] - rows[0] == n - 1 and np.all(rows[1:] > rows[:-1]):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return None


def strata(y: np.ndarray, task: TaskType) -> np.ndarray:
    """Return the classes whose shares are kept equal in folds; one for regression."""
    return y if task == "classification" else np.zeros(len(y), dtype=np.int64)


Fold = tuple[np.ndarray, np.ndarray]
"""Training and test rows."""


@dataclass(frozen=True, eq=False)
class Folds(Sequence[Fold]):
    """Training and test rows of each fold, which are made when they are asked for.

    Of 10 million rows the lists of five folds would have 400 MiB.
    """

    fold_of: np.ndarray
    """Number of the fold in whose test set a row is, shape (n_rows,)."""

    n_folds: int

    def __len__(self) -> int:
        """Return the number of folds."""
        return self.n_folds

    @overload
    def __getitem__(self, fold: int) -> Fold: ...

    @overload
    def __getitem__(self, fold: slice) -> Sequence[Fold]: ...

    def __getitem__(self, fold: int | slice) -> Fold | Sequence[Fold]:
        """Return the rows of a fold, or of several."""
        numbers = range(self.n_folds)[fold]
        if isinstance(numbers, range):
            return [self[number] for number in numbers]
        is_test = self.fold_of == numbers
        return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def stratified_folds(
    y: np.ndarray, n_folds: int, seed: int, groups: np.ndarray | None = None
) -> Folds:
    """Return the training and test rows of a stratified K-fold.

    A class with fewer members than folds is spread over as many folds as it has members, and every
    fold keeps the others in training; the caller warns. Rows of one group stay together. Raises
    DatasetError if there are fewer rows (or groups) than folds.

    >>> import numpy as np
    >>> [test.tolist() for _, test in stratified_folds(np.array([0, 0, 1, 1]), 2, seed=0)]
    [[0, 2], [1, 3]]
    """
    n_units = len(y) if groups is None else len(np.unique(groups))
    if n_units < n_folds:
        noun = "rows" if groups is None else "different rows"
        raise DatasetError(f"{n_folds} folds need at least as many {noun}, got {n_units}")
    if groups is not None:
        labels, numbers = (each.astype(np.int64).tobytes() for each in (y, groups))
        return Folds(_folds_of_groups(labels, numbers, n_folds, seed), n_folds)
    fold_of = np.empty(len(y), dtype=np.min_scalar_type(n_folds))
    # scikit-learn's StratifiedKFold rejects data whose classes are all smaller than n_folds.
    # Dealing rows to folds in turn, class by class, always works; sizes differ by one at most.
    shuffled = np.random.default_rng(seed).permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    fold_of[by_class] = np.arange(len(y), dtype=np.int64) % n_folds
    return Folds(fold_of, n_folds)


@lru_cache(maxsize=1)  # thousands of groups take seconds, and all folds are made at once
def _folds_of_groups(y: bytes, groups: bytes, n_folds: int, seed: int) -> np.ndarray:
    from sklearn.model_selection import StratifiedGroupKFold

    labels, numbers = (np.frombuffer(each, dtype=np.int64) for each in (y, groups))
    fold_of = np.empty(len(labels), dtype=np.min_scalar_type(n_folds))
    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    for fold, (_, test) in enumerate(splitter.split(labels, labels, numbers)):
        fold_of[test] = fold
    return fold_of


def shuffle_stratified(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Shuffle all rows so that any consecutive ones hold their share of every class."""
    # Every class is spread evenly over [0, 1); the jitter decides which class gets the odd row.
    shuffled = rng.permutation(len(y))
    place = np.empty(len(y))
    for label in np.unique(y):
        members = shuffled[y[shuffled] == label]
        place[members] = (np.arange(len(members)) + rng.random()) / len(members)
    return shuffled[np.argsort(place[shuffled], kind="stable")]


def sample(rows: np.ndarray, y: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return `n` of some rows, stratified; each class has one, if there is room for all.

    The sample of a larger `n` contains that of a smaller one. `y` has the classes of all
    rows of the data.

    >>> import numpy as np
    >>> y = np.array([0, 0, 0, 0, 0, 1])
    >>> [sample(np.arange(6), y, n, seed=1).tolist() for n in (2, 3, 9)]
    [[4, 5], [0, 4, 5], [0, 1, 2, 3, 4, 5]]
    """
    if n >= len(rows):
        return rows
    order = shuffle_stratified(y[rows], np.random.default_rng(seed))
    first = np.unique(y[rows][order], return_index=True)[1]
    return np.sort(rows[np.concatenate([order[first], np.delete(order, first)])[:n]])


def rare_classes(y: np.ndarray, n_folds: int) -> list[int]:
    """Return the classes with fewer members than folds."""
    labels, counts = np.unique(y, return_counts=True)
    return [int(k) for k in labels[counts < n_folds]]


def row_groups(X: Matrix) -> np.ndarray:
    """Number the distinct rows of a dense or CSR matrix; equal rows get equal numbers.

    NaN equals NaN, and -0.0 equals 0.0. More than `EXACT_ROWS` rows are compared by
    `row_hashes`, which needs no copy of them.

    >>> import numpy as np
    >>> row_groups(np.array([[1., 2], [0, 0], [1, 2]]))
    array([1, 0, 1])
    """
    if X.shape[0] > EXACT_ROWS:
        return np.asarray(np.unique(row_hashes(X), return_inverse=True)[1])
    if is_sparse(X):
        X = X.sorted_indices()
        X.eliminate_zeros()
        data = X.data + 0.0
        keys = [
            X.indices[a:b].tobytes() + data[a:b].tobytes()
            for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
        ]
        _, numbers = np.unique(np.array(keys, dtype=object), return_inverse=True)
        return np.asarray(numbers).reshape(-1)
    # adding 0.0 turns -0.0 into 0.0; one NaN pattern stands for all
    rows = np.ascontiguousarray(X) + 0.0
    if rows.dtype.kind == "f":
        rows[np.isnan(rows)] = np.nan
    if not rows.shape[1]:
        return np.zeros(len(rows), dtype=np.intp)
    whole_rows = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)
    _, numbers = np.unique(whole_rows, return_inverse=True)
    return np.asarray(numbers).reshape(-1)


def _holdout_sizes(n: int, protocol: Protocol, name: str) -> tuple[int, int]:
    """Return the rows of the training and of the test set."""
    if problem := holdout_problem(n, protocol, name):
        raise DatasetError(problem)
    return holdout_sizes(n, protocol)


def _holdout(
    y: np.ndarray, protocol: Protocol, rng: np.random.Generator, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Draw a holdout whose two parts are stratified as evenly as possible."""
    n_train, n_test = _holdout_sizes(len(y), protocol, name)
    order = shuffle_stratified(y, rng)
    test, train = order[:n_test], order[n_test : n_test + n_train]
    return np.sort(train), np.sort(test)


def inner_parts(dataset: Dataset, protocol: Protocol, rows: np.ndarray) -> np.ndarray | None:
    """Return the number of the part of each of some rows; None if folds are random.

    Where each row is in the test set of one official split, these are the parts: rows of a
    group are in one. Of one split, or several by order, they are the places of the rows in the
    first training set, which `make_folds` divides into blocks; its test rows come last.

    Raises DatasetError if the test sets of other splits overlap, or leave rows out.
    """
    if protocol.inner_cv == "random":
        return None
    n, splits = len(dataset.y), dataset.splits
    trains = [split.train for split in splits]
    nested = [np.array_equal(train, trains[0][: len(train)]) for train in trains]
    if len(set(map(len, trains))) == sum(nested) == len(splits) > 0:
        place = np.full(n, n, dtype=np.int64)
        place[trains[0]] = np.arange(len(trains[0]))
        return np.argsort(np.argsort(place[rows], kind="stable"), kind="stable")
    part = np.full(n, -1, dtype=np.int64)
    for split in splits:
        part[split.test] = split.index
    if sum(len(split.test) for split in splits) != n or (part < 0).any():
        raise DatasetError(
            f'{dataset.name}: inner_cv = "official" needs one official split, or splits whose '
            "test sets have each row exactly once"
        )
    return np.asarray(part[rows])


def make_folds(parts: np.ndarray, n_folds: int) -> Folds:
    """Return folds of about equal size, none of which divides a part.

    Parts of one row each are put together in their order.

    >>> [test.tolist() for _, test in make_folds(np.array([7, 7, 2, 4, 4, 4, 2]), 2)]
    [[3, 4, 5], [0, 1, 2, 6]]
    >>> [test.tolist() for _, test in make_folds(np.array([3, 2, 1, 0]), 2)]
    [[2, 3], [0, 1]]
    """
    names, place, counts = np.unique(parts, return_inverse=True, return_counts=True)
    n_folds = min(n_folds, len(names))
    if n_folds < 2:
        raise DatasetError('inner_cv = "official" needs two parts of the training rows')
    if len(names) == len(parts):
        fold_of_part = np.arange(len(names)) * n_folds // len(names)
    else:
        fold_of_part = np.empty(len(names), dtype=np.int64)
        sizes = np.zeros(n_folds, dtype=np.int64)
        for largest in np.argsort(-counts, kind="stable"):
            fold_of_part[largest] = sizes.argmin()
            sizes[sizes.argmin()] += counts[largest]
    return Folds(fold_of_part[place].astype(np.min_scalar_type(n_folds)), n_folds)
