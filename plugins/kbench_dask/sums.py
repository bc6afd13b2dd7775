"""Sums over many rows, computed by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from kbench.features import Sums


def sum_rows(
    executor: Executor, sums_of: Callable[[int, int], Sums], n_rows: int, n_parts: int = 64
) -> Sums:
    """Return the sums over all rows, of which workers compute the parts.

    Parts are added in the order of their rows: the digits do not depend on the number of workers.
    Only sums travel: a part of a map with p components has about 8 p^2 bytes.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        The workers; those of a Dask cluster are ``Client(address).get_executor(pure=False)``.
    sums_of : callable
        Returns the `Sums` over rows `first` to `last`, exclusive; all parts have one shift. It runs
        on a worker, and reads the rows there.
    n_rows : int
        Number of rows.
    n_parts : int, default 64
        Number of parts, of about equal size.

    Examples
    --------
    >>> import numpy as np
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> def sums_of(first, last):
    ...     rows = np.arange(first, last, dtype=float)[:, None]
    ...     sums = Sums.zero(np.zeros(1), 1)
    ...     sums.add(rows, 2.0 * rows)
    ...     return sums
    >>> with ThreadPoolExecutor(2) as executor:
    ...     sums = sum_rows(executor, sums_of, 1000, n_parts=4)
    >>> float(sums.n), float(sums.mean[0])
    (1000.0, 499.5)
    """
    ends = [n_rows * part // n_parts for part in range(n_parts + 1)]
    parts = executor.map(sums_of, ends[:-1], ends[1:])
    total = next(parts)
    for part in parts:
        total = Sums.combine([total, part])
    return total
