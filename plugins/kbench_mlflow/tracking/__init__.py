"""Cells as MLflow runs: each written once, after any failure, and read back as plain records.

::

    run         the run that a cell should have, in the form in which MLflow accepts it; stored runs
    address     addresses of stores, and how they are shown; the default store
    database    a local store: created safely, checked, read in milliseconds without MLflow
    connection  opening a store, which may be away; errors of MLflow in one line; saving a model
    upsert      writing a run so that it can be repeated at any time; who writes it
    summaries   the report as a separate run, and a run for each method
    views       saved views of MLflow's pages, and what they know of an experiment
    store       `Store`: all of this behind one class

The only package that imports MLflow, and only when a store is opened. It is
independent of suites and journals: it is given `CellRun` records, and makes the store
hold exactly these.
"""
