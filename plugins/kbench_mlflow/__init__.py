"""MLflow: every cell of a run as an MLflow run, written while it computes and read back later.

::

    tracking    the only code that imports MLflow: a store that holds exactly the given runs
    delivery    cells as runs; what a store lacks; `kbench sync`
    reading     rows of runs
    commands    `kbench sync`, `kbench ui`
"""
