"""A user's tables: how files are read, and what their columns are.

Sources of datasets use this package too.
"""
