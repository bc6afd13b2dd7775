"""The study of Balcan, Blum and Vempala shows the results of the stored runs."""

import re

import numpy as np
import pytest

from kbench_sharing.reading import read_bundle
from tests.support.paths import ROOT

METHODS = (
    ("F1", "winnow"),
    ("F1", "svm"),
    ("F2", "winnow"),
    ("F2", "svm"),
    ("identity", "kernel-svm"),
)


def stored(name):
    """Return the accuracies of a bundle by dataset, map and learner."""
    bundle = read_bundle(ROOT / "docs" / "results" / f"{name}.zip")
    return {
        (cell.dataset, cell.feature_map.label, cell.learner.label.split(" ")[0]): [
            result.metrics["accuracy"] for result in bundle.results[cell.key].values()
        ]
        for cell in bundle.cells
    }


@pytest.mark.parametrize(("name", "n_datasets"), [("balcan-synthetic", 8), ("balcan-uci", 3)])
def test_the_tables_are_those_of_the_stored_runs(name, n_datasets):
    accuracies = stored(name)
    page = (ROOT / "docs" / "studies" / "balcan.md").read_text(encoding="utf-8")
    datasets = {dataset for dataset, *_ in accuracies}
    assert len(datasets) == n_datasets
    for dataset in datasets:
        row = re.search(rf"^\| {re.escape(dataset)} \| (.+) \|$", page, re.MULTILINE)[1]
        for method, shown in zip(METHODS, row.split(" | "), strict=True):
            values = accuracies[(dataset, *method)]
            error = np.std(values, ddof=1) / np.sqrt(len(values))
            assert shown.startswith(f"{np.mean(values):.3f} ± {error:.3f} ("), (dataset, method)
