"""MLflow: every cell of a run as an MLflow run, written while it computes and read back later.

::

    tracking    the only code that imports MLflow: a store that holds exactly the given runs
    runs        finished cells, and methods, as runs
    delivery    what a store lacks is written: now, or when the store answers again
    reading     rows of runs
    commands    `kbench sync`, `kbench ui`
"""
