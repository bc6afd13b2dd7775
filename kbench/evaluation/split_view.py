"""Rows and labels of one split: what a computation may see, and what is kept back."""

from dataclasses import dataclass, field

import numpy as np

from kbench.errors import DatasetError
from kbench.evaluation.lazy_rows import Matrix, is_sparse
from kbench.evaluation.splits import inner_parts, make_split, rare_classes, row_groups
from kbench.evaluation.targets import Scale, Truth
from kbench.messages import explain_missing
from kbench.records import Dataset, Protocol, Split, TaskType


@dataclass(frozen=True)
class Visible:
    """All that the computation of a split may see of it, besides the inputs.

    Parameters
    ----------
    index : int
        Number of the split.
    train, test, unlabeled : ndarray of int
        Row numbers.
    y_train : ndarray, shape (n_train,)
        Labels or targets of the training rows.
    weight_train : ndarray of float, shape (n_train,), optional
        Weights of the training rows.
    """

    index: int
    train: np.ndarray
    test: np.ndarray
    unlabeled: np.ndarray
    y_train: np.ndarray
    weight_train: np.ndarray | None = None
    parts_train: np.ndarray | None = None


@dataclass(frozen=True)
class Assignment:
    """One split of one dataset, with the labels that score it.

    Parameters
    ----------
    visible : Visible
        What the computation may know.
    y_test : ndarray, shape (n_test,)
        Labels or targets of the test rows; a computation gets them after its
        predictions are handed over.
    digest : str
        Hash of the split.
    task : {"classification", "regression"}
    seen : ndarray of bool, shape (n_test,), optional
        Whether a test row equals a training row; None for a Gram matrix.
    notes : list of str
        What a reader must know of the split.
    weight_test : ndarray of float, shape (n_test,), optional
        Weights of the test rows.
    """

    visible: Visible
    y_test: np.ndarray
    digest: str
    task: TaskType = "classification"
    seen: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)
    weight_test: np.ndarray | None = None

    @property
    def truth(self) -> Truth:
        """What predictions of the test set are scored against."""
        training = self.visible.y_train, self.visible.weight_train
        return Truth.make(self.y_test, self.weight_test, self.task, *training)


def assign(
    dataset: Dataset, protocol: Protocol, index: int, groups: np.ndarray | None = None
) -> Assignment:
    """Divide the rows and the labels of a dataset.

    `groups` are the `row_groups` of the inputs, for a caller that keeps them for
    several splits.

    Raises DatasetError if the data cannot be split, or have missing values
    for which the protocol has no treatment.
    """
    y = np.asarray(dataset.y)
    if protocol.missing == "error" and not dataset.pairwise:
        refuse_missing(dataset)
    rows = make_split(dataset, protocol, index)
    train, test, unlabeled = rows.train, rows.test, rows.unlabeled
    if protocol.missing == "drop_rows" and not dataset.pairwise:
        holes = missing_rows(dataset.X)
        train, test, unlabeled = (part[~holes[part]] for part in (train, test, unlabeled))
    weight = dataset.sample_weight
    assignment = Assignment(
        Visible(
            index,
            train,
            test,
            unlabeled,
            y[train],
            None if weight is None else weight[train],
            inner_parts(dataset, protocol, train),
        ),
        y[test],
        rows.digest,
        dataset.task,
        _find_seen(dataset, rows, test, groups),
        _notes(dataset, y[train], y[test], protocol),
        None if weight is None else weight[test],
    )
    for part, of_part in (
        ("training", assignment.visible.weight_train),
        ("test", assignment.weight_test),
    ):
        if of_part is not None and not of_part.any():
            raise DatasetError(f"{dataset.name}: all weights of the {part} set are 0")
    Scale.fit(y[train], dataset.task, assignment.visible.weight_train)
    return assignment


def _find_seen(
    dataset: Dataset, rows: Split, test: np.ndarray, groups: np.ndarray | None
) -> np.ndarray | None:
    if dataset.pairwise:
        return None
    groups = row_groups(dataset.X) if groups is None else groups
    return np.isin(groups[test], groups[np.concatenate([rows.train, rows.unlabeled])])


def _notes(
    dataset: Dataset, y_train: np.ndarray, y_test: np.ndarray, protocol: Protocol
) -> list[str]:
    """List classes that are too rare for the folds or have no training row."""
    notes: list[str] = []
    if dataset.task == "regression":
        return notes
    if protocol.cv in ("stratified", "group_duplicates"):
        rare = rare_classes(np.asarray(dataset.y), protocol.n_folds)
        if rare:
            names = ", ".join(dataset.target_names[k] for k in rare[:5])
            notes.append(f"fewer than {protocol.n_folds} rows of class {names}")
    absent = np.setdiff1d(y_test, y_train)
    if len(absent):
        names = ", ".join(dataset.target_names[k] for k in absent[:5])
        notes.append(f"no training row of class {names}, which is in the test set")
    return notes


def missing_rows(X: Matrix) -> np.ndarray:
    """Mask of the rows that have a missing value, shape (n_samples,)."""
    if is_sparse(X):
        holes = np.add.reduceat(np.append(np.isnan(X.data), False), X.indptr[:-1])
        return np.asarray((holes > 0) & (np.diff(X.indptr) > 0))
    return np.asarray(np.isnan(X).any(axis=1))


def refuse_missing(dataset: Dataset) -> None:
    """Raise a DatasetError that names the columns with missing values, and the choices."""
    X = dataset.X
    if is_sparse(X):
        counts = np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1])
    else:
        counts = np.isnan(X).sum(axis=0)
    columns = np.flatnonzero(counts).tolist()
    if missing := [(dataset.feature_names[j], int(counts[j])) for j in columns]:
        raise DatasetError(explain_missing(dataset.name, missing, int(counts.sum())))
