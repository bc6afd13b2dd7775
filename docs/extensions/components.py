"""Reference pages generated from the registry, so that no component is missing.

``.. components:: learner`` writes a table of all learners and one section per learner, with
its grid and the docstring of its class. Feature maps have a page each, ``reference/maps/NAME.rst``,
where ``.. feature-map:: NAME`` writes the same with the parts of `gallery`. ``.. public-names::``
documents the other names that plugins export.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator

import gallery
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

from kbench.records import write_value
from kbench.registry.callables import makers, resolve
from kbench.registry.installed import HOST, list_plugins
from kbench.registry.registry import Registry, build

SCIKIT_LEARN = "https://scikit-learn.org/stable/modules/generated"
KINDS = ("dataset", "kernel", "feature map", "learner")


def built_ins() -> Registry:
    """Return the components of kbench itself, without other installed plugins."""
    return build([plugin for plugin in list_plugins() if plugin.distribution == HOST])


def maker(record):
    """Return the callable that makes a record's components."""
    return resolve(makers(record)[0])


def made(record):
    """Return the class or function of a record, and its preset parameters."""
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


def summary(target, preset) -> str:
    """Return the first sentence of a docstring, and the preset parameters."""
    paragraph = (inspect.getdoc(target) or "").split("\n\n")[0]
    given = ", ".join(f"``{key}={value!r}``" for key, value in preset.items())
    return " ".join([*paragraph.split(), *([f"Preset: {given}."] if given else [])])


def anchor(kind: str, name: str) -> str:
    """Return the label of a component's section."""
    return f"{kind.replace(' ', '-')}-{name}"


class Lines(SphinxDirective, ABC):
    """A directive that writes reStructuredText."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Yield the reStructuredText, line by line."""

    def run(self) -> list[nodes.Node]:
        """Parse the lines at the place of the directive."""
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
            raise self.error(f"no such kind: {kind}; available: {', '.join(KINDS)}")
        registry = built_ins()
        broken = [f"{plugin.name}: {plugin.reason}" for plugin in registry.plugins if plugin.reason]
        if broken:
            raise self.error(f"plugins are left out: {'; '.join(broken)}")
        records = registry.all(kind)
        yield from self.table(kind, registry, records)
        if kind == "feature map":
            yield from pages(records)
            return
        for name in records:
            yield f".. _{anchor(kind, name)}:"
            yield ""
            yield name
            yield "-" * len(name)
            yield ""
            yield from described(kind, name, registry)

    def table(self, kind, registry, records) -> Iterator[str]:
        """Yield one row for each component."""
        searched = kind in ("feature map", "learner")
        yield ".. list-table::"
        yield "   :header-rows: 1"
        yield ""
        yield "   * - name"
        yield "     - description"
        if searched:
            yield "     - default search grid"
        yield "     - plugin"
        for name, record in records.items():
            yield f"   * - :ref:`{name} <{anchor(kind, name)}>`"
            if kind == "feature map":
                yield ""
                for line in gallery.picture(name, ":width: 16em"):
                    yield f"       {line}".rstrip()
            yield f"     - {summary(*made(record))}"
            if searched:
                grid = [
                    f"``{key}``: {', '.join(map(write_value, values))}"
                    for key, values in record.grid.items()
                ]
                yield f"     - {'; '.join(grid) or 'nothing'}"
            yield f"     - {registry.owner(kind, name).name}"
        yield ""


class FeatureMapPage(Lines):
    """The page of a feature map, below its heading."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        """Yield the image, the declarations, the docstring, cost and scores."""
        name = self.arguments[0]
        registry = built_ins()
        if name not in registry.all("feature map"):
            raise self.error(f"no such feature map: {name}")
        yield from gallery.shown(name)
        yield from described("feature map", name, registry)
        yield from gallery.costs(name)
        yield from gallery.scores(name)


class MapScores(Lines):
    """The scores of all feature maps."""

    def lines(self) -> Iterator[str]:
        """Yield one row for each map that was scored."""
        yield from gallery.all_scores(built_ins().all("feature map"))


def pages(records) -> Iterator[str]:
    """Yield the contents that lead to the page of each feature map."""
    yield ".. toctree::"
    yield "   :hidden:"
    yield ""
    for name in records:
        yield f"   maps/{name}"
    yield ""


def described(kind, name, registry) -> Iterator[str]:
    """Yield the declarations of a record, and the docstring of what makes it.

    Of several records with one class, the first has the docstring.
    """
    records = registry.all(kind)
    target, preset = made(records[name])
    for line in declared(records[name], preset):
        yield line
        yield ""
    path = public_path(target, registry.owner(kind, name).module)
    first = next(each for each in records if made(records[each])[0] is target)
    if first != name:
        yield f"Implemented by :py:obj:`{path}`; see :ref:`{anchor(kind, first)}`."
    elif not target.__module__.startswith("kbench"):
        yield from foreign(target)
    elif inspect.isclass(target):
        yield f".. autoclass:: {path}"
        yield "   :members:"
    else:
        yield f".. autofunction:: {path}"
    yield ""


def foreign(target) -> Iterator[str]:
    """Yield a link to scikit-learn's page of a class, and its parameters."""
    path = f"{target.__module__.partition('._')[0]}.{target.__name__}"
    yield f"scikit-learn's `{path} <{SCIKIT_LEARN}/{path}.html>`__: {summary(target, {})}"
    yield ""
    parameters = [
        f"``{parameter.name}`` ({parameter.default!r})"
        for parameter in inspect.signature(target).parameters.values()
    ]
    yield f"Parameters, with defaults: {', '.join(parameters)}."


def declared(record, preset) -> Iterator[str]:
    """Yield sentences on the declarations of a record."""
    if preset:
        values = ", ".join(f"``{key}={value!r}``" for key, value in preset.items())
        yield f"Preset parameters: {values}."
    if getattr(record, "supervised", False):
        yield "It learns from the labels of the training set."
    if getattr(record, "kernel", None):
        yield "It declares the kernel that it approximates, so runs report its Gram error."
    if getattr(record, "requires", None):
        needs = {"nonnegative": "nonnegative inputs", "unit_ball": "inputs in the unit ball"}
        yield f"It requires {needs.get(record.requires, record.requires)}."
    if getattr(record, "uses_kernel", False):
        yield "It has a parameter ``kernel`` and is combined with the identity map only."
    if getattr(record, "path", None):
        yield f"The search fits all values of ``{record.path}`` in one warm-started path."
    if getattr(record, "psd", True) is False:
        yield "It is not positive semidefinite in general."


class PublicNames(Lines):
    """The names that plugins export besides their registered components."""

    def lines(self) -> Iterator[str]:
        """Yield one section for each plugin with further exports."""
        registry = built_ins()
        registered = {made(record)[0] for kind in KINDS for record in registry.all(kind).values()}
        for plugin in registry.plugins:
            module = importlib.import_module(plugin.module)
            exported = ((name, getattr(module, name)) for name in getattr(module, "__all__", ()))
            others = [(name, target) for name, target in exported if target not in registered]
            if not others:
                continue
            yield plugin.module
            yield "-" * len(plugin.module)
            yield ""
            for name, target in others:
                directive = "autoclass" if inspect.isclass(target) else "autofunction"
                yield f".. {directive}:: {plugin.module}.{name}"
                if inspect.isclass(target):
                    yield "   :members:"
                yield ""


def skip(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn generates for metadata routing."""
    return True if name.startswith("set_") and name.endswith("_request") else None


LITERAL = re.compile(r"(``.*?``|`[^`]*`)")


def escape(app, what, name, obj, options, lines):
    """Escape fitted attributes in shapes, ``(n_features_in_,)``, which would be read as links."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = LITERAL.split(line)
            parts[::2] = [re.sub(r"(\w)_(?!\w)", r"\1\\_", part) for part in parts[::2]]
            lines[number] = "".join(parts)


def setup(app):
    """Add the directives."""
    app.add_directive("components", Components)
    app.add_directive("feature-map", FeatureMapPage)
    app.add_directive("map-scores", MapScores)
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", escape, priority=900)  # after numpydoc
    return {"version": "1", "parallel_read_safe": True}
