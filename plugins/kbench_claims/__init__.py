"""Claims: what the results of a suite show, and what they do not.

::

    claims, components   variance, contests, searches and warnings, from rows
    published            own results beside the figures of papers; `agreement` sums them up
    tables               sentences and tables; `published_tables` those of papers
    metric               pictures of metrics that maps have learned
    sections             where they stand in a report
"""
