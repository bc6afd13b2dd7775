"""Passes over an embedding in blocks, for learners that are fitted from sums."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kbench.arrays import as_type, like, namespace, to_numpy
from kbench.evaluation.checked_predictions import FittedLearner
from kbench.evaluation.embedding import Data, Embedding, Fitting, has_converged
from kbench.evaluation.gram_sums import Sums, Targets
from kbench.evaluation.lazy_rows import Matrix, is_sparse, iterate_row_numbers
from kbench.evaluation.specs import Candidate, EstimatorSpec, Fit
from kbench.evaluation.timing import Run, Stopwatch, once

WHOLE_BYTES = 2**28
"""Size of an embedding in float64 up to which it is held as one matrix."""

MAX_COLUMNS = 4096
"""Columns of an embedding whose sums are taken."""

FEW_COLUMNS = 1024
"""Columns up to which sums replace an embedding of more than half of `WHOLE_BYTES`."""

FLOAT32_PENALTY = 1e-5
"""Smallest penalty for sums of float32 blocks, as a share of the largest eigenvalue."""


@dataclass
class Passes:
    """Passes through the blocks of an embedding, their clocks, and notes."""

    shared: Embedding

    n_embedded: int = field(default=0, kw_only=True)
    """Rows that were embedded."""

    notes: list[str] = field(default_factory=list, kw_only=True)

    def __post_init__(self) -> None:
        """Set the clocks of the embedding, and of what is computed from it."""
        wait = self.shared.device.synchronise
        self.transform, self.solving = Stopwatch(wait), Stopwatch(wait)

    def use_float64(self, fitting: Fitting, candidate: Candidate, reason: str) -> None:
        """Fit the map again, for blocks in float64; the reason becomes a note."""
        self.notes.append(f"float64 instead of float32: {reason}")
        self.shared, _ = Embedding.fit_rows(fitting, candidate, device=self.shared.device)


@dataclass
class Pass(Passes):
    """Sums of an embedding over parts of the rows, in a single pass through its blocks."""

    candidate: Candidate
    """Its preprocessing and map are those of the embedding."""

    targets: Targets

    parts: list[Sums] = field(default_factory=list)
    """In the order of the parts."""

    def leave_out(self, part: int | None, rows: np.ndarray) -> Sums:
        """Return the sums of all parts but one, or of all or the only one, which have `rows`."""
        rest = [sums for number, sums in enumerate(self.parts) if number != part]
        return self.targets.select_present(Sums.combine(rest or self.parts), rows)

    def over(self, data: Data, parts: Sequence[np.ndarray]) -> None:
        """Take the sums over parts of the rows."""
        shift = buffer = None
        self.parts = []
        for rows in parts:
            sums = None
            for numbers, Z in self.shared.embed_blocks(data.X, rows, self.transform, True):
                with self.solving:
                    if shift is None:  # in the type of the blocks, which it is subtracted from
                        mean = (
                            np.zeros(Z.shape[1]) if is_sparse(Z) else namespace(Z).mean(Z, axis=0)
                        )
                        shift = as_type(mean, np.float64)
                    if isinstance(Z, np.ndarray) and (buffer is None or len(buffer) < len(Z)):
                        buffer = np.empty_like(Z)
                    sums = sums or Sums.zero(shift, self.targets.n_columns)
                    Y, weight = self.targets.block(numbers), data.weights(numbers)
                    sums.add(Z, Y, weight, buffer)
            self.n_embedded += len(rows)
            assert sums is not None  # there are no empty folds
            self.parts.append(sums)


def fit_map(
    fitting: Fitting, candidates: Sequence[Candidate], run: Run = once
) -> "tuple[Embedding, Matrix | None, bool]":
    """Fit the map that candidates share.

    Return its preprocessed training rows, if there is a copy of them, and whether the embedding
    is too large to hold. It is never too large for a learner that needs it as one matrix, or a
    map that embeds a row differently alone than in a block.
    """
    learner, data, dtype = fitting.learner, fitting.data, fitting.protocol.block_dtype
    n = data.X.shape[0]
    device, _ = fitting.place(candidates)
    if not device.is_host:
        shared, _ = Embedding.fit_rows(fitting, candidates[0], run, dtype, device)
        if shared.allows_blocks(data.X):
            return shared, None, True
        return *Embedding.fit_rows(fitting, candidates[0], run), False
    from_sums = learner.all_have("fit_sums", candidates)
    in_blocks = from_sums or learner.all_have("begin_fit", candidates)
    if data.pairwise or n * 12 * MAX_COLUMNS <= WHOLE_BYTES or not in_blocks:
        return *Embedding.fit_rows(fitting, candidates[0], run), False
    shared, X = Embedding.fit_rows(fitting, candidates[0], run, dtype)
    Z = shared.embed(data.X[np.arange(1)])
    row_bytes: float = 8 * Z.shape[1]
    if is_sparse(Z):
        if shared.dtype != np.float64:
            # sums of sparse rows are not shifted
            shared, X = Embedding.fit_rows(fitting, candidates[0], run)
        rows = next(iterate_row_numbers(np.arange(n)))
        some = shared.embed(data.X[rows])
        row_bytes = 12 * (some.nnz if is_sparse(some) else some.size) / len(rows)
        del some  # a map may be fitted below, which needs the memory
    most = WHOLE_BYTES / 2 if from_sums and Z.shape[1] <= FEW_COLUMNS else WHOLE_BYTES
    if Z.shape[1] <= MAX_COLUMNS and n * row_bytes > most and shared.allows_blocks(data.X):
        return shared, None, True
    if dtype != "float64":
        shared, X = Embedding.fit_rows(fitting, candidates[0], run)
    return shared, X, False


def pass_over(
    shared: Embedding,
    fitting: Fitting,
    candidates: Sequence[Candidate],
    parts: Sequence[np.ndarray],
) -> Pass:
    """Take the sums that candidates with one map are fitted from, by parts of the rows.

    Where a penalty is too small for blocks in float32, the pass is made again in float64.
    """
    learner, data = fitting.learner, fitting.data
    passed = Pass(shared, candidates[0], Targets(data.y, data.task, data.weight))
    passed.over(data, parts)
    if shared.dtype == np.float32:
        least = min(path_value(learner, candidate) for candidate in candidates)
        largest = Sums.combine(passed.parts).largest_eigenvalue()
        if least < FLOAT32_PENALTY * largest:
            share = f"{FLOAT32_PENALTY:g} of the largest eigenvalue of the Gram matrix"
            reason = f"{learner.path} {least:g} is less than {share}, {largest:.3g}"
            passed.use_float64(fitting, candidates[0], reason)
            passed.over(data, parts)
    return passed


def fit_from_sums(
    learner: EstimatorSpec, sums: Sums, candidates: Sequence[Candidate], seed: int
) -> list[Fit]:
    """Fit the learners of one path, or of one candidate; return whether they converged."""
    path = learner.path
    params = {k: v for k, v in candidates[0].learner.items() if k != path}
    values = [path_value(learner, candidate) for candidate in candidates]
    with warnings.catch_warnings(record=True, action="always") as caught:
        fitted = learner.build(params, seed).fit_sums(sums, values)
    return [(estimator, has_converged(estimator, caught)) for estimator in fitted]


class LinearModels:
    """Fitted linear estimators, which predict a block of rows together.

    They have ``coef_`` and ``intercept_``, of all targets or of one, and ``scores_of``
    where the values of the linear functions are not the scores of the classes.
    """

    def __init__(self, estimators: Sequence[FittedLearner]) -> None:
        coefs = [np.atleast_2d(estimator.coef_) for estimator in estimators]
        self._W = np.vstack(coefs).T
        self._b = np.concatenate([np.atleast_1d(each.intercept_) for each in estimators])
        self._ends = np.cumsum([len(coef) for coef in coefs])[:-1]
        # pairs of classes vote
        self._scores = [getattr(each, "scores_of", np.asarray) for each in estimators]

    def values(self, Z: np.ndarray) -> list[np.ndarray]:
        """Return the scores of each estimator, shape (n, n_targets)."""
        parts = np.split(to_numpy(Z @ like(self._W, Z)) + self._b, self._ends, axis=1)
        outputs = [scores(values) for scores, values in zip(self._scores, parts, strict=True)]
        return [values[:, None] if values.ndim == 1 else values for values in outputs]


def labels(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the labels by the values of linear estimators: of two classes by the sign."""
    if values.shape[1] == 1:
        return np.asarray(classes[(values[:, 0] >= 0).astype(int)])
    return np.asarray(classes[values.argmax(axis=1)])


def path_value(learner: EstimatorSpec, candidate: Candidate) -> Any:
    """Return the value of the path's parameter, which may be given instead of searched."""
    return getattr(learner.build(candidate.learner, 0), str(learner.path))
