"""Sharing: bundles of results, read as untrusted input, verified, reused and published.

::

    form, columns, container    what a bundle holds, and how it is written
    reading, checks, texts      a bundle of another user
    recomputed, verifying       splits that were recomputed
    kept, dependencies          imported results in tables and in a run
    repository, site, paper     published results, their pages, files for a paper
"""
