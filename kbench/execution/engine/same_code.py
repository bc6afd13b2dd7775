"""Whether two hosts would compute the same: versions and code, compared item by item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kbench import machine
from kbench.planning.fingerprint import Fingerprinter, evaluation_modules

_SHOWN = 12


def parts(own: Iterable[str], modules: Iterable[str]) -> dict[str, str]:
    """List what decides the numbers on this host: versions, and hashes of code.

    Parameters
    ----------
    own : iterable of str
        Top-level packages whose code is hashed.
    modules : iterable of str
        Modules of the components in use.

    Returns
    -------
    dict of str to str
        Version by distribution (``python`` and ``blas`` too), hash by module.
    """
    found = Fingerprinter(own).parts([*evaluation_modules(), *modules])
    # of what only brings a task to its code, kbench's files must agree and no more
    brings = Fingerprinter(own, left_out=()).parts(["kbench.execution.entry_points"])
    found |= {name: value for name, value in brings.items() if _is_hash(value)}
    # the last digits of a product of matrices are those of its BLAS
    versions = machine.versions()
    found |= {name: versions.get(name, "absent") for name in ("kbench-core", "blas")}
    return found


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """Say in which items two hosts differ, versions first.

    Parameters
    ----------
    here, there : mapping of str to str
        What `parts` returned.

    Examples
    --------
    >>> differences({"numpy": "2.1", "kbench.execution.entry_points": "0" * 64},
    ...             {"numpy": "2.0", "kbench.execution.entry_points": "1" * 64})
    ['numpy 2.0 instead of 2.1', 'module kbench.execution.entry_points has other code']
    """
    versions, code = [], []
    for name in sorted(here.keys() | there.keys()):
        ours, theirs = here.get(name, "absent"), there.get(name, "absent")
        if ours == theirs:
            continue
        if _is_hash(ours) or _is_hash(theirs):
            code.append(f"module {name} {_told(ours, theirs)}")
        else:
            versions.append(f"{name} {theirs} instead of {ours}")
    if len(code) > _SHOWN:
        code[_SHOWN:] = [f"{len(code) - _SHOWN} more modules"]
    return versions + code


def _told(ours: str, theirs: str) -> str:
    if theirs == "absent":
        return "is not there"
    return "is only there" if ours == "absent" else "has other code"


def _is_hash(value: str) -> bool:
    return len(value) == 64
