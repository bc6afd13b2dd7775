"""Conversion of a user's input to records: suites with filters, runs of a store.

The command line and the Python API both use these functions, so that they cannot differ.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, urlsplit

from kbench.api.known_stores import stored_suites
from kbench.errors import StoreError, SuiteError
from kbench.execution.plugins import load_registry
from kbench.machine import machine_id
from kbench.messages import listed, similar
from kbench.parameters import check_integer, check_number
from kbench.planning.cells import select
from kbench.planning.files import in_folder
from kbench.planning.published import with_published
from kbench.planning.raw import runnable
from kbench.planning.suite_file import find, read
from kbench.records import Measure, Suite
from kbench.registry.collecting import Kind
from kbench.registry.installed import HOST
from kbench.registry.registry import Registry
from kbench.results.order import by_dataset
from kbench.results.others import OthersRow
from kbench.results.rows import Labels, Method, Row
from kbench.results.sources import budget_of, measure_of, of_run
from kbench.sharing.rows import kept_rows
from kbench.tracking import Address, Store, StoredRun, default_uri, old_store_notice

_SIDES: tuple[Kind, Kind] = ("feature map", "learner")


def chosen_suite(
    name: str,
    registry: Registry,
    datasets: Sequence[str] = (),
    feature_maps: Sequence[str] = (),
    learners: Sequence[str] = (),
    *,
    splits: int | None = None,
    time_s: float | None = None,
    memory_mb: float | None = None,
    data: str | None = None,
) -> Suite:
    """Read a suite, keep the lines that are asked for, and replace limits that are given.

    `name` is that of an installed suite, or the path of a suite file. The filters are
    those of `kbench.planning.cells.select`, the limits those of `kbench.Limits`. `data`
    is the folder of the files that the suite names by relative paths.

    Raises
    ------
    SuiteError
        There is no such suite, its file has mistakes, a filter fits nothing,
        a limit is not positive, or the files of the suite are not there.
    """
    text, stem = find(name, registry)
    suite = with_published(read(text, stem, registry), name, registry)
    suite = select(suite, registry, datasets, feature_maps, learners)
    suite = in_folder(suite, None if data is None else Path(data))
    limits = suite.limits
    if splits is not None:
        check_integer(splits, "--splits", least=1, error=SuiteError)
        limits = replace(limits, n_splits=splits)
    if time_s is not None:
        check_limit(time_s, "--time-limit")
        limits = replace(limits, time_s=time_s)
    if memory_mb is not None:
        check_limit(memory_mb, "--memory-limit")
        limits = replace(limits, memory_mb=memory_mb)
    return replace(suite, limits=limits)


def check_limit(value: float, name: str) -> None:
    """Refuse a limit of time or memory that is not positive; infinity means no limit."""
    if value != math.inf:
        check_number(value, name, above=0, otherwise="inf", error=SuiteError)


def known_suite(name: str, registry: Registry) -> Suite:
    """Return the suite of a file; one that says nothing if there is no such file."""
    try:
        return with_published(read(*find(name, registry), registry), name, registry)
    except SuiteError:
        return Suite(name, ())


def own_methods(rows: Sequence[Row], registry: Registry) -> list[Method]:
    """Return the methods whose map or learner is of a plugin that is not kbench's own.

    They are in focus unless the user names others; there are none where all methods are own
    ones. A label that a suite file chose does not tell its component.
    """
    own_maps, own_learners = (
        {name for name in registry.all(kind) if registry.owner(kind, name).distribution != HOST}
        for kind in _SIDES
    )
    methods = dict.fromkeys(row.method for row in rows)
    found = [
        method
        for method in methods
        if _component(method[0]) in own_maps or _component(method[1]) in own_learners
    ]
    return found if len(found) < len(methods) else []


def _component(label: str) -> str:
    """Return the name before the parameters or the scheme of a label."""
    return re.split(r"[ (\[]", label, maxsplit=1)[0]


def notices(registry: Registry, store: str | None) -> list[str]:
    """Return notices to show before a run: of an old store, of plugins left out."""
    old = old_store_notice() if store is None else None
    broken = [
        f"plugin {plugin.name!r} is left out: {plugin.reason}"
        for plugin in registry.plugins
        if plugin.reason
    ]
    return ([old] if old else []) + broken


@dataclass(frozen=True)
class StoredResults:
    """Results of a suite in MLflow: at least one run, of the experiment `name`."""

    runs: list[StoredRun]
    name: str
    store: Address
    notice: Callable[[str], None] = lambda text: None

    @cached_property
    def measure(self) -> Measure:
        """The measure that the suite compares."""
        return measure_of(self.runs)

    @cached_property
    def budget(self) -> str:
        """The equal budget that the suite claims."""
        return budget_of(self.runs)

    @cached_property
    def rows(self) -> list[Row]:
        """One row per run, ordered by dataset."""
        return by_dataset([of_run(run) for run in self.runs])

    @cached_property
    def others(self) -> list[OthersRow]:
        """Rows of the suite that others computed: those of kept bundles, without times."""
        return kept_rows(self.name, self.measure, self.notice)

    @cached_property
    def links(self) -> dict[Labels, str]:
        """The addresses of the runs in MLflow's pages, where the store is a server."""
        server = self.store.server
        if urlsplit(server).scheme.lower() not in ("http", "https"):
            return {}
        return {
            of_run(run).labels: f"{server}/#/experiments/{quote(run.experiment_id, safe='')}"
            f"/runs/{quote(run.run_id, safe='')}"
            for run in self.runs
            if run.run_id and run.experiment_id
        }


def stored_results(
    suite: str,
    store: str | None = None,
    machine: str | None = None,
    notice: Callable[[str], None] = lambda text: None,
    superseded: bool = False,
) -> StoredResults:
    """Read the runs of a suite from MLflow; the first parameters are those of `load_results`.

    `notice` is called with a text that names the machine, where there is a choice.
    `superseded` includes runs of earlier code, data or labels.

    Raises
    ------
    StoreError, SuiteError
        There are none.
    """
    uri = store or default_uri()
    address = Address.parse(uri)
    path = address.path
    if path is not None and not path.exists():
        raise StoreError(f"there are no runs here: {path} does not exist; run `kbench suite` first")
    name = experiment_of(suite)
    runs = Store(uri).read(name, superseded)
    if not runs:
        hint = _hint(name, stored_suites(uri))
        raise SuiteError(f"the store {address.name} has no runs of {name!r}{hint}")
    owners = {run.machine for run in runs}
    if machine != "all":
        wanted = machine or machine_id()
        if wanted not in owners and machine:
            raise SuiteError(
                f"no runs of machine {machine!r}; there are: {', '.join(sorted(owners))}"
            )
        if wanted not in owners:
            wanted = runs[-1].machine
        if len(owners) > 1 or wanted not in (machine, machine_id()):
            notice(f"runs of machine {wanted}; --machine all shows all")
        runs = [run for run in runs if run.machine == wanted]
    return StoredResults(runs, name, address, notice)


def _hint(name: str, stored: Sequence[str]) -> str:
    """Say which stored suite may be meant, or how runs of an installed one are made."""
    installed = runnable(load_registry())
    if name in installed:
        hint = f"; `kbench suite {name}` makes them"
    else:
        hint = similar(name, stored) or similar(name, installed)
    if stored and "did you mean" not in hint:
        hint += f"; it has runs of {listed(stored)}"
    return hint


def experiment_of(suite: str) -> str:
    """Return the name of a suite's experiment: that in its file, else the file's stem."""
    path = Path(suite)
    if path.suffix != ".toml":
        return suite
    try:
        own = tomllib.loads(path.read_text(encoding="utf-8")).get("name")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        own = None  # the runs outlive the file
    return own if isinstance(own, str) else path.stem
