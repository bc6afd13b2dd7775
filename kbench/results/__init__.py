"""Rows in, numbers out: tables, tests over datasets, comparisons of two sets of results."""
