"""What the benchmarks of the maps share: fair turns, and the bare write of a CSR matrix."""

import statistics
import time

import numpy as np


def medians(functions, repeat):
    """Take turns, so that all functions meet the same machine.

    Parameters
    ----------
    functions : mapping of str to callable
    repeat : int
        Turns that count; the first, a warm-up, does not.

    Returns
    -------
    dict of str to float
        Median CPU seconds of each.
    """
    times = {name: [] for name in functions}
    for turn in range(repeat + 1):
        for name, function in functions.items():
            start = time.process_time()
            function()
            if turn:
                times[name].append(time.process_time() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def writing(n, width):
    """Return what writes the arrays of a CSR matrix with `width` values a row, once."""

    def write():
        data, indices = np.empty((n, width)), np.empty((n, width), dtype=np.int32)
        data.fill(1.0)
        indices.fill(1)
        return data, indices, np.arange(0, n * width + 1, width, dtype=np.int32)

    return write
