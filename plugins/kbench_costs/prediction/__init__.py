"""Memory and time of a task before it runs, from trials on samples of its rows.

A trial is a task on some of the rows of its split: it measures what a task measures,
whatever a plugin does. `predict` extrapolates from the trials of a cell to all rows, and
`too_large` writes why a cell cannot fit into the limit of memory.
"""

from kbench_costs.prediction._largest import largest_width, next_width, rounded_up
from kbench_costs.prediction._prediction import (
    of_wider,
    predict,
    predict_wider,
    rows_that_need,
)
from kbench_costs.prediction._screen import (
    narrower,
    needs_trials,
    rows_of_width,
    shortened,
)
from kbench_costs.prediction._words import too_large

__all__ = [
    "largest_width",
    "narrower",
    "needs_trials",
    "next_width",
    "of_wider",
    "predict",
    "predict_wider",
    "rounded_up",
    "rows_of_width",
    "rows_that_need",
    "shortened",
    "too_large",
]
