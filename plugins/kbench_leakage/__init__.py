"""Leakage: columns and rows that predict the targets of test rows without a model.

::

    function       `kbench.find_leakage`; `findings` are what it returns
    check          the scores on one split, on samples of its rows and columns
    scoring        predictions by one column, two columns, adjacent and similar rows
    stored_checks  the check of a dataset in the cache, from one run to the next
    related        datasets that are not independent samples
    sections       notices of a run, and the section of a report
    command        `kbench leakage`
"""
