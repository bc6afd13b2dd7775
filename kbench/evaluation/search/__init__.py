"""Parameter search by inner cross-validation, on the training part only."""

from kbench.evaluation.search._candidates import Candidate, candidates, is_number
from kbench.evaluation.search._data import (
    Data,
    fit_map,
    fit_preprocessing,
    has_converged,
)
from kbench.evaluation.search._folds import Fold, fit_on_fold, inner_folds
from kbench.evaluation.search._result import Score, SearchResult
from kbench.evaluation.search._search import search
from kbench.evaluation.search._spec import EstimatorSpec, Nested

__all__ = [
    "Candidate",
    "Data",
    "EstimatorSpec",
    "Fold",
    "Nested",
    "Score",
    "SearchResult",
    "candidates",
    "fit_map",
    "fit_on_fold",
    "fit_preprocessing",
    "has_converged",
    "inner_folds",
    "is_number",
    "search",
]
