"""Datasets, their facts, and splits of their rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from kbench.records._components import TaskType
from kbench.records.canonical import AsJson

if TYPE_CHECKING:
    import numpy as np


# Kinds of the columns of a dataset.
FEATURE_KINDS = ("numeric", "onehot", "target_encoded")

# Indices that are converted and hashed together.
HASHED = 1 << 17


def _no_rows() -> np.ndarray:
    import numpy as np

    return np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Split:
    """Row indices of one split of a dataset.

    Parameters
    ----------
    index : int
        Number of the split, from 0.
    train, test : ndarray of int, shape (n,)
        Rows to fit on and rows to score on; disjoint.
    unlabeled : ndarray of int, shape (n,), default empty
        Rows whose labels must not be used, taken out of the training set:
        landmarks are drawn from them.
    """

    index: int
    train: np.ndarray
    test: np.ndarray
    unlabeled: np.ndarray = field(default_factory=_no_rows)

    @property
    def digest(self) -> str:
        """Hash of the row indices, logged with every run (16 hex digits)."""
        import numpy as np

        sha = hashlib.sha256()
        for rows in (self.train, self.test, self.unlabeled):
            sha.update(np.asarray([len(rows)], dtype="<i8").tobytes())
            sha.update(np.asarray(rows, dtype="<i8").tobytes())
        return sha.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A classification or regression problem in kbench's canonical form.

    Parameters
    ----------
    name : str
        Name of the data, without the parameters that selected them.
    X : ndarray or scipy CSR matrix, shape (n_samples, n_features)
        Inputs, float64 (float32 where the source asks for it). Missing values
        are NaN: the protocol decides what to do with them, inside the split.
        With `pairwise`, a Gram matrix, shape (n_samples, n_samples).
    y : ndarray of int or float, shape (n_samples,)
        Labels 0..k-1, or targets in float64.
    version : str, default "1"
        Version of the data at their source.
    feature_names : sequence of str, optional
        One name per column; ``x0, x1, ...`` by default.
    feature_kinds : sequence of {"numeric", "onehot", "target_encoded"}, optional
        One kind per column; an indicator column of a one-hot encoding is "onehot", a
        column with numbers of categories, which each fit encodes by the targets, is
        "target_encoded". "numeric" by default.
    target_names : sequence of str, optional
        The label that each of 0..k-1 stands for; empty for regression.
    checksum : str, optional
        Hash of the content; by default computed when it is first needed.
    source : str, optional
        Human-readable provenance: a citation or URL.
    row_ids : ndarray of int, shape (n_samples,), optional
        Row numbers at the source, where rows were dropped or reordered.
    dataset_family : str, optional
        Datasets of one family are averaged before any test over datasets
        (iris and its one-against-rest tasks). The name by default.
    role : {"evaluation", "development"}, default "evaluation"
        Defaults are chosen on development sets, claims are made on evaluation
        sets.
    splits : sequence of Split, optional
        Splits that come with the data (an OpenML task), used by the protocol
        ``cv = "official"``.
    pairwise : bool, default False
        `X` is a Gram matrix: sliced in rows and columns, never preprocessed.
    task : {"classification", "regression"}, optional
        By default regression if `y` has a value that is not an integer.
    sample_weight : ndarray of float, shape (n_samples,), optional
        Weights of the rows, for learners and metrics. Learners that take no
        weights cannot be combined with this dataset.
    encoder : TableColumns, optional
        What has made `X` of the columns of a user's table. It is not stored in the data
        cache; an exported model takes such tables by it.

    Examples
    --------
    >>> import numpy as np
    >>> data = Dataset("xor", X=np.array([[0., 0], [0, 1], [1, 0], [1, 1]]),
    ...                y=np.array([0, 1, 1, 0]))
    >>> data.feature_names, data.target_names, data.dataset_family
    (('x0', 'x1'), ('0', '1'), 'xor')
    >>> Dataset("line", X=np.array([[0.0], [1.0]]), y=np.array([0.5, 1.0])).task
    'regression'
    """

    name: str
    X: Any
    y: np.ndarray
    version: str = "1"
    feature_names: Sequence[str] = ()
    feature_kinds: Sequence[str] = ()
    target_names: Sequence[str] = ()
    checksum: str = field(default_factory=str)
    source: str = ""
    row_ids: np.ndarray | None = None
    dataset_family: str = ""
    role: Literal["development", "evaluation"] = "evaluation"
    splits: Sequence[Split] = ()
    pairwise: bool = False
    task: TaskType = ""  # type: ignore[assignment]  # found below where it is not given
    sample_weight: np.ndarray | None = None
    encoder: Any = None

    def __post_init__(self) -> None:
        n_features = self.X.shape[1] if len(self.X.shape) == 2 else 0
        declared: str = self.task
        task = declared or _infer_task(self.y)
        n_classes = int(self.y.max()) + 1 if task == "classification" and len(self.y) else 0

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("feature_names", tuple(self.feature_names) or tuple(f"x{j}" for j in range(n_features)))
        put("feature_kinds", tuple(self.feature_kinds) or ("numeric",) * n_features)
        put("target_names", tuple(self.target_names) or tuple(str(k) for k in range(n_classes)))
        put("splits", tuple(self.splits))
        put("task", task)
        put("dataset_family", self.dataset_family or self.name)
        if not self.checksum:
            object.__delattr__(self, "checksum")

    def __getattr__(self, name: str) -> str:
        # where no checksum is given: it reads all data, and is computed once it is needed
        if name != "checksum":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        checksum = content_checksum(self)
        object.__setattr__(self, "checksum", checksum)
        return checksum


def _infer_task(y: np.ndarray) -> TaskType:
    """Return the task of a dataset that does not name it."""
    import numpy as np

    values = np.asarray(y)
    if values.dtype.kind != "f":
        return "classification"
    is_whole = np.isfinite(values).all() and np.array_equal(values, np.floor(values))
    return "classification" if is_whole else "regression"


@dataclass(frozen=True)
class Inputs:
    """The inputs of a dataset without its labels.

    `checksum` is that of the whole dataset, on which seeds depend. `kinds` are those of the
    columns; `X` is a Gram matrix if it is `pairwise`.
    """

    X: Any
    checksum: str
    kinds: Sequence[str] = ()
    pairwise: bool = False
    task: TaskType = "classification"

    @classmethod
    def make(cls, dataset: Dataset) -> Self:
        """Return the inputs of a dataset."""
        kinds = tuple(dataset.feature_kinds)
        return cls(dataset.X, dataset.checksum, kinds, dataset.pairwise, dataset.task)


@dataclass(frozen=True)
class DatasetFacts(AsJson):
    """Facts of a dataset that are available without reading its arrays.

    Fields that a `Dataset` has are those of the dataset. `n_samples`, `n_features` and
    `n_classes` are those of its canonical form; `class_counts` has the rows of each class.
    `missing` has the missing values by attribute, of those with any: the indicator columns
    ``colour=red`` and ``colour=blue`` are one attribute. `duplicate_fraction` is the share
    of the rows that equal another row. `n_splits` come with the data, and `n_bytes` is
    the size of the arrays in the data cache. `is_weighted` says whether rows have
    weights; `target_mean` and `target_sd` are those of the targets of a regression task.
    """

    checksum: str
    name: str = ""
    task: TaskType = "classification"
    is_weighted: bool = False
    target_mean: float | None = None
    target_sd: float | None = None
    version: str = "1"
    source: str = ""
    dataset_family: str = ""
    role: str = "evaluation"
    pairwise: bool = False
    sparse: bool = False
    n_samples: int = 0
    n_features: int = 0
    n_classes: int = 0
    class_counts: tuple[int, ...] = ()
    n_missing: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    duplicate_fraction: float = 0.0
    n_splits: int = 0
    n_bytes: int = 0
    feature_names: tuple[str, ...] = ()
    feature_kinds: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()


def content_checksum(dataset: Dataset) -> str:
    """Return the SHA-256 of everything in a dataset that can change a number (hex).

    Names of columns and classes, the source and the role are left out: they
    are only shown.
    """
    import numpy as np

    sha = hashlib.sha256()

    def add(array: object) -> None:
        array = np.ascontiguousarray(array)
        # dtype and shape are hashed too: b"\0" * 8 is a float and an int
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(array.data if array.size else b"")

    if hasattr(dataset.X, "indptr"):
        sha.update(f"csr{dataset.X.shape}".encode())
        add(dataset.X.data)
        for part in (dataset.X.indices, dataset.X.indptr):
            # scipy picks the width of the indices by size; the content is the same
            sha.update(f"{np.dtype(np.int64).str}{part.shape}".encode())
            for start in range(0, len(part), HASHED):
                sha.update(part[start : start + HASHED].astype(np.int64).data)
    else:
        add(dataset.X)
    y = np.asarray(dataset.y)
    if y.dtype.kind in "fbiu":  # else the check of the dataset rejects it
        y = y.astype(np.float64 if dataset.task == "regression" else np.int64)
    add(y)
    if dataset.sample_weight is not None:
        sha.update(b"sample_weight")
        add(np.asarray(dataset.sample_weight, dtype=np.float64))
    sha.update(b"pairwise" if dataset.pairwise else b"")
    for split in dataset.splits:
        sha.update(split.digest.encode())
    return sha.hexdigest()
