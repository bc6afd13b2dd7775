"""Comparison of two sets of results, cell by cell: better, worse, slower. Rows in, rows out.

A cell of one side is matched with that of the other by its labels (dataset,
feature map, learner). Both must have been measured on the same splits, which
have hashes. The metric of the suite is compared over these splits by the corrected
resampled t-test; on one split, accuracies by the binomial error of the test rows. Times
are compared by their logarithms, after those of the second side were multiplied
by the ratio of the machines' speeds; their noise has two parts,
between the splits of a run, which is measured, and between runs of the same
code, which is given.

::

    command      `kbench compare`: reads both sides, and prints what became better or worse
    outside      rows of files and stores, which others may have written, checked
    comparison   changes of the metric and of times, with the verdicts over all cells together
"""
