"""One split of one cell: rows, preprocessing, search, fit, times, metrics.

Everything in this package decides numbers.
"""

# The code in this folder, without docstrings and comments, is part of every cell's
# key: after an edit the next run of any suite computes every cell again. Code that
# decides no number belongs elsewhere.
