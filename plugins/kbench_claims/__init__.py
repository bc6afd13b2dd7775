"""Claims: what the results of a suite show, and what they do not.

::

    claims, components   variance, contests, searches and warnings, from rows
    published            own results beside the figures of papers
    tables               sentences and tables
    pictures             agreement with papers, and metrics that maps have learned
    sections             where they stand in a report
"""
