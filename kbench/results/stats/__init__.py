"""Comparing methods over datasets: ranks, tests, intervals. Arrays in, plain records out.

Scores are arrays of shape (n_datasets, n_methods), higher is better, one number
per dataset and method: the mean over its splits. More splits make that number
better; they never make more datasets. `scores` builds the array from results
rows and averages the datasets of a group first.

scipy does the arithmetic of ranks and distributions. The few statistics that
it lacks are written out here, because the packages that have them bring
plotting libraries along; they are checked against those packages.

::

    compared   what may be compared: datasets that all methods finished; their standings
    ranking    ranks, Friedman's test; the best group, and the order without a dataset
    pairs      two methods: on one dataset; signed ranks, Holm's correction, wins, Bayes
    resampling intervals of means, draws of them, and how much too good the best validation score is
    fronts     which methods are on the front of gain against cost
"""

from kbench.results.stats.compared import Scores, Standing, list_unmeasured, scores, standings
from kbench.results.stats.fronts import Front, FrontPlace, Status, front, hypervolume
from kbench.results.stats.pairs import (
    EQUAL,
    NO_TEST,
    Array,
    CorrectedT,
    bayesian_signed_rank,
    common_splits,
    corrected_t,
    find_unit,
    holdout_ratio,
    holm,
    on_dataset,
    signed_rank,
    wins_ties_losses,
)
from kbench.results.stats.ranking import (
    ALPHA,
    Friedman,
    Stability,
    better_p,
    flip_p,
    friedman,
    ranks,
    stability,
    worse_p,
)
from kbench.results.stats.resampling import (
    mean_draws,
    mean_interval,
    mean_intervals,
    median_interval,
    optimism,
)
