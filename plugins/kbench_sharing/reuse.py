"""Results of others as known accuracies of cells, without their times.

A result is taken for a cell of an equal key, if all that it was made from is the same here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kbench._version import __version__
from kbench.errors import SuiteError
from kbench.features import Present, machine, task_key
from kbench.messages import counted
from kbench.records import Result
from kbench_sharing.dependencies import not_reused, why_not_reused
from kbench_sharing.form import Bundle, SharedResult
from kbench_sharing.kept import SHORT, find

_OF_A_MACHINE = ("_s", "_mb")
"""Ends of the names of measures that mean something only on the machine that took them."""

_SHOWN = 5
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


def notices(bundle: Bundle, present: Present) -> list[str]:
    """Say why results of a bundle are not reused, by reason; empty where all hold here."""
    reasons = not_reused(bundle, present)
    texts = [f"{counted(n, 'split')}: {reason}" for reason, n in reasons.most_common(_SHOWN)]
    if more := len(reasons) - len(texts):
        texts.append(f"and {counted(more, 'other reason')}")
    found = [f"bundle {bundle.id[:SHORT]}: not reused are {'; '.join(texts)}"] if texts else []
    if texts and other_versions(bundle):
        found.append(f"the same versions: {same_environment(bundle)}")
    return found


def reusable(bundles: Iterable[Bundle], present: Present) -> dict[str, Mapping[int, Result]]:
    """Return results by key of the cell and number of the split; the first bundle counts.

    Only results with status "ok" are reused whose dependencies are the same at `present`. Their
    `machine` names the author and the machine, for people.
    """
    found: dict[str, Mapping[int, Result]] = {}
    for bundle in bundles:
        for key, results in bundle.results.items():
            ok = {
                split: _known(bundle, each)
                for split, each in results.items()
                if each.status == "ok" and not why_not_reused(bundle, each, present)
            }
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


def other_versions(bundle: Bundle) -> str:
    """Return the versions of a bundle that are others here; empty if there are none."""
    here, theirs = {**machine.versions(), "kbench-core": __version__}, bundle.manifest.versions
    names = ("kbench-core", "numpy", "scipy", "scikit-learn")
    pairs = {name: (theirs.get(name, "none"), here.get(name, "none")) for name in names}
    pairs["Python"] = (_minor(theirs.get("python", "")), _minor(here.get("python", "")))
    found = [f"{name} {a} (here {b})" for name, (a, b) in pairs.items() if a != b]
    return f"it was made with other versions: {', '.join(found)}" if found else ""


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
