"""Costs of the next steps of a ladder, from those of its steps on fewer rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from kbench.features import PlannedCell, Registry, Verbs, given_width, n_candidates
from kbench.records import Cell, Cost, Estimate, Result, Trial
from kbench_tables.time_budget.ladders import Ladder, n_train

NARROWER = 1.5
"""Exponent of the work in the number of components."""

SUBLINEAR = 0.25
"""Least part of the time in proportion to the rows that a first method takes on all of them.

The trees of boosting have as many leaves on a thousand rows as on ten thousand: on 16 times
the rows of a table with 26 classes they took three times as long.
"""


class LadderCosts:
    """Predicts costs of cells of ladders; `ladders` are all of a schedule."""

    def __init__(self, registry: Registry, ladders: Sequence[Ladder]) -> None:
        self._registry, self._ladders = registry, ladders

    def is_searched(self, cell: PlannedCell) -> bool:
        """Whether parameters are searched for."""
        return n_candidates(cell.cell, self._registry) > 1

    def of(self, ladder: Ladder, cell: PlannedCell) -> Cost | None:
        """Predict the cost of a cell from those of the same method with fewer rows."""
        work, trials = self._work(cell.cell, n_train(cell)), []
        for lower in ladder.known or self._alike(ladder):
            result = dict(lower.results)[0]
            rows = round(result.measures["n_train"])
            ratio = work / self._work(lower.cell, rows)
            trials.append(_trial(result, rows, ratio, self.is_searched(lower)))
        return _predicted(trials, n_train(cell)) if trials else None

    def least_seconds(self, lower: PlannedCell, cell: PlannedCell) -> float:
        """Return the seconds of a cell without a search if its work grows slowly with the rows.

        `lower` is the same method on fewer rows, with a result.
        """
        result = lower.results[0]
        growth = max(1.0, SUBLINEAR * n_train(cell) / result.measures["n_train"])
        return result.seconds + (growth - 1.0) * _work_seconds(result)

    def _alike(self, ladder: Ladder) -> list[PlannedCell]:
        """Return the cells with a result of what a method refines, or of another search."""
        if ladder.base is not None:
            return ladder.base.known
        parts = ladder.components
        others = (other for other in self._ladders if other.components == parts)
        return next((known for other in others if (known := other.known)), [])

    def _work(self, cell: Cell, rows: int) -> float:
        """Return the work of a cell, relative to that in proportion to the rows."""
        searched = n_candidates(cell, self._registry)
        fits = 1.0 + (searched * (cell.protocol.inner_folds - 1) if searched > 1 else 0.0)
        width = given_width(cell) or 1
        kernelized = self._registry.get("learner", cell.learner.name).kernelized
        return float(fits * width**NARROWER * (rows if kernelized else 1))


@cache
def _verbs() -> Verbs:
    return Verbs()


def _predicted(trials: Sequence[Trial], n_rows: int) -> Cost:
    """Predict the cost on a number of rows; in proportion to them where no feature does."""
    found: Cost | None = _verbs().one("kbench_predicted_cost", trials=trials, n_rows=n_rows)
    if found is not None:
        return found
    last = max(trials, key=lambda trial: trial.n_rows)
    growth = n_rows / last.n_rows
    estimate = Estimate(last.seconds, last.seconds / 2, last.seconds * 2)
    memory = Estimate(last.memory_mb, last.memory_mb, last.memory_mb * growth)
    return Cost(memory, estimate.scaled(growth))


def _trial(result: Result, rows: int, ratio: float, is_searched: bool) -> Trial:
    """Return a result as a trial of `ratio` times its work.

    The seconds of a search are those of its fits. Those of a single fit have a fixed part,
    of processes and of data, that further fits do not repeat.
    """
    seconds = result.seconds
    if not is_searched and ratio > 1.0:
        seconds = min(seconds, _work_seconds(result)) or seconds
    fixed = result.seconds - seconds
    memory = result.measures.get("peak_memory_mb", 0.0)
    return Trial(rows, True, "ok", max(1e-3, fixed + seconds * ratio), memory)


def _work_seconds(result: Result) -> float:
    """Return the seconds of the fit and of the prediction."""
    return sum(result.measures.get(name, 0.0) for name in ("fit_time_s", "predict_time_s"))
