"""Leakage: what predicts the targets of test rows without a model.

::

    function     `kbench.find_leakage`; `findings` are what it returns
    check        all measurements on one split, of samples of its rows and columns
    scoring      what one number of a row tells of its target, two of them, its neighbours in
                 the file, and rows with the same inputs
    kept         the check of a dataset in the cache, from one run to the next
    related      datasets that are not independent samples
    notices      what a run says of them
    sections     where it stands in a report
    command      `kbench leakage`
"""
