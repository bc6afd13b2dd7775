"""Racing: one inner fold for all candidates, each further one for the better half.

Successive halving (Jamieson and Talwalkar, Non-stochastic best arm identification and
hyperparameter optimization, AISTATS 2016) with inner folds as the resource. Races of Maron and
Moore (Hoeffding races, NIPS 1993) also drop models before they have seen all validation data.
Folds and not rows: the best C and the best bandwidth shift with the rows of a fit.
"""

from collections.abc import Sequence
from dataclasses import replace

from kbench.evaluation.search._result import EQUAL, Score
from kbench.evaluation.specs import Candidate


def survivors(scores: Sequence[Score], default: Candidate) -> list[Score]:
    """Return copies of the scores of the candidates of the next round, in the same order.

    These are the better half by the mean of the folds so far, at least two, with all that equal
    the last of them; the default, so that the gain of the search can be
    reported; and those for which the metric is not defined so far. None has failed.
    """
    left = [score for score in scores if not score.error]
    half = sorted((score.gain for score in left), reverse=True)[: max(2, -(-len(left) // 2))]
    return [
        replace(score, values=[*score.values], converged=[*score.converged])
        for score in left
        if score.candidate is default or not score.values or score.gain >= half[-1] - EQUAL
    ]
