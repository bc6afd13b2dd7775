"""A user's own table: recommended methods in a limited time, explained, exported as a model.

::

    profile, reading    columns: what they hold
    sized               suites with rules on the size of data, read for one dataset
    recommend           what is compared, and what is recommended
    time_budget         the order of tasks in a limited time
    export              a model: fitted on all rows, saved, and predictions of it
    commands            `kbench recommend`, `kbench export`, `kbench predict`
"""
