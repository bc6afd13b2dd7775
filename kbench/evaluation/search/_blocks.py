"""Inner folds whose embedding is taken in blocks: fits from sums or in passes, and their scores."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kbench.evaluation.block_fits import BlockFits
from kbench.evaluation.checked_predictions import FittedLearner, Predictions, predict_all
from kbench.evaluation.embedding import Embedding, Fitting
from kbench.evaluation.lazy_rows import Matrix, Rows
from kbench.evaluation.metrics import Criterion
from kbench.evaluation.passes import (
    WHOLE_BYTES,
    LinearModels,
    Pass,
    fit_from_sums,
    fit_map,
    labels,
    pass_over,
)
from kbench.evaluation.search._folds import FoldInMemory, Select, score_predictions
from kbench.evaluation.specs import Candidate, Fit
from kbench.evaluation.splits import Fold
from kbench.evaluation.targets import Scale, Truth
from kbench.evaluation.timing import Stopwatch

FROM_SUMS = ("rmse", "rmse_standardized")
"""Metrics that sums have without the predictions."""


@dataclass
class FoldInBlocks:
    """An inner fold whose embedding is taken in blocks.

    Its test rows are numbers of rows of `X`. Learners are fitted from the sums of `passed`, or in
    passes by `fit_all`, which returns those of all folds.
    """

    fitting: Fitting
    embedding: Embedding
    X: "Matrix | Rows"
    fold: Fold
    fit_all: Callable[[Sequence[Candidate]], tuple[BlockFits, list[list[Fit]]]]
    number: int
    passed: Pass | None
    n_embedded: int
    converged: bool

    def fit(self, candidates: Sequence[Candidate]) -> list[Fit]:
        """Fit the learners of one path, or of one candidate, on the training rows."""
        if self.passed is not None:
            sums = self.passed.leave_out(self.number, self.fold[0])
            return fit_from_sums(self.fitting.learner, sums, candidates, self.fitting.learner_seed)
        fits, fitted = self.fit_all(candidates)
        # it may be in float64 instead of float32
        self.embedding, self.converged = fits.shared, fits.shared.converged
        self.n_embedded += fits.n_embedded
        fits.n_embedded = 0
        return fitted[self.number]

    def embed_test_rows(self) -> Iterator[Matrix]:
        """Yield the embedded test rows, in blocks."""
        self.n_embedded += len(self.fold[1])
        for _, Z in self.embedding.embed_blocks(self.X, self.fold[1], Stopwatch()):
            yield Z

    def score(
        self, estimators: Sequence[FittedLearner], truth: Truth, criterion: Criterion
    ) -> Iterable[float | None]:
        """Yield a metric of the predictions of each learner for the test rows.

        So many learners predict together that their values fit into memory.
        """
        metric, passed = criterion.metric, self.passed
        scale = None if passed is None else passed.targets.scale
        is_of_sums = metric.name in FROM_SUMS and truth.task == "regression"
        if passed is not None and scale is not None and len(passed.parts) > 1 and is_of_sums:
            held_out = passed.parts[self.number]
            unit = truth.scale.sd if metric.name == "rmse_standardized" else 1.0
            W = np.column_stack([estimator.coef_ for estimator in estimators])
            b = np.array([estimator.intercept_ for estimator in estimators])
            errors = held_out.squared_errors(W, b) if held_out.n > 0 else len(estimators) * [None]
            yield from (e if e is None else scale.sd * math.sqrt(e) / unit for e in errors)
            return
        with_values = metric.needs != "predictions"
        n_values = np.size(estimators[0].intercept_) if with_values else 1
        step = max(1, WHOLE_BYTES // (8 * n_values * len(self.fold[1])))
        for start in range(0, len(estimators), step):
            part = estimators[start : start + step]
            models = LinearModels(part)
            lists: list[list[Predictions]] = [[] for _ in part]
            for Z in self.embed_test_rows():
                for several, estimator, values in zip(lists, part, models.values(Z), strict=True):
                    if with_values and hasattr(estimator, "predict_proba"):
                        labelled = labels(values, estimator.classes_)
                        several.append(predict_all(estimator, Z, labelled, truth.task))
                    else:
                        several.append(_predictions(estimator, values, scale, truth, with_values))
            for several in lists:
                name = self.fitting.learner.label
                yield score_predictions(Predictions.join(several), truth, criterion, name)


def select_shared(
    fitting: Fitting, candidates: Sequence[Candidate], folds: Sequence[Fold]
) -> tuple[Pass | None, Select]:
    """Fit one map for all folds; return a function that selects a fold, and the sums, if any."""
    shared, _, is_large = fit_map(fitting, candidates)
    if is_large:
        return select_in_blocks(fitting, candidates, shared, folds)
    Z = shared.embed_all(fitting.data.X)
    return None, lambda _, fold: FoldInMemory(
        fitting.select(fold[0]), Z[fold[0]], Z[fold[1]], shared.converged
    )


def select_in_blocks(
    fitting: Fitting, candidates: Sequence[Candidate], shared: Embedding, folds: Sequence[Fold]
) -> tuple[Pass | None, Callable[[int, Fold], FoldInBlocks]]:
    """Return a function that selects a fold from one embedding in blocks, and its sums, if any.

    The training rows of a fold are the test rows of the others; of a single fold its own.
    """
    X, parts = fitting.data.X, [test for _, test in folds]
    done: dict[str, tuple[BlockFits, list[list[Fit]]]] = {}

    def fit_all(candidates: Sequence[Candidate]) -> tuple[BlockFits, list[list[Fit]]]:
        key = repr([candidate.learner for candidate in candidates])
        if key not in done:
            fits = BlockFits(shared)
            done[key] = fits, fits.fit(fitting, candidates, parts)
        return done[key]

    passed = None
    if fitting.learner.all_have("fit_sums", candidates):
        passed = pass_over(shared, fitting, candidates, parts)
        shared = passed.shared

    def select(number: int, fold: Fold) -> FoldInBlocks:
        n = passed.n_embedded if passed and number == 0 else 0
        return FoldInBlocks(fitting, shared, X, fold, fit_all, number, passed, n, shared.converged)

    return passed, select


def _predictions(
    estimator: FittedLearner,
    values: np.ndarray,
    scale: Scale | None,
    truth: Truth,
    with_values: bool,
) -> Predictions:
    if scale is not None and truth.task == "regression":
        # from the scale of the training set to that of the fold
        return Predictions(truth.scale.standardise(scale.restore(values[:, 0])))
    decision = values[:, 0] if values.shape[1] == 1 else values
    return Predictions(
        labels(values, estimator.classes_), decision=decision if with_values else None
    )
