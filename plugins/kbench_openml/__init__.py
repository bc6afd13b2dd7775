"""Datasets from OpenML and from files, in one canonical form."""

from kbench import DatasetSource, hookimpl


@hookimpl
def kbench_datasets():
    """List OpenML and the kinds of files."""
    return [
        DatasetSource(
            "openml", load="kbench_openml._source:load", expand="kbench_openml._source:expand"
        ),
        DatasetSource("csv", load="kbench_openml._files:load_csv"),
        DatasetSource("parquet", load="kbench_openml._files:load_parquet"),
        DatasetSource("arff", load="kbench_openml._files:load_arff"),
        DatasetSource("svmlight", load="kbench_openml._files:load_svmlight"),
    ]
