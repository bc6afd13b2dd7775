"""Which cells need trials, and the nested samples of their rows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kbench.features import WIDTH, Assignment, PlannedCell, Registry, Visible, get_width, strata
from kbench.records import Cell, Ref
from kbench.records.canonical import to_json

ROWS = 20_000
"""Rows of a dataset from which the cost of its cells is predicted."""

MAX_WIDER = 8
"""Times as many components as an embedding has from which a wider one is predicted."""

_BYTES = 8


def needs_trials(planned: PlannedCell, registry: Registry, limit_mib: float) -> bool:
    """Whether a cell has many rows, or may need more than half the limit of memory.

    Matrices that a method may hold have as many columns as there are inputs, components or,
    for learners with kernels, rows. No trial is made to know more of smaller cells.
    """
    facts = planned.dataset
    if facts is None or planned.problem is not None or not planned.missing:
        return False
    n, widths = facts.n_samples, [facts.n_features, get_width(planned.cell) or 0]
    if n >= ROWS:
        return True
    if registry.get("learner", planned.cell.learner.name).uses_kernel:
        widths.append(n)
    return _BYTES * n * max(widths) > limit_mib * 2**20 / 2


def rows_of_width(cell: Cell, memory_mib: float) -> int | None:
    """Return the rows whose dense embedding needs an amount of memory, if its width is given."""
    width = get_width(cell)
    return width and math.ceil(memory_mib * 2**20 / (_BYTES * width))


def narrower(cells: Iterable[PlannedCell], whole_bytes: int) -> dict[str, list[PlannedCell]]:
    """Return by key the cells that have fewer components and differ in nothing else.

    They have at least an eighth as many. Embeddings of more than `whole_bytes`, which may
    be computed in blocks, are apart from smaller ones.
    """
    families: dict[str, dict[int, PlannedCell]] = {}
    for planned in cells:
        cell = planned.cell
        width = cell.feature_map.params.get(WIDTH)
        if not isinstance(width, int) or isinstance(width, bool) or planned.dataset is None:
            continue
        without = {k: v for k, v in cell.feature_map.params.items() if k != WIDTH}
        ref = Ref(cell.feature_map.name, without)
        of_method = [to_json(part) for part in (ref, cell.learner, cell.protocol)]
        is_large = _BYTES * planned.dataset.n_samples * width > whole_bytes
        key = json.dumps([planned.dataset.checksum, of_method, is_large], sort_keys=True)
        families.setdefault(key, {}).setdefault(width, planned)
    by_key = {}
    for family in families.values():
        for width, planned in family.items():
            near = [each for w, each in family.items() if width / MAX_WIDER <= w < width]
            if near:
                by_key[planned.key] = near
    return by_key


MAX_ROWS = 2**23
"""Training rows of a sample at most."""

_MIN_TEST_ROWS = 2


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
        rng = np.random.default_rng(seed)
        visible = whole.visible
        train, test, unlabeled = (
            rng.permutation(len(rows))[:MAX_ROWS]
            for rows in (visible.train, visible.test, visible.unlabeled)
        )
        first = np.unique(strata(visible.y_train, whole.task), return_index=True)[1]
        train = np.concatenate([first, train[~np.isin(train, first)]])
        return cls(whole, train, test, unlabeled)

    @property
    def n_rows(self) -> int:
        """Training rows of the split."""
        return len(self.whole.visible.train)

    def share(self, n_rows: int) -> float:
        """Return the part of the training rows that a sample has."""
        return n_rows / self.n_rows

    def first(self, n_rows: int, least_test: int = _MIN_TEST_ROWS) -> Assignment:
        """Return a sample of training rows, and the same share of the other parts.

        It has `least_test` rows of the test set, or all if there are fewer.
        """
        whole, visible = self.whole, self.whole.visible
        share = self.share(n_rows)
        train = np.sort(self.train[:n_rows])
        test = np.sort(self.test[: max(least_test, round(share * len(visible.test)))])
        more = np.sort(self.unlabeled[: round(share * len(visible.unlabeled))])
        weight = visible.weight_train
        return Assignment(
            Visible(
                visible.index,
                visible.train[train],
                visible.test[test],
                visible.unlabeled[more],
                visible.y_train[train],
                None if weight is None else weight[train],
            ),
            whole.y_test[test],
            whole.digest,
            whole.task,
            weight_test=None if whole.weight_test is None else whole.weight_test[test],
        )
