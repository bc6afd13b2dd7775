"""Leakage: what predicts the targets of test rows without a model.

::

    function     `kbench.find_leakage`; `findings` are what it returns
    check        all measurements on one split, of samples of its rows and columns
    single       one number of a row, by any function; `pairs` makes one of two columns
    order        neighbours in the file
    copies       rows with the same inputs, or the same but one
    attributes   the columns of a table; `scoring` its targets
    datasets     the same of a dataset in the cache; `kept` from one run to the next
    related      datasets that are not independent samples
    sections     where it stands in a report
    command      `kbench leakage`
"""
