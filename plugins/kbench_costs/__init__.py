"""Costs: memory and time of cells, predicted from trials on samples of their rows.

::

    costs         trials in sandboxes, and what they say of a cell
    samples       the rows of a trial
    prediction    memory and time on all rows, from trials on fewer
    errors        predictions beside what was measured
    screen      cells that are worth trials
"""
