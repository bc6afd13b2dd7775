"""The data of a report, and the tables, sections and charts that features make of it.

::

    text      a table as CSV, JSON, LaTeX, Markdown; values for people
    content   the data of a report: all its numbers, no markup
    tables    cells, the leaderboard, imported results; tables of features by name
    paper     what a paper asks of a table: fewer methods, turned, with a caption
    pages     sections and answers that features show; who writes pages and draws
    svg       escaped SVG elements; how wide a text is
    charts    the frame of a chart, lines along an axis, and the styles of methods
"""

from kbench.report.text import FORMATS, Column, Table, latex_text, write, write_cell

__all__ = ["FORMATS", "Column", "Table", "latex_text", "write", "write_cell"]
