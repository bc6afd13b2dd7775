"""Scores of an inner cross-validation, and the choice of a candidate by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kbench.evaluation.search._candidates import Candidate
from kbench.records import Measure


@dataclass
class Score:
    """Scores of one candidate in the inner cross-validation.

    Parameters
    ----------
    candidate : Candidate
    measure : Measure
        The measure that the search optimises.
    values : list of float
        The measure on each inner fold that has it; empty where the search did not reach it.
    converged : list of bool
        Of each fit.
    error : str
        Reason why a fit failed.
    share : float
        Share of the rows of each inner training part that it was fitted on.
    """

    candidate: Candidate
    measure: Measure
    values: list[float] = field(default_factory=list)
    converged: list[bool] = field(default_factory=list)
    error: str = ""
    share: float = 1.0

    @property
    def judged(self) -> bool:
        """Whether there is a value to compare."""
        return bool(self.values) and not self.error

    @property
    def gain(self) -> float:
        """Mean over the inner folds, larger is better; -inf where a fit failed."""
        return float(self.measure.gain(np.mean(self.values))) if self.judged else float("-inf")

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over the inner folds."""
        if len(self.values) < 2:
            return 0.0
        return float(np.std(self.values, ddof=1) / np.sqrt(len(self.values)))


@dataclass(frozen=True)
class SearchResult:
    """The chosen candidate of a search, and all scores.

    `scores` has all candidates in the order of the grid, and is empty where there was
    nothing to choose. `complete` is False where the search was stopped by its budget.
    """

    best: Candidate
    scores: list[Score]
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    complete: bool = True

    @property
    def converged(self) -> float:
        """Share of the inner fits that converged; 1 where there were none."""
        flags = [flag for score in self.scores for flag in score.converged]
        return float(np.mean(flags)) if flags else 1.0

    @property
    def n_compared(self) -> int:
        """Number of fitted candidates; 1 where there was nothing to choose."""
        return sum(bool(score.values or score.error) for score in self.scores) or 1

    @property
    def at_edge(self) -> list[str]:
        """Numeric parameters whose best value is the first or last of its grid."""
        edges = []
        for name, value in self.best.params.items():
            tried = [score.candidate.params[name] for score in self.scores]
            if not all(map(is_number, tried)) or len(set(tried)) < 3:
                continue
            if value in (min(tried), max(tried)):
                edges.append(name)
        return edges


def is_number(value: Any) -> bool:
    """Whether the value of a parameter is a number; a bool is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def chosen(scores: Sequence[Score], simpler: Mapping[str, str] | None = None) -> Score:
    """Return the score of the candidate that a search chooses.

    Without `simpler` it is the first of the candidates with the best mean. With it, the
    one-standard-error rule (Breiman, Friedman, Olshen and Stone, Classification and
    Regression Trees, 1984, section 3.4.3): the simplest of the candidates that differ
    from that one only in the parameters named in `simpler`, and whose mean is at most one
    standard error of its mean worse. Candidates that were scored on fewer rows than
    others are not compared.

    `simpler` names the direction in which parameters of the learner make a simpler
    model, "smaller" or "larger"; the first parameter counts before the second.
    """
    largest = max((score.share for score in scores if score.judged), default=1.0)
    compared = [score for score in scores if score.judged and score.share == largest]
    if not compared:
        return scores[0]
    best = max(compared, key=lambda score: score.gain)
    if not simpler:
        return best
    near = [
        score
        for score in compared
        if score.gain >= best.gain - best.standard_error
        and _others(score.candidate, simpler) == _others(best.candidate, simpler)
        and all(is_number(score.candidate.learner.get(name, 0)) for name in simpler)
    ]
    return min(near or [best], key=lambda score: _complexity(score.candidate, simpler))


def _others(candidate: Candidate, simpler: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that must be equal, as text: values may not be comparable."""
    named = {f"learner.{name}" for name in simpler}
    return {name: repr(value) for name, value in candidate.params.items() if name not in named}


def _complexity(candidate: Candidate, simpler: Mapping[str, str]) -> tuple[float, ...]:
    return tuple(
        candidate.learner.get(name, 0) * (1 if direction == "smaller" else -1)
        for name, direction in simpler.items()
    )
