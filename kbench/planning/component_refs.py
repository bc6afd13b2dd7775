"""Entries of a suite file become refs; their parameters are checked.

Nothing here imports pydantic: completions of the command line read suite files as TOML gives
them, before they are checked.
"""

import itertools
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from kbench.errors import PluginError, SuiteError
from kbench.messages import did_you_mean
from kbench.records import Ref, TaskType, Tune
from kbench.registry.callables import makers, read_parameters
from kbench.registry.collecting import NESTED, Kind
from kbench.registry.registry import Registry

LISTS: Mapping[str, Kind] = {
    "datasets": "dataset",
    "feature_maps": "feature map",
    "learners": "learner",
}


@dataclass(frozen=True)
class _Expand:
    values: tuple[Any, ...]


class Lines:
    """The lines of one list as refs, with the errors found on the way.

    `place` is the path of the list; `given` has its key, and its lines as TOML gives them. With
    `installed_only`, lines are left out whose component is not installed.
    """

    def __init__(
        self,
        place: str,
        entries: tuple[str, list[Any]],
        registry: Registry,
        installed_only: bool = False,
    ) -> None:
        key, lines = entries
        self.kind = LISTS[key]
        self.problems: list[str] = []
        self.placed: list[tuple[str, Ref]] = []
        self._registry = registry
        self._installed_only = installed_only
        for index, line in enumerate(lines):
            at = f"{place}[{index}]"
            self.placed += [(at, ref) for ref in self._read_line(at, line)]
        seen: dict[str, str] = {}
        for at, ref in self.placed:
            if ref.label in seen:
                self.problems.append(
                    f"{at}: the label {ref.label!r} is that of {seen[ref.label]} too; "
                    "give one of them another label"
                )
            seen.setdefault(ref.label, at)

    @property
    def refs(self) -> tuple[Ref, ...]:
        """The refs, in the order of the lines."""
        return tuple(ref for _, ref in self.placed)

    def _read_line(self, at: str, line: object) -> list[Ref]:
        if isinstance(line, str):
            line = {"name": line}
        if not isinstance(line, dict):
            return []  # the model of the file reports it
        name = line.get("name")
        installed = not isinstance(name, str) or name in self._registry.all(self.kind)
        if self._installed_only and not installed:
            return []
        if (component := self._component(at, line, (self.kind,))) is None:
            return []
        name, params = component
        label = line.get("label", "")
        if not isinstance(label, str):
            self.problems.append(f"{at}.label must be a string, got {label!r}")
            return []
        eaches = {key: _entries(value) for key, value in params.items() if _has_expand(value)}
        refs = []
        for values in itertools.product(*eaches.values()):
            chosen = dict(zip(eaches, values, strict=True))
            ref = add_label(name, {**params, **chosen}, self.kind, self._registry)
            if label:
                full_label = label + (Ref("", chosen).label if chosen else "")
                # the parameter that names a dataset after its label, where its source has one
                source = self._registry.get(self.kind, name)
                naming = {"label": full_label} if getattr(source, "named_by_label", False) else {}
                ref = Ref(name, {**ref.params, **naming}, full_label)
            refs.append(ref)
        return refs

    def _component(
        self, at: str, table: Mapping[str, object], kinds: Sequence[Kind], in_list: bool = False
    ) -> tuple[str, dict[str, Any]] | None:
        name = table.get("name")
        if not isinstance(name, str):
            self.problems.append(f"{at}.name: missing; which {kinds[0]} is it?")
            return None
        owner = next((kind for kind in kinds if name in self._registry.all(kind)), None)
        if owner is None:
            self.problems.append(f"{at}: no {kinds[0]} is named {name!r}{self._hint(name, kinds)}")
            return None
        params = {
            key: self._value(f"{at}.{key}", value, _kinds_in(owner, key), expand=not in_list)
            for key, value in table.items()
            if key not in ("name", "label")
        }
        return name, params

    def _hint(self, name: str, kinds: Sequence[Kind]) -> str:
        """Return a hint: a similar name, another kind of that name, or broken plugins."""
        if other_kinds := self._registry.find_kinds(name):
            return f"; {name!r} is a {other_kinds[0]}"
        hint = did_you_mean(name, [other for kind in kinds for other in self._registry.all(kind)])
        broken = [plugin.name for plugin in self._registry.plugins if plugin.reason]
        if broken and "did you mean" not in hint:
            hint += f" (left out: {', '.join(broken)}; see `kbench list plugins`)"
        return hint

    def _value(
        self, at: str, value: object, kinds: Sequence[Kind], expand: bool = False, tune: bool = True
    ) -> Any:
        """Parse a value; `expand` and `tune` tell whether such a table has a meaning here.

        A component must be of one of `kinds`.
        """
        if isinstance(value, list):
            return self._items(at, value, kinds)
        if isinstance(value, dict):
            return self._table(at, value, kinds, expand, tune)
        if isinstance(value, float) and not math.isfinite(value):
            self.problems.append(f"{at} must be a finite number, got {value}")
            return None
        if isinstance(value, str | int | float | bool):
            return value
        self.problems.append(f"{at} must not be a date or a time, got {value}")
        return None

    def _items(self, at: str, values: list[Any], kinds: Sequence[Kind]) -> tuple[Any, ...]:
        return tuple(
            self._value(f"{at}[{i}]", item, kinds, tune=False) for i, item in enumerate(values)
        )

    def _table(
        self, at: str, table: Mapping[str, object], kinds: Sequence[Kind], expand: bool, tune: bool
    ) -> Any:
        if "name" in table:
            component = self._component(at, table, kinds, in_list=not expand)
            return None if component is None else Ref(component[0], component[1])
        if (keys := sorted(table)) not in (["tune"], ["expand"]):
            self.problems.append(
                f"{at} must be a table with `tune`, `expand`, or the `name` of a component, "
                f"got {', '.join(keys) or 'nothing'}"
            )
            return None
        values = table[keys[0]]
        if not isinstance(values, list) or not values:
            self.problems.append(f"{at}.{keys[0]} must be a list with at least one value")
            return None
        if not (expand if keys == ["expand"] else tune):
            self.problems.append(
                f"{at}: `{keys[0]}` has no meaning inside a list"
                + (" except for parameters of a component" if keys == ["tune"] else "")
            )
            return None
        parsed = self._items(f"{at}.{keys[0]}", values, kinds)
        return Tune(parsed) if keys == ["tune"] else _Expand(parsed)


def _kinds_in(kind: Kind, parameter: str) -> Sequence[Kind]:
    """Return the kinds of component that a parameter may have: kernels where its name says so.

    Kernels are made of kernels only.
    """
    wants_kernels = kind == "kernel" or parameter.endswith(("kernel", "kernels"))
    return ("kernel",) if wants_kernels else NESTED


def _has_expand(value: object) -> bool:
    if isinstance(value, Ref):
        return any(map(_has_expand, value.params.values()))
    return isinstance(value, _Expand)


def _entries(value: object) -> tuple[Any, ...]:
    """Return the values of an `expand`, or a component with each of those inside it."""
    if isinstance(value, _Expand):
        return value.values
    if not isinstance(value, Ref):
        return (value,)
    combinations = itertools.product(*map(_entries, value.params.values()))
    return tuple(
        Ref(value.name, dict(zip(value.params, chosen, strict=True))) for chosen in combinations
    )


def parameter_problems(
    placed: Iterable[tuple[str, Ref]], kind: Kind, registry: Registry, task: TaskType | None = None
) -> list[str]:
    """Return the wrong or missing parameters of components, each with its place.

    These are names, and `true` where the default is a number.

    With a `task` of the datasets, a learner has the parameters for it only.
    Imports the modules of the components.
    """
    problems: list[str] = []
    for at, ref in placed:
        of = next(k for k in (kind, *NESTED) if ref.name in registry.all(k))
        record = registry.get(of, ref.name)
        try:
            allowed = _read_allowed(record, task)
        except (PluginError, ImportError) as error:
            problems.append(f"{at}: {ref.name!r} cannot be used: {error}")
            continue
        for key, value in ref.params.items():
            if allowed is not None and key not in allowed:
                of_task = f" for {task}" if task and key in (_read_allowed(record) or ()) else ""
                of_task += did_you_mean(key, allowed)
                problems.append(f"{at}.{key}: {ref.name!r} has no such parameter{of_task}")
            elif allowed is not None and allowed[key].is_number:
                problems += [
                    f"{place} must be a number, got {str(wrong).lower()}"
                    for place, wrong in _truth_values(f"{at}.{key}", value)
                ]
            problems += parameter_problems(_walk(f"{at}.{key}", value), "kernel", registry, task)
        problems += [
            f"{at}: {ref.name!r} needs the parameter {key!r}"
            for key, parameter in (allowed or {}).items()
            if parameter.is_required and key not in (*ref.params, *getattr(record, "grid", ()))
        ]
    return problems


def _read_allowed(record: object, task: TaskType | None = None) -> Mapping[str, Any] | None:
    """Return the parameters of a component by name; None if any are allowed.

    Of a learner without a task they are those of all its estimators, required where all require
    them.
    """
    outlines = [read_parameters(make) for make in makers(record, task) or makers(record)]
    readable = [parameters for parameters in outlines if parameters is not None]
    if len(readable) < len(outlines):
        return None
    merged = dict(readable[0])
    for parameters in readable[1:]:
        merged |= {n: p for n, p in parameters.items() if n not in merged or not p.is_required}
    return merged


def add_label(name: str, params: Mapping[str, object], kind: Kind, registry: Registry) -> Ref:
    """Return a ref with its default label; a learner's says how it treats several classes.

    The label is the same whether the scheme is given or the learner's default.
    """
    ref = Ref(name, params)
    default = registry.get(kind, name).multiclass if kind == "learner" else ""
    scheme = params.get("multiclass", default)
    if not (default and isinstance(scheme, str)):
        return ref
    without = Ref(name, {key: value for key, value in params.items() if key != "multiclass"})
    return replace(ref, label=f"{without.label} ({scheme})")


def relabel_for_task(ref: Ref, task: TaskType, registry: Registry) -> Ref:
    """Return a learner's ref as it is named for a task: a regressor has no scheme to show."""
    for params in (ref.params, {}) if task == "regression" else ():
        if ref.label == add_label(ref.name, params, "learner", registry).label:
            return replace(ref, label=Ref(ref.name, params).label)
    return ref


def _truth_values(at: str, value: object) -> Iterator[tuple[str, bool]]:
    if isinstance(value, bool):
        yield at, value
    elif isinstance(value, Tune):
        for index, each in enumerate(value.values):
            yield from _truth_values(f"{at}.tune[{index}]", each)


def _walk(at: str, value: object) -> Iterator[tuple[str, Ref]]:
    if isinstance(value, Ref):
        yield at, value
    elif isinstance(value, Tune):
        yield from _walk(f"{at}.tune", value.values)
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _walk(f"{at}[{index}]", item)


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse the tables of a suite file.

    Raises SuiteError if the content is not TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"the file of suite {name!r} is not valid TOML: {error}") from error


def list_tables(raw: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return (place, table) of the file itself, and of each block that is a table."""
    blocks = raw.get("block")
    numbered = enumerate(blocks if isinstance(blocks, list) else ())
    tables = [(f"block[{i}].", block) for i, block in numbered if isinstance(block, dict)]
    return [("", raw), *tables]


def iterate_lists(
    raw: dict[str, Any], lists: Mapping[str, Kind]
) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield (place, key, lines) of every list that can be read at all."""
    for place, table in list_tables(raw):
        for key in lists:
            if isinstance(table.get(key), list):
                yield f"{place}{key}", key, table[key]


def has_rules(raw: dict[str, Any]) -> bool:
    """Return whether a suite file has rules on the size of data."""
    return (
        "rule" in raw
        or any("when" in block for block in [table for _, table in list_tables(raw)][1:])
        or any(_has_share(entries) for _, _, entries in iterate_lists(raw, LISTS))
    )


def is_share(value: object) -> bool:
    """Return whether a parameter's value depends on the number of rows."""
    return isinstance(value, dict) and "fraction_of_rows" in value and "name" not in value


def _has_share(value: object) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return is_share(value) or any(map(_has_share, inner))


def runnable(registry: Registry) -> list[str]:
    """Return the names of the installed suites that can be run by themselves."""
    suites = sorted(registry.all("suite").items())
    return [name for name, file in suites if not has_rules(_read_tables(file))]


def get_experiment(suite: str) -> str:
    """Return the name of a suite's experiment: that in its file, else the file's stem."""
    path = Path(suite)
    if path.suffix != ".toml":
        return suite
    name = _read_tables(path).get("name")
    return name if isinstance(name, str) else path.stem


def _read_tables(file: Traversable) -> Any:
    """Read a suite file; nothing where that fails: running the suite says why."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
