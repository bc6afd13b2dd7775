"""What each process of kbench reads once, and a process of tests would read hundreds of times.

Distributions that were installed when the tests began do not change while they run; those that
tests install elsewhere are read whenever they are asked for.
"""

import functools
import os
import sys
from importlib import metadata
from pathlib import Path

import jinja2

from kbench.planning import current_state

INSTALLED = frozenset(sys.path)

_read_entry_points = metadata.Distribution.entry_points.fget
_read_distribution = current_state.Present._distribution
_compile = jinja2.Environment.compile
_compiled = {}


def patch():
    """Keep what was read, for as long as this process lasts."""
    # a user's state folder has the digests of all modules, that of a test none of them
    current_state.syntax_digest = functools.cache(current_state.syntax_digest)
    # each plan compares the states of thousands of files with those of their installation
    current_state.Present._distribution = _distribution
    # each run asks, and reading the files of all distributions takes a quarter of a second
    metadata.packages_distributions = _packages_distributions
    # each command asks for those of all distributions, twice
    metadata.Distribution.entry_points = property(_entry_points)
    # a process writes one page, the tests hundreds, each with another environment
    jinja2.Environment.compile = _compile_once


def _is_installed(distribution):
    path = getattr(distribution, "_path", None)
    return path is not None and str(path.parent) in INSTALLED


@functools.cache
def _names_in(folder, _changed):
    """List the top-level modules of each distribution of a folder, beside its name."""
    return [
        (module, found.metadata["Name"])
        for found in metadata.distributions(path=[folder])
        for module in metadata._top_level_declared(found) or metadata._top_level_inferred(found)
    ]


def _packages_distributions():
    """Return what the function of the standard library does; read a folder that has changed."""
    owners = {}
    for folder in filter(os.path.exists, sys.path):
        for module, name in _names_in(folder, Path(folder).stat().st_mtime_ns):
            owners.setdefault(module, []).append(name)
    return owners


@functools.cache
def _installed_entry_points(path):
    return _read_entry_points(metadata.PathDistribution(path))


def _entry_points(self):
    """Return what the property of the standard library does."""
    return _installed_entry_points(self._path) if _is_installed(self) else _read_entry_points(self)


@functools.cache
def _installed_distribution(name, _path):
    return _read_distribution(current_state.Present(), name)


def _distribution(self, name):
    """Return what the method of `Present` does."""
    found = next(iter(metadata.Distribution.discover(name=name)), None) if name else None
    if _is_installed(found):
        return _installed_distribution(name, found._path)
    return _read_distribution(self, name)


def _compile_once(self, source, name=None, filename=None, **how):
    """Compile a template once for all environments of a kind."""
    if not isinstance(source, str):
        return _compile(self, source, name, filename, **how)
    options = (self.trim_blocks, self.lstrip_blocks, self.finalize, *sorted(self.filters))
    key = (type(self), source, name, filename, *options, *how.items())
    if key not in _compiled:
        _compiled[key] = _compile(self, source, name, filename, **how)
    return _compiled[key]
