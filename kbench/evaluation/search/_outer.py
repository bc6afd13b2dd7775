"""Scoring candidates on inner folds that share one map, fitted on the whole training set."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kbench.evaluation.gram_sums import Sums
from kbench.evaluation.passes import Pass
from kbench.evaluation.search._blocks import select_shared
from kbench.evaluation.search._folds import FoldScorer
from kbench.evaluation.search._result import Score, SearchResult
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
            passed, select = select_shared(self.fitting, candidates, folds)
        except Exception as error:
            self._record_failure(group, error)
            return True
        complete = self._score_on(folds, group, select)
        gain = max(score.gain for score in group)
        if passed is not None and complete and (self.passed is None or gain > self._gain):
            # one sum is enough for the fit of the best candidate
            passed.parts = [Sums.combine(passed.parts)]
            self.passed, self._gain = passed, gain
        return complete

    def add_passes(self, result: SearchResult) -> SearchResult:
        """Return the result with the sums of the best candidate, whose time is its fit's."""
        passed = replace(result, passed=self.passed).passed_for(result.best)
        if passed is None:
            return result
        clocks = passed.shared.fit, passed.transform, passed.solving
        seconds = result.seconds - sum(clock.wall for clock in clocks)
        cpu_seconds = result.cpu_seconds - sum(clock.cpu for clock in clocks)
        return replace(result, passed=passed, seconds=seconds, cpu_seconds=cpu_seconds)
