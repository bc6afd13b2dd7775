"""Preprocessing and a map that are fitted once on the training part, for all inner folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from kbench.errors import PluginError
from kbench.evaluation.outputs import check_embedding
from kbench.evaluation.preprocessing import Preprocessing, stacked
from kbench.evaluation.rows import Rows, blocks, numbered_blocks, whole
from kbench.evaluation.search._candidates import Candidate
from kbench.evaluation.search._data import Data, fit_map, has_converged, preprocessing_of
from kbench.evaluation.search._spec import EstimatorSpec
from kbench.evaluation.splits import derive_seed
from kbench.evaluation.timing import Stopwatch, Timed, timed
from kbench.messages import shared_targets

FIT_BYTES = 2**28
"""Size of the inputs in float64 up to which a map is fitted on all of them."""

CHECKED_ROWS = 256
"""Rows of the block that is compared with the embedding of single rows."""


@dataclass(frozen=True)
class SharedMap:
    """A map with its preprocessing, fitted once on the training part.

    Parameters
    ----------
    steps : Preprocessing
    map_ : Timed
        The fitted map, with the time of its fit.
    what : str
        Its name for messages.
    caught : list of warnings.WarningMessage
        Warnings of the fit.
    dtype : dtype
        Type of embedded blocks.
    n_fitted, n_rows : int
        Rows that the map was fitted on, and those that there are.
    """

    steps: Preprocessing
    map_: Timed
    what: str
    caught: list[warnings.WarningMessage]
    dtype: np.dtype[Any]
    n_fitted: int
    n_rows: int

    @classmethod
    def fit(
        cls,
        feature_map: EstimatorSpec,
        data: Data,
        candidate: Candidate,
        seed: int,
        dtype: str = "float64",
    ) -> SharedMap:
        """Fit preprocessing and map of a candidate, without the targets.

        The scales are those of all rows. The map is fitted on rows of 256 MB at most,
        which are drawn by seed. PluginError is raised for a map that uses the targets.
        """
        if feature_map.supervised:
            raise PluginError(shared_targets(feature_map.what))
        parts = [X for X in (data.X, data.unlabelled) if X is not None]
        samples = [_sample(X, derive_seed(seed, "sample")) for X in parts]
        steps = preprocessing_of(data, candidate.preprocess, feature_map.requires)
        sample = samples[0] if len(samples) == 1 else stacked(*map(whole, samples))
        steps.fit_blocks(lambda: chain.from_iterable(map(blocks, parts)), sample)
        type_ = np.dtype(dtype)
        inputs = _preprocessed(steps, samples[-1], type_)
        del sample
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            map_ = timed(lambda: fit_map(feature_map, candidate.feature_map, seed, inputs, data.y))
        sizes = inputs.shape[0], parts[-1].shape[0]
        return cls(steps, map_, feature_map.what, caught, type_, *sizes)

    @property
    def converged(self) -> bool:
        """Whether the fit of the map converged."""
        return has_converged(self.map_.value, self.caught)

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the fit."""
        if self.n_fitted == self.n_rows:
            return []
        return [f"the map was fitted on {self.n_fitted:,} of {self.n_rows:,} rows"]

    def embed(self, X: Any) -> Any:
        """Embed rows, which are preprocessed first."""
        return self.map_.value.transform(_as_type(self.steps.transform(X), self.dtype))

    def embedded(self, X: Any) -> Any:
        """Embed all rows as one matrix."""
        Z = self.embed(whole(X))
        check_embedding(Z, X.shape[0], self.what)
        return Z

    def embedded_blocks(
        self, X: Any, rows: np.ndarray, clock: Stopwatch
    ) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield blocks of row numbers with their embedding in `dtype`, dense or CSR."""
        for part in numbered_blocks(rows):
            with clock:
                Z = self.embed(X[part]).astype(self.dtype, copy=False)
            check_embedding(Z, len(part), self.what)
            yield part, Z

    def check_rows(self, X: Any) -> None:
        """Raise a PluginError unless a block is embedded as its rows are one by one."""
        block = next(numbered_blocks(np.arange(X.shape[0])))[:CHECKED_ROWS]
        rows = block[:: max(1, len(block) // 4)]
        together = _dense(self.embed(X[block]))[rows]
        alone = np.vstack([_dense(self.embed(X[rows[i : i + 1]])) for i in range(len(rows))])
        size = np.abs(together).max(initial=0.0)
        if together.shape != alone.shape or not np.allclose(together, alone, 1e-3, 1e-3 * size):
            raise PluginError(
                f"{self.what} embeds rows differently in a block than alone; it cannot be "
                "applied to blocks"
            )


def _dense(Z: Any) -> np.ndarray:
    return np.asarray(Z.toarray() if hasattr(Z, "indptr") else Z)


def _as_type(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return inputs in float32 if that is asked for; others keep their type."""
    return X.astype(dtype, copy=False) if dtype == np.float32 else X


def _sample(X: Any, seed: int) -> Rows:
    """Return all rows, or as many as have 256 MB, in order, without a copy of them."""
    n = X.shape[0]
    rows = X if isinstance(X, Rows) else Rows(X, np.arange(n))
    n_fitted = int(FIT_BYTES / max(1.0, rows.row_bytes()))
    if n <= n_fitted:
        return rows
    drawn = np.random.default_rng(seed).choice(n, n_fitted, replace=False)
    return Rows(rows.matrix, rows.numbers[np.sort(drawn)])


def _preprocessed(steps: Preprocessing, rows: Rows, dtype: np.dtype[Any]) -> Any:
    """Preprocess rows in blocks, so that there is one copy of them at a time."""
    parts = (_as_type(steps.transform(X), dtype) for X in blocks(rows))
    first = next(parts)
    if hasattr(first, "indptr"):
        from scipy.sparse import vstack

        return vstack([first, *parts], format="csr")
    out = np.empty((rows.shape[0], first.shape[1]), first.dtype)
    start = 0
    for part in chain([first], parts):
        out[start : start + len(part)] = part
        start += len(part)
    return out
