"""Which cells need trials, the nested samples of their rows, and costs that results show."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kbench.features import (
    BLOCK_ROWS,
    Assignment,
    PlannedCell,
    Registry,
    Run,
    Visible,
    get_width,
    gpu_block_rows,
    n_candidates,
    set_width,
    strata,
    task_rows,
)
from kbench.records import Cell, Cost, Estimate, Protocol, Result, Trial
from kbench.records.canonical import to_json
from kbench_costs.prediction import estimate, extrapolate, growing_seconds, wider

# Training and test rows of a task from which the cost of its cell is predicted.
ROWS = 20_000

# Times as many components as an embedding has from which a wider one is predicted.
MAX_WIDER = 8


def needs_trials(planned: PlannedCell, registry: Registry, limit_mib: float) -> bool:
    """Whether a task has many rows, or may need more than half the limit of memory.

    Matrices that a method may hold have as many columns as there are inputs, components or, for
    learners with kernels, rows. No trial is made to know more of smaller cells, and of those with
    results, which say more.
    """
    facts = planned.dataset
    if facts is None or planned.problem is not None or planned.done or not planned.missing:
        return False
    # the data decide how many rows official splits have
    protocol, n = planned.cell.protocol, facts.n_samples
    n = n if protocol.cv == "official" else min(n, sum(task_rows(n, protocol)))
    widths = [facts.n_features, get_width(planned.cell) or 0]
    if registry.get("learner", planned.cell.learner.name).uses_kernel:
        widths.append(n)
    # a GPU has about eight Gram matrices of the columns, even if there are fewer rows
    n_values = max(n, 8 * max(widths) * (protocol.device == "cuda")) * max(widths)
    return n >= ROWS or 8 * n_values > limit_mib * 2**20 / 2


# Matrices in memory: embedded blocks where a map computes one, Gram matrices where a solution is
# computed from sums, beside these, and those for each Hessian of a fit in passes.
OF_MAP, OF_SUMS, OF_HESSIAN = 4, 5, 2.5

# Bounds on Hessians that are kept there, and on the sample that fits in passes begin with.
KEPT_BYTES, SAMPLE_BYTES = 2**30, 2**28


def gpu_memory(planned: PlannedCell, registry: Registry, in_passes: bool, width: float) -> Estimate:
    """Predict the peak memory of a GPU from the sizes of what a task moves and keeps there.

    These are the map, a block of inputs and embedded rows of `width` columns, and matrices of the
    columns: sums of folds, or Hessians of fits in passes, and what is computed from them.
    """
    facts, cell, protocol, gram = planned.dataset, planned.cell, planned.cell.protocol, 8 * width**2
    assert facts is not None
    n, has_search = task_rows(facts.n_samples, protocol)[0], n_candidates(cell, registry) > 1
    n_folds = _n_parts(protocol, has_search)
    dtype = protocol.block_dtype
    n_rows = min(gpu_block_rows(max(width, facts.n_features), dtype), n // n_folds)
    block = n_rows * np.dtype(dtype).itemsize * (OF_MAP * width + facts.n_features)
    peaks = n_folds * gram + block, (n_folds + OF_SUMS) * gram
    if in_passes:
        learner, n_pairs = registry.get("learner", cell.learner.name), math.comb(facts.n_classes, 2)
        given = {"multiclass": learner.multiclass, **learner.grid, **cell.learner.params}
        values, scheme = given.get(str(learner.path), ()), given["multiclass"]
        n_problems = n_pairs if scheme == "ovo" or n_pairs == 1 else facts.n_classes
        n_values = max(1, np.size(getattr(values, "values", values)))
        one = max(gram, min(n_values * n_problems * gram, KEPT_BYTES))
        # Hessians of classes that share a problem are incomplete, and seldom computed again
        of_hessian = 2 if scheme == "multinomial" and n_pairs > 1 else OF_HESSIAN
        # fits begin together until their Hessians are as large as the bound
        kept = of_hessian * one * min(n_folds, (KEPT_BYTES - 1) // one + 1)
        peaks = kept + block, (OF_MAP - 1) * min(8 * width * n, SAMPLE_BYTES)
    return estimate(math.log((8 * width * facts.n_features + max(peaks)) / 2**20), SPLITS_SD)


# Blocks of embedded rows that a pass over an embedding has at a time, and bytes for each row in
# other places: its number and its targets, several times.
OF_PASS, OF_ROW = 3, 72


def memory_of_blocks(found: Mapping[str, Any], protocol: Protocol, n_rows: int, most: int) -> float:
    """Return the memory in MiB that a task with `most` rows needs and one with `n_rows` does not.

    `found` has the results of a trial, whose blocks and samples have fewer rows than its task's.
    """
    metrics = found.get("metrics", {})
    if "shared_pass" not in metrics:  # the embedding was one matrix
        return 0.0
    notes, width = found["details"]["notes"], metrics["n_components"]
    of_sparse, of_value = 12 * metrics["nnz_per_row"], 4 if "rows in float32" in str(notes) else 8
    n = _n_parts(protocol, metrics["n_candidates"] > 1)
    n_more = min(BLOCK_ROWS, most // n) - min(found["block_rows"], n_rows // n)
    size = OF_PASS * min(of_value * width, of_sparse) * n_more + OF_ROW * (most - n_rows)
    for begun in (note.split()[5] for note in notes if note.startswith("begun on ")):
        # a sample in float64, copied from one in float32 if this is the type of blocks
        n_more = min(most, SAMPLE_BYTES // min(8 * width, of_sparse)) - int(begun.replace(",", ""))
        size += min((16 - of_value) * width, of_sparse) * n_more
    return float(size / 2**20)


def is_in_passes(found: Mapping[str, Any]) -> bool:
    """Whether the method of a result was fitted in passes over blocks, and not from sums."""
    return any(note.startswith("fitted in passes") for note in found["details"]["notes"])


def wider_memory(
    planned: PlannedCell, registry: Registry, ratio: float, narrow: Estimate
) -> Estimate:
    """Predict the memory of a fit from sums, given that of an embedding `ratio` times narrower.

    It has larger blocks, sums of the folds and matrices that are computed from them.
    """
    facts, protocol, width = planned.dataset, planned.cell.protocol, get_width(planned.cell) or 1
    assert facts is not None
    n_folds = _n_parts(protocol, n_candidates(planned.cell, registry) > 1)
    of_value = np.dtype(protocol.block_dtype).itemsize
    n_rows = min(BLOCK_ROWS, task_rows(facts.n_samples, protocol)[0] // n_folds)

    def size(columns: float) -> float:
        block, gram = OF_MAP * of_value * n_rows * columns, 8 * columns**2
        return max(n_folds * gram + block, (n_folds + OF_SUMS) * gram) / 2**20

    return wider(
        narrow.map(lambda mib: mib + size(width) - size(width / ratio)), MEMORY_OF_SPLITS_SD
    )


def wider_growth(
    trials: Sequence[Trial], ratio: float, n_rows: int, pairs: float
) -> Estimate | None:
    """Predict the part of the time that grows from trials of an embedding `ratio` times narrower.

    It is between that of the embedding and that of the products of its columns.
    """
    slope, sd = TIME_SLOPES[-1], SLOPE_OF_ROWS_SD * math.log(ratio)
    return growing_seconds(trials, n_rows, pairs, ratio**slope, sd)


def _n_parts(protocol: Protocol, has_search: bool) -> int:
    """Return the number of parts of the rows that a pass takes the sums of."""
    return protocol.inner_folds if has_search and not protocol.refit_maps_in_inner_folds else 1


OUTER, FLOAT32 = "refit_maps_in_inner_folds = false", 'block_dtype = "float32"'


def alternatives(planned: PlannedCell, registry: Registry) -> list[tuple[str, Cell]]:
    """List options of the protocol that may need less, and the cell with each of them."""
    cell, protocol, facts = planned.cell, planned.cell.protocol, planned.dataset
    learner = registry.get("learner", cell.learner.name)
    is_bound = (
        learner.uses_kernel
        or registry.get("feature map", cell.feature_map.name).supervised
        or protocol.search_method == "racing"
        or (facts is not None and "target_encoded" in facts.feature_kinds)
    )
    outer = replace(protocol, refit_maps_in_inner_folds=False)
    options = {OUTER: outer}
    if learner.path is not None:
        name = FLOAT32 if outer == protocol else f"{OUTER} and {FLOAT32}"
        options[name] = replace(outer, block_dtype="float32")
    allowed = (item for item in options.items() if item[1] != protocol and not is_bound)
    return [(name, replace(cell, protocol=changed)) for name, changed in allowed]


# Standard deviations of the logarithms of costs between splits of a cell.
SPLITS_SD, MEMORY_OF_SPLITS_SD = 0.12, 0.06

# Exponents of training and test rows, classes, columns and components that are assumed before
# any is measured. Both kinds of rows count: many splits have few training rows and many test
# rows.
TIME_SLOPES, MEMORY_SLOPES = (0.7, 0.3, 0.7, 0.3, 1.5), (0.35, 0.15, 0.2, 0.3, 1.0)

# Standard deviation of that of components in the part of the time that grows with the rows.
SLOPE_OF_ROWS_SD = 0.3

_families: WeakKeyDictionary[Run, dict[str, list[PlannedCell]]] = WeakKeyDictionary()


def remember(run: Run, cells: Iterable[PlannedCell]) -> None:
    """Keep the cells of a run by method, for `task_cost`."""
    families = _families.setdefault(run, {})
    for planned in (each for each in cells if each.dataset is not None):
        families.setdefault(_method(planned.cell), []).append(planned)


def is_wide(run: Run, planned: PlannedCell) -> bool:
    """Whether the method has cells with fewer components, and with at least an eighth as many."""
    width, others = get_width(planned.cell) or 0, family(run, planned)
    return any(width / MAX_WIDER <= (get_width(other.cell) or 0) < width for other in others)


def task_cost(run: Run, planned: PlannedCell) -> Cost | None:
    """Predict the cost of the next task of a cell; None without results or trials.

    Results of its other splits say more than trials, and these more than other datasets and
    other numbers of components.
    """
    if planned.done:
        memory, seconds = map(fmean, zip(*map(_measured, planned.done), strict=True))
        of_memory = estimate(math.log(memory), MEMORY_OF_SPLITS_SD)
        return Cost(of_memory, estimate(math.log(seconds), SPLITS_SD))
    if planned.cost is not None or planned.dataset is None:
        return planned.cost
    known = [(_sizes(each), costs) for each in family(run, planned) if (costs := _costs(each))]
    if not known:
        return None
    sizes, at = np.array([size for size, _ in known]), _sizes(planned)
    memories, times = zip(*(costs for _, costs in known), strict=True)
    return Cost(
        extrapolate(sizes, memories, at, MEMORY_SLOPES), extrapolate(sizes, times, at, TIME_SLOPES)
    )


def family(run: Run, planned: PlannedCell) -> list[PlannedCell]:
    """Return the cells of a method on all datasets, with any number of components."""
    return _families.get(run, {}).get(_method(planned.cell), [])


def _method(cell: Cell) -> str:
    """Return a key of a method that all datasets and numbers of components share."""
    protocol = replace(cell.protocol, cv=Protocol.cv, inner_cv=Protocol.inner_cv)
    parts = set_width(cell, 0).feature_map if get_width(cell) else cell.feature_map, cell.learner
    return json.dumps([to_json(each) for each in (*parts, protocol)])


def _costs(planned: PlannedCell) -> tuple[float, float] | None:
    """Return memory and CPU seconds of a task that were measured, or else predicted."""
    if planned.done:
        return _measured(planned.done[0])
    cost = planned.cost
    return (cost.memory_mib.value, cost.seconds.value) if cost and cost.seconds else None


def _measured(result: Result) -> tuple[float, float]:
    """Return memory, of a GPU if there is one, and CPU seconds, of which logarithms are taken."""
    of_host = result.metrics.get("peak_memory_mib", 0.0)
    return max(0.01, result.metrics.get("device_memory_mib", of_host)), max(1e-3, result.cpu_s)


def _sizes(planned: PlannedCell) -> list[int]:
    facts = planned.dataset
    assert facts is not None
    rows, width = task_rows(facts.n_samples, planned.cell.protocol), get_width(planned.cell)
    return [max(1, size) for size in (*rows, facts.n_classes, facts.n_features, width or 1)]


@dataclass(frozen=True)
class Samples:
    """Samples of the rows of one split, of which a larger one has all rows of a smaller one.

    `whole` is the split, with all rows. The others are positions in the parts of the split, in
    the order in which samples take them. Each class has one of the first training rows.
    """

    whole: Assignment
    train: np.ndarray
    test: np.ndarray
    unlabeled: np.ndarray

    @classmethod
    def of(cls, whole: Assignment, seed: int = 0) -> Samples:
        """Draw the order of the rows."""
        rng, visible = np.random.default_rng(seed), whole.visible
        train, test, unlabeled = (
            rng.permutation(len(rows)) for rows in (visible.train, visible.test, visible.unlabeled)
        )
        first = np.unique(strata(visible.y_train, whole.task), return_index=True)[1]
        train = np.concatenate([first, train[~np.isin(train, first)]])
        return cls(whole, train, test, unlabeled)

    @property
    def n_rows(self) -> int:
        """Training rows of the split."""
        return len(self.whole.visible.train)

    def first(self, n_rows: int, least_test: int = 2, of_map: int = 0) -> Assignment:
        """Return a sample of training rows, and the same share of the other parts.

        It has `least_test` rows of the test set. Unsupervised maps are fitted on at least `of_map`
        rows, or all if there are fewer: those without labels, or training rows if all have labels.
        """
        whole, visible = self.whole, self.whole.visible
        share, train = n_rows / self.n_rows, np.sort(self.train[:n_rows])
        test = np.sort(self.test[: max(least_test, round(share * len(visible.test)))])
        more = np.sort(self.unlabeled[: max(of_map, round(share * len(visible.unlabeled)))])
        of_labels = visible.train[np.sort(self.train[:of_map])]
        weight = visible.weight_train
        return Assignment(
            Visible(
                visible.index,
                visible.train[train],
                visible.test[test],
                visible.unlabeled[more] if len(self.unlabeled) else of_labels,
                visible.y_train[train],
                None if weight is None else weight[train],
            ),
            whole.y_test[test],
            whole.digest,
            whole.task,
            weight_test=None if whole.weight_test is None else whole.weight_test[test],
        )
