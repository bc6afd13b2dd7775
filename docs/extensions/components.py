"""Pages made of what is registered: nothing is listed by hand, so nothing is forgotten.

``.. components:: feature map`` is a table of all feature maps and a section for
each, with its grid and the docstring of what makes it. ``.. public-names::`` is
what the plugins export beside that.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

from kbench import Ref
from kbench.registry.registry import HOST, Registry, build, installed, resolve

SCIKIT_LEARN = "https://scikit-learn.org/stable/modules/generated"
KINDS = ("dataset", "kernel", "feature map", "learner")


def built_ins() -> Registry:
    """Return what kbench itself brings, whatever else is installed where the site is built."""
    return build([each for each in installed() if each.distribution == HOST])


def maker(record):
    """Return what a record's components are made by."""
    return resolve(getattr(record, "make", None) or record.load)


def made(record):
    """Return the class or function behind a record, and what it presets."""
    target = maker(record)
    if isinstance(target, functools.partial):
        return target.func, target.keywords
    return target, {}


def public_path(target, package: str) -> str:
    """Return the shortest path that imports a class or function."""
    homes = (package, ".".join(target.__module__.split(".")[:2]), target.__module__)
    for home in homes:
        try:
            if getattr(importlib.import_module(home), target.__name__, None) is target:
                return f"{home}.{target.__name__}"
        except ImportError:
            continue
    return f"{target.__module__}.{target.__qualname__}"


def summary(target) -> str:
    """Return the first sentence of a docstring."""
    paragraph = (inspect.getdoc(target) or "").split("\n\n")[0]
    return " ".join(paragraph.split())


def value(each) -> str:
    """Return a value of a grid as a suite file would write it."""
    if isinstance(each, Ref):
        return each.label or each.name
    return f"{each:g}" if isinstance(each, float) else str(each)


def anchor(kind: str, name: str) -> str:
    """Return the label of a component's section."""
    return f"{kind.replace(' ', '-')}-{name}"


class Lines(SphinxDirective, ABC):
    """A directive that writes reStructuredText."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Yield the text, line by line."""

    def run(self) -> list[nodes.Node]:
        """Parse the text where the directive stands."""
        container = nodes.section()
        container.document = self.state.document
        text = StringList(list(self.lines()), source=f"{self.env.docname}: {self.name}")
        nested_parse_with_titles(self.state, text, container, self.content_offset)
        return container.children


class Components(Lines):
    """All components of one kind."""

    required_arguments = 1
    final_argument_whitespace = True

    def lines(self) -> Iterator[str]:
        """Yield a table, then one section for each component."""
        kind = self.arguments[0]
        if kind not in KINDS:
            raise self.error(f"no such kind: {kind}; there are {', '.join(KINDS)}")
        registry = built_ins()
        broken = [f"{each.name}: {each.reason}" for each in registry.plugins if each.reason]
        if broken:
            raise self.error(f"plugins are left out: {'; '.join(broken)}")
        records = registry.all(kind)
        yield from self.table(kind, registry, records)
        described: dict[object, str] = {}
        for name, record in records.items():
            yield from self.section(kind, name, record, registry, described)

    def table(self, kind, registry, records) -> Iterator[str]:
        """Yield one row for each component."""
        searched = kind in ("feature map", "learner")
        yield ".. list-table::"
        yield "   :header-rows: 1"
        yield ""
        yield "   * - name"
        yield "     - what it is"
        if searched:
            yield "     - searched over, unless given"
        yield "     - plugin"
        for name, record in records.items():
            yield f"   * - :ref:`{name} <{anchor(kind, name)}>`"
            yield f"     - {summary(made(record)[0])}"
            if searched:
                grid = [
                    f"``{key}``: {', '.join(map(value, values))}"
                    for key, values in record.grid.items()
                ]
                yield f"     - {'; '.join(grid) or 'nothing'}"
            yield f"     - {registry.owner(kind, name).name}"
        yield ""

    def section(self, kind, name, record, registry, described) -> Iterator[str]:
        """Yield a heading, what the record declares, and the docstring."""
        target, preset = made(record)
        yield f".. _{anchor(kind, name)}:"
        yield ""
        yield name
        yield "-" * len(name)
        yield ""
        for line in declared(record, preset):
            yield line
            yield ""
        package = registry.owner(kind, name).module
        path = public_path(target, package)
        if target in described:
            yield f"Made by :py:obj:`{path}`, described under :ref:`{described[target]}`."
            yield ""
            return
        described[target] = anchor(kind, name)
        if not target.__module__.startswith("kbench"):
            yield from foreign(target)
        elif inspect.isclass(target):
            yield f".. autoclass:: {path}"
            yield "   :members:"
        else:
            yield f".. autofunction:: {path}"
        yield ""


def foreign(target) -> Iterator[str]:
    """Yield where scikit-learn describes a class of its own, and its parameters."""
    path = f"{target.__module__.partition('._')[0]}.{target.__name__}"
    yield f"scikit-learn's `{path} <{SCIKIT_LEARN}/{path}.html>`__: {summary(target)}"
    yield ""
    parameters = [
        f"``{each.name}`` ({each.default!r})"
        for each in inspect.signature(target).parameters.values()
    ]
    yield f"Parameters, with defaults: {', '.join(parameters)}."


def declared(record, preset) -> Iterator[str]:
    """Yield sentences on what a record says of its component."""
    if preset:
        values = ", ".join(f"``{key}={each!r}``" for key, each in preset.items())
        yield f"With {values}."
    if getattr(record, "supervised", False):
        yield "It learns from the labels of the training part."
    if getattr(record, "kernel", None):
        yield "It declares the kernel that it approximates, so runs report its Gram error."
    if getattr(record, "requires", None):
        needs = {"nonnegative": "nonnegative inputs", "unit_ball": "inputs in the unit ball"}
        yield f"It requires {needs.get(record.requires, record.requires)}."
    if getattr(record, "kernelized", False):
        yield "It has a parameter ``kernel`` and works on the inputs: planned with identity only."
    if getattr(record, "path", None):
        yield f"Searched along ``{record.path}`` in one warm-started path."
    if getattr(record, "psd", True) is False:
        yield "It is not positive semidefinite in general."


class PublicNames(Lines):
    """What plugins export beside what they register."""

    def lines(self) -> Iterator[str]:
        """Yield one section for each plugin that exports more."""
        registry = built_ins()
        registered = {made(record)[0] for kind in KINDS for record in registry.all(kind).values()}
        for plugin in registry.plugins:
            module = importlib.import_module(plugin.module)
            exported = ((name, getattr(module, name)) for name in getattr(module, "__all__", ()))
            more = [(name, each) for name, each in exported if each not in registered]
            if not more:
                continue
            yield plugin.module
            yield "-" * len(plugin.module)
            yield ""
            for name, each in more:
                what = "autoclass" if inspect.isclass(each) else "autofunction"
                yield f".. {what}:: {plugin.module}.{name}"
                if inspect.isclass(each):
                    yield "   :members:"
                yield ""


def skip(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn generates for metadata routing."""
    return True if name.startswith("set_") and name.endswith("_request") else None


LITERAL = re.compile(r"(``.*?``|`[^`]*`)")


def escape(app, what, name, obj, options, lines):
    """Keep the fitted attributes in shapes, ``(n_features_in_,)``, from being read as links."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = LITERAL.split(line)
            parts[::2] = [re.sub(r"(\w)_(?!\w)", r"\1\\_", part) for part in parts[::2]]
            lines[number] = "".join(parts)


def setup(app):
    """Add the directives."""
    app.add_directive("components", Components)
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", escape, priority=900)  # after numpydoc
    return {"version": "1", "parallel_read_safe": True}
