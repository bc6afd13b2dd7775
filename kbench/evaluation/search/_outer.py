"""Scoring candidates on inner folds that share one map, fitted on the whole training set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kbench.evaluation.block_fits import BlockFits
from kbench.evaluation.checked_predictions import FittedLearner, Predictions, predict_all
from kbench.evaluation.embedding import Embedding
from kbench.evaluation.gram_sums import Sums
from kbench.evaluation.passes import (
    WHOLE_BYTES,
    LinearModels,
    Pass,
    fit_from_sums,
    fit_shared_map,
    labels,
    pass_over,
    takes_sums,
)
from kbench.evaluation.search._folds import (
    FoldScorer,
    clear,
    group_by_path,
    make_fold_selector,
    score_predictions,
)
from kbench.evaluation.search._result import Score, SearchResult
from kbench.evaluation.specs import Fit
from kbench.evaluation.splits import Fold
from kbench.evaluation.targets import Scale, Truth
from kbench.evaluation.timing import Stopwatch

FROM_SUMS = ("rmse", "rmse_standardized")
"""Metrics that sums have without the predictions."""


@dataclass
class OuterScorer(FoldScorer):
    """Scores candidates on inner folds whose maps were fitted once, on all rows.

    If the embedding is too large to hold, learners are fitted from sums of one pass through its
    blocks, or in several passes. `passed` keeps the sums for the map of the best candidate so far.
    """

    passed: Pass | None = None
    n_embedded: int = 0
    _gain: float = -math.inf

    def _score_group(self, group: list[Score], folds: Sequence[Fold]) -> bool:
        if self._is_over():
            return False
        candidates = [score.candidate for score in group]
        try:
            shared, is_large = fit_shared_map(self.fitting, candidates)
            if is_large:
                if not takes_sums(self.fitting.learner, candidates):
                    return self._score_in_blocks(shared, group, folds)
                passed = pass_over(shared, self.fitting, candidates, [test for _, test in folds])
                return self._score_from(passed, group, folds)
            Z = shared.embed_all(self.fitting.data.X)
        except Exception as error:
            self._record_failure(group, error)
            return True
        return self._score_on(folds, group, make_fold_selector(Z, shared.converged))

    def _score_from(self, passed: Pass, group: list[Score], folds: Sequence[Fold]) -> bool:
        """Score the candidates of one map from the sums of its embedding."""
        self.n_embedded += passed.n_embedded
        for number, fold in enumerate(folds):
            if self._is_over():
                clear(group)
                return False
            sums, truth = passed.leave_out(number, fold[0]), self._truth(fold)
            for scores in group_by_path(group, self.fitting.learner.path):
                try:
                    self._score_sums(passed, scores, sums, passed.parts[number], fold[1], truth)
                except Exception as error:
                    self._record_failure(scores, error)
        self._has_choice = self._has_choice or any(score.has_value for score in group)
        gain = max(score.gain for score in group)
        if self.passed is None or gain > self._gain:
            # one sum is enough for the fit of the best candidate
            passed.parts = [Sums.combine(passed.parts)]
            self.passed, self._gain = passed, gain
        return True

    def _score_in_blocks(
        self, shared: Embedding, group: list[Score], folds: Sequence[Fold]
    ) -> bool:
        """Score the candidates of one map in passes over blocks of its embedding."""
        parts = [test for _, test in folds]
        for scores in group_by_path(group, self.fitting.learner.path):
            if self._is_over():
                clear(scores)
                return False
            fits = BlockFits(shared)
            candidates = [score.candidate for score in scores]
            try:
                fitted_learners = fits.fit(self.fitting, candidates, parts)
                self.n_embedded += fits.n_embedded
                for fold, fitted in zip(folds, fitted_learners, strict=True):
                    self._score_fitted(fits.shared, scores, fitted, fold)
            except Exception as error:
                self._record_failure(scores, error)
            self._has_choice = self._has_choice or any(score.has_value for score in scores)
        return True

    def _score_fitted(
        self, shared: Embedding, scores: list[Score], fitted: list[Fit], fold: Fold
    ) -> None:
        """Score fitted classifiers on the test rows of a fold."""
        truth = self._truth(fold)
        estimators = [estimator for estimator, _ in fitted]
        values = self._score_predictions(estimators, shared, fold[1], truth)
        for score, (_, converged), value in zip(scores, fitted, values, strict=True):
            score.add(value, converged and shared.converged)

    def add_passes(self, result: SearchResult) -> SearchResult:
        """Return the result with the sums of the best candidate, whose time is its fit's."""
        result = replace(result, passed=self.passed, n_embedded=self.n_embedded)
        passed = result.passed_for(result.best)
        if passed is None:
            return replace(result, passed=None)
        return replace(
            result,
            seconds=result.seconds - passed.wall,
            cpu_seconds=result.cpu_seconds - passed.cpu,
        )

    def _score_sums(
        self,
        passed: Pass,
        scores: list[Score],
        sums: Sums,
        held_out: Sums,
        test: np.ndarray,
        truth: Truth,
    ) -> None:
        """Fit the learners of one path from `sums`, and score them on the test rows of a fold."""
        candidates = [score.candidate for score in scores]
        fitted = fit_from_sums(self.fitting.learner, sums, candidates, self.fitting.learner_seed)
        estimators = [estimator for estimator, _ in fitted]
        values: Iterator[float | None]
        if self.criterion.metric.name in FROM_SUMS and truth.task == "regression":
            values = self._iterate_errors(estimators, held_out, passed, truth)
        else:
            scale = passed.targets.scale
            values = self._score_predictions(estimators, passed.shared, test, truth, scale)
        for score, (_, converged), value in zip(scores, fitted, values, strict=True):
            score.add(value, converged and passed.shared.converged)

    def _iterate_errors(
        self, estimators: list[FittedLearner], held_out: Sums, passed: Pass, truth: Truth
    ) -> Iterator[float | None]:
        """Yield the root mean squared errors of regressors."""
        if not held_out.n > 0:
            yield from (None for _ in estimators)
            return
        W = np.column_stack([estimator.coef_ for estimator in estimators])
        b = np.array([estimator.intercept_ for estimator in estimators])
        unit = truth.scale.sd if self.criterion.metric.name == "rmse_standardized" else 1.0
        for error in held_out.squared_errors(W, b):
            yield passed.targets.scale.sd * math.sqrt(error) / unit

    def _score_predictions(
        self,
        estimators: list[FittedLearner],
        shared: Embedding,
        test: np.ndarray,
        truth: Truth,
        scale: Scale | None = None,
    ) -> Iterator[float | None]:
        """Yield the scores of predictions, in another pass over the test rows of a fold.

        So many estimators predict together that their values fit into memory. `scale` is
        that of the targets that regressors were fitted on.
        """
        with_values = self.criterion.metric.needs != "predictions"
        n_values = np.size(estimators[0].intercept_) if with_values else 1
        step = max(1, WHOLE_BYTES // (8 * n_values * len(test)))
        for start in range(0, len(estimators), step):
            part = estimators[start : start + step]
            models = LinearModels(part)
            lists: list[list[Predictions]] = [[] for _ in part]
            for _, Z in shared.embed_blocks(self.fitting.data.X, test, Stopwatch()):
                for several, estimator, values in zip(lists, part, models.values(Z), strict=True):
                    if with_values and hasattr(estimator, "predict_proba"):
                        labelled = labels(values, estimator.classes_)
                        several.append(predict_all(estimator, Z, labelled, truth.task))
                    else:
                        several.append(_predictions(estimator, values, scale, truth, with_values))
            self.n_embedded += len(test)
            for several in lists:
                predictions = Predictions.join(several)
                yield score_predictions(
                    predictions, truth, self.criterion, self.fitting.learner.label
                )


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
