"""Datasets from OpenML, in one canonical form."""

import importlib

from kbench import DatasetSource, hookimpl

_PUBLIC = {
    "load": "kbench_openml._source",
    "expand": "kbench_openml._source",
    "watched": "kbench_openml._transport",
}
__all__ = list(_PUBLIC)


def __getattr__(name):
    """Import a public function when it is first asked for."""
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    """List the public functions."""
    return __all__


@hookimpl
def kbench_datasets():
    """List OpenML."""
    return [
        DatasetSource(
            "openml", load="kbench_openml._source:load", expand="kbench_openml._source:expand"
        ),
    ]
