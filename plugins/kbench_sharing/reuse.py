"""Results of others as known accuracies of cells with equal keys, without their times."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kbench.errors import SuiteError
from kbench.features import task_key
from kbench.records import Result
from kbench_sharing.form import Bundle, SharedResult
from kbench_sharing.kept import SHORT, find

_OF_A_MACHINE = ("_s", "_mb")
"""Ends of the names of measures that mean something only on the machine that took them."""

_PINNED = ("kbench-core", "numpy", "scipy", "scikit-learn")


def named(names: Sequence[str] | None, fresh: bool = False) -> list[Bundle]:
    """Read the bundles of `--reuse`, by file or id.

    Raises
    ------
    SuiteError, BundleError
        Everything is to be computed, or there is no such bundle.
    """
    if names and fresh:
        raise SuiteError("--fresh computes everything again; leave out --reuse")
    return [find(name) for name in names or ()]


def notices(bundle: Bundle) -> list[str]:
    """Name the versions that keep a bundle from being reused; empty where none do."""
    from kbench_sharing.verifying import other_versions

    reason = other_versions(bundle)
    if not reason:
        return []
    return [
        f"bundle {bundle.id[:SHORT]}: {reason}; cells with other keys are not reused",
        f"the same versions: {same_environment(bundle)}",
    ]


def reusable(bundles: Iterable[Bundle]) -> dict[str, Mapping[int, Result]]:
    """Return results by key of the cell and number of the split; the first bundle counts.

    Only results with status "ok" are reused. Their `machine` names the author and the
    machine, for people.
    """
    found: dict[str, Mapping[int, Result]] = {}
    for bundle in bundles:
        for key, results in bundle.results.items():
            ok = {i: _known(bundle, each) for i, each in results.items() if each.status == "ok"}
            if ok:
                found.setdefault(key, ok)
    return found


def _known(bundle: Bundle, shared: SharedResult) -> Result:
    cpu = bundle.manifest.machines[shared.machine].cpu
    number = f", machine {shared.machine + 1}" if len(bundle.manifest.machines) > 1 else ""
    names = {shared.machine: f"{bundle.author} on {cpu}{number}"}
    result = shared.result(task_key(shared.cell, shared.split), names, cpu)
    measures = {
        name: value for name, value in result.measures.items() if not name.endswith(_OF_A_MACHINE)
    }
    details = replace(result.details, search_seconds=(), work_s=0.0, contention=())
    return replace(
        result, measures=measures, details=details, seconds=0.0, cpu_s=0.0, calibration_s=0.0
    )


def same_environment(bundle: Bundle) -> str:
    """Return the command that makes an environment with the versions of a bundle."""
    given = bundle.manifest.versions
    python = ".".join(given.get("python", "3").split(".")[:2])
    folder = f"kbench-{bundle.id[:SHORT]}"
    pinned = [f"{name}=={given[name]}" for name in _PINNED if name in given]
    install = shlex.join([f"{folder}/bin/pip", "install", *pinned])
    return f"{shlex.join([f'python{python}', '-m', 'venv', folder])} && {install}"
