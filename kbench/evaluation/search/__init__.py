"""Parameter search by inner cross-validation, on the training part only."""

from kbench.evaluation.search._candidates import Candidate, candidates, is_number
from kbench.evaluation.search._data import (
    Data,
    fit_map,
    has_converged,
    preprocessed,
)
from kbench.evaluation.search._folds import inner_folds
from kbench.evaluation.search._in_blocks import BlockFits, Sample
from kbench.evaluation.search._out_of_fold import out_of_fold_decisions
from kbench.evaluation.search._passes import (
    LinearModels,
    Pass,
    embedding_of,
    fit_from_sums,
    labels,
    pass_over,
    takes_sums,
)
from kbench.evaluation.search._result import Score, SearchResult
from kbench.evaluation.search._search import search
from kbench.evaluation.search._shared import SharedMap
from kbench.evaluation.search._spec import EstimatorSpec, Nested

__all__ = [
    "BlockFits",
    "Candidate",
    "Data",
    "EstimatorSpec",
    "LinearModels",
    "Nested",
    "Pass",
    "Sample",
    "Score",
    "SearchResult",
    "SharedMap",
    "candidates",
    "embedding_of",
    "fit_from_sums",
    "fit_map",
    "has_converged",
    "inner_folds",
    "is_number",
    "labels",
    "out_of_fold_decisions",
    "pass_over",
    "preprocessed",
    "search",
    "takes_sums",
]
