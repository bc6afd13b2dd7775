"""Ladders of training sizes, the cost of their steps, and the precision of their scores."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from kbench import features, records

# Labels of the map and the learner of a method.
Name = tuple[str, str]


@dataclass
class Ladder:
    """The cells of one method, on ever more rows.

    `is_first` is true of a method of the first round. `base` is what a method refines.
    """

    name: Name
    cells: list[features.PlannedCell] = field(default_factory=list)
    is_first: bool = False
    base: Ladder | None = None

    @property
    def reached(self) -> int:
        """Number of the last cell with a result of its first split; -1 if there is none."""
        return max((i for i, cell in enumerate(self.cells) if is_done(cell, 0)), default=-1)

    @property
    def is_stopped(self) -> bool:
        """Whether a task has failed, so that no further one is tried."""
        return any(
            cell.problem or any(not result.is_ok for result in dict(cell.results).values())
            for cell in self.cells
        )

    @property
    def components(self) -> tuple[records.Ref, str]:
        """The map and the learner, however they are searched."""
        cell = self.cells[0].cell
        return replace(cell.feature_map, label=""), cell.learner.name

    @property
    def known(self) -> list[features.PlannedCell]:
        """The cells with a result of their first split."""
        return [cell for cell in self.cells if is_done(cell, 0)]


def is_done(cell: features.PlannedCell, split: int) -> bool:
    """Whether a split of a cell is finished."""
    result = dict(cell.results).get(split)
    return result is not None and result.is_ok


def n_train(planned: features.PlannedCell) -> int:
    """Return the training rows of a cell."""
    facts, protocol = planned.dataset, planned.cell.protocol
    assert facts is not None
    return features.task_rows(facts.n_samples, protocol)[0]


def all_train_rows(protocol: records.Protocol, n_samples: int) -> int:
    """Return the training rows of a split of all rows."""
    return features.task_rows(n_samples, replace(protocol, max_train_rows=None))[0]


def apply_chosen(cell: records.Cell, below: features.PlannedCell) -> records.Cell | None:
    """Return a cell with the parameters that a search on fewer rows chose; None without one."""
    chosen = {"feature_map": dict[str, Any](), "learner": dict[str, Any]()}
    if below.cell.protocol.n_candidates == 1 < cell.protocol.n_candidates:
        chosen = {side: dict(getattr(below.cell, side).params) for side in chosen}
    for name, value in below.results[0].details.chosen.items():
        side, _, parameter = name.partition(".")
        if "." in parameter or not isinstance(value, int | float | str):
            return None  # of a component within
        if side in chosen:
            chosen[side][parameter] = value
    sides: dict[str, Any] = {}
    for side, values in chosen.items():
        ref: records.Ref = getattr(cell, side)
        # values set for these rows, such as a width, stay
        is_searched = {name: isinstance(value, records.Tune) for name, value in ref.params.items()}
        more = {name: value for name, value in values.items() if is_searched.get(name, True)}
        sides[side] = records.Ref(ref.name, {**ref.params, **more}, ref.label)
    applied = replace(cell, **sides)
    if applied == cell:
        return None
    return replace(applied, protocol=replace(applied.protocol, n_candidates=1))


# Exponent of the work in the number of components.
NARROWER = 1.5

# Family of the learners whose time grows slowly with the rows.
TREES = "trees"

# Time of trees on more rows, as a fraction of time linear in the rows. They have as many leaves
# on a thousand rows as on ten thousand: on 48,000 rows boosting took 2.8 to 4 times as long as
# on 750.
SUBLINEAR = 0.15


class LadderCosts:
    """Predicts costs of cells of ladders; `ladders` are all of a schedule.

    `pace` is the number of seconds that one of CPU time takes now.
    """

    def __init__(
        self, registry: features.Registry, ladders: Sequence[Ladder], pace: float = 1.0
    ) -> None:
        self._registry, self._ladders, self.pace = registry, ladders, pace

    def is_searched(self, cell: features.PlannedCell) -> bool:
        """Whether parameters are searched for."""
        return features.n_candidates(cell.cell, self._registry) > 1

    def cost(self, ladder: Ladder, cell: features.PlannedCell) -> records.Cost | None:
        """Predict the cost of a cell from those of the same method with fewer rows."""
        work, trials = self._work(cell.cell, n_train(cell)), []
        for lower in self._trials(ladder):
            result = dict(lower.results)[0]
            rows = round(result.metrics["n_train"])
            ratio = work / self._work(lower.cell, rows)
            trial = _trial(result, rows, ratio, self.is_searched(lower))
            trials.append(replace(trial, seconds=self.pace_of(result) * trial.seconds))
        return _predict_cost(trials, n_train(cell)) if trials else None

    def likely_seconds(self, lower: features.PlannedCell, cell: features.PlannedCell) -> float:
        """Return the seconds of a cell whose fits take time in proportion to the rows.

        `lower` is the same method on fewer rows, with a result. Trees take less time.
        """
        result, rows = lower.results[0], n_train(cell)
        n_lower = round(result.metrics["n_train"])
        growth = rows / n_lower * self._work(cell.cell, rows) / self._work(lower.cell, n_lower)
        if self._registry.get("learner", cell.cell.learner.name).family == TREES:
            growth *= SUBLINEAR
        return self.pace_of(result) * (
            result.seconds + max(0.0, growth - 1.0) * _work_seconds(result)
        )

    def pace_of(self, result: records.Result) -> float:
        """Return the seconds that one second of a task takes now."""
        return self.pace * result.cpu_s / result.seconds if result.cpu_s and result.seconds else 1.0

    def alike(self, ladder: Ladder) -> list[Ladder]:
        """Return the methods with the same map and learner, of any parameters."""
        return [other for other in self._ladders if other.components == ladder.components]

    def _trials(self, ladder: Ladder) -> list[features.PlannedCell]:
        """Return the cells with a result of a method, of what it refines, or of a similar one."""
        near = [ladder, *([ladder.base] if ladder.base else self.alike(ladder))]
        return next((each.known for each in near if each.known), [])

    def _work(self, cell: records.Cell, rows: int) -> float:
        """Return the work of a cell, relative to that in proportion to the rows."""
        searched = features.n_candidates(cell, self._registry)
        fits = 1.0 + (searched * (cell.protocol.inner_folds - 1) if searched > 1 else 0.0)
        width = features.get_width(cell) or 1
        uses_kernel = self._registry.get("learner", cell.learner.name).uses_kernel
        return float(fits * width**NARROWER * (rows if uses_kernel else 1))


@cache
def _verbs() -> features.Verbs:
    return features.Verbs()


def _predict_cost(trials: Sequence[records.Trial], n_rows: int) -> records.Cost:
    """Predict the cost on a number of rows; in proportion to them where no feature does."""
    cost: records.Cost | None = _verbs().one("kbench_predicted_cost", trials=trials, n_rows=n_rows)
    if cost is not None:
        return cost
    last = max(trials, key=lambda trial: trial.n_rows)
    growth = n_rows / last.n_rows
    seconds, memory_mib = growth * last.seconds, last.memory_mib
    memory = records.Estimate(memory_mib, memory_mib, memory_mib * growth)
    return records.Cost(memory, records.Estimate(seconds, seconds / 2, seconds * 2))


def _trial(result: records.Result, rows: int, ratio: float, is_searched: bool) -> records.Trial:
    """Return a result as a trial of `ratio` times its work.

    The seconds of a search are those of its fits. Those of a single fit have a fixed part,
    of processes and of data, that further fits do not repeat.
    """
    seconds = result.seconds
    if not is_searched and ratio > 1.0:
        seconds = min(seconds, _work_seconds(result)) or seconds
    total_s = max(1e-3, result.seconds - seconds + seconds * ratio)
    return records.Trial(rows, True, "ok", total_s, result.metrics.get("peak_memory_mib", 0.0))


def _work_seconds(result: records.Result) -> float:
    return sum(result.metrics.get(f"{step}_time_s", 0.0) for step in ("search", "fit", "predict"))


# Candidates of a further search, as a multiple of those of the one before.
MORE = 3

# Components of a wider map, as a multiple of those that were measured.
WIDER = 2

_ENDING = re.compile(r" \([\d,]+ (candidates|components)\)$")


def refinements(
    planned: features.PlannedCell, registry: features.Registry
) -> Iterator[records.Cell]:
    """Yield cells of the same method and rows that take longer, and may be better.

    A larger random search has all candidates of the smaller one, and ends with the space. A
    map has at most as many components as the training rows; one that searches for their
    number is not made wider.
    """
    cell = planned.cell
    before, protocol = features.n_candidates(cell, registry), cell.protocol
    if protocol.draws_candidates and before > 1:
        more = replace(cell, protocol=replace(protocol, n_candidates=MORE * before))
        if (n := features.n_candidates(more, registry)) > before:
            learner = _add_suffix(cell.learner, f"{n:,} candidates")
            yield replace(cell, learner=learner, protocol=replace(protocol, n_candidates=n))
    width = cell.feature_map.params.get(features.WIDTH)
    if isinstance(width, int) and not isinstance(width, bool):
        width = min(WIDER * width, n_train(planned))
        if width > (features.get_width(cell) or 0):
            wider = _add_suffix(
                features.set_width(cell, width).feature_map, f"{width:,} components"
            )
            yield replace(cell, feature_map=wider)


def _add_suffix(ref: records.Ref, suffix: str) -> records.Ref:
    """Return a line with another label; earlier numbers of the same are replaced."""
    label, kind = ref.label, suffix.rpartition(" ")[2]
    if (ending := _ENDING.search(label)) and ending.group(1) == kind:
        label = label[: ending.start()]
    return replace(ref, label=f"{label} ({suffix})")


# Means over classes, whose noise is dominated by the rare ones.
OVER_CLASSES = ("balanced_accuracy", "f1_macro", "average_precision", "roc_auc")

# Metrics that compare each row of a class with rows of the other classes.
BY_RANKS = ("average_precision", "roc_auc")


def standard_error(
    value: float, n_test: float, metric: records.Metric, shares: Sequence[float] = ()
) -> float:
    """Return a rough standard error of a score on test rows.

    Of a share it is that of a binomial; of an error that of the root of a mean square. A mean
    over classes, which have these `shares` of the rows, has that of a mean of binomials. Ranks
    of two classes are as uncertain as the rarer one. R2 is as uncertain as the mean square in it.

    >>> round(standard_error(0.9, 900, records.Metric("accuracy")), 4)
    0.01
    >>> balanced = records.Metric("balanced_accuracy")
    >>> round(standard_error(0.5, 800, balanced, (0.03, 0.97)), 3)
    0.052
    >>> round(standard_error(0.5, 800, balanced, (0.01, *[0.11] * 9)), 3)
    0.024
    >>> round(standard_error(-3.0, 200, records.Metric("r2")), 3)
    0.4
    >>> standard_error(1.0, 200, records.Metric("r2"))
    0.0005
    """
    if shares and metric.name in OVER_CLASSES:
        of_recalls = len(shares) ** 2 / sum(1 / share for share in shares)
        n_test *= min(shares) if len(shares) == 2 and metric.name in BY_RANKS else of_recalls
    n = max(1.0, n_test)
    if metric.name == "r2":
        return max(1.0 - value, 1 / n) * math.sqrt(2 / n)
    if metric.better == "higher":
        share = min(max(value, 0.0), 1.0)
        return math.sqrt(max(share * (1 - share), 1 / n) / n)
    return abs(value) / math.sqrt(2 * n)


def level(mine: Mapping[Any, float], most: Mapping[Any, float]) -> float:
    """Return the mean of scores as it would be over all splits of another method.

    `most` are scores by split; those of a method that lacks some are compared on the common ones.

    >>> level({0: 0.8}, {0: 0.75, 1: 0.65})
    0.75
    """
    common = mine.keys() & most.keys()
    if not common or len(common) == len(most):
        return sum(mine.values()) / len(mine)
    return sum(most.values()) / len(most) + sum(mine[i] - most[i] for i in common) / len(common)


def class_shares(facts: records.DatasetFacts | None) -> tuple[float, ...]:
    """Return the shares of the rows of the classes; none for numbers."""
    if facts is None:
        return ()
    return tuple(max(1, count) / facts.n_samples for count in facts.class_counts)
