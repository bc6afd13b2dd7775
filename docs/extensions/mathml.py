"""Formulas as MathML, which browsers draw by themselves: no script, and nothing from outside."""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def inline(translator, node):
    """Write a formula within a line."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def display(translator, node):
    """Write a formula of its own."""
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    raise nodes.SkipNode


def setup(app):
    """Add the renderer; `html_math_renderer` names it."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
