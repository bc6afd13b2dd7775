"""Scoring candidates on inner folds that share one map, fitted on the whole training set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kbench.evaluation.block_fits import BlockFits
from kbench.evaluation.embedding import Embedding
from kbench.evaluation.gram_sums import Sums
from kbench.evaluation.passes import Pass, fit_map, pass_over, takes_sums
from kbench.evaluation.search._blocks import FoldInBlocks
from kbench.evaluation.search._folds import (
    EmbeddedFold,
    FoldScorer,
    clear,
    group_by_path,
    make_fold_selector,
)
from kbench.evaluation.search._result import Score, SearchResult
from kbench.evaluation.specs import Fit
from kbench.evaluation.splits import Fold


@dataclass
class OuterScorer(FoldScorer):
    """Scores candidates on inner folds whose maps were fitted once, on all rows.

    If the embedding is too large to hold, learners are fitted from sums of one pass through its
    blocks, or in several passes. `passed` keeps the sums for the map of the best candidate so far.
    """

    passed: Pass | None = None
    _gain: float = -math.inf

    def _score_group(self, group: list[Score], folds: Sequence[Fold]) -> bool:
        if self._is_over():
            return False
        candidates = [score.candidate for score in group]
        try:
            shared, _, is_large = fit_map(self.fitting, candidates)
            if is_large:
                if not takes_sums(self.fitting.learner, candidates):
                    return self._score_in_blocks(shared, group, folds)
                passed = pass_over(shared, self.fitting, candidates, [test for _, test in folds])
                return self._score_from(passed, group, folds)
            Z = shared.embed_all(self.fitting.data.X)
        except Exception as error:
            self._record_failure(group, error)
            return True
        return self._score_on(folds, group, make_fold_selector(self.fitting, Z, shared.converged))

    def _score_from(self, passed: Pass, group: list[Score], folds: Sequence[Fold]) -> bool:
        """Score the candidates of one map from the sums of its embedding."""
        self.n_embedded += passed.n_embedded
        X, scale = self.fitting.data.X, passed.targets.scale

        def select(number: int, fold: Fold) -> EmbeddedFold:
            sums, held_out = passed.leave_out(number, fold[0]), passed.parts[number]
            return FoldInBlocks(self.fitting, passed.shared, X, fold[1], sums, held_out, scale)

        complete = self._score_on(folds, group, select)
        gain = max(score.gain for score in group)
        if complete and (self.passed is None or gain > self._gain):
            # one sum is enough for the fit of the best candidate
            passed.parts = [Sums.combine(passed.parts)]
            self.passed, self._gain = passed, gain
        return complete

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
        embedded = FoldInBlocks(self.fitting, shared, self.fitting.data.X, fold[1])
        estimators = [estimator for estimator, _ in fitted]
        values = embedded.score(estimators, self._truth(fold), self.criterion)
        for score, (_, converged), value in zip(scores, fitted, values, strict=True):
            score.add(value, converged and shared.converged)
        self.n_embedded += embedded.n_embedded

    def add_passes(self, result: SearchResult) -> SearchResult:
        """Return the result with the sums of the best candidate, whose time is its fit's."""
        passed = replace(result, passed=self.passed).passed_for(result.best)
        if passed is None:
            return result
        seconds, cpu_seconds = result.seconds - passed.wall, result.cpu_seconds - passed.cpu
        return replace(result, passed=passed, seconds=seconds, cpu_seconds=cpu_seconds)
