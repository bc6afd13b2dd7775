"""`kbench list` and `kbench show`: installed components, and their parameters."""

import contextlib
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from textwrap import indent
from typing import Annotated, Any

import typer

from kbench import features
from kbench.features import SuiteError, completion, echo, first_sentence
from kbench.messages import did_you_mean
from kbench.records import Make, Metric, write_value

_KINDS: dict[str, features.Kind | None] = {
    "datasets": "dataset",
    "kernels": "kernel",
    "feature-maps": "feature map",
    "learners": "learner",
    "metrics": "metric",
    "suites": "suite",
    "plugins": None,
}
"""Things that `kbench list` lists, each with its kind in the registry."""


def list_(
    what: Annotated[
        str | None,
        typer.Argument(
            help=f"What to list: {', '.join(_KINDS)}; everything by default.",
            autocompletion=completion.complete_from(_KINDS),
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List and describe the installed components, metrics, suites and plugins."""
    chosen = _what(what)
    registry = features.load_registry()
    summaries = features.Summaries()
    tables = {what: _names(what, registry, summaries) for what in ([chosen] if chosen else _KINDS)}
    if as_json:
        echo(json.dumps(tables, indent=1))
        return
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for title, rows in tables.items():
        echo(title, bold=True)
        if not rows:
            echo("  none")
        name_width, plugin_width = (
            max((len(row[key]) for row in rows), default=0) for key in ("name", "plugin")
        )
        for row in rows:
            line = f"  {row['name']:{name_width}}  "
            if row.get("reason"):
                echo(f"{line}LEFT OUT: {row['reason']}")
                continue
            line += f"{row['plugin']:{plugin_width}}  {_facts(row)}{row['description']}"
            line = line.rstrip()
            echo(line if len(line) <= columns else f"{line[: columns - 3].rstrip()}...")
    broken = [plugin for plugin in registry.plugins if plugin.reason]
    if broken and chosen not in (None, "plugins"):
        names = ", ".join(plugin.name for plugin in broken)
        echo(f"left out: {names} (why: `kbench list plugins`)", err=True)


def _facts(row: Mapping[str, str]) -> str:
    """Return what a component is beside its description, in columns."""
    if "better" not in row:
        return "".join(
            f"{row[fact]:{width}}  "
            for fact, width in (("family", 11), ("tasks", 26))
            if fact in row
        )
    return f"{row['better']:6}  {row['task']:14}  {row['needs']:13}  "


def _what(kind: str | None) -> str | None:
    """Parse what is to be listed; a part of a name gives a hint only."""
    if kind is None or kind in _KINDS:
        return kind
    near = [name for name in _KINDS if kind.rstrip("s") in name]
    hint = f"; did you mean {near[0]!r}?" if len(near) == 1 else did_you_mean(kind, _KINDS)
    raise SuiteError(f"{kind!r} cannot be listed{hint}")


def _names(
    what: str, registry: features.Registry, summaries: features.Summaries
) -> list[dict[str, str]]:
    if (kind := _KINDS[what]) is None:
        return [
            {
                "name": plugin.name,
                "plugin": f"{plugin.distribution} {plugin.version}".strip(),
                "description": summaries.summarise_module(plugin.module),
                "module": plugin.module,
                "status": "left out" if plugin.reason else "ok",
                "reason": plugin.reason,
            }
            for plugin in registry.plugins
        ]
    if kind == "metric":
        return [_metric(*metric) for metric in _list_metrics(registry)]
    # not those that `recommend` reads
    suites = features.runnable(registry) if kind == "suite" else []
    return [
        {
            "name": name,
            "plugin": registry.owner(kind, name).name,
            **({"family": record.family} if kind in ("feature map", "learner") else {}),
            **({"tasks": ", ".join(record.tasks)} if kind == "learner" else {}),
            "description": find_summary(_text(record))
            if kind == "suite"
            else summaries.summarise(features.makers(record)[0]),
        }
        for name, record in sorted(registry.all(kind).items())
        if kind != "suite" or name in suites
    ]


def _list_metrics(registry: features.Registry) -> Iterator[tuple[Metric, str]]:
    """Yield all metrics with their plugins: those of kbench, then those of plugins by name."""
    yield from ((metric, "kbench") for metric in features.METRICS.values())
    for name, metric in sorted(registry.all("metric").items()):
        yield metric, registry.owner("metric", name).name


def _metric(metric: Metric, plugin: str) -> dict[str, str]:
    return {
        "name": metric.name,
        "plugin": plugin,
        "description": metric.definition,
        "better": metric.better,
        "task": metric.task or "any",
        "needs": metric.needs,
    }


def _text(file: Traversable) -> str:
    """Return the text of a suite's file; empty where it cannot be read."""
    with contextlib.suppress(OSError):
        return file.read_bytes().decode("utf-8", "replace")
    return ""


def _anything(incomplete: str) -> list[str]:
    """Return the components, metrics and suites that begin so."""
    registry = features.load_registry()
    kinds: tuple[features.Kind, ...] = ("dataset", "kernel", "feature map", "learner", "suite")
    names = {name for kind in kinds for name in registry.all(kind)}
    return sorted({*completion.complete_from(names)(incomplete), *completion.metrics(incomplete)})


def show(
    name: Annotated[
        str,
        typer.Argument(help="Name of anything that `kbench list` lists.", autocompletion=_anything),
    ],
) -> None:
    """Show a component: its description, parameters, source and plugin."""
    registry = features.load_registry()
    kinds = [kind for kind in registry.find_kinds(name) if kind not in ("figure", "dashboard")]
    metrics = {metric.name: (metric, plugin) for metric, plugin in _list_metrics(registry)}
    if name in metrics:
        _show_metric(*metrics[name])
        kinds = [kind for kind in kinds if kind != "metric"]
    elif not kinds:
        names = [
            *(known_name for kind in _KINDS.values() if kind for known_name in registry.all(kind)),
            *metrics,
        ]
        raise SuiteError(f"no component is named {name!r}{did_you_mean(name, names)}")
    for kind in kinds:
        plugin = registry.owner(kind, name)
        echo(name, nl=False, bold=True)
        echo(f"  ({kind})")
        echo(f"plugin: {plugin.name} of {plugin.distribution} {plugin.version}")
        record = registry.get(kind, name)
        if getattr(record, "family", ""):
            echo(f"family: {record.family}")
        if kind == "suite":
            echo("")
            echo(record.read_text(encoding="utf-8").rstrip())
        else:
            of_tasks = features.makers(record)
            for number, make in enumerate(of_tasks):
                if len(of_tasks) > 1:
                    echo("\n" * bool(number) + f"for {record.tasks[number]}", bold=True)
                _show_component(record, make)
        echo("")


def _show_metric(metric: Metric, plugin: str) -> None:
    facts = _metric(metric, plugin)
    echo(metric.name, nl=False, bold=True)
    echo("  (metric)")
    for field in ("plugin", "better", "task", "needs"):
        echo(f"{field}: {facts[field]}")
    echo(f"\n{metric.definition}\n")


def _show_component(record: Any, make: Make) -> None:
    from docstring_parser import parse

    details = features.outline(make)
    doc = parse(details.doc)
    echo(f"source: {details.source}")
    if doc.short_description:
        echo("\n" + doc.short_description)
    meanings = {name: p for p in doc.params for name in p.arg_name.replace("*", "").split(", ")}
    grid = getattr(record, "grid", {})
    echo("\nparameters:" if details.parameters else "\nno parameters")
    for parameter in details.parameters:
        default = "required" if parameter.is_required else f"default {parameter.default}"
        if parameter.name in grid:
            default += f", searched over {write_value(list(grid[parameter.name]))}"
        echo("  ", nl=False)
        echo(parameter.name, nl=False, bold=True)
        echo(f" ({default})")
        meaning = meanings.get(parameter.name)
        if meaning and meaning.description:
            echo(indent(meaning.description, " " * 6))
    for part in doc.meta:
        if part.args and part.args[0].startswith("reference") and part.description:
            echo("\nreferences:\n" + indent(part.description, "  "))


# -- what suite files say of themselves, read without checking them


_TABLE = re.compile(r"^\s*\[", re.MULTILINE)
"""The header of a table in TOML, or a line of a nested list."""


def find_summary(doc: str) -> str:
    r"""Return the first sentence of a suite's description, or of the comment it begins with.

    Examples
    --------
    >>> find_summary("# Small sets, for a look\n# in 20 seconds. Not more.\nname = 'x'")
    'Small sets, for a look in 20 seconds.'
    """
    described = _description(doc)
    if isinstance(described, str) and described:
        return first_sentence(described)
    comment = []
    for line in doc.splitlines():
        if not line.startswith("#") or not line.strip("# "):
            break
        comment.append(line.lstrip("#"))
    return first_sentence("\n".join(comment))


def _description(doc: str) -> object:
    """Return a suite's ``description``, which can only stand before the first table."""
    # a cut inside a value of several lines leaves invalid TOML: then all of it is parsed
    for part in (_TABLE.split(doc, maxsplit=1)[0], doc):
        with contextlib.suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(part).get("description")
    return None
