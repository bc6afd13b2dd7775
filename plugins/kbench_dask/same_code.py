"""Comparison of the versions and the code of two hosts, item by item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kbench.features import FILE, VARIABLE, Fingerprinter, evaluation_modules, machine

_SHOWN = 12


def parts(
    own: Iterable[str],
    modules: Iterable[str],
    files: Iterable[str] = (),
    variables: Iterable[str] = (),
) -> dict[str, str]:
    """List everything that decides the numbers on this host: versions, hashes of code.

    The code of the top-level packages `own` is hashed, from the modules of the
    components in use, and so are the files and environment variables that these
    declare. The result has a version by distribution (``python`` and ``blas`` too) and a
    hash by module, file and variable.
    """
    items = Fingerprinter(own).parts([*evaluation_modules(), *modules], files, variables)
    # code that only brings a task to its evaluation: kbench's files must agree, no more
    brings = Fingerprinter(own, left_out=()).parts(["kbench.execution.entry_points"])
    items |= {name: value for name, value in brings.items() if _is_hash(value)}
    # the BLAS decides the last digits of a product of matrices
    versions = machine.versions()
    items |= {name: versions.get(name, "absent") for name in ("kbench-core", "blas")}
    return items


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """List the differences between the `parts` of two hosts, versions first.

    Values of environment variables, which may be secret, are not shown.

    >>> differences({"numpy": "2.1", "kbench.execution.entry_points": "0" * 64},
    ...             {"numpy": "2.0", "kbench.execution.entry_points": "1" * 64})
    ['numpy 2.0 instead of 2.1', 'module kbench.execution.entry_points has other code']
    """
    versions, code = [], []
    for name in sorted(here.keys() | there.keys()):
        ours, theirs = here.get(name, "absent"), there.get(name, "absent")
        if ours == theirs:
            continue
        if name.startswith(VARIABLE):
            code.append(f"{name} has another value")
        elif name.startswith(FILE):
            code.append(f"{name} {_difference(ours, theirs, 'content')}")
        elif _is_hash(ours) or _is_hash(theirs):
            code.append(f"module {name} {_difference(ours, theirs, 'code')}")
        else:
            versions.append(f"{name} {theirs} instead of {ours}")
    if len(code) > _SHOWN:
        code[_SHOWN:] = [f"{len(code) - _SHOWN} more modules"]
    return versions + code


def _difference(ours: str, theirs: str, what: str) -> str:
    if theirs == "absent":
        return "is not there"
    return "is only there" if ours == "absent" else f"has other {what}"


def _is_hash(value: str) -> bool:
    return len(value) == 64
