"""A learned metric around a map of cells, which has no number of components to choose."""

from __future__ import annotations

from kbench_learned._map import LearnedMetricMap


class LearnedPartitionMap(LearnedMetricMap):
    """`LearnedMetricMap` around a map that has neither `n_components` nor a bandwidth.

    Use it where the base map decides its number of features by itself, as nested barycentric
    coordinates do: an estimator must not have parameters that it would refuse.

    Parameters
    ----------
    base_map, metric, rank, rounds, patience, regularization, groups, random_state
        As in `LearnedMetricMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from kbench_nbcs import NestedBarycentricMap
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> nested = NestedBarycentricMap(2, n_roots=2, rotate=True)
    >>> learned = LearnedPartitionMap(nested, rounds=1, metric="full", random_state=0)
    >>> learned.fit(X, X[:, 0] ** 2).form_
    'full'
    """

    def __init__(
        self,
        base_map,
        *,
        metric="auto",
        rank=10,
        rounds=10,
        patience=2,
        regularization=1e-4,
        groups="one-hot",
        random_state=None,
    ):
        self.base_map = base_map
        self.metric = metric
        self.rank = rank
        self.rounds = rounds
        self.patience = patience
        self.regularization = regularization
        self.groups = groups
        self.random_state = random_state
