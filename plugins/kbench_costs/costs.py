"""Costs of cells, predicted from trials: tasks on samples of their rows, in sandboxes.

A trial that hangs or ends its process costs the prediction of its own cell only. Trials are
kept in the journal by the key of their cell, which has the method, the data and the code;
the journal is that of one machine.
"""

import json
import math
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from kbench.errors import DatasetError
from kbench.features import (
    WIDTH,
    CallOutcome,
    Handover,
    PlannedCell,
    Run,
    Validity,
    assign,
    get_width,
    over_slots,
    set_width,
)
from kbench.messages import plural
from kbench.records import Cell, Cost, Estimate, Manifest, Problem, Task, Trial
from kbench.records.canonical import to_json
from kbench_costs import prediction as cost
from kbench_costs import trials as of_cells
from kbench_costs.trials import Samples, alternatives, family, is_wide, needs_trials, task_cost

# CPU time of the trials of a cell: a share of that predicted for all its tasks, up to a bound.
SHARE, MAX_S = 0.05, 20.0

# CPU time of the first trial up to which there is a second one in any case, that of the second
# one if the first would have no part that is the same for any rows, and the growth from the first
# trial up to which most of a trial is such a part: then a larger one follows too.
CHEAP_S, SECOND_S, FLAT = 0.5, 3.0, 2.0

# Training rows of the smallest trial, at least: with fewer, trees have fewer leaves.
FIRST_ROWS = 1024

# Rows of a task over those of its first trial, at most.
MAX_BEYOND = 512

# Rows of a trial over those of the one before, the best first.
STEPS = (16, 8, 4, 2)

# Wall clock of a trial: on a loaded machine, some CPU seconds.
TRIAL_S = 60.0

# A cell is skipped if a sample hits the limit of memory that should need this much of it.
BEYOND = 1.25

# CPU time of a task from which other options are tried, and the factor that is worth a word.
LONG_TASK_S, CHEAPER = 10.0, 1.5

# CPU time of the smallest trial above which a cell is predicted from narrower embeddings.
LONG_S = 5.0

# Rows on which a partition is fitted in each trial: the number of its cells grows with them.
PARTITION_ROWS = 2**17

# Numbers of components that are tried for the largest that fits.
MAX_WIDTHS = 5

# Components in a fit that shows where a method is computed.
NARROW = 64


@dataclass(frozen=True)
class Prediction:
    """The cost of a cell, and why it cannot fit into the memory limit; empty if it may.

    `advice` has the options with which a task needs much less.
    """

    cost: Cost
    refusal: str = ""
    advice: str = ""


@dataclass
class _Subject:
    """A cell that trials are made of, under the key of its trials."""

    key: str
    cell: Cell
    task: Task
    samples: Samples
    trials: list[Trial]
    growth: tuple[float, float]
    growing: Estimate | None = None
    manifest: Manifest = field(default_factory=Manifest)
    last: CallOutcome | None = None

    def cost(self) -> Cost | None:
        return cost.predict(self.trials, self.samples.n_rows, *self.growth, growing=self.growing)


def predict_costs(run: Run, cells: Sequence[PlannedCell]) -> None:
    """Predict the costs of large cells; those that cannot stay within a limit are skipped."""
    limits = run.suite.limits
    # each key once
    chosen = {it.key: it for it in cells if needs_trials(it, run.registry, limits.task_memory_mib)}
    if chosen:
        run.session.machine.acquire()
    known, advice = _Costs(run).predict(list(chosen.values())) if chosen else {}, []
    for cell, prediction in [(cell, known[cell.key]) for cell in cells if cell.key in known]:
        # times of workers are not those of this machine
        cell.cost = replace(prediction.cost, seconds=None) if run.offer else prediction.cost
        seconds, timeout_s = cell.cost.seconds, limits.task_timeout_s
        refusal = prediction.refusal or cost.too_long(seconds, timeout_s, cell.cell.protocol)
        if refusal:
            cell.problem = Problem("skipped", refusal + prediction.advice)
        elif prediction.advice and not run.offer:
            advice.append(f"{cell.cell.name}: a task needs {cell.cost}{prediction.advice}")
    if advice:
        others = f" (as in {plural(len(advice) - 1, 'other cell')})" if advice[1:] else ""
        run.notice(advice[0] + others)


class _Costs:
    """Predicts the costs of cells of a run, and finds those that cannot fit into memory."""

    def __init__(self, run: Run) -> None:
        self._run, self._journal, self._planner = run, run.journal, run.plan.planner
        self._cache, self._limits = run.session.cache, run.suite.limits
        self._samples: dict[str, Samples] = {}
        self._lock = threading.Lock()
        self._known: dict[str, list[Trial]] = {}

    def predict(self, cells: Sequence[PlannedCell]) -> dict[str, Prediction]:
        """Return the costs of cells by key.

        Cells whose data cannot be split, and whose trials fail, have none.
        """
        self._recall(cells)
        n = sum(cell.key not in self._known for cell in cells)
        if n:
            self._run.notice(
                f"predicting memory and time by fits of {plural(n, 'cell')} on samples of the "
                f"rows, about {MAX_S:.0f} s of CPU time each at most"
            )
        # wide embeddings last, when costs of narrower ones are known
        wide = {cell.key: cell for cell in cells if is_wide(self._run, cell)}
        tried = [cell for cell in cells if cell.key not in wide]
        predictions: dict[str, Prediction] = {}
        predicted = chain(
            over_slots(tried, self._work, self._run.jobs),
            ((cell, self._predict_wide(cell)) for cell in sorted(wide.values(), key=_width)),
        )
        for i, (cell, known) in enumerate(predicted, 1):
            if known is not None:
                predictions[cell.key], cell.cost = known, known.cost
            if n:
                self._run.watch.on_predicted(cell, known.cost if known else None, i, len(cells))
        return predictions

    def _predict_wide(self, planned: PlannedCell) -> Prediction | None:
        """Predict a cell with the help of trials of narrower embeddings of the same data.

        It is tried too if its smallest trial should be short.
        """
        narrower = [
            other
            for other in family(self._run, planned)
            if other.cell.dataset == planned.cell.dataset and self._known.get(other.key)
            if _width(other) < _width(planned)
        ]
        if not narrower:
            return self._work(planned, 0)
        other = max(narrower, key=_width)
        trials, ratio = self._known[other.key], _width(planned) / _width(other)
        predicted = None
        if trials[0].seconds * ratio**2 > LONG_S and not self._known.get(planned.key):
            predicted = task_cost(self._run, planned)
        if predicted is None:
            return self._work(planned, 0, (trials, ratio))
        if other.cost and any(trial.from_sums for trial in trials):
            narrow = other.cost.memory_mib
            memory = of_cells.wider_memory(planned, self._run.registry, ratio, narrow)
            predicted = replace(predicted, memory_mib=memory)
        return Prediction(predicted)

    def _recall(self, cells: Iterable[PlannedCell]) -> None:
        """Read the known trials of cells from the journal."""
        wanted = {cell.key for cell in cells}
        validity = Validity(self._journal, self._planner.present)
        for line in self._journal.read("trials"):
            is_wanted = line["key"].partition("/")[0] in wanted
            if is_wanted and not validity.explain(str(line.get("manifest", ""))):
                self._known[line["key"]] = _parse_trial(line, self._limits.task_memory_mib)

    def _work(
        self, planned: PlannedCell, slot: int, narrower: tuple[list[Trial], float] | None = None
    ) -> Prediction | None:
        """Predict a cell from trials, and those of an embedding so many times narrower."""
        task = self._planner.task(planned, 0)
        try:
            samples = self._make_samples(task)
        except DatasetError:
            return None  # the tasks of the cell report it
        if task.cell.protocol.device == "cuda":
            return self._on_gpu(planned, task, samples)
        subject = self._subject(planned.key, planned.cell, task, samples)
        if narrower:
            subject.growing = of_cells.wider_growth(*narrower, samples.n_rows, subject.growth[0])
        if not subject.trials:
            self._try(subject, len(planned.missing))
            self._keep(subject)
        self._known[planned.key] = subject.trials
        predicted = subject.cost()
        if predicted is None:
            return None
        refusal = ""
        if predicted.exceeds(self._limits.task_memory_mib) and self._is_over(subject):
            predicted = subject.cost() or predicted
            refusal = self._refusal(predicted, subject)
        return Prediction(predicted, refusal, self._advice(planned, subject, predicted, refusal))

    def _on_gpu(self, planned: PlannedCell, task: Task, samples: Samples) -> Prediction | None:
        """Predict the memory of a GPU, by sizes; None for methods that are computed on the host.

        Torch on the CPU fits few rows and components, which shows the place, the width and the way.
        """
        width, limit = get_width(planned.cell) or 1, self._limits.task_memory_mib
        cell = replace(planned.cell, protocol=replace(planned.cell.protocol, device="torch-cpu"))
        narrow = min(width, NARROW)
        subject = self._subject("", set_width(cell, narrow) if width > 1 else cell, task, samples)
        self._trial(subject, min(FIRST_ROWS, samples.n_rows))
        found = subject.last.value if subject.last else None
        if not found or "transfer_time_s" not in found["metrics"]:
            return None
        per_component = found["metrics"]["n_components"] / narrow
        in_passes = of_cells.is_in_passes(found)

        def need(n: int) -> Estimate:
            return of_cells.gpu_memory(planned, self._run.registry, in_passes, n * per_component)

        predicted, widths, most = Cost(need(width)), range(1, width), cost.MARGIN * limit
        fits = cost.round_width(bisect_left(widths, most, key=lambda n: need(n).high)) or None
        too_large = "on a GPU, a task " + cost.too_large(predicted, limit, WIDTH, fits)
        return Prediction(predicted, too_large if predicted.exceeds(limit) else "")

    def _subject(self, key: str, cell: Cell, task: Task, samples: Samples) -> _Subject:
        learner = self._run.registry.get("learner", cell.learner.name)
        compares = learner.compares_rows or learner.family == "neighbours"
        memory = cost.PAIRS_OF_KERNEL if learner.uses_kernel else cost.PAIRS
        growth = cost.PAIRS_OF_KERNEL if compares else memory, memory
        return _Subject(key, cell, task, samples, list(self._known.get(key, ())), growth)

    def _make_samples(self, task: Task) -> Samples:
        protocol = task.cell.protocol
        key = json.dumps([task.checksum, to_json(protocol)], sort_keys=True)
        with self._lock:
            if key not in self._samples:
                dataset = self._cache.load(task.checksum)
                # which test rows equal training rows matters to scores only
                self._samples[key] = Samples.of(
                    assign(dataset, protocol, 0, np.zeros(len(dataset.y), dtype=np.int8))
                )
            return self._samples[key]

    # -- trials

    def _try(self, subject: _Subject, n_splits: int, sizes: Sequence[int] = ()) -> None:
        """Make trials of `sizes` or on ever more rows, one with metrics, one with all threads."""
        for n_rows in sizes:
            self._trial(subject, n_rows)
        if not sizes:
            self._grow(subject, n_splits)
        good = [trial.n_rows for trial in subject.trials if trial.status == "ok"]
        if subject.growth[1] > 1 and len(good) == 2:
            # two do not show whether pairs of rows need the memory
            self._trial(subject, round(math.sqrt(math.prod(good))))
        if good:
            self._trial(subject, min(good), has_metrics=True)
        if good and subject.cell.protocol.threads > 1:
            # threads that wait for each other take long on more rows, and show no more
            self._trial(subject, min(good), n_threads=subject.cell.protocol.threads)

    def _grow(self, subject: _Subject, n_splits: int = 1) -> None:
        """Make trials until the next takes more than a small share of what they predict."""
        most = subject.samples.n_rows
        # embeddings with more columns than a fold has rows are fitted in another way
        least = min(2 * (get_width(subject.cell) or 1), STEPS[2] * FIRST_ROWS)
        made = [self._trial(subject, min(most, max(FIRST_ROWS, least, most // MAX_BEYOND)))]
        if made[0].status == "timed_out":
            made = [self._trial(subject, max(2, made[0].n_rows // STEPS[0]))]
        while made[-1].status == "ok" and made[-1].n_rows < most:
            predicted = subject.cost()
            tasks_s = n_splits * predicted.seconds.value if predicted and predicted.seconds else 0.0
            left = min(MAX_S, SHARE * tasks_s) - sum(trial.seconds for trial in made)
            if made[-1].seconds <= min(CHEAP_S, FLAT * made[0].seconds):
                left = SECOND_S
            following = (min(step * made[-1].n_rows, most) for step in STEPS)
            needs = ((n, cost.seconds_of(made, n, subject.growth[0])) for n in following)
            n = next((n for n, seconds in needs if seconds <= left), None)
            if n is None and len(made) == 1:
                # one trial does not show how much of its cost is the same for any rows
                few, more = made[0].n_rows // STEPS[2], min(most, 2 * made[0].n_rows)
                self._trial(subject, few if few >= least else more)
            if n is None:
                return
            made.append(self._trial(subject, n))

    def _is_over(self, subject: _Subject) -> bool:
        """Whether a sample that should exceed the limit of memory does.

        A learner may need less memory for each row once there are many.
        """
        if not any(trial.status == "out_of_memory" for trial in subject.trials):
            need, n_rows = BEYOND * self._limits.task_memory_mib, subject.samples.n_rows
            n = cost.rows_that_need(subject.trials, need, n_rows, *subject.growth)
            if n > max(trial.n_rows for trial in subject.trials):
                self._trial(subject, n)
                self._keep(subject)
        return any(trial.status == "out_of_memory" for trial in subject.trials)

    def _trial(
        self, subject: _Subject, n_rows: int, has_metrics: bool = False, n_threads: int = 1
    ) -> Trial:
        """Run a task on a sample of its rows, as a further trial of the subject.

        Its CPU time is measured, which other programs do not lengthen much.
        """
        task, cell, samples = subject.task, subject.cell, subject.samples
        share, protocol = n_rows / samples.n_rows, cell.protocol
        kind = self._run.registry.get("feature map", cell.feature_map.name).family
        if not has_metrics:
            # nothing hides how costs grow if samples for metrics shrink too
            n_gram_rows = max(2, int(share * protocol.gram_error_rows))
            protocol = replace(protocol, gram_error_rows=n_gram_rows)
        payload = {
            "checksum": task.checksum,
            "kinds": list(task.kinds),
            "cache": str(self._cache.root),
            "feature_map": to_json(cell.feature_map),
            "learner": to_json(cell.learner),
            "protocol": to_json(replace(protocol, threads=n_threads)),
            "split": task.split_index,
            "share": share,
        }
        sizes = n_rows, protocol.gram_error_rows, PARTITION_ROWS * (kind == "partition")
        with self._run.session.parents.using(task.plugins) as sandbox:
            outcome = sandbox.run(
                "kbench.execution.task_functions:evaluate_sample",
                payload,
                time_s=min(TRIAL_S, self._limits.task_timeout_s),
                memory_mib=self._limits.task_memory_mib,
                converse=Handover(samples.first(*sizes), protocol.map_seeds),
            )
        subject.last = outcome
        subject.manifest |= self._planner.present.build(outcome.recorded) or Manifest()
        least = self._limits.task_memory_mib if outcome.status == "out_of_memory" else 0.0
        memory, found = max(outcome.peak_memory_mib, least), outcome.value or {}
        blocks = of_cells.memory_of_blocks(found, protocol, n_rows, samples.n_rows)
        costs = outcome.status, outcome.cpu_s, memory, n_threads, blocks * (not has_metrics)
        from_sums = blocks > 0 and not of_cells.is_in_passes(found)
        subject.trials.append(Trial(n_rows, has_metrics, *costs, from_sums))
        return subject.trials[-1]

    def _keep(self, subject: _Subject) -> None:
        self._journal.keep_manifest(subject.manifest)
        self._journal.append(
            "trials",
            key=subject.key,
            memory_mib=self._limits.task_memory_mib,
            manifest=subject.manifest.digest,
            trials=[trial.to_json() for trial in subject.trials],
        )

    # -- what would fit

    def _refusal(self, predicted: Cost, subject: _Subject) -> str:
        width, limit = get_width(subject.cell), self._limits.task_memory_mib
        largest = None if width is None else self._largest(predicted, subject, width)
        if largest is not None:
            return cost.too_large(predicted, limit, WIDTH, largest)
        rows = subject.trials, cost.MARGIN * limit, subject.samples.n_rows, *subject.growth
        n_rows = cost.round_width(cost.rows_that_need(*rows))
        fits = n_rows if n_rows > FIRST_ROWS else None
        return cost.too_large(predicted, limit, "max_train_rows", fits)

    def _advice(self, planned: PlannedCell, subject: _Subject, known: Cost, refusal: str) -> str:
        """Write the options with which a long task needs much less, by trials of the same sizes."""
        limits, protocol, advice = self._limits, subject.cell.protocol, ""
        seconds = known.seconds.value if known.seconds else 0.0
        is_refused = refusal or cost.too_long(known.seconds, limits.task_timeout_s, protocol)
        best, most = math.inf if is_refused else seconds, SHARE / 2 * seconds * len(planned.missing)
        good = (trial for trial in subject.trials if trial.status == "ok")
        sizes = sorted({trial.n_rows for trial in good if trial.seconds <= most})
        is_long = seconds >= LONG_TASK_S and len(sizes) > 1
        for name, cell in alternatives(planned, self._run.registry) if is_long else ():
            other = self._variant(subject, name, cell, lambda it: self._try(it, 1, sizes))
            if not (other and other.seconds) or other.exceeds(limits.task_memory_mib):
                continue
            ends = not cost.too_long(other.seconds, limits.task_timeout_s, protocol)
            if ends and CHEAPER * other.seconds.value < best:
                best, advice = other.seconds.value, f"{advice}; with {name} in [protocol], {other}"
        return advice

    def _variant(
        self, subject: _Subject, name: str, cell: Cell, make_trials: Callable[[_Subject], None]
    ) -> Cost | None:
        """Predict another form of a cell."""
        other = self._subject(f"{subject.key}/{name}", cell, subject.task, subject.samples)
        if not other.trials:
            make_trials(other)
            self._keep(other)
        return other.cost()

    def _largest(self, predicted: Cost, subject: _Subject, width: int) -> int | None:
        """Return the maximum number of components that should fit; None if none is found."""
        limit, needs = self._limits.task_memory_mib, {width: predicted.memory_mib.high}
        for _ in range(MAX_WIDTHS):
            smaller = cost.next_width(needs, limit)
            if smaller is None:
                break
            given = f"{WIDTH}={smaller}", set_width(subject.cell, smaller)
            if (known := self._variant(subject, *given, self._grow)) is None:
                break
            needs[smaller] = known.memory_mib.high
        return cost.largest_width(needs, limit)


def _width(planned: PlannedCell) -> int:
    return get_width(planned.cell) or 1


def _parse_trial(line: Mapping[str, Any], limit: float) -> list[Trial]:
    """Parse a line of the journal; none if a trial hit a lower limit, or is not understood."""
    try:
        trials = [Trial.from_json(trial) for trial in line["trials"]]
    except TypeError:
        return []
    return [t for t in trials if t.status != "out_of_memory" or limit <= float(line["memory_mib"])]
