"""Reports: tables in text forms, and one self-contained HTML page.

::

    text      a table as CSV, JSON, LaTeX, Markdown; values for people
    content   the data of a page: all its numbers, no markup
    tables    every table of a report, before it is written in a form
    svg       escaped SVG elements; how wide a text is
    diagram   the critical-difference diagram
    axes      the frame of a chart
    scatter   a measure against a cost
    lines     values along an axis
    charts    the charts of the page, with their tables
    page      all of it in HTML
    figures   the same pictures for a paper, and those of plugins, by matplotlib
"""

from kbench.report.text import FORMATS, Column, Table, latex_text, shown, write

__all__ = ["FORMATS", "Column", "Table", "latex_text", "shown", "write"]
