"""Size limits of a user's table, which hold before it is in memory."""

from __future__ import annotations

import os

from kbench.errors import DatasetError


def max_bytes() -> int:
    """Return the largest size of a dataset, as a file and in memory.

    It is ``$KBENCH_MAX_DATASET_MB``, 4096 by default, in bytes; `DatasetError` if
    that is not a positive number.
    """
    text = os.environ.get("KBENCH_MAX_DATASET_MB", "4096")
    try:
        megabytes = float(text)
    except ValueError:
        megabytes = 0.0
    if not 0 < megabytes < 2**33:
        raise DatasetError(f"KBENCH_MAX_DATASET_MB must be a positive number, got {text!r}")
    return int(megabytes * 2**20)


def check_file_size(size: int, what: str) -> None:
    """Refuse a file of more bytes than `max_bytes`; `what` is the dataset, for messages."""
    if size > max_bytes():
        raise too_large(what, f"the file has {size / 2**20:,.0f} MB")


def check_values(n_values: int, what: str, shape: str, n_bytes: int = 8) -> None:
    """Refuse a table that would need more than `max_bytes`.

    `n_values` is the number of its values, each of `n_bytes`, and `shape` their description,
    for messages.
    """
    if n_bytes * n_values > max_bytes():
        raise too_large(what, f"{shape} need {n_bytes * n_values / 2**20:,.0f} MB in memory")


def too_large(what: str, why: str) -> DatasetError:
    """Return the error for data of more than `max_bytes`."""
    return DatasetError(
        f"{what}: {why}, more than the {max_bytes() / 2**20:,.0f} MB allowed. "
        "Raise KBENCH_MAX_DATASET_MB."
    )
