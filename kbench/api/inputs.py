"""Conversion of a user's input to records, for the command line and for Python."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kbench.errors import DatasetError, SuiteError
from kbench.execution.plugins import load_registry
from kbench.messages import did_you_mean, option
from kbench.parameters import check_choice, check_integer, check_number, is_pattern, list_files
from kbench.planning.cells import select
from kbench.planning.planner import Planner
from kbench.planning.suite_file import add_published, find, move_to_folder, read
from kbench.records import TASK_TYPES, DatasetSource, Metric, Ref, Suite
from kbench.registry.callables import read_parameters
from kbench.registry.collecting import Kind
from kbench.registry.features import features, working
from kbench.registry.installed import HOST
from kbench.registry.registry import Registry
from kbench.registry.verbs import Verbs
from kbench.results.imported import ImportedRow
from kbench.results.rows import Method, Row
from kbench.results.stored import Query, StoredResults, current, mark_outdated, read_journal
from kbench.runner import Options
from kbench.storage.datacache import DataCache

Names = str | Sequence[str] | None

_SIDES: tuple[Kind, Kind] = ("feature map", "learner")


def select_suite(
    name: str,
    registry: Registry,
    datasets: Names = None,
    feature_maps: Names = None,
    learners: Names = None,
    *,
    add: Sequence[Names] = (None, None, None),
    n_splits: int | None = None,
    time_s: float | None = None,
    memory_mib: float | None = None,
    data: str | None = None,
    device: str | None = None,
) -> Suite:
    """Read a suite, add components, keep those that match, and replace limits that are given.

    The options are those of `kbench.run_suite`. Raises SuiteError if there is no such suite,
    its file has errors, a filter fits nothing, a limit is not positive, or files are not there.
    """
    suite = add_published(read(*find(name, registry), registry, device), name, registry)
    of_data, of_maps, of_learners = map(names_in, (datasets, feature_maps, learners))
    suite = select(suite, registry, of_data, of_maps, of_learners, [*map(names_in, add)])
    suite = move_to_folder(suite, None if data is None else Path(data))
    limits = suite.limits
    if n_splits is not None:
        check_integer(n_splits, option("n_splits"), least=1, error=SuiteError)
        limits = replace(limits, n_splits=n_splits)
    if time_s is not None:
        limits = replace(limits, task_timeout_s=check_limit(time_s, "task_timeout"))
    if memory_mib is not None:
        limits = replace(limits, task_memory_mib=check_limit(memory_mib, "memory_limit"))
    return replace(suite, limits=limits)


def names_in(names: Names) -> list[str]:
    """Return the names that one argument of Python has."""
    return [names] if isinstance(names, str) else list(names or ())


def check_limit(value: float, name: str) -> float:
    """Return a limit of time or memory that is positive; infinity means no limit."""
    if value != math.inf:
        check_number(value, option(name), above=0, otherwise="inf", error=SuiteError)
    return value


def is_data_file(name: str, registry: Registry) -> bool:
    """Return whether a name is that of a file of data, not of a suite."""
    return _ending(Path(name)) in _file_sources(registry)


def source_of_file(path: str, registry: Registry) -> DatasetSource:
    """Return the source that reads a file; raises DatasetError if there is none."""
    file, sources = Path(path).expanduser(), _file_sources(registry)
    if (ending := _ending(file)) not in sources:
        raise DatasetError(
            f"file {path!r}: its name must end in one of {', '.join(sources)}, got {ending!r}"
        )
    files = list_files(file)
    if not (files and files[0].exists()):
        raise DatasetError(f"file {path!r} does not exist (looked for {file.absolute()})")
    return sources[ending]


# Parameters of sources that have other names than the options that give them.
_PARAMETERS = {"date": "date_formats", "group": "groups"}


def dataset_of_file(
    path: str,
    target: str | None = None,
    *,
    registry: Registry,
    **options: str | bool | Sequence[str] | None,
) -> Ref:
    """Return the dataset entry of a suite file that reads a user's file.

    The options are those of `kbench.recommend` which are parameters of the source. Raises
    DatasetError if there is no such file, or its kind or an option is unknown.
    """
    if options.get("task"):
        check_choice(options["task"], option("task"), TASK_TYPES, error=DatasetError)
    source, file = source_of_file(path, registry), Path(path).expanduser()
    if options.get("group") and options.get("time_column"):
        raise DatasetError(f"give one of {option('group')} and {option('time_column')}, not both")
    taken = read_parameters(source.load)
    # absolute: the journal and the data cache are there whatever the folder
    params: dict[str, Any] = {"path": str(file.absolute()), **source.extensions[_ending(file)]}
    for name, value in {**options, "target": target}.items():
        parameter = _PARAMETERS.get(name, name)
        # without a sign between groups of digits, it is not guessed
        is_given = bool(value) or (name == "thousands" and value is not None)
        if is_given and taken is not None and parameter not in taken:
            raise DatasetError(
                f"file {path!r}: {option(name)} has no meaning for {source.name} files"
            )
        if is_given:
            params[parameter] = value if isinstance(value, str | bool) else tuple(value or ())
    needed = taken.get("target") if taken else None
    if not target and needed is not None and needed.is_required:
        raise DatasetError(
            f"file {path!r}: {option('target')} is missing: name the column to predict"
        )
    named = file.parent if is_pattern(file.name) else file
    return Ref(source.name, params, label=named.name.partition(".")[0] or named.name)


def _file_sources(registry: Registry) -> dict[str, DatasetSource]:
    """Return the sources of datasets by the endings of the file names that they read."""
    every = registry.all("dataset").values()
    return {ending: source for source in every for ending in source.extensions}


def _ending(file: Path) -> str:
    packed = (".gz", ".bz2", ".xz", ".zst")
    endings = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in packed]
    return endings[-1] if endings else ""


def read_suite_or_empty(name: str, registry: Registry) -> Suite:
    """Return the suite of a file; one that says nothing if there is no such file."""
    try:
        return add_published(read(*find(name, registry), registry), name, registry)
    except SuiteError:
        return Suite(name, ())


def find_plugin_methods(rows: Sequence[Row], registry: Registry) -> list[Method]:
    """Return the methods whose map or learner comes from a plugin of another project.

    Empty if all methods do.
    """
    own_maps, own_learners = (
        {name for name in registry.all(kind) if registry.owner(kind, name).distribution != HOST}
        for kind in _SIDES
    )
    methods = dict.fromkeys(row.method for row in rows)
    third_party = [
        method
        for method in methods
        if _component(method[0]) in own_maps or _component(method[1]) in own_learners
    ]
    return third_party if len(third_party) < len(methods) else []


def _component(label: str) -> str:
    """Return the name before the parameters or the scheme of a label."""
    return re.split(r"[ (\[]", label, maxsplit=1)[0]


def collect_notices(registry: Registry, options: Options, verbs: Verbs) -> list[str]:
    """Return notices to show before a run: those of features, and of plugins left out."""
    notices: list[str] = []
    for feature, texts in verbs.each("kbench_run_notices", options=options):
        if isinstance(texts, list | tuple) and all(isinstance(notice, str) for notice in texts):
            notices += texts
        else:
            verbs.fail(feature.name, f"kbench_run_notices: returned {texts!r:.60}, not strings")
    parts = [(f"plugin {plugin.name!r}", plugin.reason) for plugin in registry.plugins]
    parts += [(f"the feature {feature.name!r}", feature.reason) for feature in features()]
    return [*notices, *(f"{name} is left out: {reason}" for name, reason in parts if reason)]


def read_results(query: Query) -> StoredResults:
    """Read the results of a suite back: from where a feature keeps them, or from the journal.

    Raises an error if there are none, or all are out of date.
    """
    answer: StoredResults | None = Verbs(query.notice).one("kbench_stored_results", query=query)
    if answer is None and query.file:
        raise SuiteError(f"no feature reads {query.file}")
    stored = mark_outdated(answer or read_journal(query), Planner(load_registry(), DataCache()))
    return stored if query.outdated or query.superseded else current(stored, query.notice)


def option_names(function: str) -> set[str]:
    """Return the names of the options that features add to a function of Python."""
    return {
        name
        for feature in working()
        for name, option in feature.metadata.options.items()
        if function in option.functions
    }


def check_options(function: str, options: Mapping[str, object]) -> dict[str, object]:
    """Return the options of features that a function was given; TypeError for any other."""
    names = option_names(function)
    if unknown := next((name for name in options if name not in names), None):
        hint = did_you_mean(unknown, names)
        raise TypeError(f"{function}() got an unexpected keyword argument {unknown!r}{hint}")
    as_text = {n: str(value) if isinstance(value, Path) else value for n, value in options.items()}
    return {name: value for name, value in as_text.items() if value not in (None, "")}


def read_imported(
    suite: str, metric: Metric | None = None, notice: Callable[[str], None] = lambda message: None
) -> list[ImportedRow]:
    """Return the rows of a suite that others computed and that features know."""
    context = {"suite": suite, "metric": metric, "notice": notice}
    return [
        row for _, rows in Verbs(notice).each("kbench_imported_rows", **context) for row in rows
    ]
