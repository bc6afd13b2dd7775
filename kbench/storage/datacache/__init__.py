"""Datasets in canonical form, kept on disk under the checksum of their content."""

from kbench.storage.datacache._cache import FILE_PARAMETERS, DataCache, default_root, unsure_files
from kbench.storage.datacache._form import check_dataset, duplicate_fraction, missing_by_column
