"""Parameter search by inner cross-validation, on the training part only."""

from kbench.evaluation.search._candidates import Candidate, candidates
from kbench.evaluation.search._data import (
    Data,
    fit_map,
    fit_preprocessing,
    has_converged,
)
from kbench.evaluation.search._result import Score, SearchResult, is_number
from kbench.evaluation.search._search import search
from kbench.evaluation.search._spec import EstimatorSpec, Nested

__all__ = [
    "Candidate",
    "Data",
    "EstimatorSpec",
    "Nested",
    "Score",
    "SearchResult",
    "candidates",
    "fit_map",
    "fit_preprocessing",
    "has_converged",
    "is_number",
    "search",
]
