"""Comparison of two sets of results, cell by cell: better, worse, slower. Rows in, rows out.

A cell of one side is matched with that of the other by its labels (dataset,
feature map, learner). Both must have been measured on the same splits, which
have hashes. The measure of the suite is compared over these splits by the corrected
resampled t-test; on one split, accuracies by the binomial error of the test rows. Times
are compared by their logarithms, after those of the second side were multiplied
by the ratio of the machines' calibration figures; their noise has two parts,
between the splits of a run, which is measured, and between runs of the same
code, which is given.
"""

from kbench.results.comparison._compare import compare
from kbench.results.comparison._matching import chosen
from kbench.results.comparison._outside import from_outside
from kbench.results.comparison._result import Change, Compared, Comparison, Noise, columns

__all__ = [
    "Change",
    "Compared",
    "Comparison",
    "Noise",
    "chosen",
    "columns",
    "compare",
    "from_outside",
]
