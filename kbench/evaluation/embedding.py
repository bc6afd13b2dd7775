"""Training data, and preprocessing with a map that are fitted on them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from kbench.arrays import as_type, on_device, on_host, to_numpy
from kbench.errors import PluginError
from kbench.evaluation.checked_predictions import FittedLearner, FittedMap, check_embedding
from kbench.evaluation.device import HOST, Device, gpu_block_rows
from kbench.evaluation.lazy_rows import Matrix, Rows, is_sparse, iterate_row_numbers, take, whole
from kbench.evaluation.method import Method
from kbench.evaluation.preprocessing import Preprocessing
from kbench.evaluation.specs import Candidate, EstimatorSpec
from kbench.evaluation.splits import derive_seed
from kbench.evaluation.targets import LogTargets, Scale
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
    """Labels, or targets in their units, or their logarithms."""

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

    log: LogTargets | None = None
    """What maps targets to the logarithms that `y` has."""

    def on_scale(self, target_scale: str) -> Data:
        """Return the data with the targets on the scale of a protocol."""
        if target_scale == "linear":
            return self
        log = LogTargets.fit(self.y)
        return replace(self, y=log.log(self.y), log=log)

    def rows(self, rows: np.ndarray, columns: np.ndarray) -> Matrix | Rows:
        """Return inputs of `rows`, not copied; of a Gram matrix, against `columns`."""
        return whole(self.X)[np.ix_(rows, columns)] if self.pairwise else take(self.X, rows)

    def select(self, rows: np.ndarray) -> Data:
        """Return the data of some rows, without a copy of their inputs."""
        X, weight = self.rows(rows, rows), self.weights(rows)
        return replace(self, X=X, y=self.y[rows], weight=weight, parts=None)

    def weights(self, rows: np.ndarray | None) -> np.ndarray | None:
        """Return the weights of some rows, or of all."""
        return self.weight if self.weight is None or rows is None else self.weight[rows]

    def scale_targets(self) -> tuple[Scale, np.ndarray]:
        """Return the scale of the targets, and these on this scale."""
        scale = Scale.fit(self.y, self.task, self.weight)
        return replace(scale, log=self.log), scale.standardise(self.y)


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
    def shares_map(self) -> bool:
        """Whether all inner folds have one map."""
        return not (self.protocol.refit_maps_in_inner_folds or self.data.pairwise)

    @property
    def learner_seed(self) -> int:
        """The seed of learners."""
        return derive_seed(self.seed, "learner")

    def place(self, candidates: Sequence[Candidate]) -> tuple[Device, str]:
        """Return the device of candidates with one map, and why it is not the protocol's."""
        if self.protocol.device == "cpu":
            return HOST, ""
        learner, map_ = self.learner, self.build_map(candidates[0])
        tags = getattr(map_, "__sklearn_tags__", None)
        if self.data.pairwise or is_sparse(take(self.data.X).matrix):
            reason = "its inputs are a Gram matrix or sparse"
        elif tags is None or not tags().array_api_support:
            reason = f"{self.feature_map.label} does not compute on devices"
        elif not learner.all_have("takes_any_namespace", candidates) or not (
            learner.all_have("fit_sums", candidates) or learner.all_have("begin_fit", candidates)
        ):
            reason = f"{learner.label} does not compute on devices"
        else:
            return Device.of(self.protocol.device), ""
        return HOST, reason

    def select(self, rows: np.ndarray | None) -> Fitting:
        """Return the same on some rows, or on all."""
        return self if rows is None else replace(self, data=self.data.select(rows))

    def build_map(self, candidate: Candidate) -> Any:
        """Return the map of a candidate, not fitted."""
        return self.feature_map.build(candidate.feature_map, derive_seed(self.seed, "map"))

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

    device: Device = HOST
    """Where the map embeds preprocessed rows."""

    transfer_s: float = 0.0
    """Seconds in which the rows of the map's fit went to the device."""

    @classmethod
    def fit_rows(
        cls,
        fitting: Fitting,
        candidate: Candidate,
        run: Run = once,
        dtype: str = "float64",
        device: Device = HOST,
    ) -> tuple[Embedding, Matrix | None]:
        """Fit preprocessing and map; return the training rows too, preprocessed, up to 128 MiB.

        Larger inputs are preprocessed in blocks. A map that all inner folds share is fitted on
        256 MiB of rows, with the scales of all rows; PluginError is raised if it uses the targets.
        `run` runs the fit of any other map.
        """
        data, steps = fitting.data, fitting.steps(candidate)
        supervised, label = fitting.feature_map.supervised, fitting.feature_map.label
        targets = data.scale_targets()[1]
        parts = [take(X) for X in (data.X, data.unlabeled) if X is not None]
        X: Matrix | None = None
        inputs: Matrix | LazyRows
        of_blocks, sizes = DOUBLE, (0, 0)
        if fitting.shares_map:
            if supervised:
                raise PluginError(explain_shared_targets(label))
            samples = [_sample(X, derive_seed(fitting.seed, "sample")) for X in parts]
            steps.fit_blocks(parts, samples)
            run, of_blocks = time_step, np.dtype(dtype)
            inputs = preprocess(steps, samples[-1], dtype=of_blocks)
            sizes = inputs.shape[0], parts[-1].shape[0]
        elif data.pairwise or not needs_blocks(data.X):
            unlabeled = whole(data.unlabeled)
            X = steps.fit_transform(whole(data.X), data.y, unlabeled)
            inputs = X if supervised or unlabeled is None else steps.transform(unlabeled)
        else:
            steps.fit_blocks(parts, parts, data.y)
            rows = parts[0 if supervised else -1]
            map_ = fitting.build_map(candidate)
            lazy = LazyRows(steps, rows, rows is parts[0], map_)
            inputs = lazy if getattr(map_, "takes_lazy_rows", False) and not supervised else lazy[:]
        clock = Stopwatch(device.synchronise)
        if not isinstance(inputs, LazyRows):
            with clock:
                inputs = device.put(inputs, of_blocks)
        given = (inputs, targets) if supervised else (inputs,)
        with warnings.catch_warnings(record=True, action="always") as caught, device.dispatch():
            fit = run(lambda: device.wait(fitting.build_map(candidate).fit(*given)))
        if isinstance(inputs, LazyRows) and not device.is_host:
            # what was fitted on the host would go to the device with each block
            with clock:
                fit = replace(fit, value=on_device(fit.value, device.put(inputs[:1], DOUBLE)))
        return cls(steps, fit, label, caught, of_blocks, *sizes, device, clock.wall), X

    @property
    def map_(self) -> FittedMap:
        """The fitted map."""
        return self.fit.value

    @property
    def host_map(self) -> FittedMap:
        """The fitted map with arrays of numpy."""
        return self.map_ if self.device.is_host else on_host(self.map_)

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

    def embed(self, X: Matrix, rows: np.ndarray | None = None) -> Matrix:
        """Embed training rows with these numbers, or others, which are preprocessed first."""
        return self.apply(self.device.put(self.steps.transform(X, rows), self.dtype))

    def apply(self, X: Matrix) -> Matrix:
        """Embed preprocessed rows, which are on the device."""
        with self.device.dispatch():
            return self.map_.transform(X)

    def embed_all(self, X: Matrix | Rows, is_training: bool = False) -> Matrix:
        """Embed all rows as one matrix; large inputs are preprocessed in blocks.

        `is_training` is true if `X` are the training rows.
        """
        rows = np.arange(X.shape[0])
        if needs_blocks(X) and self.allows_blocks(X):
            blocks = self.embed_blocks(X, rows, Stopwatch(), is_training)
            return _stack((Z for _, Z in blocks), len(rows))
        Z = self.embed(whole(X), rows if is_training else None)
        check_embedding(Z, len(rows), self.label)
        return Z

    def embed_blocks(
        self, X: Matrix | Rows, rows: np.ndarray, clock: Stopwatch, is_training: bool = False
    ) -> Iterator[tuple[np.ndarray, Matrix]]:
        """Yield blocks of row numbers with their embedding in `dtype`, dense or CSR.

        `is_training` is true if `X` are the training rows.
        """
        for part in iterate_row_numbers(rows, self.block_rows(X)):
            Z = self.embed_timed(X, part, clock, is_training)
            check_embedding(Z, len(part), self.label)
            yield part, Z

    def embed_timed(
        self, X: Matrix | Rows, part: np.ndarray, clock: Stopwatch, is_training: bool = False
    ) -> Matrix:
        """Embed some rows in `dtype`; their transfer to the device is timed apart."""
        with clock:
            block = self.steps.transform(X[part], part if is_training else None)
        begun = time.perf_counter()
        block = self.device.wait(self.device.put(block, self.dtype))
        clock.apart += time.perf_counter() - begun
        with clock:
            return as_type(self.apply(block), self.dtype)

    def block_rows(self, X: Matrix | Rows) -> int | None:
        """Return how many rows are embedded together; None for the usual number."""
        if self.device.name != "cuda":
            return None
        width = max(self.embed(X[:1]).shape[1], X.shape[1])
        return int(min(X.shape[0], gpu_block_rows(width, self.dtype)))

    def allows_blocks(self, X: Matrix | Rows) -> bool:
        """Return whether a block is embedded as its rows are one by one."""
        block = next(iterate_row_numbers(np.arange(X.shape[0])))[:CHECKED_ROWS]
        rows = block[:: max(1, len(block) // 4)]
        Z = self.embed(X[block])
        check_embedding(Z, len(block), self.label)
        together = _dense(Z)[rows]
        alone = np.vstack([_dense(self.embed(X[rows[i : i + 1]])) for i in range(len(rows))])
        size = np.abs(together).max(initial=0.0)
        return together.shape == alone.shape and np.allclose(together, alone, 1e-3, 1e-3 * size)


def _dense(Z: Matrix) -> np.ndarray:
    return np.asarray(Z.toarray()) if is_sparse(Z) else to_numpy(Z)


def _sample(X: Rows, seed: int) -> Rows:
    """Return all rows, or as many as have 256 MiB, in order, without a copy of them."""
    n = X.shape[0]
    n_fitted = int(FIT_BYTES / max(1.0, X.row_bytes()))
    if n <= n_fitted:
        return X
    return take(X, np.sort(np.random.default_rng(seed).choice(n, n_fitted, replace=False)))


def preprocess(
    steps: Preprocessing,
    X: Rows,
    rows: np.ndarray | None = None,
    is_training: bool = False,
    dtype: np.dtype = DOUBLE,
) -> Matrix:
    """Preprocess some rows, or all, in blocks, so that there is one copy of them at a time.

    `is_training` is true if `X` are the training rows.
    """
    rows = np.arange(X.shape[0]) if rows is None else rows
    parts = (
        HOST.put(steps.transform(X[part], part if is_training else None), dtype)
        for part in iterate_row_numbers(rows)
    )
    return _stack(parts, len(rows))


def _stack(parts: Iterator[Matrix], n_rows: int) -> Matrix:
    """Stack blocks, of which there is a copy of one at a time."""
    first = next(parts)
    if is_sparse(first):
        from scipy.sparse import vstack

        return vstack([first, *parts], format="csr")
    out = np.empty((n_rows, first.shape[1]), first.dtype)
    start = 0
    for part in chain([first], parts):
        out[start : start + len(part)] = part
        start += len(part)
    return out


def needs_blocks(X: Matrix | Rows) -> bool:
    """Return whether inputs as they are and preprocessed ones are not held together."""
    return bool(2 * X.shape[0] * take(X).row_bytes() > FIT_BYTES)


class LazyRows:
    """Training data that are preprocessed when their rows are taken, by slice or by numbers.

    `is_training` is true if `rows` are the training rows, not unlabeled ones. Rows that are not
    finite are the error that `map_` would raise for a matrix.
    """

    is_lazy = True
    dtype = DOUBLE
    ndim = 2

    def __init__(
        self, steps: Preprocessing, rows: Rows, is_training: bool, map_: object = None
    ) -> None:
        self._steps, self._rows, self._is_training, self._map = steps, rows, is_training, map_
        self.shape = rows.shape[0], self[:1].shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> Matrix:
        numbers = np.arange(self._rows.shape[0])[rows]
        X = preprocess(self._steps, self._rows, numbers, self._is_training)
        if hasattr(self._map, "__sklearn_tags__"):
            from sklearn.utils import assert_all_finite

            takes_nan = self._map.__sklearn_tags__().input_tags.allow_nan
            name = type(self._map).__name__
            assert_all_finite(X, allow_nan=takes_nan, estimator_name=name, input_name="X")
        return X

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return _dense(self[:])


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
