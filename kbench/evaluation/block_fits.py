"""Learners that are fitted in several passes over an embedding in blocks."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbench.arrays import as_type
from kbench.evaluation.embedding import Data, Fitting, has_converged
from kbench.evaluation.gram_sums import Targets
from kbench.evaluation.lazy_rows import Matrix, is_sparse
from kbench.evaluation.passes import Passes, path_value
from kbench.evaluation.specs import Candidate, Fit
from kbench.evaluation.splits import derive_seed

SAMPLE_BYTES = 2**28
"""Size in float64 of the sample of embedded rows from which fits begin."""

ROWS_OF_CLASS = 50
"""Rows of a class that the sample has, unless there are fewer."""


@dataclass(frozen=True)
class Sample:
    """Embedded rows of a training set, drawn by seed, and statistics of all its rows."""

    Z: Matrix
    """Array, on a device or not, or CSR matrix of float64, shape (n_sample, n_features)."""

    codes: np.ndarray
    """Numbers of their classes, shape (n_sample,)."""

    classes: np.ndarray
    """Labels of the training set, sorted."""

    counts: np.ndarray
    """Number of its rows in each class."""


class BlockFits(Passes):
    """Fits of one path on training sets that are made of parts of the rows."""

    def fit(
        self, fitting: Fitting, candidates: Sequence[Candidate], parts: Sequence[np.ndarray]
    ) -> list[list[Fit]]:
        """Fit the learners of one path on each training set; return whether they converged.

        `parts` are row numbers. A training set is all parts but one, in their order; a single
        part is one itself. Fits that do not converge in float32 are made again in float64.
        """
        fits = self._fit(fitting, candidates, parts)
        converged = all(flag for fitted in fits for _, flag in fitted)
        if not converged and self.shared.dtype == np.float32:
            reason = "a fit over blocks in float32 did not converge"
            self.use_float64(fitting, candidates[0], reason)
            fits = self._fit(fitting, candidates, parts)
        return fits

    def _fit(
        self, fitting: Fitting, candidates: Sequence[Candidate], parts: Sequence[np.ndarray]
    ) -> list[list[Fit]]:
        data = fitting.data
        labels = Targets(data.y, data.task)
        every = range(len(parts))
        training = [[k for k in every if k != part] for part in every] if len(parts) > 1 else [[0]]
        fits: list[list[Fit]] = []
        group: list[_BlockFit] = []
        for numbers in training:
            rows = np.concatenate([parts[number] for number in numbers])
            group.append(self._begin(fitting, candidates, rows, numbers, labels))
            # a fit tells its size only once it has begun
            if sum(fit.inner.nbytes for fit in group) > self.shared.device.fits_bytes:
                fits += self._finish(group, data, parts, labels)
                group = []
        return fits + self._finish(group, data, parts, labels)

    def _begin(
        self,
        fitting: Fitting,
        candidates: Sequence[Candidate],
        rows: np.ndarray,
        numbers: Sequence[int],
        labels: Targets,
    ) -> "_BlockFit":
        """Begin the fit on some rows, from a sample of them."""
        learner, data = fitting.learner, fitting.data
        values = [path_value(learner, candidate) for candidate in candidates]
        params = {k: v for k, v in candidates[0].learner.items() if k != learner.path}
        estimator = learner.build(params, fitting.learner_seed)
        learner.weights(estimator.fit, data.weight)  # raises if it takes none
        counts = np.bincount(labels.codes[rows], minlength=labels.n_columns)
        present = np.flatnonzero(counts)
        assert labels.classes is not None  # learners of labels only are fitted so
        table = np.cumsum(counts > 0) - 1
        Z = self.shared.embed_timed(data.X, rows[:1], self.transform)
        with self.transform:
            row_bytes = 12 * Z.nnz if is_sparse(Z) else 8 * Z.shape[1]
            n = getattr(estimator, "sample_rows", max(1, SAMPLE_BYTES // max(1, row_bytes)))
            drawn = _draw(rows, labels, n, derive_seed(fitting.seed, "sample"))
        Z = as_type(self.shared.embed_timed(data.X, drawn, self.transform, True), np.float64)
        self.n_embedded += len(drawn)
        self.begun_on = 0 if hasattr(estimator, "sample_rows") else len(drawn)
        sample = Sample(Z, table[labels.codes[drawn]], labels.classes[present], counts[present])
        with self.solving:
            inner = estimator.begin_fit(sample, values)
        return _BlockFit(inner, table, frozenset(numbers), np.sort(rows))

    def _finish(
        self, fits: "list[_BlockFit]", data: Data, parts: Sequence[np.ndarray], labels: Targets
    ) -> list[list[Fit]]:
        """Make passes over the parts until all fits are done."""
        while running := [fit for fit in fits if not fit.inner.is_done]:
            ordered = [fit for fit in running if hasattr(fit.inner, "order")]
            for fit in ordered:
                rows = fit.rows[fit.inner.order(len(fit.rows))]
                self._pass([fit], data, rows, labels)
            for number, rows in enumerate(parts):
                taking = [fit for fit in running if number in fit.parts and fit not in ordered]
                if taking:
                    self._pass(taking, data, rows, labels)
            with self.solving:
                for fit in running:
                    fit.inner.step()
        return [fit.learners() for fit in fits]

    def _pass(
        self, taking: "list[_BlockFit]", data: Data, rows: np.ndarray, labels: Targets
    ) -> None:
        for numbers, Z in self.shared.embed_blocks(data.X, rows, self.transform, True):
            with self.solving:
                codes = labels.codes[numbers]
                weight = data.weights(numbers)
                for fit in taking:
                    fit.inner.add(Z, fit.table[codes], *([] if weight is None else [weight]))
        self.n_embedded += len(rows)


def _draw(rows: np.ndarray, labels: Targets, n_rows: int, seed: int) -> np.ndarray:
    """Draw rows, some of each class among them."""
    order = np.random.default_rng(seed).permutation(rows)
    codes = labels.codes[order]
    of_classes = [order[codes == code][:ROWS_OF_CLASS] for code in np.unique(codes)]
    return np.unique(np.concatenate([order[:n_rows], *of_classes]))


@dataclass(frozen=True, eq=False)
class _BlockFit:
    """The fit on one training set of `rows`; `table` has its number of each class.

    The rows are those of `parts`. A fit that has an `order` gets them in it.
    """

    inner: Any
    table: np.ndarray
    parts: frozenset[int]
    rows: np.ndarray

    def learners(self) -> list[Fit]:
        with warnings.catch_warnings(action="ignore"):  # of convergence, which the estimators tell
            return [(each, has_converged(each, ())) for each in self.inner.estimators()]
