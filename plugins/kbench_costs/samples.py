"""Nested samples of the rows of a split, for trials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kbench.features import Assignment, Visible, strata

MOST_ROWS = 2**23
"""Training rows of a sample at most."""

_LEAST_TEST_ROWS = 2


@dataclass(frozen=True)
class Samples:
    """Samples of the rows of one split, of which a larger one has all rows of a smaller one.

    `whole` is the split, with all rows. The others are positions in the parts of the split, in
    the order in which samples take them. Each class has one of the first training rows.
    """

    whole: Assignment
    train: np.ndarray
    test: np.ndarray
    unlabelled: np.ndarray

    @classmethod
    def of(cls, whole: Assignment, seed: int = 0) -> Samples:
        """Draw the order of the rows."""
        rng = np.random.default_rng(seed)
        visible = whole.visible
        train, test, unlabelled = (
            rng.permutation(len(rows))[:MOST_ROWS]
            for rows in (visible.train, visible.test, visible.unlabelled)
        )
        classes = strata(visible.y_train, whole.task)
        first = np.unique(classes, return_index=True)[1]
        train = np.concatenate([first, train[~np.isin(train, first)]])
        return cls(whole, train, test, unlabelled)

    @property
    def n_rows(self) -> int:
        """Training rows of the split."""
        return len(self.whole.visible.train)

    def share(self, n_rows: int) -> float:
        """Return the part of the training rows that a sample has."""
        return n_rows / self.n_rows

    def first(self, n_rows: int, least_test: int = _LEAST_TEST_ROWS) -> Assignment:
        """Return a sample of training rows, and the same share of the other parts.

        It has `least_test` rows of the test part, if there are so many.
        """
        whole, visible = self.whole, self.whole.visible
        share = self.share(n_rows)
        train = np.sort(self.train[:n_rows])
        test = np.sort(self.test[: max(least_test, round(share * len(visible.test)))])
        more = np.sort(self.unlabelled[: round(share * len(visible.unlabelled))])
        weight = visible.weight_train
        return Assignment(
            Visible(
                visible.index,
                visible.train[train],
                visible.test[test],
                visible.unlabelled[more],
                visible.y_train[train],
                None if weight is None else weight[train],
            ),
            whole.y_test[test],
            whole.digest,
            whole.task,
            weight_test=None if whole.weight_test is None else whole.weight_test[test],
        )
