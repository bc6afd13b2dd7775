"""A user's tables: readers of files, and kinds of columns.

Sources of datasets use this package too.
"""
