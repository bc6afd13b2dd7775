"""Folds whose embedding is taken in blocks: fits from sums or in passes, and their scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kbench.evaluation.block_fits import BlockFits
from kbench.evaluation.checked_predictions import FittedLearner, Predictions, predict_all
from kbench.evaluation.embedding import Embedding, Fitting
from kbench.evaluation.gram_sums import Sums
from kbench.evaluation.lazy_rows import Matrix, Rows
from kbench.evaluation.metrics import Criterion
from kbench.evaluation.passes import (
    WHOLE_BYTES,
    LinearModels,
    fit_from_sums,
    labels,
    pass_over,
    takes_sums,
)
from kbench.evaluation.search._folds import score_predictions
from kbench.evaluation.specs import Candidate, Fit
from kbench.evaluation.targets import Scale, Truth
from kbench.evaluation.timing import Stopwatch

FROM_SUMS = ("rmse", "rmse_standardized")
"""Metrics that sums have without the predictions."""


@dataclass
class FoldInBlocks:
    """A fold whose embedding is taken in blocks.

    Parameters
    ----------
    fitting : Fitting
        Of the rows that the embedding was fitted on.
    embedding : Embedding
    X : Matrix or Rows
        The inputs that `test` has numbers of.
    test : ndarray of int
        The test rows.
    sums : Sums, optional
        Over the training rows; without, learners are fitted in passes.
    held_out : Sums, optional
        Over the test rows.
    scale : Scale, optional
        Of the targets of `sums`.
    n_embedded : int
        Rows that were embedded.
    """

    fitting: Fitting
    embedding: Embedding
    X: Matrix | Rows
    test: np.ndarray
    sums: Sums | None = None
    held_out: Sums | None = None
    scale: Scale | None = None
    n_embedded: int = 0

    @classmethod
    def fit_alone(
        cls,
        fitting: Fitting,
        candidates: Sequence[Candidate],
        embedding: Embedding,
        X: Matrix | Rows,
        test: np.ndarray,
    ) -> FoldInBlocks:
        """Return the fold of an embedding that was fitted on its training rows, with their sums."""
        fold = cls(fitting, embedding, X, test)
        if takes_sums(fitting.learner, candidates):
            passed = pass_over(embedding, fitting, candidates, [np.arange(len(fitting.data.y))])
            fold.sums, fold.scale = passed.total(), passed.targets.scale
            fold.n_embedded = passed.n_embedded
        return fold

    @property
    def converged(self) -> bool:
        """Whether the fit of the map converged."""
        return self.embedding.converged

    def fit(self, candidates: Sequence[Candidate]) -> list[Fit]:
        """Fit the learners of one path, or of one candidate, on the training rows."""
        fitting = self.fitting
        if self.sums is not None:
            return fit_from_sums(fitting.learner, self.sums, candidates, fitting.learner_seed)
        fits = BlockFits(self.embedding)
        (fitted,) = fits.fit(fitting, candidates, [np.arange(len(fitting.data.y))])
        self.n_embedded += fits.n_embedded
        return fitted

    def embed_test_rows(self) -> Iterator[Matrix]:
        """Yield the embedded test rows, in blocks."""
        self.n_embedded += len(self.test)
        for _, Z in self.embedding.embed_blocks(self.X, self.test, Stopwatch()):
            yield Z

    def score(
        self, estimators: Sequence[FittedLearner], truth: Truth, criterion: Criterion
    ) -> Iterable[float | None]:
        """Return a metric of the predictions of each learner for the test rows."""
        is_of_sums = criterion.metric.name in FROM_SUMS and truth.task == "regression"
        if self.held_out is not None and self.scale is not None and is_of_sums:
            return self._errors(estimators, self.held_out, self.scale, truth, criterion)
        return self._score_predictions(estimators, truth, criterion)

    def _errors(
        self,
        estimators: Sequence[FittedLearner],
        held_out: Sums,
        scale: Scale,
        truth: Truth,
        criterion: Criterion,
    ) -> list[float | None]:
        """Return the root mean squared errors of regressors."""
        if not held_out.n > 0:
            return [None for _ in estimators]
        W = np.column_stack([estimator.coef_ for estimator in estimators])
        b = np.array([estimator.intercept_ for estimator in estimators])
        unit = truth.scale.sd if criterion.metric.name == "rmse_standardized" else 1.0
        return [scale.sd * math.sqrt(error) / unit for error in held_out.squared_errors(W, b)]

    def _score_predictions(
        self, estimators: Sequence[FittedLearner], truth: Truth, criterion: Criterion
    ) -> Iterator[float | None]:
        """Yield the scores of predictions, in another pass over the test rows.

        So many estimators predict together that their values fit into memory.
        """
        with_values = criterion.metric.needs != "predictions"
        n_values = np.size(estimators[0].intercept_) if with_values else 1
        step = max(1, WHOLE_BYTES // (8 * n_values * len(self.test)))
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
                        several.append(self._predictions(estimator, values, truth, with_values))
            for several in lists:
                name = self.fitting.learner.label
                yield score_predictions(Predictions.join(several), truth, criterion, name)

    def _predictions(
        self, estimator: FittedLearner, values: np.ndarray, truth: Truth, with_values: bool
    ) -> Predictions:
        if self.scale is not None and truth.task == "regression":
            # from the scale of the training set to that of the fold
            return Predictions(truth.scale.standardise(self.scale.restore(values[:, 0])))
        decision = values[:, 0] if values.shape[1] == 1 else values
        return Predictions(
            labels(values, estimator.classes_), decision=decision if with_values else None
        )
