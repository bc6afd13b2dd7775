"""Recommend a method for a user's table within a time limit, explain it and export it as a model.

::

    profile, reading    columns: what they hold
    sized               suites with rules on the size of data, read for one dataset
    recommend           the methods to compare, and the recommendation
    time_budget         the order of tasks within a time limit
    export              a model fitted on all rows, its files and its predictions
    commands            `kbench recommend`, `kbench export`, `kbench predict`
"""
