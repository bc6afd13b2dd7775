"""Costs: memory and time of cells, predicted from trials on samples of their rows.

::

    costs         trials in sandboxes, and what they say of a cell
    trials        cells that are worth trials, samples of rows, costs that results show
    prediction    memory and time on all rows, from trials on fewer
    errors        predictions and what was measured
"""
