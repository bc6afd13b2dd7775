"""Datasets from a user's own files, in one canonical form."""

import lazy_loader

from kbench import DatasetSource, hookimpl

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_files": ["load_arff", "load_csv", "load_excel", "load_parquet", "load_svmlight"]
    },
)


@hookimpl
def kbench_datasets():
    """List the kinds of files."""
    return [
        DatasetSource(
            "csv",
            load="kbench_files._files:load_csv",
            endings={".csv": {}, ".tsv": {"delimiter": "\t"}},
            named_by_label=True,
            table="kbench_files._csv:csv_table",
            rows="kbench_files._csv:csv_rows",
        ),
        DatasetSource(
            "parquet",
            load="kbench_files._files:load_parquet",
            endings={".parquet": {}, ".pq": {}},
            named_by_label=True,
            table="kbench_files._parquet:parquet_table",
            rows="kbench_files._parquet:parquet_rows",
        ),
        DatasetSource(
            "excel",
            load="kbench_files._files:load_excel",
            endings={".xlsx": {}, ".xls": {}},
            named_by_label=True,
            table="kbench_files._excel:excel_table",
            rows="kbench_files._excel:excel_rows",
        ),
        DatasetSource(
            "arff",
            load="kbench_files._files:load_arff",
            endings={".arff": {}},
            named_by_label=True,
            table="kbench_files._arff:arff_table",
            rows="kbench_files._arff:arff_rows",
        ),
        DatasetSource(
            "svmlight",
            load="kbench_files._files:load_svmlight",
            endings={".svmlight": {}, ".libsvm": {}, ".svm": {}},
            named_by_label=True,
        ),
    ]
