"""What people look at: tables in text forms, and one self-contained HTML page.

::

    text      tables of results as CSV, JSON, LaTeX, Markdown
    content   what a page says: every number of it, no markup
    svg       escaped SVG elements; how wide a text is
    diagram   the critical-difference diagram
    scatter   accuracy against time
    page      the content in HTML
    figures   the same pictures for a paper, and those of plugins, by matplotlib
"""

from kbench.report.text import FORMATS, latex_text, shown, write

__all__ = ["FORMATS", "latex_text", "shown", "write"]
