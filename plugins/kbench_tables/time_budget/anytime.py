"""The order of tasks within a time limit: all methods on few rows, the best ones on more.

A ladder has the cells of one method on nested samples of the training rows, the last one
on all of them. All cells of a split have the same test set, so that they can be compared.

1. The *first* methods are evaluated on the smallest sample, one after the other, and then on the
most rows that should take less than a fixed share of the time left. 2. Every other method is
evaluated on the smallest sample. 3. The methods that were not clearly worse than the best first one
on the same rows advance, cheap tasks first, if the next task should end in time; they do so before
others begin once half of the time after the first methods is over. The other splits run on the last
sample that they reach, those of the best methods first. The CPU time of a step without a search is
predicted from the previous ones (`kbench_costs.prediction`), and multiplied by the ratio of seconds
to CPU time of the last tasks: other programs slow a machine down. 4. The remaining time goes to the
best methods: larger searches and wider maps. Where a split says little, the best method gets its
other splits before. Second splits of methods that are clearly worse come last.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from kbench.features import PlannedCell, Registry, Run, n_missing
from kbench.records import ACCURACY, Cost, Result
from kbench_tables.time_budget.sample_sizes import (
    Ladder,
    LadderCosts,
    Name,
    apply_chosen,
    class_shares,
    is_done,
    level,
    n_train,
    refinements,
    standard_error,
)

FIRST_SHARE, SEARCH_SHARE = 0.75, 0.25
"""Shares of the time left that a task of a first method may take, without and with a search.

Boosting with default parameters on all rows is the reference of every recommendation.
"""

# Share of the time left that a search may take for a map and a learner that were evaluated with
# given parameters. On 32 tables in 30 s, such a search took up to 9 s and was recommended once.
REPEAT_SHARE = 0.1

# Share of the time left for a task that starts on all rows, beside other tasks and alone.
AT_ONCE_SHARE, ALONE_SHARE = 0.9, 0.5

# Share of the time left that the first task of another method may take, and share of the time left
# after the first methods in which others begin before those that were not worse advance.
BEGIN_SHARE, BEGINNING_SHARE = 0.5, 0.5

# Share of the time left that a first split on more rows may take before second splits.
ADVANCE_SHARE = 0.25

# Share of the time left that the first refinement may take before second splits.
REFINE_SHARE = 0.25

# Number of standard errors by which a method must be worse to stop.
NOISE = 2.0

# Standard error of the score of a split, as a share of it, above which the best one is mostly luck.
NOISY = 0.015

# Number of first methods that are evaluated however short the time is: a linear method, and the
# baseline that it is compared with.
N_SURE = 2

# Maximum number of splits of a cell.
MAX_SPLITS = 5

# Number of the last tasks that show how many seconds one of CPU time takes.
PACE_OF = 4

# Seconds between two checks for results that the next step depends on.
POLL_S = 0.02


class Schedule:
    """The order of the tasks of a suite within a time limit.

    `first` are the labels of the methods of the first round, `memory_mib` limits the memory of a
    task, and `reserve` returns the seconds reserved at the end for the cell of the best method.
    `first_pace` is the number of seconds that one of CPU time takes at the start. After the
    schedule the run needs `end_cpu_s` of CPU time, and its end has seconds for it at this pace.
    """

    cuts_off = True

    def __init__(
        self,
        registry: Registry,
        first: Collection[Name] = (),
        memory_mib: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
        reserve: Callable[[PlannedCell], float] | None = None,
        first_pace: float = 1.0,
        end_cpu_s: float = 0.0,
    ) -> None:
        self._registry, self._first, self._memory_mib = registry, frozenset(first), memory_mib
        self._first_pace, self._end_cpu_s = first_pace, end_cpu_s
        self._last: deque[Result] = deque(maxlen=PACE_OF)
        self._costs = LadderCosts(registry, (), first_pace)
        self._clock, self._wait, self._reserve = clock, wait, reserve
        self._begun: set[tuple[str, int]] = set()
        self._ladders: list[Ladder] = []
        self._metric = ACCURACY
        self._until = math.inf
        self._begin_left: float | None = None
        self._most: dict[int, float] = {}
        self._run: Run
        self.n_tasks = 0
        self._fixed: dict[tuple[str, str], PlannedCell] = {}
        self._refined: dict[Name, int] = {}

    def start_run(self, run: Run) -> Schedule:
        """Return the schedule as the strategy of a run, which reads results from the cells."""
        self._run, self.n_tasks = run, n_missing(run.cells)
        return self

    def tell(self, cell: PlannedCell, result: Result) -> None:
        """Measure the pace of the machine; the result is in the cell."""
        if result.cpu_s > 0:
            self._last.append(result)
            # as if a task of one second had had the first pace: those of milliseconds have none
            seconds = self._first_pace + sum(each.seconds for each in self._last)
            self._costs.pace = seconds / (1.0 + sum(each.cpu_s for each in self._last))

    def steps(self) -> Iterator[tuple[PlannedCell, int]]:
        """Yield tasks until the time is over; then those of the first methods that lack a result.

        The run plans further cells: those with parameters chosen by a search on fewer rows, and
        refinements.
        """
        self._ladders, self._until = self._group(self._run.cells), self._run.until
        self._metric, n_slots = self._run.suite.compared, self._run.options.jobs or math.inf
        self._costs = LadderCosts(self._registry, self._ladders, self._first_pace)
        while self._left > 0:
            # with a task in each slot, a result is on its way that the next step depends on
            if self._n_running < n_slots and (step := self._next()) is not None:
                self._begun.add((step[0].key, step[1]))
                yield step
            elif self._n_running:
                self._wait(POLL_S)
            else:
                break
        # a run that is repeated goes on
        sure = [each for each in self._ladders if self._begun or 0 in each.cells[0].missing]
        for ladder in sure[: N_SURE if self._first else 1]:
            while self._n_running and self._clock() < self._until:
                self._wait(POLL_S)
            if 0 in ladder.cells[0].missing:  # what begins after the end is not cut off
                yield ladder.cells[0], 0

    def kept(self, cells: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Return the cells that were started, with their finished splits.

        Of a method without any result there is the cell with the fewest rows; a refinement
        without one is left out.
        """
        cells_kept: list[PlannedCell] = []
        for ladder in self._group(cells):
            begun = [cell for cell in ladder.cells if cell.results or cell.problem]
            for cell in begun:
                n = len(cell.results)
                n_done = next((i for i in range(n) if not is_done(cell, i)), n)
                if n_done:
                    cell.results = {i: cell.results[i] for i in range(n_done)}
                    cell.n_splits = n_done
            cells_kept += begun or (ladder.cells[:1] if ladder.name not in self._refined else [])
        return cells_kept

    def cost_on_all_rows(self, name: Name) -> Cost | None:
        """Predict the cost of a task of a method on all rows, from those on fewer."""
        ladder = next((each for each in self._ladders if each.name == name), None)
        if ladder is None:
            return None
        last = ladder.cells[-1]  # a method may be for few rows only
        protocol = replace(last.cell.protocol, max_train_rows=None)
        return self._costs.cost(ladder, replace(last, cell=replace(last.cell, protocol=protocol)))

    # -- state

    def _group(self, cells: Iterable[PlannedCell]) -> list[Ladder]:
        """Group cells by method, on few rows first; the first methods come first."""
        ladders: dict[Name, Ladder] = {}
        for planned in cells:
            name = planned.cell.method
            ladders.setdefault(name, Ladder(name, is_first=name in self._first)).cells += [planned]
        for ladder in ladders.values():
            ladder.cells.sort(key=lambda planned: planned.cell.protocol.max_train_rows or math.inf)
        return sorted(ladders.values(), key=lambda ladder: not ladder.is_first)

    @property
    def _n_running(self) -> int:
        """Tasks whose results are to come."""
        done = {
            (cell.key, split)
            for ladder in self._ladders
            for cell in ladder.cells
            for split in dict(cell.results)
        }
        return len(self._begun - done)

    def _is_open(self, cell: PlannedCell, split: int) -> bool:
        return (cell.key, split) not in self._begun and split in cell.missing

    @property
    def _left(self) -> float:
        return self._until - self._clock() - self._kept_s

    @property
    def _kept_s(self) -> float:
        """Seconds reserved for the steps after the schedule."""
        kept = self._end_cpu_s * max(0.0, self._costs.pace - self._first_pace)
        measured = [ladder for ladder in self._ladders if ladder.reached >= 0]
        if self._reserve is None or not measured:
            return kept
        best = max(measured, key=self._level)
        return kept + self._reserve(best.cells[best.reached])

    # -- what comes next

    def _next(self) -> tuple[PlannedCell, int] | None:
        reached = (each.cells[each.reached] for each in self._ladders if each.reached >= 0)
        self._most = max(map(self._values, reached), key=len, default={})
        going = [ladder for ladder in self._ladders if not ladder.is_stopped]
        first = [ladder for ladder in going if ladder.is_first]
        for ladder in first:  # the searches come last among them
            if self._may_begin(ladder):
                return ladder.cells[0], 0
            cell = self._at_once(ladder) or self._above(ladder, FIRST_SHARE)
            if cell is not None:
                return cell, 0
        good = [ladder for ladder in going if self._is_promising(ladder)]
        steps = [step for ladder in good if (step := self._further(ladder)) is not None]
        above = [seconds for seconds, (_, split) in steps if split == 0]
        if (cell := self._other(going, bool(above))) is not None:
            return cell, 0
        best = max(good, key=self._level, default=None)
        if not above:
            # further splits of the best method end its luck, and another one is the best then;
            # a short method has all splits before, to compare others with
            if best is not None and steps and self._is_noisy(best):
                if len(self._most) < min(best.cells[0].n_splits, MAX_SPLITS):
                    return min(steps, key=lambda step: (*self._place(step)[:3], step[0]))[1]
                if (step := self._further(best)) is not None:
                    return step[1]
            # the seconds of all splits that a cell still gets
            rests = (s * (min(cell.n_splits, MAX_SPLITS) - split) for s, (cell, split) in steps)
            share = 0.0 if self._refined else REFINE_SHARE
            above = [max(min(rests, default=math.inf), share * self._left)]
        if (refined := self._refinement(good, min(above))) is not None:
            return refined, 0
        # what has more splits than the best by far does not show that it is better
        ahead = best and best.cells[best.reached]
        n_best = len(self._values(ahead)) if ahead else 0
        steps = [step for step in steps if step[1][1] <= n_best or step[1][0] is ahead]
        if not steps:
            further = (ladder for ladder in first if ladder not in good)
            steps = [step for ladder in further if (step := self._further(ladder)) is not None]
        if not steps and (late := next(self._late(going), None)) is not None:
            return late.cells[0], 0
        return min(steps, key=self._place)[1] if steps else None

    def _other(self, going: Sequence[Ladder], are_moving: bool) -> PlannedCell | None:
        """Return the first cell of a method that was not tried.

        While others are moving to more rows, methods begin in a part of the time only. One that was
        too long for its share begins before second splits, except for a search that repeats.
        """
        if self._begin_left is None:
            self._begin_left = (1.0 - BEGINNING_SHARE) * self._left
        if are_moving and self._left <= self._begin_left:
            return None
        short = (ladder for ladder in going if self._may_begin(ladder))
        late = (ladder for ladder in self._late(going) if not (are_moving or self._repeats(ladder)))
        return next((ladder.cells[0] for ladder in chain(short, late)), None)

    def _late(self, going: Sequence[Ladder]) -> Iterator[Ladder]:
        """Yield the methods that were not tried and should just end in time."""
        for ladder in going:
            if self._is_open(ladder.cells[0], 0) and self._fits(ladder, ladder.cells[0]):
                yield ladder

    def _is_noisy(self, ladder: Ladder) -> bool:
        """Return whether the score of one split says little: the best of many is mostly luck."""
        cell = ladder.cells[ladder.reached]
        metrics, shares = cell.results[0].metrics, class_shares(cell.dataset)
        value, n_test = metrics.get(self._metric.name, 0.0), metrics.get("n_test", math.inf)
        return standard_error(value, n_test, self._metric, shares) > NOISY * abs(value)

    def _refinement(self, good: Sequence[Ladder], most_s: float) -> PlannedCell | None:
        """Plan a larger search or a wider map of one of the best methods, if it should fit.

        It comes before steps that take longer, `most_s`: second splits say how good a method is,
        and this may make it better. Methods that were refined less often come first, and
        among them the best ones.
        """
        reached = [ladder for ladder in good if ladder.reached >= 0]

        def place(ladder: Ladder) -> tuple[int, float]:
            return self._refined.get(ladder.name, 0), -self._level(ladder)

        names = {ladder.name for ladder in self._ladders}
        for ladder in sorted(reached, key=place):
            last = ladder.cells[ladder.reached]
            if any(self._is_worse(last, other.cells[other.reached]) for other in reached):
                continue
            for cell in refinements(last, self._registry):
                name = cell.method
                if name in names:
                    continue
                above = Ladder(name, [replace(last, cell=cell, results={})], base=ladder)
                planned = above.cells[0]
                if self._seconds(above, planned) > most_s or not self._fits(above, planned):
                    continue
                above.cells = [self._run.add(cell)]
                self._ladders.append(above)
                self._refined[name] = self._refined.get(ladder.name, 0) + 1
                if self._is_open(above.cells[0], 0):
                    return above.cells[0]
                return self._refinement([*good, above], most_s)  # stored by an earlier run
        return None

    def _level(self, ladder: Ladder) -> float:
        """Return the mean score of a method on the last sample that it reached."""
        return self._mean(ladder.cells[ladder.reached])

    def _mean(self, cell: PlannedCell) -> float:
        """Return the mean score of a cell over the splits of the one with the most."""
        values = self._values(cell)
        return self._metric.gain(level(values, self._most)) if values else -math.inf

    def _place(self, timed: tuple[float, tuple[PlannedCell, int]]) -> tuple[float, ...]:
        """Order steps: first splits, second ones of many rows, long first splits, other ones.

        Short first splits come first, and among further ones of the same number the best methods.
        """
        seconds, (cell, split) = timed
        if split == 0:
            return 0, 0, 2 * (seconds > ADVANCE_SHARE * self._left), seconds
        most = max(n_train(each.cells[each.reached]) for each in self._ladders if each.known)
        return n_train(cell) < most, cell.cell.protocol.cv == "holdout", 1, split, -self._mean(cell)

    def _may_begin(self, ladder: Ladder) -> bool:
        """Whether a method was not tried yet, and is not predicted to take too long."""
        cell = ladder.cells[0]
        if not self._is_open(cell, 0):
            return False
        if self._costs.cost(ladder, cell) is None:
            # the cost of a search is known once its components have run without one
            return not any(
                (other.cells[0].key, 0) in self._begun and not is_done(other.cells[0], 0)
                for other in self._costs.alike(ladder)
                if not other.is_stopped
            )
        return self._fits(ladder, cell, BEGIN_SHARE)

    def _repeats(self, ladder: Ladder) -> bool:
        """Whether a method searches for parameters of what was evaluated with given ones."""
        return self._costs.is_searched(ladder.cells[0]) and any(
            other.known for other in self._costs.alike(ladder) if other is not ladder
        )

    def _at_once(self, ladder: Ladder) -> PlannedCell | None:
        """Return the cell with the most rows that a method may go to from the smallest sample.

        It may take longer than expected: it has more of the time left if other tasks are running.
        """
        if ladder.reached != 0 or self._is_advancing(ladder):
            return None
        lower, share = ladder.cells[0], AT_ONCE_SHARE if self._n_running else ALONE_SHARE
        if self._costs.is_searched(lower):
            share = REPEAT_SHARE if self._repeats(ladder) else SEARCH_SHARE
        for cell in reversed(ladder.cells[1:]):
            cost = self._costs.cost(ladder, cell)
            if cost is None or cost.exceeds(self._memory_mib) or not self._is_open(cell, 0):
                continue
            if self._costs.likely_seconds(lower, cell) <= share * self._left:
                return cell
        return None

    def _is_advancing(self, ladder: Ladder) -> bool:
        return any((cell.key, 0) in self._begun for cell in ladder.cells[ladder.reached + 1 :])

    def _above(self, ladder: Ladder, share: float = 1.0) -> PlannedCell | None:
        """Return the next cell of a method; None if it does not fit, or is running.

        If a search does not fit, the parameters that it chose on fewer rows may.
        """
        reached = ladder.reached
        if reached < 0 or reached + 1 == len(ladder.cells) or self._is_advancing(ladder):
            return None
        cell = ladder.cells[reached + 1]
        if not self._is_open(cell, 0):
            return None
        if self._fits(ladder, cell, share):
            return cell
        below = ladder.cells[reached]
        chosen = apply_chosen(cell.cell, below)
        if chosen is None:
            return None
        if (cell.key, below.key) not in self._fixed:
            self._fixed[cell.key, below.key] = self._run.add(chosen)
        fixed = self._fixed[cell.key, below.key]
        if not self._is_open(fixed, 0) or not self._fits(ladder, fixed, share):
            return None
        ladder.cells[reached + 1] = fixed
        return fixed

    def _further(self, ladder: Ladder) -> tuple[float, tuple[PlannedCell, int]] | None:
        """Return the predicted seconds of the next step of a method, and the step."""
        reached = ladder.reached
        if reached < 0 or self._is_advancing(ladder):
            return None
        if (above := self._above(ladder)) is not None:
            return self._seconds(ladder, above), (above, 0)
        cell = ladder.cells[reached]
        n_splits = min(cell.n_splits, MAX_SPLITS)
        split = next((i for i in range(n_splits) if self._is_open(cell, i)), None)
        longest = max(self._costs.pace_of(r) * r.seconds for r in dict(cell.results).values())
        return None if split is None or longest > self._left else (longest, (cell, split))

    def _is_promising(self, ladder: Ladder) -> bool:
        """Whether a method is not clearly worse than the best first one on the same rows.

        A first method is, too, as long as it has not reached its last sample. A method that is
        worse than another one on fewer rows is also worse than that on the same rows.
        """
        if ladder.is_first and ladder.reached + 1 < len(ladder.cells):
            return True
        cell = ladder.cells[ladder.reached]
        rivals = (rival for rival in self._ladders if rival.is_first or not self._first)
        others = (other for rival in rivals for other in rival.cells)
        return not any(n_train(o) <= n_train(cell) and self._is_worse(cell, o) for o in others)

    def _is_worse(self, cell: PlannedCell, other: PlannedCell) -> bool:
        mine, theirs = (self._values(each) for each in (cell, other))
        common = mine.keys() & theirs.keys()
        if not common:
            return False
        behind = self._metric.gain(sum(theirs[i] - mine[i] for i in common) / len(common))
        n_test = sum(cell.results[i].metrics.get("n_test", 1.0) for i in common)
        value, shares = sum(theirs.values()) / len(theirs), class_shares(cell.dataset)
        return bool(behind > NOISE * standard_error(value, n_test, self._metric, shares))

    def _values(self, cell: PlannedCell) -> dict[int, float]:
        results, name = dict(cell.results).items(), self._metric.name
        return {i: r.metrics[name] for i, r in results if r.is_ok and name in r.metrics}

    # -- costs

    def _fits(self, ladder: Ladder, cell: PlannedCell, share: float = 1.0) -> bool:
        """Whether a task should end in a share of the time left, and fit into memory."""
        cost = self._costs.cost(ladder, cell)
        if cost is None or cost.seconds is None or cost.exceeds(self._memory_mib):
            return False
        if share < 1.0 and self._costs.is_searched(cell):
            share = REPEAT_SHARE if self._repeats(ladder) else SEARCH_SHARE
        # use all the time left only for tasks that nearly always fit
        return (cost.seconds.high if share == 1.0 else cost.seconds.value) <= share * self._left

    def _seconds(self, ladder: Ladder, cell: PlannedCell) -> float:
        cost = self._costs.cost(ladder, cell)
        return cost.seconds.value if cost and cost.seconds else math.inf
