"""What a user names becomes records: a suite with filters, options of a run, runs of a store.

The command line and the Python API both come through here, so that they cannot differ.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from kbench.errors import StoreError, SuiteError
from kbench.machine import machine_id, physical_cores
from kbench.planning.cells import select
from kbench.planning.suite_file import find, read
from kbench.records import Suite
from kbench.registry.registry import Registry
from kbench.runner import Options
from kbench.tracking import Store, StoredRun, default_uri, old_store_notice


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
) -> Suite:
    """Read a suite and keep what is asked for, with other limits where they are given.

    Parameters
    ----------
    name : str
        Name of an installed suite, or path of a suite file.
    registry : Registry
    datasets, feature_maps, learners : sequence of str
        As `kbench.planning.cells.select` takes them; empty keeps all.
    splits : int, optional
        Number of splits.
    time_s : float, optional
        Wall-clock seconds of one task.
    memory_mb : float, optional
        Megabytes (2**20 bytes) of one task.

    Raises
    ------
    SuiteError
        There is no such suite, its file has mistakes, a filter fits nothing,
        or a limit is not positive.
    """
    text, stem = find(name, registry)
    suite = select(read(text, stem, registry), registry, datasets, feature_maps, learners)
    limits = suite.limits
    if splits is not None:
        limits = replace(limits, n_splits=_positive("--splits", splits))
    if time_s is not None:
        limits = replace(limits, time_s=_positive("--time-limit", time_s))
    if memory_mb is not None:
        limits = replace(limits, memory_mb=_positive("--memory-limit", memory_mb))
    return replace(suite, limits=limits)


_Number = TypeVar("_Number", int, float)


def _positive(option: str, value: _Number) -> _Number:
    if not value > 0:
        raise SuiteError(f"{option} must be positive; found {value:g}")
    return value


def options_of(store: str | None = None, jobs: int | None = None, **fields: Any) -> Options:
    """Return the options of a run, with the defaults of this folder and machine.

    Parameters
    ----------
    store : str, optional
        MLflow store; ``MLFLOW_TRACKING_URI`` or ``mlflow.db`` here by default.
    jobs : int, optional
        Tasks at a time; physical cores by default, or what a cluster has.
    **fields
        Further fields of `Options`.

    Raises
    ------
    SuiteError
        `jobs` is not positive, there is no such timing, or exclusive timing is
        asked for with several tasks at a time or on a cluster.
    """
    if jobs is not None and jobs < 1:
        raise SuiteError(f"jobs must be at least 1; found {jobs}")
    timing = fields.get("timing", "shared")
    if timing not in ("shared", "exclusive"):
        raise SuiteError(f'timing must be "shared" or "exclusive"; found {timing!r}')
    if timing == "exclusive":
        if fields.get("scheduler"):
            raise SuiteError("--timing exclusive is for this machine; leave out --scheduler")
        if jobs not in (None, 1):
            raise SuiteError(f"--timing exclusive runs one task at a time; found --jobs {jobs}")
        jobs = 1
    return Options(
        store=store or default_uri(),
        # a cluster has as many as its workers have threads
        jobs=jobs if fields.get("scheduler") else jobs or physical_cores(),
        **fields,
    )


def notices(registry: Registry, store: str | None) -> list[str]:
    """Return what a user should know before a run: an old store, plugins left out."""
    old = old_store_notice() if store is None else None
    broken = [
        f"plugin {plugin.name!r} is left out: {plugin.reason}"
        for plugin in registry.plugins
        if plugin.reason
    ]
    return ([old] if old else []) + broken


def runs_of(
    suite: str,
    store: str | None = None,
    machine: str | None = None,
    notice: Callable[[str], None] = lambda text: None,
    superseded: bool = False,
) -> tuple[list[StoredRun], str, str]:
    """Read the runs of a suite from MLflow.

    Parameters
    ----------
    suite : str
        Its name, or the path of its file: the experiment is named after it.
    store : str, optional
        URI; the default store where it is None.
    machine : str, optional
        Whose runs; "all" for all of them. Where it is None, this machine's,
        else those of the machine that wrote last.
    notice : callable, optional
        Is told which machine was chosen, where there is a choice.
    superseded : bool, default False
        Runs of earlier code, data or labels too.

    Returns
    -------
    runs : list of StoredRun
        At least one.
    name, uri : str
        Of the experiment and of the store.

    Raises
    ------
    StoreError, SuiteError
        There are none.
    """
    uri = store or default_uri()
    path = Path(uri.removeprefix("sqlite:///"))
    if uri.startswith("sqlite:///") and not path.exists():
        raise StoreError(f"there are no runs here: {path} does not exist; run `kbench suite` first")
    name = _experiment_of(suite)
    runs = Store(uri).read(name, superseded)
    if not runs:
        raise SuiteError(
            f"the store {uri} has no runs of {name!r}; `kbench suite {suite}` makes them"
        )
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
    return runs, name, uri


def _experiment_of(suite: str) -> str:
    """Return the name of a suite's experiment: that in its file, else the file's stem."""
    path = Path(suite)
    if path.suffix != ".toml":
        return suite
    try:
        own = tomllib.loads(path.read_text(encoding="utf-8")).get("name")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        own = None  # the runs outlive the file
    return own if isinstance(own, str) else path.stem
