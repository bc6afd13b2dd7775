"""Comparing methods over datasets: ranks, tests, intervals. Arrays in, plain records out.

Scores are arrays of shape (n_datasets, n_methods), higher is better, one number
per dataset and method: the mean over its splits. More splits make that number
better; they never make more datasets. `scores` builds the array from results
rows and averages the datasets of a group first.

scipy does the arithmetic of ranks and distributions. The few statistics that
it lacks are written out here, because the packages that have them bring
plotting libraries along; they are checked against those packages.

::

    compared   what may be compared: datasets that all methods finished
    ranking    ranks, Friedman's test, cliques
    pairs      signed ranks, Holm's correction, wins
    bayesian   the Bayesian signed-rank test
    on_splits  two methods on one dataset
    intervals  bootstrap
    standings  the methods in the order of their mean ranks
"""

from kbench.results.stats.arrays import Array
from kbench.results.stats.bayesian import Posterior, bayesian_signed_rank
from kbench.results.stats.compared import Scores, scores, unmeasured
from kbench.results.stats.intervals import bootstrap_interval
from kbench.results.stats.on_splits import (
    EQUAL,
    NO_TEST,
    CorrectedT,
    corrected_t,
    holdout_ratio,
    unit_of,
)
from kbench.results.stats.pairs import (
    holm,
    signed_rank,
    smallest_p,
    wilcoxon_holm,
    wins_ties_losses,
)
from kbench.results.stats.ranking import Friedman, cliques, friedman, ranks
from kbench.results.stats.standings import Standing, pareto_front, standings

__all__ = [
    "EQUAL",
    "NO_TEST",
    "Array",
    "CorrectedT",
    "Friedman",
    "Posterior",
    "Scores",
    "Standing",
    "bayesian_signed_rank",
    "bootstrap_interval",
    "cliques",
    "corrected_t",
    "friedman",
    "holdout_ratio",
    "holm",
    "pareto_front",
    "ranks",
    "scores",
    "signed_rank",
    "smallest_p",
    "standings",
    "unit_of",
    "unmeasured",
    "wilcoxon_holm",
    "wins_ties_losses",
]
