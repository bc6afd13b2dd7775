"""Datasets of thirty files, and predictions of exported models, are those of all versions."""

import numpy as np
import pytest

import kbench_files
from kbench import Cell, DatasetError, Protocol, Ref
from kbench.api.inputs import dataset_of_file
from kbench.registry.callables import resolve
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_files import load_table
from kbench_files._files import find_form
from kbench_files._text_blocks import TextBlocks
from kbench_tables.export.fit import refit
from kbench_tables.recommend.table_preview import add_preview, preview
from tests.support.table_files import digest_of, write_all

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

DATASETS = {
    "clean.csv": "128a43ef86d1ee94",
    "regression.csv": "a3abaa6dabf2f595",
    "european.csv": "2ef10a9c04aa12ac",
    "decimals.csv": "0156b28dd829d76d",
    "thousands.csv": "02a1715e90b0e9d1",
    "swiss.csv": "653956406da39626",
    "blanks.csv": "f53d2241b060bb5c",
    "tabs.tsv": "d8a1672b2dbc3f0c",
    "pipes.csv": "b19dcca67870efc6",
    "dated.csv": "bf8235743c55b0d1",
    "iso.csv": "41038ae7a941512c",
    "compact.csv": "a497ba1cb871d996",
    "units.csv": "84cca8d8e2e43234",
    "euros.csv": "196862f1a34d1d8d",
    "unit_target.csv": "620a4ec77b34a047",
    "wide.csv": "5133cdf044bcef47",
    "missing.csv": "3c4d29ee284400b2",
    "unlabeled.csv": "a3ad6324f1f2a397",
    "quoted.csv": "4a5f09fd1c3c19ad",
    "titled.csv": "6aefb3e4f6695c99",
    "sep.csv": "f454222d71ab7c7b",
    "mixed.csv": "a05a589e87f6ce5f",
    "large.csv": "e74723b0166405cd",
    "by_target.csv": "77fe5e157c72bc15",
    "grouped.csv": "3b237458340a1dd2",
    "rows.svmlight": "7ccd870e75d5277d",
    "dense.arff": "4f30176921e7cbc7",
    "sparse.arff": "43891687e971fbf3",
    "packed.csv.gz": "1a4c852efe2b4b2a",
    "latin.csv": "9ee0609d5b0bfe77",
    "utf16.csv": "0b5921d6cd97e88a",
    "typed.parquet": "a43154e479af47ce",
    "categories.parquet": "6dd8e9e77eaf4bc9",
    "sheet.xlsx": "9dc363e0e6f8c0c0",
}
"""Digests of datasets by the names of their files."""

PREDICTED = {
    "clean.csv": "-0.40069 -0.229608 -0.0585251 -0.411246",
    "european.csv": "-0.411737 -0.257754 -0.10377 -0.37012",
    "thousands.csv": "-0.411737 -0.257754 -0.10377 -0.37012",
    "dated.csv": "-0.133063 -0.320241 -0.293733 -0.291952",
    "compact.csv": "-0.133063 -0.320241 -0.293733 -0.291952",
    "units.csv": "-0.326953 -0.507013 -0.533554 -0.475345",
    "euros.csv": "-2.99853 1.62536 6.24925 -1.74883",
    "missing.csv": "-0.128983 -0.0435216 -0.258843 -0.157899",
    "quoted.csv": "-0.508562 -0.36266 -0.14382 -0.185648",
    "titled.csv": "-0.460571 -0.269619 -0.0786666 -0.408962",
    "sep.csv": "-0.460571 -0.269619 -0.0786666 -0.408962",
    "mixed.csv": "-0.11209 -0.19915 -0.232874 -0.0797555",
    "by_target.csv": "5.30524 3.45205 2.49259 4.42871",
}
"""First predictions of a model for the texts of a file."""


@pytest.fixture(scope="module")
def registry():
    return build(list_plugins())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    return {folder / name: params for name, params in write_all(folder).items()}


def loaded(path, params, registry):
    """Look at a file and load it, as `kbench recommend` does."""
    target = None if path.suffix == ".svmlight" else "y"
    ref = dataset_of_file(str(path), target, registry=registry)
    ref = Ref(ref.name, {**ref.params, **params}, ref.label)
    source = registry.get("dataset", ref.name)
    ref = add_preview(ref, preview(ref, registry))
    return ref, resolve(source.load)(**ref.params)


def test_datasets_are_equal(files, registry):
    found = {
        path.name: digest_of(loaded(path, given, registry)[1]) for path, given in files.items()
    }
    assert found == DATASETS


def test_predictions_are_equal(files, registry):
    found = {}
    for path, given in files.items():
        if path.name not in PREDICTED:
            continue
        ref, data = loaded(path, given, registry)
        few = {"search_method": "random", "n_candidates": 2}
        protocol = Protocol(inner_folds=2, missing="impute_with_indicators", **few)
        cell = Cell(ref, Ref("identity"), Ref("ridge"), protocol)
        fitted = refit(cell, data, registry)
        block = next(iter(TextBlocks(path, ref.params.get("delimiter", ","))))
        name = "predict" if data.task == "regression" else "decision_function"
        answers = np.asarray(getattr(fitted.pipeline, name)(block))[:4].tolist()
        found[path.name] = " ".join(f"{answer:.6g}" for answer in answers)
    assert found == PREDICTED


def test_the_ending_of_a_name_decides_how_a_file_is_read(files):
    by_name = {path.name: path for path in files}
    for name in ("clean.csv", "packed.csv.gz", "typed.parquet", "sheet.xlsx", "dense.arff"):
        params = {"target": "y", "drop": ["when"] if name[0] in "ts" else []}
        data = load_table(str(by_name[name]), **params)
        form = find_form(name)
        own = getattr(kbench_files, f"load_{form}")
        assert own(str(by_name[name]), **params).checksum == data.checksum
    assert load_table(str(by_name["rows.svmlight"]), task="regression").X.shape == (48, 9)
    with pytest.raises(DatasetError, match=r"must end in one of \.csv, \.tsv, \.parquet"):
        load_table("mine.txt", "y")
