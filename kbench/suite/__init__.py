"""Suite files: TOML text -> `Suite` -> cells, with all mistakes of a file at once.

A mistake is a line ``place: what was found; what is allowed``, its place a path
such as ``block[0].feature_maps[2].n_componets``.
"""

from kbench.suite._lines import Lines, labelled, nested_record, parameter_problems, parameters_of
from kbench.suite._plan import cells, indistinct_cells, select
from kbench.suite._read import find, read

__all__ = [
    "Lines",
    "cells",
    "find",
    "indistinct_cells",
    "labelled",
    "nested_record",
    "parameter_problems",
    "parameters_of",
    "read",
    "select",
]
