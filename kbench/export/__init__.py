"""A cell becomes a model to use: searched and fitted on all rows, saved, loaded, compared.

The pipeline takes the table as its user has it; its steps are in `kbench.pipeline`.
"""

from kbench.export._fit import Fitted, refit
from kbench.export._folder import FORMATS, TRUST, check_format, refuse_existing, write
from kbench.export._tables import columns_of, read_table

__all__ = [
    "FORMATS",
    "TRUST",
    "Fitted",
    "check_format",
    "columns_of",
    "read_table",
    "refit",
    "refuse_existing",
    "write",
]
