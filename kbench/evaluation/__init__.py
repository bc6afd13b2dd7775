"""One split of one cell: rows, preprocessing, search, fit, times, measures.

Everything in this package decides numbers.
"""

# What an edit in this folder costs: the code here, docstrings and comments left
# out, is part of every cell's key, so that the next run of any suite computes
# every cell again. Code that decides no number belongs elsewhere.
