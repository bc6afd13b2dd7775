"""Sharing: bundles of results, read as untrusted input, verified, reused and published.

::

    form, columns, container    what a bundle holds, and how it is written
    reading, checks, texts      a bundle of somebody else
    recomputed, verifying       splits that were computed again
    kept, dependencies          results of others in tables and in a run
    repository, site, paper     results that are published, pages of them, files for a paper
"""
