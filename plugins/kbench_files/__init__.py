"""Datasets from CSV, Excel, Parquet, ARFF and svmlight files."""

import lazy_loader

from kbench import DatasetSource, hookimpl

FORMS = {
    "csv": {".csv": {}, ".tsv": {"delimiter": "\t"}},
    "parquet": {".parquet": {}, ".pq": {}},
    "excel": {".xlsx": {}, ".xls": {}},
    "arff": {".arff": {}},
    "svmlight": {".svmlight": {}, ".libsvm": {}, ".svm": {}},
}
"""File extensions of each format, with the parameters that each implies."""

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_files": [
            "load_arff",
            "load_csv",
            "load_excel",
            "load_parquet",
            "load_svmlight",
            "load_table",
        ]
    },
)


@hookimpl
def kbench_datasets():
    """List the kinds of files."""
    return [
        DatasetSource(
            form,
            load=f"kbench_files._files:load_{form}",
            extensions=endings,
            named_by_label=True,
            # rows of svmlight files have no columns with names
            rows=None
            if form == "svmlight"
            else f"kbench_files.{'_csv' if form == 'csv' else '_typed'}:{form}_rows",
            text_blocks="kbench_files._text_blocks:TextBlocks" if form == "csv" else None,
        )
        for form, endings in FORMS.items()
    ]
