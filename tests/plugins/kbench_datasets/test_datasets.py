"""Bundled and synthetic datasets, and those from files."""

import gzip
import importlib
import inspect
import io

import numpy as np
import pytest
import scipy.sparse

import kbench_datasets
import kbench_files
import kbench_openml
from kbench import Dataset, DatasetError
from kbench.storage.datacache import check_dataset
from kbench_datasets import _synthetic
from kbench_files._files import load_arff, load_csv, load_parquet, load_svmlight

SHAPES = {
    "iris": (150, 4, 3),
    "iris-setosa": (150, 4, 2),
    "iris-versicolor": (150, 4, 2),
    "iris-virginica": (150, 4, 2),
    "wine": (178, 13, 3),
    "wdbc": (569, 30, 2),
    "digits": (1797, 64, 10),
    "two-moons": (1000, 2, 2),
    "circles": (1000, 2, 2),
    "checkerboard": (1000, 2, 2),
    "polytope": (1000, 2, 2),
    "hypersphere-shells": (10_000, 8, 2),
    "diabetes": (442, 10, 0),
    "friedman1": (1000, 10, 0),
    "friedman2": (1000, 4, 0),
    "friedman3": (1000, 4, 0),
}
SYNTHETIC = (
    *("two_moons", "circles", "checkerboard", "polytope", "hypersphere_shells"),
    *("friedman1", "friedman2", "friedman3"),
)


def _loader(source):
    module, _, name = source.load.partition(":")
    return getattr(importlib.import_module(module), name)


SOURCES = {source.name: source for source in kbench_datasets.kbench_datasets()}


def test_every_source_is_listed():
    assert set(SOURCES) == set(SHAPES)
    files = [*kbench_openml.kbench_datasets(), *kbench_files.kbench_datasets()]
    assert {source.name for source in files} == {
        "openml",
        "csv",
        "excel",
        "parquet",
        "arff",
        "svmlight",
    }
    for source in files:
        assert callable(_loader(source))


@pytest.mark.parametrize("name", SHAPES)
def test_every_source_gives_canonical_data_with_its_defaults(name):
    data = _loader(SOURCES[name])()
    checked = check_dataset(data)
    assert checked.checksum == data.checksum
    assert data.name == name
    assert (*data.X.shape, len(data.target_names)) == SHAPES[name]
    assert data.X.flags.c_contiguous


def test_tasks_on_iris_share_a_group_and_no_checksum():
    tasks = [_loader(SOURCES[name])() for name in SHAPES if name.startswith("iris")]
    assert {task.dataset_family for task in tasks} == {"iris"}
    assert len({task.checksum for task in tasks}) == 4
    whole, *others = tasks
    for label, task in enumerate(others):
        assert task.target_names == ("rest", whole.target_names[label])
        np.testing.assert_array_equal(task.y == 1, whole.y == label)


def test_claims_are_made_on_real_data_of_some_size():
    roles = {name: _loader(SOURCES[name])().role for name in SHAPES}
    evaluation = {name for name in roles if roles[name] == "evaluation"}
    assert evaluation == {"wine", "wdbc", "digits", "diabetes"}


def test_diabetes_is_a_regression_task_in_the_units_of_its_columns():
    data = kbench_datasets.load_diabetes()
    assert data.task == "regression"  # although its targets are whole numbers
    assert (data.y.min(), data.y.max(), data.y.dtype) == (25, 346, np.float64)
    assert data.feature_names[0] == "age"
    assert data.X[0, 0] == 59


@pytest.mark.parametrize(
    ("name", "sd"), [("friedman1", 1.0), ("friedman2", 125), ("friedman3", 0.1)]
)
def test_noise_is_added_to_the_targets_of_friedman(name, sd):
    make = getattr(kbench_datasets, name)
    clean, noisy = make(n_samples=4000, noise=0.0, seed=2), make(n_samples=4000, seed=2)
    np.testing.assert_array_equal(clean.X, noisy.X)
    assert np.std(noisy.y - clean.y) == pytest.approx(sd, rel=0.05)
    x = clean.X.T
    impedance = x[1] * x[2] - 1 / (x[1] * x[3])
    formula = {
        "friedman1": 10 * np.sin(np.pi * x[0] * x[1])
        + 20 * (x[2] - 0.5) ** 2
        + 10 * x[3]
        + 5 * (x[4] if name == "friedman1" else 0),
        "friedman2": np.sqrt(x[0] ** 2 + impedance**2),
        "friedman3": np.arctan(impedance / x[0]),
    }
    np.testing.assert_allclose(clean.y, formula[name])


# -- synthetic


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_data_depend_on_the_seed_and_nothing_else(name):
    make = getattr(kbench_datasets, name)
    np.random.seed(0)  # noqa: NPY002 (the point is that it does not matter)
    one = make(n_samples=200, seed=3)
    np.random.seed(1)  # noqa: NPY002
    assert make(n_samples=200, seed=3).checksum == one.checksum
    assert make(n_samples=200, seed=4).checksum != one.checksum
    assert one.X.shape[0] == 200


@pytest.mark.parametrize("name", SYNTHETIC)
@pytest.mark.parametrize(
    "wrong", [{"n_samples": 2}, {"n_samples": 10.5}, {"noise": -0.1}, {"seed": -1}]
)
def test_wrong_parameters_are_named(name, wrong):
    make = getattr(kbench_datasets, name)
    assert set(wrong) <= set(inspect.signature(make).parameters)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make(**wrong)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("circles", {"factor": 1.0}),
        ("checkerboard", {"n_cells": 1}),
        ("checkerboard", {"noise": 0.5}),
        ("polytope", {"margin": 0.5}),
        ("polytope", {"n_halfspaces": 0}),
        ("polytope", {"n_features": 2, "n_halfspaces": 200}),
    ],
)
def test_wrong_shapes_are_named(name, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        getattr(_synthetic, name)(**wrong)


def test_two_moons_lie_on_their_half_circles():
    data = _synthetic.two_moons(n_samples=50, noise=0.0)
    upper, lower = data.X[data.y == 0], data.X[data.y == 1]
    np.testing.assert_allclose(np.linalg.norm(upper, axis=1), 1.0)
    np.testing.assert_allclose(np.linalg.norm(lower - [1.0, 0.5], axis=1), 1.0)
    assert upper[:, 1].min() >= 0
    assert lower[:, 1].max() <= 0.5


def test_polytope_has_its_margin():
    # the inside is convex: no outer point lies in the hull of inner ones
    from scipy.spatial import Delaunay

    data = _synthetic.polytope(n_samples=600, margin=0.05, seed=5)
    inside, outside = data.X[data.y == 1], data.X[data.y == 0]
    assert (Delaunay(inside).find_simplex(outside) < 0).all()
    gaps = np.linalg.norm(inside[:, None] - outside[None], axis=2)
    assert gaps.min() >= 0.05


def test_flipped_labels_are_as_many_as_asked_for():
    clean = _synthetic.checkerboard(n_samples=20_000)
    noisy = _synthetic.checkerboard(n_samples=20_000, noise=0.2)
    truth = np.floor(4 * noisy.X).sum(axis=1) % 2
    assert np.mean(noisy.y != truth) == pytest.approx(0.2, abs=0.02)
    assert np.mean(clean.y == np.floor(4 * clean.X).sum(axis=1) % 2) == 1


# -- files

CSV = "size,colour,n,label\n1.5,red,3,yes\n,blue,1,no\n2,NA,2,yes\n4,red,2,\n"
EXPECTED = np.array([[1.5, 0, 1, 3], [np.nan, 1, 0, 1], [2, np.nan, np.nan, 2]])


def _check_small(data: Dataset):
    np.testing.assert_array_equal(data.X, EXPECTED)
    assert data.feature_names == ("size", "colour=blue", "colour=red", "n")
    assert data.target_names == ("no", "yes")
    assert data.y.tolist() == [1, 0, 1]
    assert (data.name, data.dataset_family) == ("mine", "mine")
    check_dataset(data)


def test_csv(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text(CSV)
    _check_small(load_csv(str(file), target="label"))
    packed = tmp_path / "mine.csv.gz"
    packed.write_bytes(gzip.compress(CSV.encode()))
    _check_small(load_csv(str(packed), target="label"))
    file.write_text(CSV.replace(",", ";"))
    _check_small(load_csv(str(file), target="label", delimiter=";"))


def test_csv_options(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text(CSV)
    given = {"drop": ["label"], "categorical": ["n"], "dataset_family": "g"}
    data = load_csv(str(file), target="colour", **given)
    assert data.feature_names == ("size", "n=1", "n=2", "n=3")
    assert data.feature_kinds == ("numeric", "onehot", "onehot", "onehot")
    assert data.dataset_family == "g"


def test_parquet(tmp_path):
    import pandas

    file = tmp_path / "mine.parquet"
    frame = pandas.read_csv(io.StringIO(CSV))
    frame.to_parquet(file)
    _check_small(load_parquet(str(file), target="label"))
    frame["colour"] = pandas.Categorical(frame["colour"], categories=["red", "green", "blue"])
    frame["flag"] = [True, False, True, False]
    frame.to_parquet(file)
    data = load_parquet(str(file), target="label")
    assert data.feature_names[1:4] == ("colour=red", "colour=green", "colour=blue")
    assert data.feature_names[-2:] == ("flag=False", "flag=True")
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(DatasetError, match="cannot be read as parquet"):
        load_parquet(str(file), target="label")


def test_arff_file(tmp_path):
    file = tmp_path / "mine.arff"
    file.write_text(
        "@relation x\n@attribute size real\n@attribute colour {blue,red}\n@attribute n integer\n"
        "@attribute label {no,yes}\n@data\n1.5,red,3,yes\n?,blue,1,no\n2,?,2,yes\n4,red,2,?\n"
    )
    _check_small(load_arff(str(file), target="label"))


def test_svmlight(tmp_path):
    file = tmp_path / "mine.svm"
    file.write_text("+1 1:0.5 4:2\n-1 2:1 # said\n+1 1:0.25\n")
    data = load_svmlight(str(file))
    assert scipy.sparse.issparse(data.X)
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, 0, 2], [0, 1, 0, 0], [0.25, 0, 0, 0]])
    assert data.y.tolist() == [1, 0, 1]
    assert data.target_names == ("-1", "1")
    assert load_svmlight(str(file), n_features=9).X.shape == (3, 9)
    file.write_text("what is this\n")
    with pytest.raises(DatasetError, match="cannot be read as svmlight"):
        load_svmlight(str(file))


@pytest.mark.parametrize(
    ("text", "params", "why"),
    [
        (CSV, {"target": "labels"}, "did you mean 'label'"),
        (CSV, {"target": "label", "drop": ["x"]}, "no column 'x'"),
        (CSV, {"target": "label", "categorical": ["x"]}, "categorical: there is no column 'x'"),
        ("a,b\n1,2,3\n4,5\n6,7,8,9\n", {"target": "b"}, "its first line has 2 names"),
        ("", {"target": "b"}, "is empty"),
        ("a,b\n1,inf\n2,0.7\n", {"target": "b"}, "the target 'b' is infinite in 1 row of 2"),
        ("a,b\n1,x\n2,x\n", {"target": "b"}, "at least 2"),
        ("b\n1\n2\n", {"target": "b"}, "it has only one column"),
    ],
)
def test_mistakes_in_files_are_named(tmp_path, text, params, why):
    file = tmp_path / "mine.csv"
    file.write_text(text)
    with pytest.raises(DatasetError) as caught:
        load_csv(str(file), **params)
    assert why in str(caught.value)
    assert "mine.csv" in str(caught.value)


def test_text_is_no_feature(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("id,x,y\n" + "".join(f"person {i},{i},{i % 2}\n" for i in range(60)))
    with pytest.raises(DatasetError, match=r"`drop=\['id'\]`"):
        load_csv(str(file), target="y")
    assert load_csv(str(file), target="y", drop=["id"]).X.shape == (60, 1)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DatasetError, match="No such file"):
        load_csv(str(tmp_path / "none.csv"), target="y")
    with pytest.raises(DatasetError, match="not a file"):
        load_csv(str(tmp_path), target="y")


def test_a_file_too_large_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "mine.csv"
    file.write_text("x" * 2_000_000)
    monkeypatch.setenv("KBENCH_MAX_DATASET_MIB", "1")
    for load in (load_csv, load_parquet, load_arff):
        with pytest.raises(DatasetError, match="KBENCH_MAX_DATASET_MIB"):
            load(str(file), target="y")
    monkeypatch.setenv("KBENCH_MAX_DATASET_MIB", "much")
    with pytest.raises(DatasetError, match="'much'"):
        load_csv(str(file), target="y")
