"""Training data, and preprocessing with a map that are fitted on them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from kbench.errors import PluginError
from kbench.evaluation.checked_predictions import FittedLearner, FittedMap, check_embedding
from kbench.evaluation.lazy_rows import Matrix, Rows, blocks, is_sparse, iterate_row_numbers, whole
from kbench.evaluation.method import Method
from kbench.evaluation.preprocessing import Preprocessing, stack_rows
from kbench.evaluation.specs import Candidate, EstimatorSpec
from kbench.evaluation.splits import derive_seed
from kbench.evaluation.targets import Scale
from kbench.evaluation.timing import Run, Stopwatch, Timed, once, time_step
from kbench.messages import explain_shared_targets
from kbench.records import Protocol, TaskType

FIT_BYTES = 2**28
"""Size of the inputs in float64 up to which a map is fitted on all of them."""

DOUBLE = np.dtype(np.float64)

CHECKED_ROWS = 256
"""Rows of the block that is compared with the embedding of single rows."""


@dataclass(frozen=True)
class Data:
    """Training data of one search or fit."""

    X: Matrix | Rows
    """Inputs, shape (n_samples, n_features): an array, a CSR matrix or `Rows`; with `pairwise`
    the Gram matrix of the rows."""

    y: np.ndarray
    """Labels, or targets in their units."""

    unlabeled: Matrix | Rows | None = None
    """Inputs without labels, on which unsupervised maps are fitted."""

    kinds: Sequence[str] = ()
    """Kind of each column: "numeric", "onehot" or "target_encoded"."""

    missing: str = "error"
    """The protocol's treatment of missing values."""

    pairwise: bool = False
    """Never preprocess; slice columns as well as rows."""

    task: TaskType = "classification"

    weight: np.ndarray | None = None
    """Weights of the rows."""

    parts: np.ndarray | None = None
    """Numbers of what inner folds keep together."""

    def rows(self, rows: np.ndarray, columns: np.ndarray | None = None) -> Matrix:
        """Return inputs of `rows`; of a Gram matrix, against `columns`."""
        if self.pairwise:
            return whole(self.X)[np.ix_(rows, rows if columns is None else columns)]
        return self.X[rows]

    def weights(self, rows: np.ndarray | None) -> np.ndarray | None:
        """Return the weights of some rows, or of all."""
        return self.weight if self.weight is None or rows is None else self.weight[rows]

    def scale_targets(self, rows: np.ndarray | None = None) -> tuple[Scale, np.ndarray]:
        """Return the scale of the targets of some rows, or of all, and these on this scale."""
        y = self.y if rows is None else self.y[rows]
        scale = Scale.fit(y, self.task, self.weights(rows))
        return scale, scale.standardise(y)

    def scale(self, rows: np.ndarray | None = None) -> Scale:
        """Return the scale of the targets of some rows, or of all."""
        return self.scale_targets(rows)[0]


@dataclass(frozen=True)
class Fitting:
    """What candidates are fitted with: a method, on training data, under a protocol."""

    method: Method
    data: Data
    protocol: Protocol

    seed: int
    """Root of the seeds of folds, draws, map and learner."""

    @property
    def feature_map(self) -> EstimatorSpec:
        """The feature map of the method."""
        return self.method.feature_map

    @property
    def learner(self) -> EstimatorSpec:
        """The learner of the method."""
        return self.method.learner

    @property
    def learner_seed(self) -> int:
        """The seed of learners."""
        return derive_seed(self.seed, "learner")

    def steps(self, candidate: Candidate) -> Preprocessing:
        """Return the preprocessing of a candidate, not fitted."""
        data = self.data
        if data.pairwise:
            return Preprocessing("none")
        requires = self.feature_map.requires
        return Preprocessing(candidate.scaling, requires, data.kinds, data.missing, data.task)


@dataclass(frozen=True)
class Embedding:
    """Preprocessing and a map, fitted on rows of the training set."""

    steps: Preprocessing

    fit: Timed[FittedMap]
    """The fitted map, with the time of its fit."""

    label: str
    """Name of the map for messages."""

    caught: Sequence[warnings.WarningMessage] = ()
    """Warnings of the fit."""

    dtype: np.dtype = DOUBLE
    """Type of embedded blocks."""

    n_fitted: int = 0
    n_rows: int = 0
    """Rows that a shared map was fitted on, and those that there are."""

    @classmethod
    def fit_rows(
        cls, fitting: Fitting, candidate: Candidate, rows: np.ndarray | None = None, run: Run = once
    ) -> tuple[Embedding, Matrix]:
        """Fit preprocessing and map on some rows, or all, in memory; return these rows too.

        They are preprocessed, as all steps but the map are. `run` runs the fit of the map.
        """
        data = fitting.data
        X, y = (whole(data.X), data.y) if rows is None else (data.rows(rows), data.y[rows])
        unlabeled = whole(data.unlabeled)
        steps = fitting.steps(candidate)
        X = steps.fit_transform(X, y, unlabeled)
        more = None if unlabeled is None else steps.transform(unlabeled)
        _, targets = data.scale_targets(rows)
        return cls._fit(fitting, candidate, steps, (X, targets, more), run), X

    @classmethod
    def share(cls, fitting: Fitting, candidate: Candidate, dtype: str = "float64") -> Embedding:
        """Fit preprocessing and map of a candidate, without the targets, on 256 MiB of rows.

        Scales are those of all rows. PluginError is raised for a map that uses the targets.
        """
        feature_map, data = fitting.feature_map, fitting.data
        if feature_map.supervised:
            raise PluginError(explain_shared_targets(feature_map.label))
        parts = [X for X in (data.X, data.unlabeled) if X is not None]
        samples = [_sample(X, derive_seed(fitting.seed, "sample")) for X in parts]
        steps = fitting.steps(candidate)
        sample = samples[0] if len(samples) == 1 else stack_rows(*map(whole, samples))
        steps.fit_blocks(lambda: chain.from_iterable(map(blocks, parts)), sample)
        type_ = np.dtype(dtype)
        inputs = _preprocess(steps, samples[-1], type_)
        del sample
        embedding = cls._fit(fitting, candidate, steps, (inputs, data.y, None), time_step)
        n_fitted, n_rows = inputs.shape[0], parts[-1].shape[0]
        return replace(embedding, dtype=type_, n_fitted=n_fitted, n_rows=n_rows)

    @classmethod
    def _fit(
        cls,
        fitting: Fitting,
        candidate: Candidate,
        steps: Preprocessing,
        data: tuple[Matrix, np.ndarray, Matrix | None],
        run: Run,
    ) -> Embedding:
        """Fit a map on preprocessed inputs, their targets and unlabeled inputs."""
        feature_map, (X, y, unlabeled) = fitting.feature_map, data

        def fit() -> FittedMap:
            estimator = feature_map.build(candidate.feature_map, derive_seed(fitting.seed, "map"))
            more = X if unlabeled is None else unlabeled
            fitted: FittedMap = (
                estimator.fit(X, y) if feature_map.supervised else estimator.fit(more)
            )
            return fitted

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            map_ = run(fit)
        return cls(steps, map_, feature_map.label, caught)

    @property
    def map_(self) -> FittedMap:
        """The fitted map."""
        return self.fit.value

    @property
    def converged(self) -> bool:
        """Whether the fit of the map converged."""
        return has_converged(self.map_, self.caught)

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the fit."""
        if self.n_fitted == self.n_rows:
            return []
        return [f"the map was fitted on {self.n_fitted:,} of {self.n_rows:,} rows"]

    def embed(self, X: Matrix) -> Matrix:
        """Embed rows, which are preprocessed first."""
        return self.map_.transform(_convert(self.steps.transform(X), self.dtype))

    def embed_all(self, X: Matrix | Rows) -> Matrix:
        """Embed all rows as one matrix."""
        Z = self.embed(whole(X))
        check_embedding(Z, X.shape[0], self.label)
        return Z

    def embed_blocks(
        self, X: Matrix | Rows, rows: np.ndarray, clock: Stopwatch
    ) -> Iterator[tuple[np.ndarray, Matrix]]:
        """Yield blocks of row numbers with their embedding in `dtype`, dense or CSR."""
        for part in iterate_row_numbers(rows):
            with clock:
                Z = self.embed(X[part]).astype(self.dtype, copy=False)
            check_embedding(Z, len(part), self.label)
            yield part, Z

    def check_rows(self, X: Matrix | Rows) -> None:
        """Raise a PluginError unless a block is embedded as its rows are one by one."""
        block = next(iterate_row_numbers(np.arange(X.shape[0])))[:CHECKED_ROWS]
        rows = block[:: max(1, len(block) // 4)]
        together = _dense(self.embed(X[block]))[rows]
        alone = np.vstack([_dense(self.embed(X[rows[i : i + 1]])) for i in range(len(rows))])
        size = np.abs(together).max(initial=0.0)
        if together.shape != alone.shape or not np.allclose(together, alone, 1e-3, 1e-3 * size):
            raise PluginError(
                f"{self.label} embeds rows differently in a block than alone; it cannot be "
                "applied to blocks"
            )


def _dense(Z: Matrix) -> np.ndarray:
    return np.asarray(Z.toarray() if is_sparse(Z) else Z)


def _convert(X: Matrix, dtype: np.dtype) -> Matrix:
    """Return inputs in float32 if that is asked for; others keep their type."""
    return X.astype(dtype, copy=False) if dtype == np.float32 else X


def _sample(X: Matrix | Rows, seed: int) -> Rows:
    """Return all rows, or as many as have 256 MiB, in order, without a copy of them."""
    n = X.shape[0]
    rows = X if isinstance(X, Rows) else Rows(X, np.arange(n))
    n_fitted = int(FIT_BYTES / max(1.0, rows.row_bytes()))
    if n <= n_fitted:
        return rows
    drawn = np.random.default_rng(seed).choice(n, n_fitted, replace=False)
    return Rows(rows.matrix, rows.numbers[np.sort(drawn)])


def _preprocess(steps: Preprocessing, rows: Rows, dtype: np.dtype) -> Matrix:
    """Preprocess rows in blocks, so that there is one copy of them at a time."""
    parts = (_convert(steps.transform(X), dtype) for X in blocks(rows))
    first = next(parts)
    if is_sparse(first):
        from scipy.sparse import vstack

        return vstack([first, *parts], format="csr")
    out = np.empty((rows.shape[0], first.shape[1]), first.dtype)
    start = 0
    for part in chain([first], parts):
        out[start : start + len(part)] = part
        start += len(part)
    return out


def has_converged(
    estimator: FittedLearner | FittedMap, caught: Sequence[warnings.WarningMessage]
) -> bool:
    """Whether a fit converged, by its warnings and its fitted attributes."""
    from sklearn.exceptions import ConvergenceWarning

    if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        return False
    if getattr(estimator, "converged_", True) is False:
        return False
    return int(getattr(estimator, "fit_status_", 0)) == 0
