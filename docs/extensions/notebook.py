"""A notebook with its kept outputs: ``.. notebook:: tutorial.ipynb``; nothing is executed.

myst-nb would bring Jupyter to every build of the documentation, for what four kinds of
nodes do.
"""

from __future__ import annotations

import json
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

HTML = ("text/html", "image/svg+xml")


class Notebook(SphinxDirective):
    """The cells of a notebook in their order."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of all cells."""
        path = Path(self.env.srcdir) / self.arguments[0]
        self.env.note_dependency(str(path))
        found: list[nodes.Node] = []
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                found += self.markdown(text)
                continue
            found.append(nodes.literal_block(text, text, language="python"))
            for output in cell["outputs"]:
                found += self.output(output)
        return found

    def markdown(self, text: str) -> list[nodes.Node]:
        """Return the nodes of a Markdown cell; its headings become headings of the page."""
        container = nodes.container()
        lines = StringList(text.splitlines(), source=self.arguments[0])
        self.state.nested_parse(lines, 0, container, match_titles=True)
        return container.children

    def output(self, output: dict) -> list[nodes.Node]:
        """Return an output in the richest form that a page can show."""
        if output["output_type"] == "error":
            raise self.error(f"the notebook has an error: {output['ename']}")
        if output["output_type"] == "stream":
            if output["name"] != "stdout":
                raise self.error(f"the notebook has kept errors: {''.join(output['text'])[:200]}")
            text = "".join(output["text"])
            return [nodes.literal_block(text, text, language="text")]
        data = output["data"]
        for form in HTML:
            if form in data:
                text = "".join(data[form])
                drawing = text[text.index("<svg") :] if form == HTML[1] else text
                return [nodes.raw("", f'<div class="output">{drawing}</div>', format="html")]
        text = "".join(data["text/plain"])
        return [nodes.literal_block(text, text, language="text")]


def setup(app):
    """Add the directive."""
    app.add_directive("notebook", Notebook)
    return {"version": "1", "parallel_read_safe": True}
