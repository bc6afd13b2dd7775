"""Sharing: bundles of results, read as untrusted input, verified, reused and published.

::

    form, columns, container    what a bundle holds, and how it is written
    reading, checks, texts      a bundle of somebody else
    recomputed, verifying       splits that were computed again
    reuse, rows                 results of others in a run, and in tables
    repository, site, board     results that are published
"""
