"""Sharing: bundles of results, read as untrusted input, verified, reused and published.

::

    bundle_records, columns, zip_file    what a bundle holds, and how it is written
    reading, checks, untrusted_text      a bundle of another user
    recomputed, verifying                splits that were recomputed
    added_bundles, dependencies          imported results in tables and in a run
    repository, site, paper              published results, their pages, files for a paper
"""
