"""Comparison of what two hosts compute the same components from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from kbench.errors import ClusterError
from kbench.features import Manifest, Preload, Present, WarmParents, machine, modules_of
from kbench.messages import last_line
from kbench.records.canonical import digest

PROBE_TIME_S = 120.0
"""Wall clock in which a host must have loaded all components."""

_SHOWN = 12


def manifest_of(preload: Preload, components: Mapping[str, Sequence[Any]]) -> Manifest:
    """Return what this host computes components from, with all of kbench and the BLAS.

    The components are loaded in a process of their own, and what it loads and reads is
    recorded. ClusterError is raised where that process ends or has no end.
    """
    with closing(WarmParents(preload)) as parents, parents.using(parents.every) as sandbox:
        outcome = sandbox.run(
            "kbench.execution.entry_points:probe",
            {"components": components},
            time_s=PROBE_TIME_S,
        )
    if outcome.status != "ok":
        raise ClusterError(
            f"the components cannot be loaded ({outcome.status}): {last_line(outcome.error)}"
        )
    present = Present()
    # what brings a task to its evaluation must be the same too, such as the form of its answer
    core = Manifest({module: present.module(module) for module in modules_of("kbench")})
    made = (present.made(outcome.recorded) or Manifest()) | core
    present.save()
    return _without_paths(made.across_hosts()) | _versions()


def _versions() -> Manifest:
    """Return the versions that no file of a component names.

    The BLAS decides the last digits of a product of matrices.
    """
    versions = machine.versions()
    return Manifest(distributions={name: versions.get(name) for name in ("kbench-core", "blas")})


def _without_paths(manifest: Manifest) -> Manifest:
    """Name files outside of packages by their last part: folders may be others on each host."""
    files: dict[str, str | None] = {}
    outside: dict[str, list[str | None]] = {}
    for name, content in manifest.files.items():
        if Path(name).is_absolute():
            outside.setdefault(Path(name).name, []).append(content)
        else:
            files[name] = content
    for name, contents in outside.items():
        # of one name there may be several, which are compared together
        several = digest(sorted(each or "" for each in contents))
        files[name] = contents[0] if len(contents) == 1 else several
    return replace(manifest, files=files)


def differences(here: Manifest, there: Manifest) -> list[str]:
    """List the differences between the manifests of two hosts, versions first.

    Values of environment variables, which may be secret, are not shown.

    >>> differences(Manifest({"maps": "0"}, distributions={"numpy": "2.1"}),
    ...             Manifest({"maps": "1"}, distributions={"numpy": "2.0"}))
    ['numpy 2.0 instead of 2.1', 'module maps has other code']
    """
    versions = [
        f"{name} {theirs or 'absent'} instead of {ours or 'absent'}"
        for name, ours, theirs in _differing(here.distributions, there.distributions)
    ]
    others = [
        f"environment variable {name} has another value"
        for name, _, _ in _differing(here.variables, there.variables)
    ]
    others += [
        f"file {name} {_difference(ours, theirs, 'content')}"
        for name, ours, theirs in _differing(here.files, there.files)
    ]
    others += [
        f"module {name} {_difference(ours, theirs, 'code')}"
        for name, ours, theirs in _differing(here.modules, there.modules)
    ]
    if len(others) > _SHOWN:
        others[_SHOWN:] = [f"{len(others) - _SHOWN} more modules"]
    return versions + others


def _differing(
    here: Mapping[str, str | None], there: Mapping[str, str | None]
) -> list[tuple[str, str | None, str | None]]:
    names = sorted(here.keys() | there.keys())
    found = [(name, here.get(name), there.get(name)) for name in names]
    return [each for each in found if each[1] != each[2]]


def _difference(ours: str | None, theirs: str | None, what: str) -> str:
    if theirs is None:
        return "is not there"
    return "is only there" if ours is None else f"has other {what}"
