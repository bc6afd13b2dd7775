"""Scores of an inner cross-validation, and the choice of a candidate by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kbench.evaluation.passes import Pass
from kbench.evaluation.specs import Candidate, is_number
from kbench.records import Metric

EQUAL = 1e-12
"""Means of scores that differ by less are equal: a sum depends on the order of its terms."""


@dataclass
class Score:
    """Scores of one candidate by the metric that the search optimises.

    `values` has the metric on each inner fold that has it, and is empty if the search did
    not reach it; `converged` has it for each fit; `error` says why a fit failed. `share` is the
    share of the inner folds after which the search left it, and `seconds` the wall clock of its
    fits and predictions, with an equal part of what several candidates share.
    """

    candidate: Candidate
    metric: Metric
    values: list[float] = field(default_factory=list)
    converged: list[bool] = field(default_factory=list)
    error: str = ""
    share: float = 1.0
    seconds: float = field(default=0.0, compare=False)

    def add(self, value: float | None, converged: bool) -> None:
        """Add an inner fold, which may have no value: one class has no ROC curve."""
        if value is not None:
            self.values.append(value)
        self.converged.append(converged)

    @property
    def has_value(self) -> bool:
        """Whether there is a value to compare."""
        return bool(self.values) and not self.error

    @property
    def gain(self) -> float:
        """Mean over the inner folds, larger is better; -inf where a fit failed."""
        return float(self.metric.gain(np.mean(self.values))) if self.has_value else float("-inf")

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over the inner folds."""
        return _standard_error(self.values)

    def is_clearly_better(self, other: "Score") -> bool:
        """Whether it is better by a standard error of the difference, on the folds of both."""
        n = min(len(self.values), len(other.values))
        ours, theirs = (self.metric.gain(np.array(each.values[:n])) for each in (self, other))
        gains = ours - theirs
        return bool(np.mean(gains) > EQUAL and np.mean(gains) >= _standard_error(gains))


@dataclass(frozen=True)
class SearchResult:
    """The chosen candidate of a search, and all scores, the default's first; none without a choice.

    `ends` has the smallest and the largest value of the list of each numeric parameter, and
    `complete` is False if the budget ended the search. `passed` has the sums that the chosen
    candidate is fitted from, if the search took them; their time is not in `seconds`. `n_embedded`
    counts the rows that were embedded in blocks.
    """

    best: Candidate
    scores: list[Score]
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    complete: bool = True
    ends: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    passed: Pass | None = None
    n_embedded: int = 0

    @property
    def converged(self) -> float:
        """Share of the inner fits that converged; 1 if there were none."""
        flags = [flag for score in self.scores for flag in score.converged]
        return float(np.mean(flags)) if flags else 1.0

    def passed_for(self, candidate: Candidate) -> Pass | None:
        """Return the sums that a candidate is fitted from, if the search kept them."""
        passed = self.passed
        return passed if passed and passed.candidate.map_key == candidate.map_key else None

    @property
    def default(self) -> Candidate | None:
        """The candidate with the first value of each list; None if nothing was chosen."""
        return self.scores[0].candidate if self.scores else None

    @property
    def failures(self) -> list[Score]:
        """The candidates that failed on some inner fold, and so could not be chosen."""
        return [score for score in self.scores if score.error]

    @property
    def n_compared(self) -> int:
        """Number of fitted candidates; 1 if there was nothing to choose."""
        return sum(bool(score.values or score.error) for score in self.scores) or 1

    @property
    def at_boundary(self) -> list[str]:
        """Numeric parameters whose best value is an end of its grid, with evidence.

        The evidence is that the chosen candidate is better than the best one with the
        next value inwards, by at least a standard error of the difference over the inner
        folds: a wider grid may have a better value. 1 for a number of things is not such
        an end, nor is 0: there are no smaller values.
        """
        if not self.scores:
            return []
        (best,) = (score for score in self.scores if score.candidate is self.best)
        return [
            name
            for name, value in self.best.params.items()
            if is_number(value) and self._is_end(value, name, best)
        ]

    def _is_end(self, value: float, name: str, best: Score) -> bool:
        """Whether the best candidate has an end of a parameter's list, with evidence."""
        lowest, highest = self.ends.get(name, (value, value))
        if value == lowest and (value == 0 or (value == 1 and isinstance(value, int))):
            return False
        tried: dict[float, list[Score]] = {}
        for score in self.scores:
            other = score.candidate.params.get(name)
            if is_number(other) and score.has_value:
                tried.setdefault(other, []).append(score)
        grid = sorted(tried)
        if len(grid) < 2 or value not in (lowest, highest):
            return False
        inwards = tried[grid[1] if value == lowest else grid[-2]]
        return best.is_clearly_better(max(inwards, key=lambda score: (score.share, score.gain)))


def choose_score(
    scores: Sequence[Score], simpler: Mapping[str, str], one_standard_error: bool = False
) -> Score:
    """Return the score of the candidate that a search chooses.

    It has the best mean; of several with the best mean it is the simplest, and of these
    the first. `one_standard_error` is the rule of Breiman, Friedman, Olshen and Stone
    (Classification and Regression Trees, 1984, section 3.4.3): the simplest of the
    candidates that differ from that one only in the parameters named in `simpler`, and
    whose mean is at most one standard error of its mean worse. Candidates that were
    scored on fewer folds than others are not compared.

    `simpler` names the direction in which parameters of the learner make a simpler
    model, "smaller" or "larger"; the first parameter counts before the second.
    """
    largest = max((score.share for score in scores if score.has_value), default=1.0)
    compared = [score for score in scores if score.has_value and score.share == largest]
    if not compared:
        return scores[0]
    highest = max(score.gain for score in compared)
    best = _simplest([score for score in compared if score.gain >= highest - EQUAL], simpler)
    if not (one_standard_error and simpler):
        return best
    near = [
        score
        for score in compared
        if score.gain >= best.gain - best.standard_error
        and _others(score.candidate, simpler) == _others(best.candidate, simpler)
    ]
    return _simplest(near, simpler) if _are_numeric(near, simpler) else best


def _simplest(scores: Sequence[Score], simpler: Mapping[str, str]) -> Score:
    """Return the simplest candidate, the first of equals; the first if there is no order."""
    if not _are_numeric(scores, simpler):
        return scores[0]
    return min(scores, key=lambda score: _complexity(score.candidate, simpler))


def _are_numeric(scores: Sequence[Score], simpler: Mapping[str, str]) -> bool:
    return all(
        is_number(score.candidate.learner.get(name, 0)) for score in scores for name in simpler
    )


def _standard_error(values: Sequence[float] | np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _others(candidate: Candidate, simpler: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that must be equal, as text: values may not be comparable."""
    named = {f"learner.{name}" for name in simpler}
    return {name: repr(value) for name, value in candidate.params.items() if name not in named}


def _complexity(candidate: Candidate, simpler: Mapping[str, str]) -> tuple[float, ...]:
    return tuple(
        candidate.learner.get(name, 0) * (1 if direction == "smaller" else -1)
        for name, direction in simpler.items()
    )
