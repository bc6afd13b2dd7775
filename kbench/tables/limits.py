"""How large a user's table may be."""

from __future__ import annotations

import os

from kbench.errors import DatasetError


def max_bytes() -> int:
    """Return the largest size of a dataset, as a file and in memory.

    Returns
    -------
    int
        ``$KBENCH_MAX_DATASET_MB`` (4096 by default) in bytes.

    Raises
    ------
    DatasetError
        The variable is no positive number.
    """
    text = os.environ.get("KBENCH_MAX_DATASET_MB", "4096")
    try:
        megabytes = float(text)
    except ValueError:
        megabytes = 0.0
    if not 0 < megabytes < 2**33:
        raise DatasetError(f"KBENCH_MAX_DATASET_MB={text!r} must be a positive number")
    return int(megabytes * 2**20)
