"""Datasets in canonical form, kept on disk under the checksum of their content."""

from kbench.storage.datacache._cache import DataCache, default_root
from kbench.storage.datacache._form import check_dataset, duplicate_fraction, missing_by_column

__all__ = ["DataCache", "check_dataset", "default_root", "duplicate_fraction", "missing_by_column"]
