"""The records that plugins give to kbench and that its parts pass to each other.

All of them are frozen. This module imports numpy only, so that a plugin's
``__init__`` costs nothing; whatever is heavy is named as ``"module:name"`` and
resolved on first use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Make = Callable[..., Any] | str
"""A class, a factory, or ``"module:name"`` of one."""

Status = Literal["ok", "error", "timeout", "memory", "crash", "unavailable", "skipped"]

WORST_FIRST: tuple[Status, ...] = (
    "crash",
    "memory",
    "timeout",
    "error",
    "unavailable",
    "skipped",
    "ok",
)


# ---------------------------------------------------------------------------
# What plugins give
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Row indices of one split of a dataset.

    Parameters
    ----------
    index : int
        Number of the split, from 0.
    train, test : ndarray of int, shape (n,)
        Rows to fit on and rows to score on; disjoint.
    unlabelled : ndarray of int, shape (n,), default empty
        Rows whose labels must not be used, taken out of the training part:
        landmarks are drawn from them.
    """

    index: int
    train: np.ndarray
    test: np.ndarray
    unlabelled: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @property
    def digest(self) -> str:
        """Hash of the row indices, logged with every run (16 hex digits)."""
        sha = hashlib.sha256()
        for rows in (self.train, self.test, self.unlabelled):
            sha.update(np.asarray([len(rows)], dtype="<i8").tobytes())
            sha.update(np.asarray(rows, dtype="<i8").tobytes())
        return sha.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A classification problem in kbench's canonical form.

    Parameters
    ----------
    name : str
        Name of the data, without the parameters that selected them.
    X : ndarray or scipy CSR matrix, shape (n_samples, n_features)
        Inputs, float64 (float32 where the source asks for it). Missing values
        are NaN: what to do with them is the protocol's business, inside the
        split. With `pairwise`, a Gram matrix, shape (n_samples, n_samples).
    y : ndarray of int, shape (n_samples,)
        Labels 0..k-1.
    version : str, default "1"
        Version of the data at their source.
    feature_names : sequence of str, optional
        One name per column; ``x0, x1, ...`` by default.
    feature_kinds : sequence of {"numeric", "nominal"}, optional
        One kind per column; an indicator column of a one-hot encoding is
        "nominal". "numeric" by default.
    target_names : sequence of str, optional
        The label that each of 0..k-1 stands for.
    checksum : str, optional
        Hash of the content; computed where it is not given.
    source : str, optional
        Where the data came from, for people (a citation, an address).
    row_ids : ndarray of int, shape (n_samples,), optional
        Row numbers at the source, where rows were dropped or reordered.
    group : str, optional
        Datasets of one group are averaged before any test over datasets
        (iris and its one-against-rest tasks). The name by default.
    role : {"evaluation", "development"}, default "evaluation"
        Defaults are chosen on development sets, claims are made on evaluation
        sets.
    splits : sequence of Split, optional
        Splits that come with the data (an OpenML task), used by the protocol
        ``splits = "official"``.
    pairwise : bool, default False
        `X` is a Gram matrix: sliced in rows and columns, never preprocessed.

    Examples
    --------
    >>> import numpy as np
    >>> data = Dataset("xor", X=np.array([[0., 0], [0, 1], [1, 0], [1, 1]]),
    ...                y=np.array([0, 1, 1, 0]))
    >>> data.feature_names, data.target_names, data.group
    (('x0', 'x1'), ('0', '1'), 'xor')
    """

    name: str
    X: Any
    y: np.ndarray
    version: str = "1"
    feature_names: Sequence[str] = ()
    feature_kinds: Sequence[str] = ()
    target_names: Sequence[str] = ()
    checksum: str = ""
    source: str = ""
    row_ids: np.ndarray | None = None
    group: str = ""
    role: Literal["development", "evaluation"] = "evaluation"
    splits: Sequence[Split] = ()
    pairwise: bool = False

    def __post_init__(self) -> None:
        n_features = self.X.shape[1] if len(self.X.shape) == 2 else 0
        n_classes = int(self.y.max()) + 1 if len(self.y) else 0

        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        put("feature_names", tuple(self.feature_names) or tuple(f"x{j}" for j in range(n_features)))
        put("feature_kinds", tuple(self.feature_kinds) or ("numeric",) * n_features)
        put("target_names", tuple(self.target_names) or tuple(str(k) for k in range(n_classes)))
        put("splits", tuple(self.splits))
        put("group", self.group or self.name)
        put("checksum", self.checksum or content_checksum(self))


def content_checksum(dataset: Dataset) -> str:
    """SHA-256 of everything in a dataset that can change a number (hex).

    Names of columns and classes, the source and the role are left out: they
    are only shown.
    """
    sha = hashlib.sha256()

    def add(array: Any) -> None:
        array = np.ascontiguousarray(array)
        # dtype and shape are hashed too: b"\0" * 8 is a float and an int
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(array.data if array.size else b"")

    if hasattr(dataset.X, "indptr"):
        sha.update(f"csr{dataset.X.shape}".encode())
        add(dataset.X.data)
        # scipy picks the width of the indices by size; the content is the same
        add(dataset.X.indices.astype(np.int64))
        add(dataset.X.indptr.astype(np.int64))
    else:
        add(dataset.X)
    add(np.asarray(dataset.y, dtype=np.int64))
    sha.update(b"pairwise" if dataset.pairwise else b"")
    for split in dataset.splits:
        sha.update(split.digest.encode())
    return sha.hexdigest()


@dataclass(frozen=True)
class DatasetSource:
    """Where datasets come from.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    load : callable or "module:name"
        ``load(**params) -> Dataset``.
    expand : callable or "module:name", optional
        ``expand(**params) -> list of Ref``: one line of a suite file that
        means many datasets. Returns an empty list where the line means one.
    depends : sequence of str, optional
        Further modules that decide the data, beside those that `load` imports.
    """

    name: str
    load: Make
    expand: Make | None = None
    depends: Sequence[str] = ()


@dataclass(frozen=True)
class FeatureMap:
    """An explicit feature map: a scikit-learn transformer.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    make : callable or "module:name"
        Returns an unfitted transformer; its keyword parameters are those of a
        suite line.
    grid : mapping of str to sequence, optional
        What is searched over for each parameter that a suite line does not
        give; a `Ref` stands for a component, a kernel say.
    kernel : callable, optional
        ``kernel(map, X, Y)`` is the Gram matrix which the fitted map
        approximates.
    supervised : bool, default False
        Pass `y` to ``fit``.
    requires : {None, "nonnegative", "unit_ball"}, default None
        What the inputs must satisfy; kbench adds a fitted scaling step where
        the protocol's preprocessing does not already see to it.
    measures : callable, optional
        ``measures(fitted, X, y) -> {name: float}``, called on the test part
        after the clock has stopped. Of the keyword-only arguments `learner`
        (fitted on the embedding), `X_train` and `y_train` (what the
        learner was fitted on, and the map, but one that uses no labels where the
        protocol has an `unlabelled_size`) it is given those that it has; they need a default.
    depends : sequence of str, optional
        Further modules whose code decides the numbers.
    span : callable or "module:name", optional
        ``span(params) -> str``: what the features span, given the parameters
        of a suite line; empty where there is nothing to tell. Two maps that
        answer the same differ by a rotation of their features only, so that a
        learner which is `rotation_invariant` makes one method of both: tests
        over datasets count one of them.
    """

    name: str
    make: Make
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    kernel: Make | None = None
    supervised: bool = False
    requires: Literal["nonnegative", "unit_ball"] | None = None
    measures: Make | None = None
    depends: Sequence[str] = ()
    span: Make | None = None


@dataclass(frozen=True)
class Learner:
    """A classifier with a scikit-learn interface.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    make : callable or "module:name"
        Returns an unfitted classifier.
    grid : mapping of str to sequence, optional
        What is searched over for each parameter that a suite line does not
        give; a `Ref` stands for a component, a kernel say.
    kernelized : bool, default False
        The learner has a parameter ``kernel`` and works on the inputs; it is
        planned with the map ``identity`` only.
    path : str, optional
        A parameter, say ``"C"``, along which the learner can be fitted in one
        go: it has ``fit_path(X, y, values)``, which returns one fitted
        estimator per value, in that order.
    simpler : mapping of str to {"smaller", "larger"}, optional
        Which values of numeric parameters make a simpler model, such as
        ``{"C": "smaller"}``, for the one-standard-error rule; the first
        parameter counts before the second.
    multiclass : str, optional
        How a binary method treats several classes ("ovr", "ovo") where the
        parameter `multiclass` is not given; labels show it, since the scheme
        can matter more than the map.
    measures : callable, optional
        ``measures(fitted, X, y) -> {name: float}``, called on the embedded
        test part after the clock has stopped.
    depends : sequence of str, optional
        Further modules whose code decides the numbers.
    rotation_invariant : bool, default False
        A rotation of the features changes no prediction: the learner sees
        their inner products only.
    """

    name: str
    make: Make
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    kernelized: bool = False
    path: str | None = None
    simpler: Mapping[str, Literal["smaller", "larger"]] = field(default_factory=dict)
    multiclass: str = ""
    measures: Make | None = None
    depends: Sequence[str] = ()
    rotation_invariant: bool = False


@dataclass(frozen=True)
class KernelSpec:
    """A kernel that suite files can name.

    Parameters
    ----------
    name : str
        The name in a suite file, lower case with hyphens.
    make : callable or "module:name"
        Returns a callable ``k(X, Y) -> Gram matrix``.
    psd : bool, default True
        Every Gram matrix ``k(X, X)`` is positive semidefinite.
    """

    name: str
    make: Make
    psd: bool = True


@dataclass(frozen=True)
class Figure:
    """A picture that a plugin adds to a report.

    Parameters
    ----------
    name, title : str
        Identifier and heading.
    draw : callable or "module:name"
        ``draw(results) -> matplotlib.figure.Figure``.
    suites : sequence of str, optional
        Suites to whose reports it belongs; all of them where empty.
    """

    name: str
    title: str
    draw: Make
    suites: Sequence[str] = ()


# ---------------------------------------------------------------------------
# What a suite plans
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Search:
    """Values of one parameter, one of which inner cross-validation chooses."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Ref:
    """One line of a suite file: a registered component with its parameters.

    Parameters
    ----------
    name : str
        Name of the component in the registry.
    params : mapping
        Parameter values: scalars, tuples, `Search`, or a nested `Ref`.
    label : str, optional
        What tables show; the name with the given parameters by default.

    Examples
    --------
    >>> Ref("rff", {"n_components": 64, "gamma": Search((0.1, 1.0))}).label
    'rff(n_components=64, gamma=search[0.1, 1])'
    """

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or _written(self))


def _written(value: Any) -> str:
    """Write a value the way a label shows it."""
    if isinstance(value, Ref):
        given = ", ".join(f"{key}={_written(each)}" for key, each in value.params.items())
        return f"{value.name}({given})" if given else value.name
    if isinstance(value, Search):
        return "search[" + ", ".join(map(_written, value.values)) + "]"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Protocol:
    """Everything beside data and components that decides a number.

    All of it is part of a cell's key. Change nothing here that only decides
    how far or how long to run: that is `Limits`.

    Parameters
    ----------
    splits : {"stratified", "holdout", "ordered", "group_duplicates", "official"}
        Stratified K-fold (repeated beyond `n_folds` splits); repeated random
        holdout; one holdout in the order of the rows, the first for training
        and the last for testing; K-fold that keeps equal rows together; the
        dataset's own.
    n_folds : int, default 5
        Folds of "stratified" and "group_duplicates".
    train_size, test_size : float or int, optional
        Share (below 1.0) or number of rows of a holdout, "ordered" or not;
        `train_size` is all the rest by default.
    unlabelled_size : float or int, default 0
        Share or number of the *training* rows set aside as unlabelled.
    preprocess : sequence of {"minmax", "standard", "unit_ball", "none"}
        One step, the same for every method, or several to search over.
    missing : {"error", "drop_rows", "impute"}
        What happens to missing values, inside the split.
    inner_folds : int, default 3
        Folds of the inner cross-validation.
    search : {"grid", "random", "halving"}
        All combinations of the searched parameters; or at most `n_candidates`
        of them, drawn without replacement by seed; or successive halving: all
        of them on a part of the rows, the best third on three times as many,
        until the best are compared on all rows.
    n_candidates : int, default 12
        Bound of the random search.
    one_standard_error : bool, default False
        Choose the simplest candidate within one standard error of the best, by
        the learner's `simpler`; else the best.
    search_time_s : float, optional
        Wall-clock seconds after which the search of a split takes the best so
        far, at least one. Accuracies then depend on the machine.
    threads : int, default 1
        BLAS and OpenMP threads of a task.
    seed : int, default 0
        Root of every seed.
    """

    splits: Literal["stratified", "holdout", "ordered", "group_duplicates", "official"] = (
        "stratified"
    )
    n_folds: int = 5
    train_size: float | int | None = None
    test_size: float | int = 0.3
    unlabelled_size: float | int = 0
    preprocess: tuple[str, ...] = ("minmax",)
    missing: Literal["error", "drop_rows", "impute"] = "error"
    inner_folds: int = 3
    search: Literal["grid", "random", "halving"] = "grid"
    n_candidates: int = 12
    one_standard_error: bool = False
    search_time_s: float | None = None
    threads: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Limits:
    """How far and how long to run; never part of a key.

    Parameters
    ----------
    n_splits : int, optional
        Splits to compute; all folds, or 10 holdouts, by default.
    time_s : float, default 300
        Wall-clock seconds of one task.
    memory_mb : float, default 4096
        Megabytes (2**20 bytes) that one task may use beyond its start.
    """

    n_splits: int | None = None
    time_s: float = 300.0
    memory_mb: float = 4096.0


@dataclass(frozen=True)
class Published:
    """A figure that a paper prints for a cell.

    Parameters
    ----------
    dataset, feature_map, learner : str
        Labels of the cell.
    measure : str
        Which measure, such as ``"accuracy"``.
    value : float
        The figure.
    sd : float, optional
        Standard deviation of one run, where the paper gives it.
    n_runs : int, optional
        Number of runs behind the figure.
    source : str
        Paper and table.
    """

    dataset: str
    feature_map: str
    learner: str
    measure: str
    value: float
    sd: float | None = None
    n_runs: int | None = None
    source: str = ""


@dataclass(frozen=True)
class Measure:
    """What the tables, ranks and tests of a suite compare.

    Parameters
    ----------
    name : str, default "accuracy"
        A measure that evaluations report.
    better : {"higher", "lower"}, default "higher"
        Which values are better.

    Examples
    --------
    >>> Measure("expected_error", "lower").gain(0.25)
    -0.25
    """

    name: str = "accuracy"
    better: Literal["higher", "lower"] = "higher"

    @property
    def sd(self) -> str:
        """Name of the standard deviation of one split."""
        return f"{self.name}_sd"

    @property
    def words(self) -> str:
        """What people read."""
        return self.name.replace("_", " ")

    def gain(self, value: Any) -> Any:
        """Return a value, or an array of them, so that higher is better."""
        return value if self.better == "higher" else -value


ACCURACY = Measure()

MEASURES: Mapping[str, Measure] = {
    each.name: each
    for each in (
        ACCURACY,
        Measure("accuracy_unseen"),
        Measure("balanced_accuracy"),
        Measure("expected_error", "lower"),
        Measure("log_loss", "lower"),
        Measure("gram_error_frobenius", "lower"),
        Measure("gram_error_spectral", "lower"),
    )
}
"""Measures of kbench's own by which methods can be compared."""


@dataclass(frozen=True)
class Block:
    """One product of datasets, feature maps and learners under one protocol."""

    datasets: tuple[Ref, ...]
    feature_maps: tuple[Ref, ...]
    learners: tuple[Ref, ...]
    protocol: Protocol


@dataclass(frozen=True)
class Suite:
    """A named set of blocks, with limits, published figures and what is compared."""

    name: str
    blocks: tuple[Block, ...]
    limits: Limits = Limits()
    published: tuple[Published, ...] = ()
    measure: Measure = ACCURACY


@dataclass(frozen=True)
class Cell:
    """One dataset, map and learner under one protocol: one MLflow run."""

    dataset: Ref
    feature_map: Ref
    learner: Ref
    protocol: Protocol

    @property
    def name(self) -> str:
        """What people read: ``map + learner on dataset``."""
        return f"{self.feature_map.label} + {self.learner.label} on {self.dataset.label}"


@dataclass(frozen=True)
class Task:
    """One split of a cell: one unit of work, one line of the journal."""

    cell: Cell
    split_index: int


@dataclass(frozen=True)
class Result:
    """What became of a task.

    Parameters
    ----------
    task : Task
        The task.
    status : str
        ok, error, timeout, memory, crash, unavailable or skipped.
    measures : mapping of str to float
        Measured numbers; empty unless ok.
    error : str, optional
        Why it is not ok: a traceback, or the limit that was hit.
    details : mapping, optional
        What else is worth keeping, as plain JSON values: the chosen
        parameters, all scores of the search, the hash of the split, warnings.
    """

    task: Task
    status: Status
    measures: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
