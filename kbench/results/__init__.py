"""Rows in, numbers out: rows, tests over datasets, comparisons of two sets of results."""
