"""Datasets from OpenML: by data id, task id, name or suite."""

import lazy_loader

from kbench import DatasetSource, hookimpl

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"_source": ["expand", "load"]}
)


@hookimpl
def kbench_datasets():
    """List OpenML."""
    return [
        DatasetSource(
            "openml",
            load="kbench_openml._source:load",
            expand="kbench_openml._source:expand",
            expanded_by="openml_suite",
        )
    ]
