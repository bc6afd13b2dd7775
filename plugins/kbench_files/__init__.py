"""Datasets from a user's own files, in one canonical form."""

import importlib

from kbench import DatasetSource, hookimpl

__all__ = ["load_arff", "load_csv", "load_parquet", "load_svmlight"]


def __getattr__(name):
    """Import a public function when it is first asked for."""
    if name in __all__:
        return getattr(importlib.import_module("kbench_files._files"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    """List the public functions."""
    return __all__


@hookimpl
def kbench_datasets():
    """List the kinds of files."""
    return [
        DatasetSource(
            "csv",
            load="kbench_files._files:load_csv",
            endings={".csv": {}, ".tsv": {"delimiter": "\t"}},
            table="kbench_files._files:csv_table",
        ),
        DatasetSource(
            "parquet",
            load="kbench_files._files:load_parquet",
            endings={".parquet": {}, ".pq": {}},
            table="kbench_files._files:parquet_table",
        ),
        DatasetSource("arff", load="kbench_files._files:load_arff", endings={".arff": {}}),
        DatasetSource(
            "svmlight",
            load="kbench_files._files:load_svmlight",
            endings={".svmlight": {}, ".libsvm": {}, ".svm": {}},
        ),
    ]
