"""Dask: tasks in slots of the workers of an existing cluster (``--scheduler``).

::

    dispatch    the engine: which worker gets which task
    pool        the workers, as they join and leave
    worker      what runs on a worker, and whether it computes from what this process has;
                sums over many rows
"""
